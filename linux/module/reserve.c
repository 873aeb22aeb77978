// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory for the cokernel's world, taken from the page allocator while Linux
 * runs. Pieces are as large as the allocator has them, so that the reserve has
 * few of them, and few ranges describe Linux's remaining memory.
 */
#include <linux/gfp.h>
#include <linux/ioport.h>
#include <linux/log2.h>
#include <linux/mmzone.h>
#include <linux/sort.h>
#include <asm/io.h>

#include "kyozon.h"

#ifndef MAX_PAGE_ORDER
#define MAX_PAGE_ORDER	(MAX_ORDER - 1)
#endif

int kyozon_reserve_take(struct kyozon_reserve *r, u64 pages)
{
	const gfp_t gfp = GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN |
			  __GFP_NORETRY;
	unsigned int order = MAX_PAGE_ORDER;

	memset(r, 0, sizeof(*r));
	while (r->pages < pages) {
		struct page *page;

		order = min_t(unsigned int, order, ilog2(pages - r->pages));
		page = r->count < ARRAY_SIZE(r->pieces) ?
			alloc_pages(gfp, order) : NULL;
		if (page) {
			r->pieces[r->count].page = page;
			r->pieces[r->count++].order = order;
			r->pages += 1ull << order;
		} else if (order && r->count < ARRAY_SIZE(r->pieces)) {
			order--;
		} else {
			kyozon_reserve_give(r);
			return -ENOMEM;
		}
	}
	return 0;
}

void kyozon_reserve_give(struct kyozon_reserve *r)
{
	while (r->count) {
		struct kyozon_piece *piece = &r->pieces[--r->count];

		__free_pages(piece->page, piece->order);
	}
	memset(r, 0, sizeof(*r));
}

/* The next page, zeroed; NULL when the reserve was computed too small. */
void *kyozon_reserve_page(struct kyozon_reserve *r)
{
	struct kyozon_piece *piece = &r->pieces[r->piece];
	struct page *page;

	if (r->piece >= r->count)
		return NULL;
	page = piece->page + r->page++;
	if (r->page == 1ull << piece->order) {
		r->piece++;
		r->page = 0;
	}
	return page_address(page);
}

/* `pages` contiguous pages, zeroed; may skip pages before them. */
void *kyozon_reserve_run(struct kyozon_reserve *r, unsigned int pages)
{
	unsigned int piece = r->count;
	void *page, *first = NULL;
	unsigned int run = 0;

	while (run < pages) {
		bool same = piece == r->piece;

		piece = r->piece;
		page = kyozon_reserve_page(r);
		if (!page)
			return NULL;
		run = same ? run + 1 : 1;
		if (run == 1)
			first = page;
	}
	return first;
}

/* The ranges that were handed out, or those that were not. */
int kyozon_reserve_parts(const struct kyozon_reserve *r, bool used,
			 struct kyozon_range *parts, u32 *count)
{
	unsigned int i;

	*count = 0;
	for (i = 0; i < r->count; i++) {
		u64 base = page_to_phys(r->pieces[i].page);
		u64 bytes = PAGE_SIZE << r->pieces[i].order;
		u64 out = i < r->piece ? bytes :
			  i == r->piece ? r->page << PAGE_SHIFT : 0;

		if (!(used ? out : bytes - out))
			continue;
		if (*count == KYOZON_MAX_RANGES)
			return -E2BIG;
		parts[*count].base = used ? base : base + out;
		parts[(*count)++].bytes = used ? out : bytes - out;
	}
	return 0;
}

struct ram_walk {
	struct kyozon_range *ram;
	u32 count;
};

static int append(struct ram_walk *w, u64 start, u64 end)
{
	if (start >= end)
		return 0;
	if (w->count && w->ram[w->count - 1].base +
			w->ram[w->count - 1].bytes == start) {
		w->ram[w->count - 1].bytes += end - start;
		return 0;
	}
	if (w->count == KYOZON_MAX_RANGES)
		return -E2BIG;
	w->ram[w->count].base = start;
	w->ram[w->count++].bytes = end - start;
	return 0;
}

/* A page with a memory failure must not be touched. */
static bool is_poisoned(u64 physical)
{
	unsigned long pfn = PHYS_PFN(physical);

	return pfn_valid(pfn) && PageHWPoison(pfn_to_page(pfn));
}

static int append_resource(struct resource *res, void *walk)
{
	u64 start = PAGE_ALIGN(res->start), end = (res->end + 1) & PAGE_MASK, at;

	for (at = start; IS_ENABLED(CONFIG_MEMORY_FAILURE) && at < end;
	     at += PAGE_SIZE) {
		int error;

		if (likely(!is_poisoned(at)))
			continue;
		error = append(walk, start, at);
		if (error)
			return error;
		start = at + PAGE_SIZE;
	}
	return append(walk, start, end);
}

static int by_address(const void *a, const void *b)
{
	u64 x = page_to_phys(((const struct kyozon_piece *)a)->page);
	u64 y = page_to_phys(((const struct kyozon_piece *)b)->page);

	return x < y ? -1 : x > y;
}

/* System RAM without the reserve, ascending. `r` may be NULL. */
int kyozon_ram(const struct kyozon_reserve *r, struct kyozon_range *ram,
	       u32 *count)
{
	static struct kyozon_range all[KYOZON_MAX_RANGES];
	static struct kyozon_piece pieces[KYOZON_MAX_RANGES];
	struct ram_walk system = { .ram = all }, rest = { .ram = ram };
	unsigned int i, n = r ? r->count : 0, p = 0;
	int error;

	error = walk_iomem_res_desc(IORES_DESC_NONE,
				    IORESOURCE_SYSTEM_RAM | IORESOURCE_BUSY, 0,
				    -1, &system, append_resource);
	if (error)
		return error;
	if (n) {
		memcpy(pieces, r->pieces, n * sizeof(*pieces));
		sort(pieces, n, sizeof(*pieces), by_address, NULL);
	}
	for (i = 0; i < system.count; i++) {
		u64 start = all[i].base, end = start + all[i].bytes;

		for (; p < n; p++) {
			u64 hole = page_to_phys(pieces[p].page);

			if (hole >= end)
				break;
			error = append(&rest, start, hole);
			if (error)
				return error;
			start = hole + (PAGE_SIZE << pieces[p].order);
		}
		error = append(&rest, start, end);
		if (error)
			return error;
	}
	*count = rest.count;
	return 0;
}
