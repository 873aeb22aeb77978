// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * calls NAME FILE DESCRIPTOR: for one operation, compares Linux's system call with the call of a program in kernel
 * mode. FILE is the typed program, which repeats the operation as often as its argument says. DESCRIPTOR is a file's
 * name, or `pipe`. Prints samples: ticks of the time-stamp counter for one operation, in both ways. A sample is the
 * difference of two runs, one of which is twice as long as the other.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include "../../../crates/base/abi/include/kyozon/abi.h"

#define SAMPLES	21
#define COUNT	500
#define MEMORY	(1 << 20)
#define LARGE	16384

static const uintptr_t memory = KYOZON_TYPED_REGION;
static int device, files[2];

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

/* A system call by its instruction: as short as the typed program's call. */
static inline long call(long number, long a, long b, long c, long d)
{
	register long fourth __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
			 : "rcx", "r11", "memory");
	return result;
}

#define LOOP(body) do { for (long n = 0; n < count; n++) { body; } } while (0)

static void native(const char *name, long count)
{
	long last = -1;

	if (!strcmp(name, "getpid"))
		LOOP(last = call(SYS_getpid, 0, 0, 0, 0));
	else if (!strcmp(name, "pread"))
		LOOP(last = call(SYS_pread64, files[0], memory, 1, 0));
	else if (!strcmp(name, "pwrite"))
		LOOP(last = call(SYS_pwrite64, files[0], memory, 1, 0));
	else if (!strcmp(name, "pread-16K"))
		LOOP(last = call(SYS_pread64, files[0], memory, LARGE, 0));
	else if (!strcmp(name, "pwrite-16K"))
		LOOP(last = call(SYS_pwrite64, files[0], memory, LARGE, 0));
	else if (!strcmp(name, "read"))
		LOOP(last = call(SYS_read, files[0], memory, 1, 0));
	else if (!strcmp(name, "write"))
		LOOP(last = call(SYS_write, files[0], memory, 1, 0));
	else if (!strcmp(name, "fstat"))
		LOOP(last = call(SYS_fstat, files[0], memory, 0, 0));
	else if (!strcmp(name, "pipe"))
		LOOP(call(SYS_write, files[1], memory, 1, 0); last = call(SYS_read, files[0], memory, 1, 0));
	if (last < 0)
		fail(name);
}

static void typed(const char *name, long count)
{
	static struct kyozon_typed_run request;

	memset(&request, 0, sizeof(request));
	request.version = KYOZON_TYPED_VERSION;
	request.arguments[0] = count;
	for (int n = 0; n < KYOZON_TYPED_HANDLES; n++)
		request.handles[n] = n < 2 ? files[n] : -1;
	while (ioctl(device, KYOZON_IOCTL_TYPED_RUN, &request))
		if (errno != EINTR)
			fail((const char *)request.message);
	/* The program's last result is the operation's. */
	if (request.outcome != KYOZON_TYPED_RETURNED || (long)request.result < 0)
		fail("the typed program");
}

static void load(const char *path)
{
	static struct kyozon_typed_load request;
	static unsigned char bytes[1 << 16];
	int file = open(path, O_RDONLY);
	ssize_t length = read(file, bytes, sizeof(bytes));

	if (length <= 0)
		fail(path);
	close(file);
	request.check.version = KYOZON_TYPED_VERSION;
	request.check.file.address = (uintptr_t)bytes;
	request.check.file.bytes = length;
	if (ioctl(device, KYOZON_IOCTL_TYPED_LOAD, &request))
		fail((const char *)request.check.message);
}

static void sample(const char *way, const char *name, void (*run)(const char *, long))
{
	run(name, COUNT);
	for (int n = 0; n < SAMPLES; n++) {
		uint64_t start = __rdtsc(), middle, end;

		run(name, COUNT);
		middle = __rdtsc();
		run(name, 2 * COUNT);
		end = __rdtsc();
		printf("%s %s %.2f\n", name, way, (double)(int64_t)(end - 2 * middle + start) / COUNT);
	}
}

int main(int argc, char **argv)
{
	static char large[LARGE];

	if (argc != 4)
		return 2;
	/* A heap at a random address may lie in the region. */
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
		personality(ADDR_NO_RANDOMIZE);
		execv("/proc/self/exe", argv);
		fail("/proc/self/exe");
	}
	if (mmap((void *)memory, KYOZON_TYPED_RESERVED, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED ||
	    mprotect((void *)memory, MEMORY, PROT_READ | PROT_WRITE))
		fail("the region");
	memset((void *)memory, 1, MEMORY);
	device = open("/dev/kyozon-typed", O_RDWR);
	if (device < 0)
		fail("/dev/kyozon-typed");
	if (!strcmp(argv[3], "pipe")) {
		if (pipe(files))
			fail("pipe");
	} else {
		files[0] = open(argv[3], O_RDWR | O_CREAT, 0600);
		files[1] = files[0];
		if (files[0] < 0)
			fail(argv[3]);
		/* Files have something to read; devices do not keep it. */
		if (write(files[0], large, LARGE) != LARGE)
			fail(argv[3]);
	}
	load(argv[2]);
	native(argv[1], 1);
	sample("call", argv[1], native);
	sample("typed", argv[1], typed);
	return 0;
}
