/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory is zero when it is mapped, moves with its contents, and comes back. */
#define _GNU_SOURCE
#include "check.h"
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KIB 1024UL
#define MIB (1024 * KIB)

static char *map(size_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static int is_zero(const char *at, size_t bytes)
{
	return !at[0] && !memcmp(at, at + 1, bytes - 1);
}

/* As many bytes are mapped at once, 200 times. */
static void again(size_t bytes)
{
	for (int turn = 0; turn < 200; turn++) {
		char *at = map(bytes);
		CHECK(at && is_zero(at, bytes));
		memset(at, 7, bytes);
		CHECK(!munmap(at, bytes));
	}
}

static void move(void)
{
	char *at = map(64 * KIB), *behind = map(4 * KIB);
	CHECK(at && behind);
	strcpy(at + 60 * KIB, "moves");
	at = mremap(at, 64 * KIB, 3 * MIB, MREMAP_MAYMOVE);
	CHECK(at != MAP_FAILED && !strcmp(at + 60 * KIB, "moves") && is_zero(at + 64 * KIB, 3 * MIB - 64 * KIB));
	CHECK(mremap(at, 3 * MIB, 8 * KIB, 0) == at && !munmap(at, 8 * KIB) && !munmap(behind, 4 * KIB));
}

static void part(void)
{
	char *at = map(12 * KIB), *middle = at + 4 * KIB;
	CHECK(at);
	memset(at, 1, 12 * KIB);
	CHECK(!munmap(middle, 4 * KIB) && at[0] == 1 && at[8 * KIB] == 1);
	CHECK(mmap(middle, 4 * KIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == middle);
	CHECK(is_zero(middle, 4 * KIB) && !madvise(at, 4 * KIB, MADV_DONTNEED) && is_zero(at, 4 * KIB));
	CHECK(!munmap(at, 12 * KIB));
}

static void *allocate(void *seed)
{
	uint32_t random = (uintptr_t)seed;
	char *held[64] = {0};
	unsigned sizes[64] = {0};
	for (int turn = 0; turn < 20000; turn++) {
		random = random * 1103515245 + 12345;
		unsigned n = random >> 16 & 63, size = (random >> 8 & 0xfff) + 1;
		for (unsigned k = 0; held[n] && k < sizes[n]; k += 97) CHECK(held[n][k] == (char)n);
		free(held[n]);
		CHECK((held[n] = malloc(size)));
		memset(held[n], n, sizes[n] = size);
	}
	for (int n = 0; n < 64; n++) free(held[n]);
	return NULL;
}

int main(void)
{
	pthread_t threads[4];

	again(4 * KIB);
	again(20 * MIB);
	move();
	part();
	CHECK(!map(1UL << 40) && errno == ENOMEM && mmap(NULL, 0, 0, MAP_ANONYMOUS | MAP_PRIVATE, -1, 0) == MAP_FAILED);
	for (uintptr_t n = 0; n < 4; n++) CHECK(!pthread_create(&threads[n], NULL, allocate, (void *)(n + 1)));
	for (int n = 0; n < 4; n++) CHECK(!pthread_join(threads[n], NULL));
	puts("done");
	return 0;
}
