/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ways into a program and out of it.
 *
 * A program runs on a stack of its own, with EFLAGS.AC set: its memory is user
 * memory. Everything else here runs with AC clear, and C on the task's stack.
 * Exceptions and interrupts clear AC and restore it by themselves.
 *
 * objtool cannot follow changes of stacks, and AC. An unwinder stops here.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/asm.h>
#include <asm/nospec-branch.h>
#include <asm/smap.h>

#include "enter.h"

	.text

/* The context of the stack that rsp is on. A program's rsp is always below it. */
.macro CONTEXT register
	movq %rsp, %\register
	orq $(TYPED_STACK_BYTES - 1), %\register
	subq $(TYPED_CONTEXT_BYTES - 1), %\register
.endm

/*
 * unsigned int typed_enter(struct typed_context *context)
 *
 * Continues a program at the struct typed_frame that context->resume points to.
 * Returns how it was left.
 */
SYM_FUNC_START(typed_enter)
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	subq $8, %rsp			/* C is called at a multiple of 16 */
	movq %rsp, TYPED_CONTEXT_STACK(%rdi)
	movq TYPED_CONTEXT_RESUME(%rdi), %rsp
.Lresume:
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %r11
	popq %r10
	popq %r9
	popq %r8
	popq %rdi
	popq %rsi
	popq %rbp
	popq %rbx
	popq %rdx
	popq %rcx
	popq %rax
	popfq				/* sets AC */
	RET
SYM_FUNC_END(typed_enter)
STACK_FRAME_NON_STANDARD typed_enter

/* The entry returns here: its caller's frame is empty, so rsp is the context. */
SYM_FUNC_START(typed_returned)
	ASM_CLAC
	movq %rsp, %rdi
	movq %rax, TYPED_CONTEXT_RESULT(%rdi)
	movl $TYPED_LEFT_RETURN, %eax
.Lleave:
	/* rdi: context; eax: how */
	movq TYPED_CONTEXT_STACK(%rdi), %rsp
	addq $8, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	RET
SYM_FUNC_END(typed_returned)
STACK_FRAME_NON_STANDARD typed_returned

/* The die notifier continued here. */
SYM_FUNC_START(typed_trapped)
	ASM_CLAC
	CONTEXT rdi
	movl $TYPED_LEFT_TRAP, %eax
	jmp .Lleave
SYM_FUNC_END(typed_trapped)
STACK_FRAME_NON_STANDARD typed_trapped

/* The registers of a struct typed_frame, below its address and flags. */
.macro SAVE
	pushq %rax
	pushq %rcx
	pushq %rdx
	pushq %rbx
	pushq %rbp
	pushq %rsi
	pushq %rdi
	pushq %r8
	pushq %r9
	pushq %r10
	pushq %r11
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
.endm

/*
 * The timer continued here, at an instruction of the program: all registers and
 * flags are the program's.
 */
SYM_FUNC_START(typed_interrupted)
	leaq -8(%rsp), %rsp		/* for the address; keeps flags */
	pushfq
	ASM_CLAC
	SAVE
	CONTEXT rbx
	movq TYPED_CONTEXT_AT(%rbx), %rax
	movq %rax, 16*8(%rsp)
.Lyield:
	movq %rsp, TYPED_CONTEXT_RESUME(%rbx)
	movq %rbx, %rdi
	movq TYPED_CONTEXT_STACK(%rbx), %rsp
	call typed_yield
.Lgo_on:
	movq %rbx, %rdi
	testl %eax, %eax
	jnz .Lleave
	movq TYPED_CONTEXT_RESUME(%rbx), %rsp
	jmp .Lresume
SYM_FUNC_END(typed_interrupted)
STACK_FRAME_NON_STANDARD typed_interrupted

/*
 * A fixup called this: the address behind the call tells which instruction
 * faulted. Registers and flags are the program's, as of that instruction.
 */
SYM_FUNC_START(typed_faulted)
	pushfq
	ASM_CLAC
	SAVE
	CONTEXT rbx
	movq %rsp, TYPED_CONTEXT_RESUME(%rbx)
	movq %rbx, %rdi
	movq TYPED_CONTEXT_STACK(%rbx), %rsp
	call typed_fault
	jmp .Lgo_on
SYM_FUNC_END(typed_faulted)
STACK_FRAME_NON_STANDARD typed_faulted

/* A gate continues here: the address to continue at is on the program's stack. */
SYM_FUNC_START_LOCAL(typed_attention)
	ASM_STAC
	pushfq
	ASM_CLAC
	SAVE
	CONTEXT rbx
	jmp .Lyield
SYM_FUNC_END(typed_attention)
STACK_FRAME_NON_STANDARD typed_attention

/*
 * The process answers a call: eax has its number, and the address to continue at
 * is on the program's stack.
 */
SYM_FUNC_START_LOCAL(typed_outside_call)
	pushfq
	ASM_CLAC
	SAVE
	CONTEXT rbx
	movq %rsp, TYPED_CONTEXT_RESUME(%rbx)
	movq %rbx, %rdi
	movq TYPED_CONTEXT_STACK(%rbx), %rsp
	call typed_call_outside
	jmp .Lgo_on
SYM_FUNC_END(typed_outside_call)
STACK_FRAME_NON_STANDARD typed_outside_call

/* Gates for imports that the process answers: one for each number. */
	.balign TYPED_OUTSIDE_GATE_BYTES
SYM_FUNC_START(typed_outside_gates)
	.set number, 0
	.rept TYPED_OUTSIDE_GATES
	movl $number, %eax
	jmp typed_outside_call
	.balign TYPED_OUTSIDE_GATE_BYTES
	.set number, number + 1
	.endr
SYM_FUNC_END(typed_outside_gates)
STACK_FRAME_NON_STANDARD typed_outside_gates

/*
 * A gate's function is no part of a section for vector registers. The first of
 * these keeps its arguments, the second one its result, also a view. Both are
 * called on the task's stack at a multiple of 16, and call C at one.
 */
SYM_FUNC_START_LOCAL(typed_pause)
	pushq %rdi
	pushq %rsi
	pushq %rdx
	pushq %rcx
	pushq %r8
	pushq %r9
	subq $8, %rsp
	call typed_pause_vectors
	addq $8, %rsp
	popq %r9
	popq %r8
	popq %rcx
	popq %rdx
	popq %rsi
	popq %rdi
	RET
SYM_FUNC_END(typed_pause)

SYM_FUNC_START_LOCAL(typed_continue)
	pushq %rax
	pushq %rdx
	subq $8, %rsp
	call typed_continue_vectors
	addq $8, %rsp
	popq %rdx
	popq %rax
	RET
SYM_FUNC_END(typed_continue)

/*
 * Gates. An import of a program leads here: numbers in the registers of the ABI,
 * at most five of them. C gets the context as the argument behind these, in the
 * register that is named.
 */
.macro GATE_CALL name register
	pushq %rbx
	movq %rsp, %rbx
	CONTEXT \register
	movq TYPED_CONTEXT_STACK(%\register), %rsp
	cmpl $0, TYPED_CONTEXT_VECTORS(%\register)
	jne .Lvectors_\name
	call typed_\name
.Lcalled_\name:
	movq %rbx, %rsp
	popq %rbx
.endm

/* Behind the gate's end: a program with vector registers. */
.macro GATE_VECTORS name
.Lvectors_\name:
	call typed_pause
	call typed_\name
	call typed_continue
	jmp .Lcalled_\name
.endm

.macro GATE_RETURN
	CONTEXT rcx
	cmpl $0, TYPED_CONTEXT_ATTENTION(%rcx)
	jne typed_attention
	ASM_STAC
	RET
.endm

/* A gate for a function that no signal interrupts. */
.macro GATE name register
SYM_FUNC_START(typed_gate_\name)
	ASM_CLAC
	GATE_CALL \name \register
	GATE_RETURN
	GATE_VECTORS \name
SYM_FUNC_END(typed_gate_\name)
STACK_FRAME_NON_STANDARD typed_gate_\name
.endm

/* A gate for a function that returns TYPED_AGAIN when a signal came. */
.macro GATE_SLEEPS name register
SYM_FUNC_START(typed_gate_\name)
	ASM_CLAC
	pushq %rcx
	pushq %rdx
	pushq %rsi
	pushq %rdi
	GATE_CALL \name \register
	cmpq $TYPED_AGAIN, %rax
	je .Lagain_\name
	addq $32, %rsp
	GATE_RETURN
.Lagain_\name:
	popq %rdi
	popq %rsi
	popq %rdx
	popq %rcx
	leaq typed_gate_\name(%rip), %rax
	pushq %rax
	jmp typed_attention
	GATE_VECTORS \name
SYM_FUNC_END(typed_gate_\name)
STACK_FRAME_NON_STANDARD typed_gate_\name
.endm

.macro POP_ARGUMENTS
	popq %rdi
	popq %rsi
	popq %rdx
	popq %rcx
	popq %r8
.endm

/*
 * A gate for a function of WASI. If that returns TYPED_OUTSIDE, the process makes
 * the call, with the arguments as they were.
 */
.macro GATE_WASI name register number
SYM_FUNC_START(typed_gate_wasi_\name)
	ASM_CLAC
	pushq %r8
	pushq %rcx
	pushq %rdx
	pushq %rsi
	pushq %rdi
	GATE_CALL wasi_\name \register
	cmpq $TYPED_AGAIN, %rax
	je .Lagain_wasi_\name
	cmpq $TYPED_OUTSIDE, %rax
	je .Loutside_wasi_\name
	addq $40, %rsp
	GATE_RETURN
.Lagain_wasi_\name:
	POP_ARGUMENTS
	leaq typed_gate_wasi_\name(%rip), %rax
	pushq %rax
	jmp typed_attention
.Loutside_wasi_\name:
	POP_ARGUMENTS
	movl $\number, %eax
	ASM_STAC
	jmp typed_outside_call
	GATE_VECTORS wasi_\name
SYM_FUNC_END(typed_gate_wasi_\name)
STACK_FRAME_NON_STANDARD typed_gate_wasi_\name
.endm

	GATE getpid rdi
	GATE_SLEEPS read rcx
	GATE_SLEEPS write rcx
	GATE_SLEEPS pread r8
	GATE_SLEEPS pwrite r8
	GATE fstat rdx
	GATE lseek rcx
	GATE file_view rdx
	GATE packet_view rsi
	GATE filter_view rsi
	GATE verdict rsi
	GATE_WASI read r8 TYPED_WASI_FD_READ
	GATE_WASI write r8 TYPED_WASI_FD_WRITE
	GATE_WASI pread r9 TYPED_WASI_FD_PREAD
	GATE_WASI pwrite r9 TYPED_WASI_FD_PWRITE
	GATE_WASI seek r8 TYPED_WASI_FD_SEEK
	GATE_WASI tell rdx TYPED_WASI_FD_TELL
	GATE_WASI status rdx TYPED_WASI_FD_FILESTAT_GET
	GATE_WASI time rcx TYPED_WASI_CLOCK_TIME_GET

SYM_FUNC_START(typed_gate_exit)
	ASM_CLAC
	movq %rdi, %rsi
	CONTEXT rdi
	movq %rsi, TYPED_CONTEXT_RESULT(%rdi)
	movl $TYPED_LEFT_EXIT, %eax
	jmp .Lleave
SYM_FUNC_END(typed_gate_exit)
STACK_FRAME_NON_STANDARD typed_gate_exit

/* Thunks, which the stubs of an image jump to. */
.macro THUNK register
SYM_FUNC_START_LOCAL(typed_thunk_\register)
	JMP_NOSPEC \register
SYM_FUNC_END(typed_thunk_\register)
STACK_FRAME_NON_STANDARD typed_thunk_\register
	.pushsection .rodata
	.quad typed_thunk_\register
	.popsection
.endm

	.pushsection .rodata
	.balign 8
SYM_DATA_START(typed_thunks)
	.popsection
	THUNK rax
	THUNK rcx
	THUNK rdx
	THUNK rbx
/* No address of code is ever in rsp. */
SYM_FUNC_START_LOCAL(typed_thunk_none)
	ud2
SYM_FUNC_END(typed_thunk_none)
STACK_FRAME_NON_STANDARD typed_thunk_none
	.pushsection .rodata
	.quad typed_thunk_none
	.popsection
	THUNK rbp
	THUNK rsi
	THUNK rdi
	THUNK r8
	THUNK r9
	THUNK r10
	THUNK r11
	THUNK r12
	THUNK r13
	THUNK r14
	THUNK r15
SYM_FUNC_START_LOCAL(typed_thunk_return)
	RET
SYM_FUNC_END(typed_thunk_return)
STACK_FRAME_NON_STANDARD typed_thunk_return
	.pushsection .rodata
	.quad typed_thunk_return
SYM_DATA_END(typed_thunks)
	.popsection

/*
 * The container. objtool wants instructions: nops of 8 bytes (0f 1f 84 00 and
 * four zeros). The module overwrites them when it is loaded.
 */
	.section .text.typed, "ax", @progbits
	.balign 4096
SYM_CODE_START(typed_image)
	ANNOTATE_NOENDBR
	.fill TYPED_IMAGE_BYTES / 8, 8, 0x00841f0f
SYM_CODE_END(typed_image)
	.balign 4096
SYM_CODE_START(typed_fixups)
	ANNOTATE_NOENDBR
	.fill TYPED_FAULTS * TYPED_FIXUP_BYTES / 8, 8, 0x00841f0f
SYM_CODE_END(typed_fixups)

	.section .note.GNU-stack, "", @progbits
