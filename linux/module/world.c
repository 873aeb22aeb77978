// SPDX-License-Identifier: GPL-2.0-only
/*
 * The cokernel's world: page tables, descriptor tables, stacks.
 *
 * Everything but struct kyozon_world and the trampoline's page lies in the low
 * half, where Linux keeps no global translation that could be live in the TLB.
 * The window on Linux's memory is read-only. The only page table that is mapped
 * writable is the one that holds the layer's repair slot.
 */
#include <linux/mm.h>
#include <linux/version.h>
#include <asm/cpufeature.h>
#include <asm/desc.h>
#include <asm/io.h>
#include <asm/msr.h>
#include <asm/special_insns.h>
#include <asm/tlbflush.h>
#include <asm/trapnr.h>

#include "kyozon.h"

/* Beside the layer, in its 256 MiB. */
#define LAYER_ENTRY_VA	(KYOZON_LAYER_BASE + 0x08000000ull)
#define TABLES_VA	(KYOZON_LAYER_BASE + 0x08100000ull)
#define GUARD_VA	(KYOZON_LAYER_BASE + 0x08200000ull)
#define POKE_ENTRIES_VA	(KYOZON_LAYER_BASE + 0x08300000ull)
#define EVENTS_VA	(KYOZON_LAYER_BASE + 0x08400000ull)
#define POKE_VA		(KYOZON_LAYER_BASE + 0x09000000ull) /* alone in its 2 MiB */

#define TASK_SPACE	(KYOZON_FREE_BASE - KYOZON_TASKS_BASE)

/* Linux does not use this PCID: it counts from 1; bit 11 marks user halves. */
#define OUR_PCID	0x7f0

struct kyozon_world kyozon_world;

static u64 *top;

static int map_tasks(struct kyozon_layer_entry *e,
		     const struct kyozon_images *images)
{
	u64 va = KYOZON_TASKS_BASE;
	unsigned int i;

	for (i = 2; i < images->count; i++) {
		const struct kyozon_loaded_image *task = &images->image[i];
		int error;

		if (PAGE_ALIGN(task->size) > KYOZON_TASKS_BASE + TASK_SPACE - va)
			return -E2BIG;
		error = kyozon_map_new(top, va, PAGE_ALIGN(task->size), task->bytes,
				task->size, ENTRY_RODATA);
		if (error)
			return error;
		e->tasks[e->task_count].base = va;
		e->tasks[e->task_count++].bytes = task->size;
		va += PAGE_ALIGN(task->size);
	}
	return 0;
}

/* After the tasks, on a page boundary. */
static int map_data(struct kyozon_layer_entry *e,
		    const struct kyozon_images *images)
{
	const struct kyozon_range *last;
	u64 va = KYOZON_TASKS_BASE;

	if (!images->data_bytes)
		return 0;
	if (e->task_count) {
		last = &e->tasks[e->task_count - 1];
		va = last->base + PAGE_ALIGN(last->bytes);
	}
	if (PAGE_ALIGN(images->data_bytes) > KYOZON_TASKS_BASE + TASK_SPACE - va)
		return -E2BIG;
	e->data.base = va;
	e->data.bytes = images->data_bytes;
	return kyozon_map_new(top, va, PAGE_ALIGN(images->data_bytes), images->data,
		       images->data_bytes, ENTRY_RODATA);
}

static int map_memory(struct kyozon_layer_entry *e)
{
	u64 at;

	for (at = 0; at < e->memory_bytes; at += PAGE_SIZE) {
		void *page = kyozon_reserve_page(&kyozon.reserve);
		struct kyozon_range *last;
		int error;

		if (!page)
			return -ENOMEM;
		error = kyozon_map(top, e->memory + at, __pa(page), ENTRY_DATA);
		if (error)
			return error;
		last = e->piece_count ? &e->pieces[e->piece_count - 1] : NULL;
		if (last && last->base + last->bytes == __pa(page)) {
			last->bytes += PAGE_SIZE;
			continue;
		}
		if (e->piece_count == KYOZON_MAX_RANGES)
			return -E2BIG;
		e->pieces[e->piece_count].base = __pa(page);
		e->pieces[e->piece_count++].bytes = PAGE_SIZE;
	}
	return 0;
}

static u64 tables_for(u64 bytes)
{
	/* Two more per level for unaligned edges. */
	return (bytes >> 21) + 2 + (bytes >> 30) + 2 + (bytes >> 39) + 2;
}

/* Upper bound of the reserve's pages that this load takes. */
u64 kyozon_world_pages(const struct kyozon_images *images, u64 memory_bytes,
		       const struct kyozon_range *ram, u32 ram_count)
{
	u64 pages = 64;		/* top levels, entry, repair slot, own pages */
	unsigned int i;

	for (i = 0; i < images->count; i++) {
		const struct kyozon_loaded_image *image = &images->image[i];
		u64 bytes = i < 2 ? image->header.text_bytes +
				    image->header.rodata_bytes +
				    image->header.memory_bytes :
				    PAGE_ALIGN(image->size);

		pages += (bytes >> PAGE_SHIFT) + tables_for(bytes);
	}
	pages += (memory_bytes >> PAGE_SHIFT) + tables_for(memory_bytes);
	pages += (PAGE_ALIGN(images->data_bytes) >> PAGE_SHIFT) +
		 tables_for(images->data_bytes);
	/*
	 * The window: 4 KiB edges of each range, and of each hole that a piece
	 * of the reserve leaves; the bound does not assume 1 GiB pages.
	 */
	for (i = 0; i < ram_count; i++)
		pages += (ram[i].bytes >> 30) + 8;
	return pages + 4 * KYOZON_MAX_RANGES;
}

static void set_gate(unsigned int vector, const void *handler, unsigned int ist)
{
	u64 offset = (u64)handler;

	/* Present, DPL 0, interrupt gate. */
	kyozon_world.idt[2 * vector] =
		(offset & 0xffff) | (u64)__KERNEL_CS << 16 | (u64)ist << 32 |
		0x8e00ull << 32 | (offset & 0xffff0000) << 32;
	kyozon_world.idt[2 * vector + 1] = offset >> 32;
}

static void fill_tss_desc(u64 desc[2])
{
	u64 base = (u64)&kyozon_world.tss;

	desc[0] = (sizeof(struct x86_hw_tss) - 1) | (base & 0xffffff) << 16 |
		  0x89ull << 40 | (base >> 24 & 0xff) << 56;
	desc[1] = base >> 32;
}

static void make_descriptors(void)
{
	struct kyozon_world *w = &kyozon_world;
	unsigned int i;

	/* Linux's selectors (segment.h), so that none has to be reloaded. */
	w->gdt[GDT_ENTRY_KERNEL32_CS] = 0x00cf9b000000ffff;
	w->gdt[GDT_ENTRY_KERNEL_CS] = 0x00af9b000000ffff;
	w->gdt[GDT_ENTRY_KERNEL_DS] = 0x00cf93000000ffff;
	w->gdt[GDT_ENTRY_DEFAULT_USER32_CS] = 0;
	w->gdt[GDT_ENTRY_DEFAULT_USER_DS] = 0x00cff3000000ffff;
	w->gdt[GDT_ENTRY_DEFAULT_USER_CS] = 0x00affb000000ffff;
	w->gdtr.limit = sizeof(w->gdt) - 1;
	w->gdtr.base = (u64)w->gdt;
	w->idtr.limit = sizeof(w->idt) - 1;
	w->idtr.base = (u64)w->idt;
	fill_tss_desc(&w->gdt[W_GDT_TSS]);

	/* IST numbers are Linux's, since TR may still be Linux's at a gate. */
	for (i = 0; i < 32; i++)
		set_gate(i, kyozon_fault_gate, 0);
	set_gate(X86_TRAP_NMI, kyozon_nmi_gate, IST_INDEX_NMI + 1);
	set_gate(X86_TRAP_MC, kyozon_machine_check_gate, IST_INDEX_MCE + 1);
	w->tss.ist[IST_INDEX_DF] = (u64)(w->fault_stack + sizeof(w->fault_stack));
	w->tss.ist[IST_INDEX_NMI] = (u64)(w->nmi_stack + sizeof(w->nmi_stack));
	w->tss.ist[IST_INDEX_MCE] = (u64)(w->machine_check_stack +
					  sizeof(w->machine_check_stack));
	w->tss.io_bitmap_base = sizeof(w->tss);
	w->stack = (u64)(w->trip_stack + sizeof(w->trip_stack));
	w->trip.nmi_entry = (u64)kyozon_nmi_in_transit;
	w->trip.machine_check_entry = (u64)kyozon_machine_check_in_transit;
}

/* Copies what differs from CPU to CPU. Runs on the cokernel's CPU. */
void kyozon_world_bind(void *unused)
{
	struct kyozon_world *w = &kyozon_world;
	struct desc_ptr gdtr;
	u64 *gdt;

	native_store_gdt(&gdtr);
	gdt = (u64 *)gdtr.address;
	w->gdt[GDT_ENTRY_TSS] = gdt[GDT_ENTRY_TSS];
	w->gdt[GDT_ENTRY_TSS + 1] = gdt[GDT_ENTRY_TSS + 1];
	w->fsgsbase = !!(__read_cr4() & X86_CR4_FSGSBASE);
	w->linux_cr3_keep = __read_cr4() & X86_CR4_PCIDE ? BIT_ULL(63) : 0;
	w->cet = !!(__read_cr4() & X86_CR4_CET);
}

/* Maps the timer's registers, so that the layer can arm the guard. */
int kyozon_world_map_guard(phys_addr_t registers)
{
	kyozon.entry->guard = GUARD_VA;
	return kyozon_map(top, GUARD_VA, registers & PAGE_MASK, ENTRY_DATA | ENTRY_PCD);
}

static int map_events(struct kyozon_layer_entry *e)
{
	unsigned int i;
	int error = 0;

	e->events = EVENTS_VA;
	e->events_bytes = (u64)kyozon.event_pages << PAGE_SHIFT;
	for (i = 0; i < kyozon.event_pages && !error; i++)
		error = kyozon_map(top, EVENTS_VA + i * PAGE_SIZE,
			    page_to_phys(kyozon.events[i]), ENTRY_DATA);
	return error;
}

/* Maps the layer's repair slot, and the page table that holds it. */
static int map_poke(struct kyozon_layer_entry *e)
{
	u64 *entry = kyozon_entry(top, POKE_VA, 1);

	if (!entry)
		return -ENOMEM;
	e->poke = POKE_VA;
	e->poke_entry = POKE_ENTRIES_VA + offset_in_page(entry);
	return kyozon_map(top, POKE_ENTRIES_VA, __pa((u64)entry & PAGE_MASK), ENTRY_DATA);
}

static int map_tables(struct kyozon_layer_entry *e)
{
	u64 table = __pa(top);
	u64 va = TABLES_VA;
	int level, error = 0;

	e->tables = va;
	for (level = kyozon.levels; level >= 3 && !error; level--) {
		error = kyozon_map(top, va, table, ENTRY_RODATA);
		table = *(u64 *)__va(table) & ENTRY_ADDRESS;
		va += PAGE_SIZE;
	}
	return error;
}

int kyozon_world_make(struct kyozon_load *load,
		      const struct kyozon_images *images)
{
	struct kyozon_world *w = &kyozon_world;
	struct kyozon_layer_entry *e;
	unsigned int i;
	int error = -ENOMEM;

	BUILD_BUG_ON(sizeof(*e) > PAGE_SIZE);
	memset(w, 0, sizeof(*w));
	top = kyozon_reserve_page(&kyozon.reserve);
	e = kyozon_reserve_page(&kyozon.reserve);
	if (!top || !e)
		goto out;
	kyozon.entry = e;
	error = kyozon_map(top, LAYER_ENTRY_VA, __pa(e), ENTRY_RODATA);
	if (error)
		goto out;
	make_descriptors();
	error = kyozon_map_own(top, kyozon_trampoline, kyozon_trampoline_end,
			       ENTRY_TEXT);
	if (!error)
		error = kyozon_map_own(top, w, w + 1, ENTRY_DATA);
	for (i = 0; i < 2 && !error; i++)
		error = kyozon_map_image(top, &images->image[i]);
	if (error)
		goto out;

	e->version = KYOZON_LAYER_VERSION;
	e->mode = load->mode;
	e->tsc_khz = kyozon.tsc_khz;
	e->tick_hz = load->tick_hz;
	e->budget_us = load->budget_us;
	e->cpu = load->cpu;
	e->paging_levels = kyozon.levels;
	e->cokernel = images->image[1].header.base;
	e->cokernel_text_bytes = images->image[1].header.text_bytes;
	e->cokernel_bytes = images->image[1].header.text_bytes +
			    images->image[1].header.rodata_bytes +
			    images->image[1].header.memory_bytes;
	e->memory = KYOZON_MEMORY_BASE;
	e->memory_bytes = load->memory_bytes;
	e->tss = (u64)&w->tss;
	e->idt = (u64)w->idt;
	e->trip = (u64)&w->trip;
	e->serial_port = load->serial_port;
	e->parameter = load->parameter;
	error = kyozon_ram(&kyozon.reserve, e->ram, &e->ram_count);
	if (error)
		goto out;
	error = map_memory(e);
	if (!error)
		error = map_tasks(e, images);
	if (!error)
		error = map_data(e, images);
	if (!error)
		error = map_events(e);
	if (!error)
		error = map_poke(e);
	for (i = 0; i < e->ram_count && !error; i++)
		error = kyozon_map_window(top, KYOZON_WINDOW_BASE, &e->ram[i],
					  ENTRY_RODATA | ENTRY_US);
	if (!error)
		error = map_tables(e);
	if (error)
		goto out;

	w->cr3 = __pa(top) | (__read_cr4() & X86_CR4_PCIDE ? OUR_PCID : 0);
	e->page_table = w->cr3;
	w->entry = images->image[0].header.entry;
	w->layer_entry = LAYER_ENTRY_VA;
	return 0;
out:
	if (error == -E2BIG)
		return kyozon_err(load, error,
				  "memory is in more than %u pieces: reduce --memory, or load soon after boot",
				  (u32)KYOZON_MAX_RANGES);
	return kyozon_err(load, error, "the cokernel's world could not be mapped");
}
