// SPDX-License-Identifier: MIT OR Apache-2.0
/* lz4 WORK: packs a text, fast and well, and unpacks it. */
#include "bytes.h"
#include "lz4.h"
#include "lz4hc.h"

#define SIZE	(4 << 20)
#define TIMES	5

int main(int argc, char **argv)
{
	unsigned char *from = text(SIZE);
	char *small = malloc(2 * SIZE), *again = malloc(SIZE);
	int length = 0, well = 0;

	start(argc, argv);
	for (int i = 0; i < TIMES; i++) {
		length = LZ4_compress_default((char *)from, small, SIZE, SIZE);
		must(length > 0 && LZ4_decompress_safe(small, again, length, SIZE) == SIZE, "unpacking");
	}
	well = LZ4_compress_HC((char *)from, small + length, SIZE / 2, SIZE, LZ4HC_CLEVEL_MIN);
	for (int i = 0; i < TIMES; i++)
		must(well > 0 && LZ4_decompress_safe(small + length, again, well, SIZE / 2) == SIZE / 2, "unpacking");
	/* What is packed differs: a compiler for 64 bits hashes 5 bytes, others 4. */
	return packed(from, again, SIZE, again, SIZE);
}
