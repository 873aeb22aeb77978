// SPDX-License-Identifier: GPL-2.0-only
/* Internet checksums, 8 bytes at a time. The sum does not depend on the size of the words (RFC 1071, section 2). */

#include <linux/string.h>
#include <net/checksum.h>

static __always_inline u64 add(u64 sum, u64 word)
{
	asm("addq %1, %0\n\tadcq $0, %0" : "+r" (sum) : "rm" (word) : "cc");
	return sum;
}

static __always_inline u64 add_64_bytes(u64 sum, const unsigned char *data)
{
	asm("addq 0*8(%1), %0\n\t"
	    "adcq 1*8(%1), %0\n\t"
	    "adcq 2*8(%1), %0\n\t"
	    "adcq 3*8(%1), %0\n\t"
	    "adcq 4*8(%1), %0\n\t"
	    "adcq 5*8(%1), %0\n\t"
	    "adcq 6*8(%1), %0\n\t"
	    "adcq 7*8(%1), %0\n\t"
	    "adcq $0, %0"
	    : "+r" (sum) : "r" (data), "m" (*(const u8 (*)[64])data) : "cc");
	return sum;
}

unsigned int do_csum(const unsigned char *data, int bytes)
{
	u64 sum = 0, word;

	for (; bytes >= 64; bytes -= 64, data += 64)
		sum = add_64_bytes(sum, data);
	for (; bytes >= 8; bytes -= 8, data += 8) {
		memcpy(&word, data, 8);
		sum = add(sum, word);
	}
	if (bytes > 0) {
		word = 0;
		memcpy(&word, data, bytes);
		sum = add(sum, word);
	}
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}
