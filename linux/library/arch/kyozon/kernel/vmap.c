// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of scattered pages.
 *
 * Without page tables, Linux has none: mm/nommu.c calls BUG(). xfs needs them for its buffers of several pages, erofs
 * for compressed data. Pages that follow each other are their own mapping. For others the mapping is a copy, which is
 * written back when it is unmapped. In between, its users treat it as they must on CPUs whose caches know virtual
 * addresses only: before pages are written to a device they flush the mapping, and after pages were read from one they
 * invalidate it (Documentation/core-api/cachetlb.rst). Here that copies.
 *
 * The linker replaces the functions of mm/nommu.c by those below (--wrap).
 */

#include <linux/highmem.h>
#include <linux/maple_tree.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "kyozon.h"

/* Mappings that are copies, by their addresses. */
static DEFINE_MTREE(copies);

struct copy {
	void *address;
	unsigned int count;
	struct page *pages[] __counted_by(count);
};

static bool contiguous(struct page **pages, unsigned int count)
{
	unsigned int i;

	for (i = 1; i < count; i++) {
		if (page_to_pfn(pages[i]) != page_to_pfn(pages[0]) + i)
			return false;
	}
	return true;
}

/* Copies bytes of a mapping to its pages, or from them. */
static void move(struct copy *copy, unsigned long offset, unsigned long bytes, bool to_pages)
{
	unsigned long end = min(offset + bytes, (unsigned long)copy->count << PAGE_SHIFT);

	while (offset < end) {
		unsigned long in_page = offset_in_page(offset);
		unsigned long now = min(end - offset, PAGE_SIZE - in_page);
		void *page = page_address(copy->pages[offset >> PAGE_SHIFT]) + in_page;
		void *mapped = copy->address + offset;

		if (to_pages)
			memcpy(page, mapped, now);
		else
			memcpy(mapped, page, now);
		offset += now;
	}
}

void *__wrap_vm_map_ram(struct page **pages, unsigned int count, int node)
{
	size_t bytes = (size_t)count << PAGE_SHIFT;
	unsigned long first;
	struct copy *copy;

	if (contiguous(pages, count))
		return page_address(pages[0]);
	copy = kmalloc(struct_size(copy, pages, count), GFP_KERNEL);
	if (!copy)
		return NULL;
	copy->count = count;
	memcpy(copy->pages, pages, count * sizeof(*pages));
	copy->address = alloc_pages_exact(bytes, GFP_KERNEL | __GFP_NOWARN);
	if (!copy->address)
		goto no_memory;
	first = (unsigned long)copy->address;
	if (mtree_store_range(&copies, first, first + bytes - 1, copy, GFP_KERNEL)) {
		free_pages_exact(copy->address, bytes);
		goto no_memory;
	}
	move(copy, 0, bytes, false);
	return copy->address;

no_memory:
	kfree(copy);
	return NULL;
}

void __wrap_vm_unmap_ram(const void *address, unsigned int count)
{
	struct copy *copy = mtree_load(&copies, (unsigned long)address);
	size_t bytes;

	if (!copy)
		return;
	bytes = (size_t)copy->count << PAGE_SHIFT;
	move(copy, 0, bytes, true);
	mtree_erase(&copies, (unsigned long)address);
	free_pages_exact(copy->address, bytes);
	kfree(copy);
}

void *__wrap_vmap(struct page **pages, unsigned int count, unsigned long flags, pgprot_t prot)
{
	/* Nothing that is built in hands its pages over. */
	if (WARN_ON_ONCE(flags & VM_MAP_PUT_PAGES))
		return NULL;
	return __wrap_vm_map_ram(pages, count, NUMA_NO_NODE);
}

void __wrap_vunmap(const void *address)
{
	__wrap_vm_unmap_ram(address, 0);
}

static void synchronize(void *address, int bytes, bool to_pages)
{
	struct copy *copy = mtree_load(&copies, (unsigned long)address);

	if (copy && bytes > 0)
		move(copy, address - copy->address, bytes, to_pages);
}

void flush_kernel_vmap_range(void *address, int bytes)
{
	synchronize(address, bytes, true);
}

void invalidate_kernel_vmap_range(void *address, int bytes)
{
	synchronize(address, bytes, false);
}
