// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attacks on a cokernel's memory through every kind of mapping.
 */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/page-flags.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <asm/msr.h>
#include <asm/pgtable.h>
#include <asm/special_insns.h>
#include <asm/tlbflush.h>

#include "root.h"

#define ENTRY_P		BIT_ULL(0)
#define ENTRY_NX	BIT_ULL(63)
#define ENTRY_ADDRESS	0x000ffffffffff000ull
#define TEXT_MAX	256	/* pages */

static struct {
	phys_addr_t memory;
	phys_addr_t text[TEXT_MAX];
	unsigned int pages;	/* of text */
	bool hidden;
} victim;

phys_addr_t root_victim(void)
{
	return victim.memory;
}

/* 0 if the cokernel's page tables cannot be read. */
phys_addr_t root_known_victim(void)
{
	return victim.hidden ? 0 : victim.memory;
}

static bool in_reserve(struct kyozon *k, phys_addr_t at)
{
	unsigned int i;

	for (i = 0; i < k->reserve.count; i++) {
		struct kyozon_piece *piece = &k->reserve.pieces[i];
		phys_addr_t start = page_to_phys(piece->page);

		if (at >= start && at - start < PAGE_SIZE << piece->order)
			return true;
	}
	return false;
}

/* The entry that maps @va in the cokernel's world; 0 if it cannot be read. */
static u64 entry_of(struct kyozon *k, u64 va)
{
	struct kyozon_world *world = (void *)symbol("kyozon_world");
	u64 entry = world ? world->cr3 | ENTRY_P : 0;
	int level;

	for (level = k->levels; level > 0; level--) {
		u64 *table = __va(entry & ENTRY_ADDRESS);

		if (!in_reserve(k, entry & ENTRY_ADDRESS))
			return 0;
		entry = READ_ONCE(table[va >> (3 + 9 * level) & 511]);
		if (!(entry & ENTRY_P))
			return 0;
	}
	return in_reserve(k, entry & ENTRY_ADDRESS) ? entry : 0;
}

/* If the cokernel's page tables cannot be read, the first page of the reserve is the target. */
int root_find(struct kyozon *k, char *unused)
{
	phys_addr_t first = page_to_phys(k->reserve.pieces[0].page);
	u64 entry;

	victim.memory = entry_of(k, KYOZON_MEMORY_BASE) & ENTRY_ADDRESS;
	victim.hidden = !victim.memory;
	if (victim.hidden)
		victim.memory = first;
	for (victim.pages = 0; victim.pages < TEXT_MAX; victim.pages++) {
		entry = entry_of(k, KYOZON_COKERNEL_BASE + victim.pages * PAGE_SIZE);
		if (!entry || entry & ENTRY_NX)
			break;
		victim.text[victim.pages] = entry & ENTRY_ADDRESS;
	}
	if (!victim.pages)
		victim.text[victim.pages++] = first;
	root_report("find memory %pa text %pa pages %u%s",
		 &victim.memory, &victim.text[0], victim.pages,
		 victim.hidden ? " (tables hidden)" : "");
	return 0;
}

static void *direct_map(phys_addr_t at)
{
	return __va(at);
}

static void direct_unmap(void *unused)
{
}

static void *memremap_map(phys_addr_t at)
{
	return memremap(at, PAGE_SIZE, MEMREMAP_WB);
}

/* Linux refuses to map RAM as device memory unless its page is reserved. */
static struct page *reserved;

static void *ioremap_map(phys_addr_t at)
{
	void *mapped;

	reserved = pfn_to_page(PHYS_PFN(at));
	SetPageReserved(reserved);
	mapped = (void __force *)ioremap_cache(at, PAGE_SIZE);
	if (!mapped)
		ClearPageReserved(reserved);
	return mapped;
}

static void ioremap_unmap(void *mapped)
{
	iounmap((void __iomem __force *)mapped);
	ClearPageReserved(reserved);
}

static void *vmap_map(phys_addr_t at)
{
	struct page *page = pfn_to_page(PHYS_PFN(at));

	return vmap(&page, 1, VM_MAP, PAGE_KERNEL);
}

/* A page-table entry of Linux, changed by hand; only this CPU uses it. */
static struct {
	void *page;
	pte_t *entry, old;
} by_hand;

static void *entry_map(phys_addr_t at)
{
	unsigned int level;

	by_hand.page = vmalloc(PAGE_SIZE);
	if (!by_hand.page)
		return NULL;
	memset(by_hand.page, 0, PAGE_SIZE);
	by_hand.entry = lookup_address((unsigned long)by_hand.page, &level);
	if (WARN_ON(!by_hand.entry || level != PG_LEVEL_4K)) {
		vfree(by_hand.page);
		return NULL;
	}
	by_hand.old = *by_hand.entry;
	preempt_disable();
	WRITE_ONCE(*by_hand.entry, pfn_pte(PHYS_PFN(at), PAGE_KERNEL));
	asm volatile("invlpg (%0)" : : "r" (by_hand.page) : "memory");
	return by_hand.page;
}

static void entry_unmap(void *page)
{
	WRITE_ONCE(*by_hand.entry, by_hand.old);
	asm volatile("invlpg (%0)" : : "r" (page) : "memory");
	preempt_enable();
	vfree(page);
}

static const struct mapping {
	const char *name;
	void *(*map)(phys_addr_t at);
	void (*unmap)(void *mapped);
} mappings[] = {
	{ "direct", direct_map, direct_unmap },
	{ "memremap", memremap_map, memunmap },
	{ "ioremap", ioremap_map, ioremap_unmap },
	{ "vmap", vmap_map, (void (*)(void *))vunmap },
	{ "entry", entry_map, entry_unmap },
};

static const struct mapping *mapping_of(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mappings); i++)
		if (!strcmp(mappings[i].name, name))
			return &mappings[i];
	return NULL;
}

int root_write(struct kyozon *k, char *how)
{
	const struct mapping *mapping = mapping_of(how);
	u64 value = rdtsc() | 1, *at;

	if (!mapping || !victim.memory)
		return -EINVAL;
	at = mapping->map(victim.memory);
	if (!at)
		return -ENOMEM;
	WRITE_ONCE(*at, value);
	mapping->unmap(at);
	root_report("write %s %pa %#llx", how, &victim.memory, value);
	return 0;
}

int root_read(struct kyozon *k, char *how)
{
	const struct mapping *mapping = mapping_of(how);
	u8 bytes[2][8];
	int i;

	if (!mapping || !victim.memory)
		return -EINVAL;
	for (i = 0; i < 2; i++) {
		u64 *at = mapping->map(i ? victim.memory : victim.text[0]);
		u64 word;

		if (!at)
			return -ENOMEM;
		word = READ_ONCE(*at);
		memcpy(bytes[i], &word, sizeof(word));
		mapping->unmap(at);
	}
	root_report("read %s image %8ph memory %8ph", how, bytes[0], bytes[1]);
	return 0;
}

/*
 * One instruction reads the memory and writes to an address that nobody has
 * used before: the second access faults while the first one is handled.
 */
int root_copy(struct kyozon *k, char *unused)
{
	phys_addr_t far = BIT_ULL(boot_cpu_data.x86_phys_bits - 1);
	const void *from = __va(victim.memory);
	void __iomem *to;
	void *at;

	if (!victim.memory)
		return -EINVAL;
	to = ioremap(far, PAGE_SIZE);
	if (!to)
		return -ENOMEM;
	at = (void __force *)to;
	asm volatile("movsq" : "+S" (from), "+D" (at) : : "memory");
	iounmap(to);
	root_report("copy %pa to %pa", &victim.memory, &far);
	return 0;
}

int root_break(struct kyozon *k, char *how)
{
	const struct mapping *mapping = mapping_of(how);
	unsigned int i;

	if (!mapping || !victim.memory)
		return -EINVAL;
	for (i = 0; i < victim.pages; i++) {
		u16 *at = mapping->map(victim.text[i]);

		if (!at)
			return -ENOMEM;
		/* ud2 everywhere; in a hidden page, in its first word only. */
		memset16(at, 0x0b0f, victim.hidden ? 4 : PAGE_SIZE / 2);
		mapping->unmap(at);
	}
	root_report("break %s %u pages at %pa", how, i, &victim.text[0]);
	return 0;
}

/* The entry of Linux's page tables that maps @va at @wanted (1: 4 KiB). */
static u64 *linux_entry_of(unsigned long va, int wanted)
{
	u64 *table = __va(__read_cr3() & ENTRY_ADDRESS);
	int level = __read_cr4() & X86_CR4_LA57 ? 5 : 4;

	for (;; level--) {
		u64 *entry = &table[va >> (3 + 9 * level) & 511];

		if (level == wanted)
			return entry;
		if (!(*entry & ENTRY_P) || *entry & _PAGE_PSE)
			return NULL;
		table = __va(*entry & ENTRY_ADDRESS);
	}
}

#define LAST		511	/* the entry, and the word, that is used */
#define TABLE_MARK	0x656c626174ull

/* Uses the cokernel's memory as a page table of Linux: the CPU itself reads it. */
int root_table(struct kyozon *k, char *unused)
{
	void *area = vmalloc(2 * PMD_SIZE), *at;
	u64 *own = (u64 *)get_zeroed_page(GFP_KERNEL);
	u64 *entry, *word, old, found = 0;
	unsigned long flags;
	int error = -ENOMEM, turn;

	if (!area || !own || !victim.memory)
		goto out;
	at = (void *)ALIGN((unsigned long)area, PMD_SIZE) + LAST * PAGE_SIZE;
	entry = linux_entry_of((unsigned long)at, 2);
	error = -EFAULT;
	if (!entry)
		goto out;
	*own = TABLE_MARK;
	word = (u64 *)__va(victim.memory) + LAST;
	local_irq_save(flags);
	old = *entry;
	/* Retries: the cokernel may restore its word in between. */
	for (turn = 0; turn < 3 && found != TABLE_MARK; turn++) {
		WRITE_ONCE(*word, __pa(own) | pgprot_val(PAGE_KERNEL));
		WRITE_ONCE(*entry, victim.memory | (old & ~ENTRY_ADDRESS));
		asm volatile("invlpg (%0)" : : "r" (at) : "memory");
		error = copy_from_kernel_nofault(&found, at, sizeof(found));
		WRITE_ONCE(*entry, old);
		asm volatile("invlpg (%0)" : : "r" (at) : "memory");
	}
	local_irq_restore(flags);
	root_report("table at %pa %s", &victim.memory,
		 found == TABLE_MARK ? "is used" : "is not used");
out:
	free_page((unsigned long)own);
	vfree(area);
	return error;
}

int root_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (!victim.memory || vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	return remap_pfn_range(vma, vma->vm_start, PHYS_PFN(victim.memory), PAGE_SIZE,
			       vma->vm_page_prot);
}
