// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * calls FILE VECTORS: for each operation, compares Linux's system call with the call of a program in kernel
 * mode. FILE is the typed program calls.s; VECTORS is vectors.s, for the last operation. Prints samples: ticks of
 * the time-stamp counter for one operation, in both ways. A sample is the difference of two runs, one of which is
 * twice as long as the other.
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

/* Numbers of loops in calls.s */
enum loop { GETPID, FSTAT, READ, WRITE, PREAD, PWRITE, PIPE };

static const struct operation {
	const char *name;
	enum loop loop;
	long bytes;
	/* NULL: a pipe */
	const char *file;
	/* the file's position is its start before each run, */
	int rewinds;
	/* and it is empty */
	int empty;
} operations[] = {
	{ "getpid", GETPID, 0, "/tmp/file" },
	{ "read", READ, 1, "/dev/zero" },
	{ "write", WRITE, 1, "/dev/null" },
	{ "fstat", FSTAT, 0, "/tmp/file" },
	{ "pread", PREAD, 1, "/tmp/file" },
	{ "pwrite", PWRITE, 1, "/tmp/file" },
	{ "pipe", PIPE, 1, NULL },
	/* IOzone's */
	{ "write-16K", WRITE, LARGE, "/tmp/file", 1, 1 },
	{ "re-write-16K", WRITE, LARGE, "/tmp/file", 1 },
	{ "read-16K", READ, LARGE, "/tmp/file", 1 },
	{ "re-read-16K", PREAD, LARGE, "/tmp/file" },
};
static const struct operation vectors = { "getpid-vectors", GETPID, 0, "/tmp/file" };

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

static void native(const struct operation *operation, long count)
{
	long last = -1, bytes = operation->bytes;

	switch (operation->loop) {
	case GETPID:
		LOOP(last = call(SYS_getpid, 0, 0, 0, 0));
		break;
	case FSTAT:
		LOOP(last = call(SYS_fstat, files[0], memory, 0, 0));
		break;
	case READ:
		LOOP(last = call(SYS_read, files[0], memory, bytes, 0));
		break;
	case WRITE:
		LOOP(last = call(SYS_write, files[1], memory, bytes, 0));
		break;
	case PREAD:
		LOOP(last = call(SYS_pread64, files[0], memory, bytes, 0));
		break;
	case PWRITE:
		LOOP(last = call(SYS_pwrite64, files[0], memory, bytes, 0));
		break;
	case PIPE:
		LOOP(call(SYS_write, files[1], memory, bytes, 0); last = call(SYS_read, files[0], memory, bytes, 0));
		break;
	}
	if (last < bytes)
		fail(operation->name);
}

static void typed(const struct operation *operation, long count)
{
	static struct kyozon_typed_run request;

	memset(&request, 0, sizeof(request));
	request.version = KYOZON_TYPED_VERSION;
	request.arguments[0] = count;
	request.arguments[1] = operation->loop;
	request.arguments[2] = operation->bytes;
	for (int n = 0; n < KYOZON_TYPED_HANDLES; n++)
		request.handles[n] = n < 2 ? files[n] : -1;
	while (ioctl(device, KYOZON_IOCTL_TYPED_RUN, &request))
		if (errno != EINTR)
			fail((const char *)request.message);
	/* The program's last result is the operation's. */
	if (request.outcome != KYOZON_TYPED_RETURNED || (long)request.result < operation->bytes)
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

static uint64_t ticks(const struct operation *operation, void (*run)(const struct operation *, long), long count)
{
	uint64_t start;

	if (operation->empty && ftruncate(files[0], 0))
		fail("ftruncate");
	if (operation->rewinds)
		lseek(files[0], 0, SEEK_SET);
	start = __rdtsc();
	run(operation, count);
	return __rdtsc() - start;
}

static void sample(const char *way, const struct operation *operation, void (*run)(const struct operation *, long))
{
	ticks(operation, run, COUNT);
	for (int n = 0; n < SAMPLES; n++) {
		uint64_t one = ticks(operation, run, COUNT), two = ticks(operation, run, 2 * COUNT);

		printf("%s %s %.2f\n", operation->name, way, (double)(int64_t)(two - one) / COUNT);
	}
}

/* Files have something to read, as much as the longest run does; devices do not keep it. */
static void open_files(const struct operation *operation)
{
	static char large[LARGE];

	if (!operation->file) {
		if (pipe(files))
			fail("pipe");
		return;
	}
	files[0] = open(operation->file, O_RDWR | O_CREAT, 0600);
	files[1] = files[0];
	if (files[0] < 0)
		fail(operation->file);
	for (long n = 0; n < (operation->rewinds ? 2 * COUNT : 1); n++)
		if (write(files[0], large, LARGE) != LARGE)
			fail(operation->file);
}

static void close_files(void)
{
	close(files[0]);
	if (files[1] != files[0])
		close(files[1]);
}

static void compare(const struct operation *operation)
{
	open_files(operation);
	sample("call", operation, native);
	sample("typed", operation, typed);
	close_files();
}

int main(int argc, char **argv)
{
	if (argc != 3)
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
	load(argv[1]);
	for (size_t n = 0; n < sizeof(operations) / sizeof(*operations); n++)
		compare(&operations[n]);
	load(argv[2]);
	compare(&vectors);
	return 0;
}
