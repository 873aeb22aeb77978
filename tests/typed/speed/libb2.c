// SPDX-License-Identifier: MIT OR Apache-2.0
/* libb2 WORK: BLAKE2b and BLAKE2s of a text. */
#include "bytes.h"
#include "blake2.h"

#define SIZE	(4 << 20)
#define TIMES	9

int main(int argc, char **argv)
{
	unsigned char *from = text(SIZE);
	struct {
		unsigned char b[64], s[32];
	} hash;
	uint64_t sum = FIRST_SUM;

	start(argc, argv);
	for (int i = 0; i < TIMES; i++) {
		from[i]++;
		must(!blake2b(hash.b, from, NULL, sizeof(hash.b), SIZE, 0), "BLAKE2b");
		must(!blake2s(hash.s, from, NULL, sizeof(hash.s), SIZE, 0), "BLAKE2s");
		sum = sum_of(sum, &hash, sizeof(hash));
	}
	finish();
	printf("sum %016llx\n", (unsigned long long)sum);
	return 0;
}
