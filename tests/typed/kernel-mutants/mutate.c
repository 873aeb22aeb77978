// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * mutate SECONDS SEED FILE...: changes files of typed programs at random, loads them by /dev/kyozon-typed, and runs
 * what the kernel accepts, with arguments, files and answers that are random too. Prints how many were tried and
 * accepted. A program reaches this process's memory by its region only: pages beside the region must keep their
 * contents.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "../../../crates/base/abi/include/kyozon/abi.h"

#define MEMORY		(1 << 20)
#define PAGE		4096
#define PATTERN		0x5a
/* Interrupts of a run until it is given up, one a millisecond; and calls that are answered. */
#define INTERRUPTS	5
#define ANSWERS		40

struct program {
	unsigned char *bytes;
	size_t length;
};

static uint64_t state;

static uint64_t next(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dULL;
}

static size_t below(size_t limit)
{
	return next() % limit;
}

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void alarmed(int number)
{
}

static struct program take(const char *path)
{
	struct program program;
	struct stat status;
	int file = open(path, O_RDONLY);

	if (file < 0 || fstat(file, &status))
		fail(path);
	program.length = status.st_size;
	program.bytes = malloc(program.length);
	if (read(file, program.bytes, program.length) != (ssize_t)program.length)
		fail(path);
	close(file);
	return program;
}

static void *map(uint64_t address, uint64_t bytes, int protection)
{
	void *at = mmap((void *)address, bytes, protection,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (at == MAP_FAILED)
		fail("the region");
	return at;
}

static void check(const unsigned char *page, const char *where)
{
	for (int n = 0; n < PAGE; n++)
		if (page[n] != PATTERN) {
			fprintf(stderr, "the page %s the region has changed\n", where);
			exit(1);
		}
}

static int load(int device, const struct program *program, int named)
{
	static struct kyozon_typed_load request;
	static uint32_t imports[KYOZON_TYPED_OUTSIDE_GATES];

	for (int n = 0; n < KYOZON_TYPED_OUTSIDE_GATES; n++)
		imports[n] = below(4) ? KYOZON_TYPED_OUTSIDE : KYOZON_TYPED_WASI + below(46);
	memset(&request, 0, sizeof(request));
	request.check.version = KYOZON_TYPED_VERSION;
	request.check.file.address = (uintptr_t)program->bytes;
	request.check.file.bytes = program->length;
	request.imports = named ? (uintptr_t)imports : 0;
	request.import_count = named ? KYOZON_TYPED_OUTSIDE_GATES : 0;
	return ioctl(device, KYOZON_IOCTL_TYPED_LOAD, &request);
}

static uint64_t number(void)
{
	switch (below(5)) {
	case 0:
		return next();
	case 1:
		return below(16);
	case 2:
		return -1;
	case 3:
		return below(MEMORY);
	}
	return KYOZON_TYPED_REGION + below(MEMORY);
}

static void run(int device, const int *files, int file_count)
{
	static struct kyozon_typed_run request;
	int interrupts = 0, answers = 0;

	memset(&request, 0, sizeof(request));
	request.version = KYOZON_TYPED_VERSION;
	request.memory = KYOZON_TYPED_REGION;
	request.memory_bytes = MEMORY;
	for (int n = 0; n < 6; n++)
		request.arguments[n] = number();
	while (interrupts < INTERRUPTS && answers < ANSWERS) {
		for (int n = 0; n < KYOZON_TYPED_HANDLES; n++) {
			request.handles[n] = below(3) ? files[below(file_count)] : -1;
			request.operations[n] = next();
		}
		if (ioctl(device, KYOZON_IOCTL_TYPED_RUN, &request)) {
			if (errno != EINTR)
				fail((const char *)request.message);
			interrupts++;
		} else if (request.outcome == KYOZON_TYPED_CALLED) {
			request.result = number();
			answers++;
		} else {
			break;
		}
	}
}

int main(int argc, char **argv)
{
	const struct itimerval every = { { 0, 1000 }, { 0, 1000 } };
	const struct sigaction on_alarm = { .sa_handler = alarmed };
	const struct rlimit most = { MEMORY, MEMORY };
	unsigned char *before, *after;
	struct program *programs;
	long tried = 0, accepted = 0;
	int count = argc - 3, files[4], ends[2];
	time_t end;

	if (count < 1)
		return 2;
	/* A heap at a random address may lie in the region. */
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
		personality(ADDR_NO_RANDOMIZE);
		execv("/proc/self/exe", argv);
		fail("/proc/self/exe");
	}
	end = time(NULL) + atoi(argv[1]);
	state = strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15ULL | 1;
	programs = calloc(count, sizeof(*programs));
	for (int n = 0; n < count; n++)
		programs[n] = take(argv[n + 3]);
	before = map(KYOZON_TYPED_REGION - PAGE, PAGE, PROT_READ | PROT_WRITE);
	mprotect(map(KYOZON_TYPED_REGION, KYOZON_TYPED_RESERVED, PROT_NONE), MEMORY, PROT_READ | PROT_WRITE);
	after = map(KYOZON_TYPED_REGION + KYOZON_TYPED_RESERVED, PAGE, PROT_READ | PROT_WRITE);
	memset(before, PATTERN, PAGE);
	memset(after, PATTERN, PAGE);
	files[0] = open("/dev/zero", O_RDWR);
	files[1] = open("/tmp/mutate", O_RDWR | O_CREAT | O_TRUNC, 0600);
	files[2] = pipe(ends) ? -1 : ends[0];
	files[3] = ends[1];
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &most);
	sigaction(SIGALRM, &on_alarm, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (time(NULL) < end) {
		const struct program *original = &programs[below(count)];
		struct program mutant = { malloc(original->length), original->length };
		int device = open("/dev/kyozon-typed", O_RDWR);

		if (device < 0)
			fail("/dev/kyozon-typed");
		memcpy(mutant.bytes, original->bytes, mutant.length);
		for (size_t n = below(4); n; n--) {
			unsigned char *byte = &mutant.bytes[below(mutant.length)];

			*byte = below(2) ? *byte ^ 1 << below(8) : next();
		}
		tried++;
		if (!load(device, &mutant, below(2))) {
			accepted++;
			run(device, files, 4);
		}
		close(device);
		free(mutant.bytes);
		check(before, "before");
		check(after, "behind");
	}
	printf("%ld mutants, %ld accepted and run\n", tried, accepted);
	return 0;
}
