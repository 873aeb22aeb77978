/* SPDX-License-Identifier: GPL-2.0-only */
#include <linux/export.h>
#include <linux/linkage.h>

/* Instruction 'from' may fault; then execution continues at 'to'. */
.macro FAULT from to
	.pushsection __ex_table, "a"
	.balign	4
	.long	\from - .
	.long	\to - .
	.popsection
.endm

/* Bytes from which string instructions are faster. */
#define LARGE	512

/*
 * unsigned long kyozon_copy_user(void *to, const void *from, unsigned long bytes): copies, and returns the number of
 * bytes that were not copied. Either side may fault. After a fault among whole words, the rest is copied by bytes, so
 * that the number is exact.
 */
SYM_FUNC_START(kyozon_copy_user)
	movq	%rdx, %rcx
	cmpq	$LARGE, %rcx
	jae	.Lstring
	cmpq	$8, %rcx
	jb	.Lbytes
.Lwords:
1:	movq	(%rsi), %rax
2:	movq	%rax, (%rdi)
	addq	$8, %rsi
	addq	$8, %rdi
	subq	$8, %rcx
	cmpq	$8, %rcx
	jae	.Lwords
.Lbytes:
	testq	%rcx, %rcx
	jz	.Ldone
3:	movb	(%rsi), %al
4:	movb	%al, (%rdi)
	incq	%rsi
	incq	%rdi
	decq	%rcx
	jmp	.Lbytes
.Lstring:
5:	rep movsb
.Ldone:
	movq	%rcx, %rax
	ret
	FAULT	1b, .Lbytes
	FAULT	2b, .Lbytes
	FAULT	3b, .Ldone
	FAULT	4b, .Ldone
	FAULT	5b, .Ldone
SYM_FUNC_END(kyozon_copy_user)
EXPORT_SYMBOL(kyozon_copy_user)

/* unsigned long kyozon_clear_user(void *to, unsigned long bytes): the same, for zeros. */
SYM_FUNC_START(kyozon_clear_user)
	movq	%rsi, %rcx
	xorl	%eax, %eax
1:	rep stosb
.Lcleared:
	movq	%rcx, %rax
	ret
	FAULT	1b, .Lcleared
SYM_FUNC_END(kyozon_clear_user)
EXPORT_SYMBOL(kyozon_clear_user)
