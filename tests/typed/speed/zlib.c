// SPDX-License-Identifier: MIT OR Apache-2.0
/* zlib WORK: packs a text at the usual level and unpacks it several times. */
#include "bytes.h"
#include "zlib.h"

#define SIZE	(2 << 20)
#define TIMES	4

int main(int argc, char **argv)
{
	unsigned char *from = text(SIZE), *small = malloc(SIZE), *again = malloc(SIZE);
	uLongf length = SIZE, size = SIZE;

	start(argc, argv);
	must(compress2(small, &length, from, SIZE, 6) == Z_OK, "packing");
	for (int i = 0; i < TIMES; i++)
		must(uncompress(again, &size, small, length) == Z_OK && size == SIZE, "unpacking");
	return packed(from, again, SIZE, small, length);
}
