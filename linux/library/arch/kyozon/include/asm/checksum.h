/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_CHECKSUM_H
#define _ASM_KYOZON_CHECKSUM_H

#include <linux/types.h>

/*
 * Sums 16-bit words with their carries (RFC 1071), folded to 16 bits. Datagrams that are divided into fragments get
 * their checksums in software; see lib/checksum.c.
 */
unsigned int do_csum(const unsigned char *data, int bytes);
#define do_csum do_csum

/* Of a header of words of 32 bits. */
static inline __sum16 ip_fast_csum(const void *header, unsigned int words)
{
	const u32 *word = header;
	u64 sum = 0;

	while (words--)
		sum += *word++;
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__force __sum16)~sum;
}
#define ip_fast_csum ip_fast_csum

#include <asm-generic/checksum.h>

#endif
