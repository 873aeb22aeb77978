// SPDX-License-Identifier: MIT OR Apache-2.0
/* bzip2 WORK: packs a text and unpacks it. */
#include "bytes.h"
#include "bzlib.h"

#define SIZE 1000000

/* What bzlib calls if it has no files. */
void bz_internal_error(int code)
{
	fprintf(stderr, "bzip2: error %d\n", code);
	abort();
}

int main(int argc, char **argv)
{
	unsigned char *from = text(SIZE);
	char *small = malloc(SIZE), *again = malloc(SIZE);
	unsigned int length = SIZE, size = SIZE;

	start(argc, argv);
	must(!BZ2_bzBuffToBuffCompress(small, &length, (char *)from, SIZE, 9, 0, 0), "packing");
	must(!BZ2_bzBuffToBuffDecompress(again, &size, small, length, 0, 0) && size == SIZE, "unpacking");
	return packed(from, again, SIZE, small, length);
}
