// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Makes three rings of io_uring, and waits: one with registered files, to which
 * requests come by system call, and two with a kernel thread each, one of them
 * by a thread that ends.
 */
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ring(unsigned int entries, unsigned int flags)
{
	struct io_uring_params params = { .flags = flags, .sq_thread_idle = 1000000 };
	int made = syscall(SYS_io_uring_setup, entries, &params);

	if (made < 0) {
		perror("io_uring_setup");
		exit(1);
	}
	return made;
}

static void *make(void *entries)
{
	ring(*(unsigned int *)entries, IORING_SETUP_SQPOLL);
	return NULL;
}

int main(void)
{
	int files[] = { 0, 1, 2 };
	unsigned int entries = 16;
	pthread_t thread;

	if (syscall(SYS_io_uring_register, ring(64, 0), IORING_REGISTER_FILES, files, 3)) {
		perror("io_uring_register");
		return 1;
	}
	ring(8, IORING_SETUP_SQPOLL);
	if (pthread_create(&thread, NULL, make, &entries) || pthread_join(thread, NULL)) {
		fprintf(stderr, "no thread\n");
		return 1;
	}
	pause();
	return 0;
}
