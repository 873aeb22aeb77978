// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory for the cokernel's world, taken from the page allocator while Linux
 * runs. Pieces are as large as the allocator has them, so that the reserve has
 * few of them, and few ranges describe Linux's remaining memory.
 */
#include <linux/gfp.h>
#include <linux/log2.h>
#include <linux/mmzone.h>
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
