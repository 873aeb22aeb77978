/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes for the libraries of this folder: a text that is always the same, and sums of what they make of it. */
#include "speed.h"

#define WORDS	2000
#define LONGEST	12

static uint32_t seed = 1;

/* The generator "xorshift32". */
static uint32_t below(uint32_t limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	seed ^= seed << 5;
	return seed % limit;
}

/* Lines of words, of which the first ones are frequent, with phrases and lines that come again. */
static unsigned char *text(size_t size)
{
	static char words[WORDS][LONGEST + 1];
	unsigned char *bytes = malloc(size + 100);
	size_t at = 0, line = 0;

	if (!bytes)
		abort();
	for (int word = 0; word < WORDS; word++)
		for (uint32_t n = 2 + below(LONGEST - 2), i = 0; i < n; i++)
			words[word][i] = "etaoinshrdlcumwfgypbvk"[below(22) * below(22) / 22];
	while (at < size) {
		uint32_t kind = below(100);

		if (kind < 4 && at > 1000) {
			size_t length = 8 + below(56), from = at - length - below(at - length);

			memcpy(bytes + at, bytes + from, length);
			at += length;
		} else if (kind < 6) {
			at += sprintf((char *)bytes + at, "%u ", below(100000));
		} else {
			const char *word = words[(uint64_t)below(WORDS) * below(WORDS) / WORDS * below(WORDS) / WORDS];
			size_t length = strlen(word);

			memcpy(bytes + at, word, length);
			at += length;
			bytes[at++] = ' ';
		}
		if (at - line > 90) {
			bytes[at - 1] = '\n';
			line = at;
		}
	}
	return bytes;
}

/* FNV-1a of 64 bits, continued. */
static uint64_t sum_of(uint64_t sum, const void *bytes, size_t size)
{
	for (size_t n = 0; n < size; n++)
		sum = (sum ^ ((const unsigned char *)bytes)[n]) * 0x100000001b3;
	return sum;
}

#define FIRST_SUM 0xcbf29ce484222325

static void must(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s failed\n", what);
	exit(1);
}

/* Prints the time and the sum of what came out; what was packed must be the text again. */
static int packed(const void *from, const void *again, size_t size, const void *small, size_t length)
{
	finish();
	must(!memcmp(from, again, size), "unpacking");
	printf("sum %zu bytes, %016llx\n", length, (unsigned long long)sum_of(FIRST_SUM, small, length));
	return 0;
}
