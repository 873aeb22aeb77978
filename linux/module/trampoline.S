/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The world switch: all code that runs between Linux's CR3 and the cokernel's.
 *
 * kyozon_switch() is called from Linux's NMI handler, on the cokernel's CPU.
 * It is safe at every instruction, also with NMIs unblocked, because
 *
 *  - IDTR changes first on the way in and last on the way out. In between, an
 *    NMI meets a gate that pushes nothing and counts. Its stack is IST 2, as
 *    in Linux: while TR is Linux's, that is the stack whose top frame Linux
 *    lets a nested NMI overwrite; while TR is ours, it is our own.
 *  - TR changes before CR3 on the way in and after it on the way out, so that
 *    IST stacks are mapped at all times: ours lie in struct kyozon_world,
 *    which both worlds map at the same address.
 *  - Linux's GDT is read-only, so that LTR through it would fault when it sets
 *    the busy bit. TR is always loaded from our GDT, which has both segments;
 *    the busy bit of the one to load is cleared first. Linux's GDT is never
 *    written.
 *
 * Between the two loads of CR3 only this file, struct kyozon_world and the
 * cokernel's own low half are mapped. No thunk, no per-CPU data, no stack
 * protector, no C function of the module.
 *
 * State that changes only when the cokernel enters user mode (data selectors, FS
 * and GS base, LDT) is saved by the layer and restored here, since selectors must
 * be loaded through Linux's GDT.
 *
 * References: Intel SDM vol. 3A 6.14 (interrupts in 64-bit mode), 8.2 (TSS);
 * AMD APM vol. 2 8.9, 12.2.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/ibt.h>
#include <asm/msr-index.h>
#include <asm/nospec-branch.h>
#include <asm/segment.h>

#include "world.h"

#define W(field)	kyozon_world + W_##field(%rip)

/* struct kyozon_trip's result and fault.reason, see abi.h */
#define TRIP_STOPPED	2
#define FAULT_LAYER	5
/* struct kyozon_user_state's switched */
#define USER_SWITCHED	1

/* Type and rights of a 64-bit task state segment that is not busy */
#define TSS_AVAILABLE	0x89

	.text
	.balign 4096, 0xcc
SYM_FUNC_START(kyozon_trampoline)

/* void kyozon_switch(void) */
SYM_INNER_LABEL(kyozon_switch, SYM_L_GLOBAL)
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushfq
	sgdt	W(LINUX_GDTR)
	sidt	W(LINUX_IDTR)
	movq	%cr3, %rax
	orq	W(LINUX_CR3_KEEP), %rax
	movq	%rax, W(LINUX_CR3)
	movq	%cr2, %rax
	movq	%rax, W(LINUX_CR2)
	movw	%ss, W(LINUX_SS)
	movq	%rsp, W(LINUX_RSP)
	cmpl	$0, W(CET)
	jne	.Lcet_off
.Lin:
	lidt	W(IDTR)
	lgdt	W(GDTR)
	movb	$TSS_AVAILABLE, kyozon_world + W_GDT + W_GDT_TSS * 8 + 5(%rip)
	movl	$W_GDT_TSS * 8, %eax
	ltr	%ax
	movq	W(CR3), %rax
	movq	%rax, %cr3
	movq	W(STACK), %rsp
	movq	W(LAYER_ENTRY), %rdi
	leaq	kyozon_world(%rip), %rsi	/* struct kyozon_trip is its start */
	movl	$1, W(INSIDE)
	ANNOTATE_RETPOLINE_SAFE
	call	*W(ENTRY)
.Lleave:
	movl	$0, W(INSIDE)
	movq	%cr3, %rax
	movq	%rax, W(CR3)
	movq	W(LINUX_CR3), %rax
	movq	%rax, %cr3
	movq	W(LINUX_RSP), %rsp
	movb	$TSS_AVAILABLE, kyozon_world + W_GDT + GDT_ENTRY_TSS * 8 + 5(%rip)
	movl	$GDT_ENTRY_TSS * 8, %eax
	ltr	%ax
	lgdt	W(LINUX_GDTR)
	cmpl	$0, W(USER_SWITCHED)
	jne	.Lselectors_back
.Lout:
	movq	%cr2, %rax
	cmpq	W(LINUX_CR2), %rax
	jne	.Lcr2_back
.Llast:
	lidt	W(LINUX_IDTR)
	cmpl	$0, W(CET)
	jne	.Lcet_on
.Lreturn:
	popfq
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ANNOTATE_UNRET_SAFE
	ret
	int3

.Lcr2_back:
	movq	W(LINUX_CR2), %rax
	movq	%rax, %cr2
	jmp	.Llast

/*
 * A gate with a stack of its own may leave a null SS behind; Linux's is null
 * too if it was interrupted in user mode.
 */
.Lselectors_back:
	movw	W(LINUX_SS), %ax
	movw	%ax, %ss
	testl	$USER_SWITCHED, W(USER_SWITCHED)
	movl	$0, W(USER_SWITCHED)
	jz	.Lout

/*
 * Restores Linux's data selectors, if the cokernel's user mode changed one. Linux
 * may have been in the middle of a task switch, after it removed the descriptor
 * of a loaded selector: a selector that cannot be loaded becomes null. The LDT
 * comes first, since a selector may refer to it; the bases come last, since
 * loading a selector replaces its base.
 */
#define BACK(sreg, field)						\
	movl	%sreg, %eax;						\
	cmpw	W(field), %ax;						\
	je	3f;							\
	movzwl	W(field), %eax;						\
	verr	%ax;							\
	jnz	1f;							\
	larl	%eax, %edx;						\
	testl	$0x8000, %edx;		/* present */			\
	jnz	2f;							\
1:	xorl	%eax, %eax;						\
2:	movl	%eax, %sreg;						\
3:

	movw	W(USER_LDT), %ax
	testw	%ax, %ax
	jz	4f
	lldt	%ax
4:	BACK(ds, USER_DS)
	BACK(es, USER_ES)
	BACK(fs, USER_FS)
	BACK(gs, USER_GS)
	cmpl	$0, W(FSGSBASE)
	je	2f
	movq	W(USER_FS_BASE), %rax
	wrfsbase %rax
	movq	W(USER_GS_BASE), %rax
	wrgsbase %rax
	jmp	.Lout
2:	movl	W(USER_FS_BASE), %eax
	movl	kyozon_world + W_USER_FS_BASE + 4(%rip), %edx
	movl	$MSR_FS_BASE, %ecx
	wrmsr
	movl	W(USER_GS_BASE), %eax
	movl	kyozon_world + W_USER_GS_BASE + 4(%rip), %edx
	movl	$MSR_GS_BASE, %ecx
	wrmsr
	jmp	.Lout

/*
 * If Linux checks for ENDBR, the check is off during the trip: the layer's and
 * the cokernel's code have none. Linux itself switches it off around calls of
 * the firmware, so the value is saved on each trip. No bit above 31 is set.
 */
.Lcet_off:
	movl	$MSR_IA32_S_CET, %ecx
	rdmsr
	movl	%eax, W(LINUX_S_CET)
	xorl	%eax, %eax
	xorl	%edx, %edx
	wrmsr
	jmp	.Lin
.Lcet_on:
	movl	W(LINUX_S_CET), %eax
	xorl	%edx, %edx
	movl	$MSR_IA32_S_CET, %ecx
	wrmsr
	jmp	.Lreturn

/* The gate of vector 2. Pushes nothing: see the top of this file. */
	.balign 16
SYM_INNER_LABEL(kyozon_nmi_gate, SYM_L_GLOBAL)
	ENDBR
	cmpl	$0, W(INSIDE)
	jne	1f
SYM_INNER_LABEL(kyozon_nmi_in_transit, SYM_L_GLOBAL)
	ENDBR
	lock incl W(IN_TRANSIT)
	iretq
1:	ANNOTATE_RETPOLINE_SAFE
	jmp	*W(NMI_ENTRY)

/* The gate of vector 18: noted, and passed to Linux at the end of the trip. */
	.balign 16
SYM_INNER_LABEL(kyozon_machine_check_gate, SYM_L_GLOBAL)
	ENDBR
	movl	$1, W(MACHINE_CHECK)
	cmpl	$0, W(INSIDE)
	jne	1f
SYM_INNER_LABEL(kyozon_machine_check_in_transit, SYM_L_GLOBAL)
	ENDBR
	iretq
1:	ANNOTATE_RETPOLINE_SAFE
	jmp	*W(MACHINE_CHECK_ENTRY)

/* Every other gate, until the layer fills them. */
	.balign 16
SYM_INNER_LABEL(kyozon_fault_gate, SYM_L_GLOBAL)
	ENDBR
	movl	$TRIP_STOPPED, W(RESULT)
	movl	$FAULT_LAYER, W(FAULT_REASON)
	jmp	.Lleave

/* Mode vmm: the layer's trips end here. */
SYM_INNER_LABEL(kyozon_guest_exit, SYM_L_GLOBAL)
	ENDBR
	vmmcall
	.balign 4096, 0xcc
SYM_INNER_LABEL(kyozon_trampoline_end, SYM_L_GLOBAL)
SYM_FUNC_END(kyozon_trampoline)

/* An unwinder cannot describe this code. */
STACK_FRAME_NON_STANDARD kyozon_trampoline

	.section .note.GNU-stack, "", @progbits
