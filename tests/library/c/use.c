/* SPDX-License-Identifier: GPL-2.0-only */
/* use IMAGE DISK: boots, writes a file to an ext4 disk, reads it from another thread, halts, and boots again. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <kyozon/linux.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

static long call(struct kyozon_linux_thread *thread, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
		 uint64_t e)
{
	uint64_t arguments[6] = { a, b, c, d, e, 0 };

	return kyozon_linux_syscall(thread, number, arguments);
}

static void *reader(void *kernel)
{
	struct kyozon_linux_thread *thread;
	char text[16] = "";
	long file;

	if (kyozon_linux_attach(kernel, &thread))
		return NULL;
	file = call(thread, SYS_open, (uint64_t)"/mnt/file", O_RDONLY, 0, 0, 0);
	call(thread, SYS_read, file, (uint64_t)text, sizeof(text) - 1, 0, 0);
	printf("another thread reads %s\n", text);
	printf("a bad address: %s\n", strerror(-call(thread, SYS_pread64, file, 8, 100, 0, 0)));
	call(thread, SYS_close, file, 0, 0, 0, 0);
	kyozon_linux_detach(thread);
	return kernel;
}

static int once(const struct kyozon_linux_options *options)
{
	struct kyozon_linux *kernel;
	struct kyozon_linux_thread *thread;
	pthread_t other;
	void *ok;
	long file;

	if (kyozon_linux_boot(options, &kernel, &thread)) {
		printf("boot: %s\n", kyozon_linux_error());
		return 1;
	}
	call(thread, SYS_mkdir, (uint64_t)"/mnt", 0755, 0, 0, 0);
	if (call(thread, SYS_mount, (uint64_t)"/dev/vda", (uint64_t)"/mnt", (uint64_t)"ext4", 0, 0))
		return 2;
	file = call(thread, SYS_open, (uint64_t)"/mnt/file", O_CREAT | O_WRONLY, 0644, 0, 0);
	if (call(thread, SYS_write, file, (uint64_t)"from C", 6, 0, 0) != 6)
		return 3;
	call(thread, SYS_close, file, 0, 0, 0, 0);
	pthread_create(&other, NULL, reader, kernel);
	pthread_join(other, &ok);
	if (!ok || call(thread, SYS_umount2, (uint64_t)"/mnt", 0, 0, 0, 0))
		return 4;
	return kyozon_linux_halt(kernel, thread) ? 5 : 0;
}

int main(int argc, char **argv)
{
	struct kyozon_linux_disk disk = { .path = argv[2] };
	struct kyozon_linux_options options = { .image = argv[1], .disks = &disk, .disk_count = 1 };
	struct kyozon_linux_options bad = { .image = "/nonexistent" };

	if (argc != 3)
		return 9;
	if (once(&bad) != 1 || once(&options))
		return 1;
	return once(&options);
}
