// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holds the code of programs: text of this module, because only that may
 * execute and has an exception table.
 *
 * It is written through another mapping of its pages, which cannot execute and
 * which is gone before the program runs. Programs have whole pages.
 *
 * The exception table has a fixed part for each page, in the order of their
 * addresses. What changes in it are the instructions in a program's own part,
 * within the program's own addresses: so a search for a fault of another
 * program finds its way at any time.
 */
#include <linux/bitmap.h>
#include <linux/extable.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/smp.h>
#include <linux/vmalloc.h>
#include <asm/extable.h>
#include <asm/text-patching.h>

#include "typed.h"

#define PAGES		(TYPED_IMAGE_BYTES >> PAGE_SHIFT)
#define FAULTS_OF_PAGE	(PAGE_SIZE / TYPED_BYTES_PER_FAULT)

static DEFINE_MUTEX(container_lock);
static DECLARE_BITMAP(taken, PAGES);
static struct exception_table_entry entries[TYPED_FAULTS];

static void nothing(void *unused)
{
}

/* Fills whole pages of this module's text: bytes, and int3 behind them. */
static int write_text(u8 *to, size_t room, const u8 *from, size_t bytes)
{
	unsigned int count = room >> PAGE_SHIFT;
	struct page **pages;
	unsigned int n;
	u8 *alias;

	pages = kvmalloc_array(count, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;
	for (n = 0; n < count; n++)
		pages[n] = vmalloc_to_page(to + n * PAGE_SIZE);
	alias = vmap(pages, count, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	if (!alias)
		return -ENOMEM;
	if (bytes)
		memcpy(alias, from, bytes);
	memset(alias + bytes, INT3_INSN_OPCODE, room - bytes);
	vunmap(alias);
	vm_unmap_aliases();
	/* A CPU may have fetched what was there; IRET serializes. */
	on_each_cpu(nothing, NULL, 1);
	return 0;
}

static u8 *first_byte(const struct typed_code *code)
{
	return typed_image + code->page * PAGE_SIZE;
}

static void set_instruction(struct exception_table_entry *entry, const u8 *at)
{
	WRITE_ONCE(entry->insn, at - (const u8 *)&entry->insn);
}

static const u8 *instruction(const struct exception_table_entry *entry)
{
	return (const u8 *)&entry->insn + entry->insn;
}

/* Of a page without a program: its last byte, where no instruction begins. */
static void clear_entries(unsigned int page, unsigned int pages)
{
	unsigned int n;

	for (n = page * FAULTS_OF_PAGE; n < (page + pages) * FAULTS_OF_PAGE; n++)
		set_instruction(&entries[n], typed_image +
				n / FAULTS_OF_PAGE * PAGE_SIZE + PAGE_SIZE - 1);
}

/* What a program does not use has its last byte. */
static void fill_entries(const struct typed_code *code, const u32 *faults,
			 unsigned int count)
{
	struct exception_table_entry *entry = &entries[code->page * FAULTS_OF_PAGE];
	const u8 *last = first_byte(code) + code->pages * PAGE_SIZE - 1;
	unsigned int n;

	for (n = 0; n < code->pages * FAULTS_OF_PAGE; n++)
		set_instruction(entry + n, n < count ? first_byte(code) + faults[n] : last);
}

u64 typed_code_address(const struct typed_code *code)
{
	return (unsigned long)first_byte(code);
}

int typed_code_take(struct typed_code *code, const struct typed_program *program,
		    char *message)
{
	unsigned int faults = program->contents.faults;
	unsigned int pages = max_t(unsigned int,
				   DIV_ROUND_UP(program->image_bytes, PAGE_SIZE),
				   DIV_ROUND_UP(faults, FAULTS_OF_PAGE));
	unsigned long page;

	if (pages > PAGES)
		return typed_err(message, -EFBIG,
				 "the program needs %u KiB for its code: this module has %d",
				 pages << (PAGE_SHIFT - 10), PAGES << (PAGE_SHIFT - 10));
	mutex_lock(&container_lock);
	page = bitmap_find_next_zero_area(taken, PAGES, 0, pages, 0);
	if (page < PAGES)
		bitmap_set(taken, page, pages);
	mutex_unlock(&container_lock);
	if (page >= PAGES)
		return typed_err(message, -ENOSPC,
				 "other programs run: no room for %u KiB of code at present",
				 pages << (PAGE_SHIFT - 10));
	code->page = page;
	code->pages = pages;
	return 0;
}

int typed_code_write(const struct typed_code *code, const u8 *image, size_t bytes,
		     const u32 *faults, unsigned int count)
{
	fill_entries(code, faults, count);
	return write_text(first_byte(code), code->pages * PAGE_SIZE, image, bytes);
}

void typed_code_give(struct typed_code *code)
{
	if (!code->pages)
		return;
	/* Without memory for this, code stays that nothing leads to. */
	write_text(first_byte(code), code->pages * PAGE_SIZE, NULL, 0);
	clear_entries(code->page, code->pages);
	mutex_lock(&container_lock);
	bitmap_clear(taken, code->page, code->pages);
	mutex_unlock(&container_lock);
	code->pages = 0;
}

u32 typed_code_offset(const struct typed_code *code, unsigned long address)
{
	return address - (unsigned long)first_byte(code);
}

unsigned long typed_fault_address(unsigned long fixup)
{
	unsigned long n = (fixup - (unsigned long)typed_fixups) / TYPED_FIXUP_BYTES;

	return (unsigned long)instruction(&entries[n - 1]);
}

bool typed_in_image(unsigned long address)
{
	return address - (unsigned long)typed_image < TYPED_IMAGE_BYTES;
}

static int fill_fixups(void)
{
	size_t room = PAGE_ALIGN(TYPED_FAULTS * TYPED_FIXUP_BYTES);
	u8 *calls = kvmalloc(room, GFP_KERNEL);
	unsigned int n;
	int error;

	if (!calls)
		return -ENOMEM;
	for (n = 0; n < TYPED_FAULTS; n++) {
		u8 *at = calls + n * TYPED_FIXUP_BYTES;
		u8 *place = typed_fixups + n * TYPED_FIXUP_BYTES;
		s32 distance = typed_faulted - (place + TYPED_FIXUP_BYTES);

		*at = CALL_INSN_OPCODE;
		memcpy(at + 1, &distance, sizeof(distance));
		entries[n].fixup = place - (u8 *)&entries[n].fixup;
		entries[n].data = EX_TYPE_DEFAULT;
	}
	clear_entries(0, PAGES);
	error = write_text(typed_fixups, room, calls,
			   TYPED_FAULTS * TYPED_FIXUP_BYTES);
	kvfree(calls);
	return error;
}

int typed_container_init(void)
{
	int error;

	/* The module's own entries would have to be merged with the programs'. */
	if (THIS_MODULE->num_exentries) {
		pr_err("the module has an exception table of its own\n");
		return -ENOEXEC;
	}
	error = write_text(typed_image, TYPED_IMAGE_BYTES, NULL, 0) ?: fill_fixups();
	if (error)
		return error;
	THIS_MODULE->extable = entries;
	smp_wmb();	/* what finds entries finds the table */
	WRITE_ONCE(THIS_MODULE->num_exentries, ARRAY_SIZE(entries));
	return 0;
}
