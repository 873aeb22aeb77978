/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls the checker so that it can be left from within: its panic handler
 * cannot return, and must not stop the kernel.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/nospec-branch.h>

	.text

/*
 * void typed_guard_call(void (*function)(void *request), void *request,
 *			 unsigned long *stack)
 *
 * Calls function(request). Until that returns, *stack is what
 * typed_guard_leave() takes.
 */
SYM_FUNC_START(typed_guard_call)
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	subq	$8, %rsp		/* calls are made at a multiple of 16 */
	movq	%rsp, (%rdx)
	movq	%rdi, %rax
	movq	%rsi, %rdi
	CALL_NOSPEC rax
	addq	$8, %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	RET
SYM_FUNC_END(typed_guard_call)

/*
 * void typed_guard_leave(unsigned long stack), does not return
 *
 * Makes typed_guard_call() return. To be called on the same task's stack,
 * below the frame that stack points to, with nothing held in between.
 */
SYM_FUNC_START(typed_guard_leave)
	leaq	8(%rdi), %rsp
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	RET
SYM_FUNC_END(typed_guard_leave)

/* An unwinder would need to know the frame that it returns to. */
STACK_FRAME_NON_STANDARD typed_guard_leave

	.section .note.GNU-stack, "", @progbits
