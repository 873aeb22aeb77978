// SPDX-License-Identifier: GPL-2.0-only
/*
 * Linux's memory: what it has, and what it may add while the cokernel runs.
 */
#include <linux/acpi.h>
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/sort.h>
#include <asm/io.h>

#include "kyozon.h"

/* Bytes that Linux may add; more would cost too much memory for tables. */
#define MAX_ADDED	(1ull << 40)
/* End of the physical addresses that the cokernel's window has room for. */
#define WINDOW_END	(1ull << 46)

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

static int by_base(const void *a, const void *b)
{
	u64 x = ((const struct kyozon_range *)a)->base;
	u64 y = ((const struct kyozon_range *)b)->base;

	return x < y ? -1 : x > y;
}

/* Appends memory that is nobody's yet, up to @room bytes; returns the rest. */
static u64 append_gap(struct ram_walk *w, u64 start, u64 end, u64 room)
{
	if (start >= end || !room)
		return room;
	end = min(end, start + room);
	if (region_intersects(start, end - start, IORESOURCE_MEM,
			      IORES_DESC_NONE) != REGION_DISJOINT ||
	    append(w, start, end))
		return room;
	return room - (end - start);
}

/* Appends what Linux lacks of a range that memory can be added to; sorts. */
static u64 append_missing(struct ram_walk *w, u64 at, u64 end, u64 room)
{
	u32 i, count = w->count;

	for (i = 0; i < count && at < end; i++) {
		u64 base = w->ram[i].base, behind = base + w->ram[i].bytes;

		if (behind <= at)
			continue;
		room = append_gap(w, at, min(base, end), room);
		at = max(at, behind);
	}
	room = append_gap(w, at, end, room);
	sort(w->ram, w->count, sizeof(*w->ram), by_base, NULL);
	return room;
}

/*
 * Memory that Linux may add: the firmware's table of affinities says where.
 *
 * Reference: ACPI 6.5, 5.2.16.2.
 */
static void append_pluggable(struct ram_walk *w)
{
	const u32 flags = ACPI_SRAT_MEM_ENABLED | ACPI_SRAT_MEM_HOT_PLUGGABLE;
	u64 limit = min(1ull << boot_cpu_data.x86_phys_bits, WINDOW_END);
	struct acpi_subtable_header *at;
	struct acpi_table_header *srat;
	u64 room = MAX_ADDED;
	void *end;

	if (ACPI_FAILURE(acpi_get_table(ACPI_SIG_SRAT, 0, &srat)))
		return;
	at = (void *)srat + sizeof(struct acpi_table_srat);
	end = (void *)srat + srat->length;
	while ((void *)(at + 1) <= end && at->length >= sizeof(*at) &&
	       (void *)at + at->length <= end) {
		const struct acpi_srat_mem_affinity *memory = (const void *)at;

		if (at->type == ACPI_SRAT_TYPE_MEMORY_AFFINITY &&
		    at->length >= sizeof(*memory) &&
		    (memory->flags & flags) == flags &&
		    memory->base_address < limit) {
			u64 base = memory->base_address;
			u64 bytes = min(memory->length, limit - base);

			room = append_missing(w, PAGE_ALIGN(base),
					      (base + bytes) & PAGE_MASK, room);
		}
		at = (void *)at + at->length;
	}
	acpi_put_table(srat);
}

/*
 * System RAM without the reserve, and what may be added to it, ascending. `r` may
 * be NULL.
 */
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
	append_pluggable(&system);
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
