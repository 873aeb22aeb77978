/* SPDX-License-Identifier: GPL-2.0-only */
#include <linux/linkage.h>

/*
 * Stacks. A host thread and every task have one; these functions leave one and continue on another. All saved stacks
 * have the same layout, so that each can be left and entered by any pair of functions below:
 *
 *	sp -> r15 r14 r13 r12 rbx rbp return-address
 */

.macro SAVE
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
.endm

.macro RESTORE
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
.endm

/*
 * void *kyozon_switch(unsigned long *save, unsigned long sp, void *value): saves this stack and continues on a saved
 * one, where the function that saved it returns value.
 */
SYM_FUNC_START(kyozon_switch)
	SAVE
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	movq	%rdx, %rax
	RESTORE
SYM_FUNC_END(kyozon_switch)

/*
 * void kyozon_enter(unsigned long *save, unsigned long top, void (*fn)(void)): saves this stack and calls fn on an
 * empty one. top is a multiple of 16. If fn returns, execution continues on the stack that *save holds then. Processors
 * predict returns by counting calls, so that returning is much faster than kyozon_leave().
 */
SYM_FUNC_START(kyozon_enter)
	SAVE
	movq	%rsp, (%rdi)
	movq	%rdi, %rbx
	movq	%rsi, %rsp
	xorl	%ebp, %ebp
	call	*%rdx
	movq	(%rbx), %rsp
	RESTORE
SYM_FUNC_END(kyozon_enter)

/* void kyozon_leave(unsigned long sp): forgets this stack and continues on a saved one. Never returns. */
SYM_FUNC_START(kyozon_leave)
	movq	%rdi, %rsp
	RESTORE
SYM_FUNC_END(kyozon_leave)

/* The first run of a new task. rax: the previous task. */
SYM_FUNC_START(kyozon_new_task)
	movq	%rax, %rdi
	xorl	%ebp, %ebp
	call	kyozon_run_task
	ud2
SYM_FUNC_END(kyozon_new_task)
