// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compares Linux's state before and after a trip, and counts the words that
 * differ. For tests: module parameter `check`.
 */
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <asm/desc.h>
#include <asm/fpu/api.h>
#include <asm/msr.h>
#include <asm/special_insns.h>
#include <asm/debugreg.h>	/* after what it uses */

#include "kyozon.h"

bool kyozon_check;
module_param_named(check, kyozon_check, bool, 0644);
MODULE_PARM_DESC(check, "compare Linux's state around every trip (slow)");

static const u32 msrs[] = {
	MSR_FS_BASE, MSR_GS_BASE, MSR_KERNEL_GS_BASE, MSR_LSTAR, MSR_CSTAR,
	MSR_STAR, MSR_SYSCALL_MASK, MSR_EFER, MSR_IA32_CR_PAT,
	MSR_IA32_SYSENTER_CS, MSR_IA32_SYSENTER_ESP, MSR_IA32_SYSENTER_EIP,
	MSR_TSC_AUX,
};

struct kyozon_snapshot {
	u64 gdt_base, gdt_limit, idt_base, idt_limit;
	u64 tr, tr_base, ldt;
	u64 ds, es, fs, gs, ss;
	u64 cr0, cr2, cr3, cr4, dr[8], flags, pkru;
	u64 msr[ARRAY_SIZE(msrs)];
	u8 fpu[512] __aligned(16);
};

static struct kyozon_snapshot before, after;
static int last_difference = -1;

static void take(struct kyozon_snapshot *s)
{
	struct desc_ptr gdtr, idtr;
	u64 *gdt, d0, d1;
	unsigned int i;
	u16 selector;

	memset(s, 0, sizeof(*s));
	native_store_gdt(&gdtr);
	store_idt(&idtr);
	s->gdt_base = gdtr.address;
	s->gdt_limit = gdtr.size;
	s->idt_base = idtr.address;
	s->idt_limit = idtr.size;
	asm volatile("str %0" : "=m"(selector));
	s->tr = selector;
	gdt = (u64 *)gdtr.address;
	d0 = gdt[selector / 8];
	d1 = gdt[selector / 8 + 1];
	/* From the descriptor: the hidden part cannot be read. */
	s->tr_base = (d0 >> 16 & 0xffffff) | (d0 >> 56) << 24 | d1 << 32;
	asm volatile("sldt %0" : "=m"(selector));
	s->ldt = selector;
	savesegment(ds, s->ds);
	savesegment(es, s->es);
	savesegment(fs, s->fs);
	savesegment(gs, s->gs);
	savesegment(ss, s->ss);
	s->cr0 = native_read_cr0();
	s->cr2 = native_read_cr2();
	s->cr3 = __native_read_cr3();
	s->cr4 = native_read_cr4();
	get_debugreg(s->dr[0], 0);
	get_debugreg(s->dr[1], 1);
	get_debugreg(s->dr[2], 2);
	get_debugreg(s->dr[3], 3);
	get_debugreg(s->dr[6], 6);
	get_debugreg(s->dr[7], 7);
	s->flags = native_save_fl() &
		   ~(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF |
		     X86_EFLAGS_ZF | X86_EFLAGS_SF | X86_EFLAGS_OF);
	if (s->cr4 & X86_CR4_PKE)
		s->pkru = rdpkru();
	for (i = 0; i < ARRAY_SIZE(msrs); i++)
		rdmsrl_safe(msrs[i], &s->msr[i]);
	asm volatile("fxsave64 %0" : "=m"(s->fpu));
}

void kyozon_switch_checked(void)
{
	const u64 *a = (const u64 *)&before, *b = (const u64 *)&after;
	unsigned int i;

	take(&before);
	kyozon_switch();
	take(&after);
	for (i = 0; i < sizeof(before) / sizeof(*a); i++) {
		if (a[i] == b[i])
			continue;
		kyozon.differences++;
		last_difference = i * sizeof(*a);
	}
}

/* After the last trip: reports which state differed last. */
void kyozon_check_report(void)
{
	if (last_difference >= 0)
		pr_warn("%llu pieces of state differed, the last at byte %d of struct kyozon_snapshot\n",
			kyozon.differences, last_difference);
	last_difference = -1;
}
