// SPDX-License-Identifier: GPL-2.0-only
/*
 * Copies. Small ones take overlapping loads and stores; large ones the string instructions, which every x86-64
 * processor since 2013 runs at full width.
 */

#include <linux/export.h>
#include <linux/string.h>
#include <linux/types.h>

typedef u64 __attribute__((vector_size(16), aligned(1), may_alias)) block;
typedef u64 __attribute__((aligned(1), may_alias)) word;
typedef u32 __attribute__((aligned(1), may_alias)) half;
typedef u16 __attribute__((aligned(1), may_alias)) quarter;

/* Bytes from which string instructions are faster. */
#define LARGE	768

/* Copies up to 32 bytes; all loads come before the first store. */
static __always_inline void copy_small(u8 *to, const u8 *from, size_t bytes)
{
	if (bytes >= 16) {
		block a = *(block *)from, b = *(block *)(from + bytes - 16);

		*(block *)to = a;
		*(block *)(to + bytes - 16) = b;
	} else if (bytes >= 8) {
		word a = *(word *)from, b = *(word *)(from + bytes - 8);

		*(word *)to = a;
		*(word *)(to + bytes - 8) = b;
	} else if (bytes >= 4) {
		half a = *(half *)from, b = *(half *)(from + bytes - 4);

		*(half *)to = a;
		*(half *)(to + bytes - 4) = b;
	} else if (bytes >= 2) {
		quarter a = *(quarter *)from, b = *(quarter *)(from + bytes - 2);

		*(quarter *)to = a;
		*(quarter *)(to + bytes - 2) = b;
	} else if (bytes) {
		*to = *from;
	}
}

void *memcpy(void *to, const void *from, size_t bytes)
{
	u8 *t = to;
	const u8 *f = from;
	block last;
	size_t i;

	if (bytes <= 32) {
		copy_small(t, f, bytes);
	} else if (bytes < LARGE) {
		last = *(block *)(f + bytes - 16);
		for (i = 0; i < bytes - 16; i += 16)
			*(block *)(t + i) = *(block *)(f + i);
		*(block *)(t + bytes - 16) = last;
	} else {
		asm volatile("rep movsb" : "+D" (t), "+S" (f), "+c" (bytes) :: "memory");
	}
	return to;
}
EXPORT_SYMBOL(memcpy);

void *memmove(void *to, const void *from, size_t bytes)
{
	u8 *t = to;
	const u8 *f = from;
	block first;

	if (bytes <= 32) {
		copy_small(t, f, bytes);
		return to;
	}
	if ((unsigned long)t - (unsigned long)f >= bytes)
		return memcpy(to, from, bytes);
	/* Overlapping, and the source comes first: backwards. */
	first = *(block *)f;
	for (; bytes > 16; bytes -= 16)
		*(block *)(t + bytes - 16) = *(block *)(f + bytes - 16);
	*(block *)t = first;
	return to;
}
EXPORT_SYMBOL(memmove);

void *memset(void *to, int c, size_t bytes)
{
	u64 pattern = 0x0101010101010101UL * (u8)c;
	block wide = { pattern, pattern };
	u8 *t = to;
	size_t i;

	if (bytes >= LARGE) {
		asm volatile("rep stosb" : "+D" (t), "+c" (bytes) : "a" (c) : "memory");
	} else if (bytes >= 16) {
		for (i = 0; i < bytes - 16; i += 16)
			*(block *)(t + i) = wide;
		*(block *)(t + bytes - 16) = wide;
	} else if (bytes >= 8) {
		*(word *)t = pattern;
		*(word *)(t + bytes - 8) = pattern;
	} else if (bytes >= 4) {
		*(half *)t = pattern;
		*(half *)(t + bytes - 4) = pattern;
	} else {
		for (i = 0; i < bytes; i++)
			t[i] = c;
	}
	return to;
}
EXPORT_SYMBOL(memset);

int memcmp(const void *a, const void *b, size_t bytes)
{
	const u8 *x = a, *y = b;

	for (; bytes >= 8; bytes -= 8, x += 8, y += 8) {
		if (*(word *)x != *(word *)y) {
			u64 p = __builtin_bswap64(*(word *)x), q = __builtin_bswap64(*(word *)y);

			return p < q ? -1 : 1;
		}
	}
	for (; bytes; bytes--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}
EXPORT_SYMBOL(memcmp);
