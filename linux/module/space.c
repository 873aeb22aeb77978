// SPDX-License-Identifier: GPL-2.0-only
/*
 * Page tables of the cokernel's and the hypervisor's world. `top` is the table
 * of the highest level; memory comes from the reserve.
 */
#include <linux/mm.h>
#include <asm/cpufeature.h>
#include <asm/io.h>

#include "kyozon.h"

#define ENTRY_PS	BIT_ULL(7)

/* The entry that maps `va` at `level` (1: 4 KiB); makes the tables above it. */
u64 *kyozon_entry(u64 *top, u64 va, unsigned int level)
{
	u64 *table = top;
	unsigned int l;

	for (l = kyozon.levels; l > level; l--) {
		u64 *entry = &table[va >> (3 + 9 * l) & 511];

		if (!*entry) {
			void *page = kyozon_reserve_page(&kyozon.reserve);

			if (!page)
				return NULL;
			*entry = __pa(page) | ENTRY_P | ENTRY_RW | ENTRY_AD;
		}
		table = __va(*entry & ENTRY_ADDRESS);
	}
	return &table[va >> (3 + 9 * level) & 511];
}

int kyozon_map(u64 *top, u64 va, phys_addr_t pa, u64 flags)
{
	u64 *entry = kyozon_entry(top, va, 1);

	if (!entry)
		return -ENOMEM;
	*entry = pa | flags;
	return 0;
}

/* Maps the module's own pages at the same addresses in both worlds. */
int kyozon_map_own(u64 *top, const void *from, const void *to, u64 flags)
{
	const void *at;
	int error = 0;

	for (at = from; at < to && !error; at += PAGE_SIZE) {
		struct page *page = vmalloc_to_page(at);

		error = page ? kyozon_map(top, (u64)at, page_to_phys(page), flags) :
			       -EFAULT;
	}
	return error;
}

/* Maps new pages at `va`, filled from `from`. */
int kyozon_map_new(u64 *top, u64 va, u64 bytes, const void *from,
		   u64 from_bytes, u64 flags)
{
	u64 at;

	for (at = 0; at < bytes; at += PAGE_SIZE) {
		void *page = kyozon_reserve_page(&kyozon.reserve);
		int error;

		if (!page)
			return -ENOMEM;
		if (at < from_bytes)
			memcpy(page, from + at, min_t(u64, PAGE_SIZE, from_bytes - at));
		error = kyozon_map(top, va + at, __pa(page), flags);
		if (error)
			return error;
	}
	return 0;
}

int kyozon_map_image(u64 *top, const struct kyozon_loaded_image *image)
{
	const struct kyozon_image_header *h = &image->header;
	u64 rodata = h->text_bytes, data = rodata + h->rodata_bytes;
	int error;

	error = kyozon_map_new(top, h->base, h->text_bytes, image->bytes,
			       h->text_bytes, ENTRY_TEXT);
	if (!error)
		error = kyozon_map_new(top, h->base + rodata, h->rodata_bytes,
				       image->bytes + rodata, h->rodata_bytes,
				       ENTRY_RODATA);
	if (!error)
		error = kyozon_map_new(top, h->base + data, h->memory_bytes,
				       image->bytes + data, h->data_bytes,
				       ENTRY_DATA);
	return error;
}

/* The level of the largest leaf: 3 is 1 GiB, 2 is 2 MiB. */
unsigned int kyozon_largest_level(void)
{
	return boot_cpu_has(X86_FEATURE_GBPAGES) ? 3 : 2;
}

/* Maps physical memory at `base` plus its address. */
int kyozon_map_window(u64 *top, u64 base, const struct kyozon_range *range,
		      u64 flags)
{
	u64 pa = range->base, end = pa + range->bytes;

	while (pa < end) {
		unsigned int level = kyozon_largest_level();
		u64 bytes, *entry;

		for (;; level--) {
			bytes = 1ull << (3 + 9 * level);
			if (level == 1 || (IS_ALIGNED(pa, bytes) && end - pa >= bytes))
				break;
		}
		entry = kyozon_entry(top, base + pa, level);
		if (!entry)
			return -ENOMEM;
		*entry = pa | flags | (level > 1 ? ENTRY_PS : 0);
		pa += bytes;
		/* All but the top-level entry: see KYOZON_WINDOW_BASE. */
		for (level++; level < 4; level++)
			*kyozon_entry(top, base + pa - bytes, level) |= flags & ENTRY_US;
	}
	return 0;
}
