// SPDX-License-Identifier: MIT OR Apache-2.0
/* long KIND: writes a typed program for the microkernel that has very many of something. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MANIFEST	32
#define EXPORT		24

static void put(const void *bytes, size_t count)
{
	fwrite(bytes, 1, count, stdout);
}


static void header(uint32_t signatures, uint32_t annotations)
{
	/* version, flags, region, text, read-only data, signatures, functions, call tables, jump tables, imports, entries */
	const uint32_t fields[] = { 1, 1, 0x40000000, 0, 1, 0, signatures, 1, 0, 0, 0, 0, annotations, 0 };
	/* no result, one argument of 32 bits */
	const uint8_t signature[12] = { 0, 1, 2 };
	const uint8_t function[12] = { 0 };

	put("KYZTYPED", 8);
	put(fields, sizeof(fields));
	while (signatures--)
		put(signature, sizeof(signature));
	put(function, sizeof(function));
}

static void text(void)
{
	put("\xc3", 1);
}

/* A head at the first instruction, with this many items, below 2^21: nothing is known of rax. */
static void items(uint32_t count)
{
	const uint8_t head[] = { 0, 0x20, 0x80 | (count & 0x7f), 0x80 | (count >> 7 & 0x7f), count >> 14 };
	const uint8_t item[3] = { 0 };

	header(1, sizeof(head) + count * sizeof(item));
	put(head, sizeof(head));
	while (count--)
		put(item, sizeof(item));
	text();
}

/* Exports, of which the last one is run and the others have this long a name, for all the same. */
static void exports(uint32_t count, uint32_t length)
{
	static char name[1 << 20];
	const uint32_t names = MANIFEST + EXPORT * count;
	const uint32_t fields[] = { names + 4 + length, 0, 0, 0, 0, count };

	header(1, 0);
	text();
	put("KYZWASM1", 8);
	put(fields, sizeof(fields));
	while (count--) {
		const uint32_t other[] = { 0, 0, names + 4, length, names + 3, 1 };
		const uint32_t run[] = { 0, 0, names, 3, names + 3, 1 };

		put(count ? other : run, EXPORT);
	}
	put("run:", 4);
	memset(name, 'x', length);
	put(name, length);
}

int main(int argc, char **argv)
{
	const char *kind = argc == 2 ? argv[1] : "";

	if (!strcmp(kind, "signatures")) {
		header(65535, 0);
		text();
	} else if (!strcmp(kind, "items")) {
		items(60000);
	} else if (!strcmp(kind, "exports")) {
		exports(20000, 8);
	} else if (!strcmp(kind, "names")) {
		exports(257, 1 << 20);
	} else {
		return 2;
	}
	return fflush(stdout) ? 2 : 0;
}
