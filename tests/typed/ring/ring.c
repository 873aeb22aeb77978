// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * ring FILE.typed: runs the program on memory that another process has too and fills as a ring of numbers. Prints
 * "same" if the program returns their sum.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../../bugs/typed.h"

#define NUMBERS 100000u
#define ROOM 512u
#define BYTES 8192

struct ring {
	uint32_t put __attribute__((aligned(64)));
	uint32_t taken __attribute__((aligned(64)));
	uint64_t numbers[ROOM] __attribute__((aligned(4096)));
};
_Static_assert(sizeof(struct ring) == BYTES, "the program's addresses");

static uint64_t number(uint32_t n)
{
	return n * 0x9e3779b97f4a7c15 ^ n;
}

static void fill(struct ring *ring)
{
	for (uint32_t n = 0; n < NUMBERS; n++) {
		while (n - __atomic_load_n(&ring->taken, __ATOMIC_ACQUIRE) == ROOM)
			sched_yield();
		ring->numbers[n % ROOM] = number(n);
		__atomic_store_n(&ring->put, n + 1, __ATOMIC_RELEASE);
	}
}

static void *map(void *at, int flags, int memory)
{
	void *mapped = mmap(at, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | flags, memory, 0);

	if (mapped == MAP_FAILED) {
		perror("the ring");
		exit(2);
	}
	return mapped;
}

int main(int argc, char **argv)
{
	int device = typed_device(), memory = memfd_create("ring", 0), status = 0;
	struct kyozon_typed_run run = typed_run();
	const char *refused;
	uint64_t sum = 0;
	pid_t writer;

	if (argc != 2 || memory < 0 || ftruncate(memory, BYTES))
		return 2;
	refused = typed_load(device, argv[1], KYOZON_TYPED_OUTSIDE);
	if (refused) {
		printf("refused: %s\n", refused);
		return 1;
	}
	writer = fork();
	if (writer < 0)
		return 2;
	if (!writer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fill(map(NULL, 0, memory));
		_exit(0);
	}
	map((void *)(uintptr_t)KYOZON_TYPED_REGION, MAP_FIXED_NOREPLACE, memory);
	while (ioctl(device, KYOZON_IOCTL_TYPED_RUN, &run))
		if (errno != EINTR)
			return 2;
	if (waitpid(writer, &status, 0) != writer || status)
		return 2;
	for (uint32_t n = 0; n < NUMBERS; n++)
		sum += number(n);
	if (run.outcome != KYOZON_TYPED_RETURNED || run.result != sum) {
		printf("outcome %u, %#lx instead of %#lx\n", run.outcome, (unsigned long)run.result, (unsigned long)sum);
		return 1;
	}
	puts("same");
	return 0;
}
