// The program's registers in the thread's record: macros of the gate and of the seam.

// The way in: our code runs, and the registers are those of the program, with the return address in rcx.
.macro kyozon_exec_save
	movb	$0, %gs:{selector}
	mov	%rax, %gs:{rax}
	mov	%rdi, %gs:{rdi}
	mov	%rsi, %gs:{rsi}
	mov	%rdx, %gs:{rdx}
	mov	%r10, %gs:{r10}
	mov	%r8, %gs:{r8}
	mov	%r9, %gs:{r9}
	mov	%rsp, %gs:{rsp}
	mov	%rcx, %gs:{rip}
	mov	%rbx, %gs:{preserved}
	mov	%rbp, %gs:{preserved}+8
	mov	%r12, %gs:{preserved}+16
	mov	%r13, %gs:{preserved}+24
	mov	%r14, %gs:{preserved}+32
	mov	%r15, %gs:{preserved}+40
.endm

.macro kyozon_exec_load_vectors
	.irp	n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
	movups	%gs:{vectors}+16*\n, %xmm\n
	.endr
.endm

// The end of a way out: the arguments, the result, the stack, and the return address in rcx. The program runs.
.macro kyozon_exec_load_arguments
	mov	%gs:{rdi}, %rdi
	mov	%gs:{rsi}, %rsi
	mov	%gs:{rdx}, %rdx
	mov	%gs:{r10}, %r10
	mov	%gs:{r8}, %r8
	mov	%gs:{r9}, %r9
	mov	%gs:{rsp}, %rsp
	mov	%gs:{rip}, %rcx
	mov	%gs:{rax}, %rax
.endm

// The gate's: everything that a call of our code may have changed. Then: does the host execute the call?
.macro kyozon_exec_load
	kyozon_exec_load_vectors
	mov	%gs:{preserved}+8, %rbp
	kyozon_exec_load_arguments
	cmpb	$0, %gs:{native}
	movb	${program}, %gs:{selector}
.endm
