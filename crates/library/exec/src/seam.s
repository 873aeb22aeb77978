// Between a program of Kyozon's C library and the dispatcher: see seam.rs. This file is a part of the gate.
//
// long call(long number, long a1, ..., long a6)
kyozon_exec_seam_call:
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	%rdx, %rsi
	mov	%rcx, %rdx
	mov	%r8, %r10
	mov	%r9, %r8
	mov	8(%rsp), %r9
// A system call, as the kernel takes it, that returns to the caller of `call`.
kyozon_exec_seam_again:
	lea	kyozon_exec_seam_return(%rip), %rcx
// The same, continuing at rcx.
kyozon_exec_seam_enter:
	cmp	${calls}, %rax
	jae	kyozon_exec_seam_native
	lea	{routes}(%rip), %r11
	movzbl	(%r11,%rax), %r11d
	test	%r11d, %r11d
	jne	kyozon_exec_seam_dispatched
	// The host's, unless the dispatcher has something to do before.
	cmpl	$0, {reserved}(%rip)
	je	kyozon_exec_seam_native
	mov	${dispatched}, %r11d
kyozon_exec_seam_dispatched:
	// Also what the dispatcher preserves: for a new thread or process, and for the return through SIGSYS.
	kyozon_exec_save
	mov	%gs:{host_sp}, %rsp
	mov	%gs:{this}, %rdi
	cmp	${dispatched}, %r11d
	je	1f
	mov	%r11d, %esi
	call	{direct}
	cmp	${slow}, %eax
	je	1f
	test	%eax, %eax
	je	kyozon_exec_seam_leave_start
	// Not made: either the host makes the call now, or a signal is pending.
	lea	kyozon_exec_seam_native(%rip), %r11
	mov	%r11, %gs:{rip}
	jmp	kyozon_exec_seam_leave_start
1:
	rdfsbase %r11
	mov	%r11, %gs:{program_fs}
	mov	%gs:{host_fs}, %r11
	wrfsbase %r11
	mov	%gs:{this}, %rdi
	call	{dispatch}
	cmp	${leave}, %eax
	je	kyozon_exec_leave_thread
	test	%eax, %eax
	je	2f
	lea	kyozon_exec_seam_native(%rip), %r11
	mov	%r11, %gs:{rip}
2:
	mov	%gs:{program_fs}, %r11
	wrfsbase %r11
// The way out. All that it uses is in the record, so that it can start again. The FS base is the program's.
kyozon_exec_seam_leave_start:
	cmpb	$0, %gs:{pending}
	jne	3f
	kyozon_exec_load_arguments
	movb	${program}, %gs:{selector}
kyozon_exec_seam_leave_end:
	jmp	*%rcx
// A signal is pending, and all others are blocked. Queue it, and return to the program through SIGSYS.
3:
	rdfsbase %r11
	mov	%r11, %gs:{program_fs}
	mov	%gs:{host_fs}, %r11
	wrfsbase %r11
	mov	%gs:{host_sp}, %rsp
	mov	%gs:{this}, %rdi
	call	{deliver}
	mov	%gs:{program_fs}, %r11
	wrfsbase %r11
	mov	%gs:{rsp}, %rsp
	movb	${program}, %gs:{selector}
	mov	$-1, %rax
	jmp	kyozon_exec_bounce
// The host's. The stack is the caller's.
kyozon_exec_seam_native:
	syscall
kyozon_exec_seam_return:
	ret
kyozon_exec_seam_interrupted:
	mov	${interrupted}, %rax
	ret
// int start_thread(const struct kyozon_thread *thread)
kyozon_exec_seam_start_thread:
	mov	{thread_stack}(%rdi), %rsi
	and	$-16, %rsi
	sub	$16, %rsi
	mov	{thread_function}(%rdi), %rax
	mov	%rax, (%rsi)
	mov	{thread_argument}(%rdi), %rax
	mov	%rax, 8(%rsi)
	mov	{thread_tid}(%rdi), %rdx
	mov	{thread_clear_tid}(%rdi), %r10
	mov	{thread_fs}(%rdi), %r8
	mov	${thread_flags}, %edi
	mov	${clone}, %eax
	lea	4f(%rip), %rcx
	jmp	kyozon_exec_seam_enter
4:
	test	%eax, %eax
	jz	5f
	ret
5:
	xor	%ebp, %ebp
	pop	%rax
	pop	%rdi
	call	*%rax
	xor	%edi, %edi
	mov	${exit}, %eax
	jmp	kyozon_exec_seam_again
// void unmap_exit(void *base, unsigned long bytes)
kyozon_exec_seam_unmap_exit:
	mov	${unmap_exit}, %eax
	lea	kyozon_exec_seam_unmapped(%rip), %rcx
	jmp	kyozon_exec_seam_enter
kyozon_exec_seam_unmapped:
	ud2
kyozon_exec_seam_end:
