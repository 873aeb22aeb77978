/* SPDX-License-Identifier: MIT */
/* Replaces musl's file: a system call at a cancellation point.
 *
 *	long __syscall_cp_asm(volatile void *cancel, long nr, long u, long v, long w, long x, long y, long z)
 *
 * The host's function has the same arguments without the first. It is entered by a jump, with its last argument in the
 * place of y. So the stack is the caller's as long as the thread is in this file, and a signal handler can send it
 * from any instruction to __cp_cancel. After the jump, the host's -EINTR leads to the cancellation. */
.text
.global __cp_begin
.hidden __cp_begin
.global __cp_end
.hidden __cp_end
.global __cp_cancel
.hidden __cp_cancel
.hidden __cancel
.hidden __kyozon_seam
.global __syscall_cp_asm
.hidden __syscall_cp_asm
.type   __syscall_cp_asm,@function
__syscall_cp_asm:

__cp_begin:
	mov (%rdi),%eax
	test %eax,%eax
	jnz __cp_cancel
	mov %rsi,%rdi
	mov %rdx,%rsi
	mov %rcx,%rdx
	mov %r8,%rcx
	mov %r9,%r8
	mov 8(%rsp),%r9
	mov 16(%rsp),%rax
	mov %rax,8(%rsp)
	jmp *__kyozon_seam+8(%rip)      /* kyozon_seam.call */
__cp_end:
__cp_cancel:
	jmp __cancel
