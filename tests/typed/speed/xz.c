// SPDX-License-Identifier: MIT OR Apache-2.0
/* xz WORK: packs a text by liblzma and unpacks it several times. */
#include "bytes.h"
#include "lzma.h"

#define SIZE	400000
#define TIMES	2
#define PRESET	4

int main(int argc, char **argv)
{
	unsigned char *from = text(SIZE), *small = malloc(SIZE), *again = malloc(SIZE);
	size_t length = 0;

	start(argc, argv);
	must(lzma_easy_buffer_encode(PRESET, LZMA_CHECK_CRC64, NULL, from, SIZE, small, &length, SIZE) == LZMA_OK,
	     "packing");
	for (int i = 0; i < TIMES; i++) {
		uint64_t most = UINT64_MAX;
		size_t in = 0, out = 0;

		must(lzma_stream_buffer_decode(&most, 0, NULL, small, &in, length, again, &out, SIZE) == LZMA_OK &&
		     out == SIZE, "unpacking");
	}
	return packed(from, again, SIZE, small, length);
}
