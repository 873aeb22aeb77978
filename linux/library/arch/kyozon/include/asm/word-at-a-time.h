/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_WORD_AT_A_TIME_H
#define _ASM_KYOZON_WORD_AT_A_TIME_H

#include <asm-generic/word-at-a-time.h>
#include <asm/extable.h>

/* Loads a word that may reach into a page that is not mapped; bytes there read as zero. */
static inline unsigned long load_unaligned_zeropad(const void *addr)
{
	unsigned long ret;

	asm volatile("1: movq (%1), %0\n"
		     "2:\n"
		     ".subsection 1\n"
		     "3: movq %1, %0\n"
		     "   andq $-8, %0\n"
		     "   movq (%0), %0\n"
		     "   movl %k1, %%ecx\n"
		     "   andl $7, %%ecx\n"
		     "   shll $3, %%ecx\n"
		     "   shrq %%cl, %0\n"
		     "   jmp 2b\n"
		     ".previous\n"
		     _ASM_EXTABLE(1b, 3b)
		     : "=&r" (ret)
		     : "r" (addr)
		     : "rcx", "cc", "memory");
	return ret;
}

#endif
