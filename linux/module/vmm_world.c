// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mode vmm: the hypervisor's world, and the cokernel's world as a guest of it.
 */
#include <linux/acpi.h>
#include <linux/cpu.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/version.h>
#include <asm/cpufeature.h>
#include <asm/current.h>
#include <asm/io.h>
#include <asm/msr.h>
#include <asm/smp.h>

#include "vmm.h"

#define EVENTS_VA	(KYOZON_HYPERVISOR_BASE + 0x01800000ull)

#define PERMISSION_PAGES	10
#define STEP_PAGES		32	/* for each CPU, see step.rs */
#define CONTROL_PAGES		4
#define TABLE_PAGES		(5 * KYOZON_MAX_RANGES)

u64 kyozon_vmm_pages(const struct kyozon_images *images,
		     const struct kyozon_range *ram, u32 ram_count)
{
	const struct kyozon_image_header *h = &images->hypervisor.header;
	u64 pages = 64 + TABLE_PAGES + 2 * PERMISSION_PAGES, end = 0;
	unsigned int i, devices;

	kyozon_vmm.iommu_state = kyozon_iommu_find(&kyozon_vmm.iommu);
	devices = kyozon_iommu_pages(&kyozon_vmm.iommu);

	pages += (h->text_bytes + h->rodata_bytes + h->memory_bytes) >> PAGE_SHIFT;
	pages += sizeof(kyozon_world) >> PAGE_SHIFT;
	pages += num_online_cpus() * (STEP_PAGES + CONTROL_PAGES +
				      (KYOZON_HOST_STACK_BYTES >> PAGE_SHIFT));
	/* The window, and nested tables of 2 MiB pages, with a reserve. */
	for (i = 0; i < ram_count; i++) {
		pages += 2 * (ram[i].bytes >> 30) + 16;
		end = ram[i].base + ram[i].bytes;
	}
	/* Linux's tables reach from 0 to the end, whatever lies between. */
	pages += 2 * (end >> (12 + 9 * kyozon_largest_level()));
	/* Contiguous pages: those before them may be skipped. */
	return pages + 2 * devices;
}

/* Copies the trampoline or its data, at the same addresses, hidden from Linux. */
static int own_copy(u64 *top, const void *from, const void *to, u64 flags,
		    phys_addr_t *first)
{
	u64 start = (u64)from & PAGE_MASK, at;

	for (at = start; at < (u64)to; at += PAGE_SIZE) {
		void *page = kyozon_reserve_page(&kyozon.reserve);
		int error;

		if (!page)
			return -ENOMEM;
		memcpy(page, (void *)at, PAGE_SIZE);
		error = kyozon_map(top, at, __pa(page), flags);
		if (error)
			return error;
		if (at == start)
			*first = __pa(page);
	}
	return 0;
}

static int make_guest(struct kyozon_host_entry *e)
{
	struct kyozon_world *w = &kyozon_world;
	u64 *top = __va(w->cr3 & ENTRY_ADDRESS);
	phys_addr_t unused, trip;
	void *mailbox = kyozon_reserve_page(&kyozon.reserve);
	u64 *exit = (u64 *)(w->trip_stack + sizeof(w->trip_stack)) - 1;
	int error;

	if (!mailbox)
		return -ENOMEM;
	*exit = (u64)kyozon_guest_exit;
	w->trip.inside = 1;
	kyozon.entry->mailbox = KYOZON_LAYER_BASE + 0x08500000ull;
	/* The hypervisor owns the event ring and the serial line. */
	kyozon.entry->events = 0;
	kyozon.entry->serial_port = 0;
	error = kyozon_map(top, kyozon.entry->mailbox, __pa(mailbox), ENTRY_DATA);
	if (!error)
		error = own_copy(top, kyozon_trampoline, kyozon_trampoline_end,
				 ENTRY_TEXT, &unused);
	if (!error)
		error = own_copy(top, w, w + 1, ENTRY_DATA, &trip);
	w->trip.inside = 0;
	if (error)
		return error;
	e->guest_page_table = w->cr3;
	e->guest_entry = w->entry;
	e->guest_argument = w->layer_entry;
	e->guest_trip = (u64)&w->trip;
	e->guest_stack = (u64)exit;
	e->guest_exit = (u64)kyozon_guest_exit;
	e->guest_gdt = (u64)w->gdt;
	e->guest_idt = (u64)w->idt;
	e->guest_tss = (u64)&w->tss;
	e->trip = trip;
	e->mailbox = __pa(mailbox);
	return kyozon_reserve_parts(&kyozon.reserve, true, e->guest,
				    &e->guest_count);
}

static void find_names(struct kyozon_host_names *names)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0)
	names->current_task = (unsigned long)&pcpu_hot.current_task;
#else
	names->current_task = (unsigned long)&current_task;
#endif
	names->pid = offsetof(struct task_struct, pid);
	names->comm = offsetof(struct task_struct, comm);
}

static u32 port_of(const struct acpi_generic_address *extended, u32 port)
{
	if (!extended->address)
		return port;
	return extended->space_id == ACPI_ADR_SPACE_SYSTEM_IO ?
		extended->address : 0;
}

static int show(struct kyozon_host_entry *e, phys_addr_t page)
{
	struct kyozon_range *last = &e->read_only[e->read_only_count - 1];

	if (e->read_only_count && last->base + last->bytes == page) {
		last->bytes += PAGE_SIZE;
		return 0;
	}
	if (e->read_only_count == KYOZON_MAX_RANGES)
		return -E2BIG;
	e->read_only[e->read_only_count].base = page;
	e->read_only[e->read_only_count++].bytes = PAGE_SIZE;
	return 0;
}

/* Maps physical memory in the hypervisor's window. */
static int map_window(const struct kyozon_range *ranges, u32 count, u64 flags)
{
	int error = 0;
	u32 i;

	for (i = 0; i < count && !error; i++)
		error = kyozon_map_window(kyozon_vmm.top, KYOZON_HOST_WINDOW_BASE,
					  &ranges[i], flags);
	return error;
}

static int map_devices(struct kyozon_host_entry *e)
{
	unsigned int i;
	int error;
	u64 base;
	struct kyozon_range devices[] = {
		{ e->timer.registers & PAGE_MASK, PAGE_SIZE },
		{ e->timer.ioapic & PAGE_MASK, PAGE_SIZE },
		{ 0, PAGE_SIZE },
	};

	rdmsrl(MSR_IA32_APICBASE, base);
	e->local_apic = base & MSR_IA32_APICBASE_BASE;
	devices[2].base = e->local_apic;
	/* Without an IO-APIC, the timer's page again. */
	if (!e->timer.ioapic)
		devices[1] = devices[0];
	error = map_window(devices, ARRAY_SIZE(devices), ENTRY_DATA | ENTRY_PCD);
	for (i = 0; i < ARRAY_SIZE(e->iommu.registers) && !error; i++) {
		struct kyozon_range registers = {
			e->iommu.registers[i], KYOZON_HOST_IOMMU_BYTES
		};

		if (registers.base)
			error = map_window(&registers, 1,
					   ENTRY_DATA | ENTRY_PCD);
	}
	return error;
}

static int make_host(struct kyozon_host_entry *e,
		     const struct kyozon_images *images)
{
	const struct kyozon_loaded_image *image = &images->hypervisor;
	struct kyozon_world *w = &kyozon_world;
	void *permissions;
	unsigned int i;
	int cpu, error;

	/* The rest of the reserve. */
	error = kyozon_reserve_parts(&kyozon.reserve, false, e->host,
				     &e->host_count);
	if (error)
		return error;
	kyozon_vmm.top = kyozon_reserve_page(&kyozon.reserve);
	permissions = kyozon_reserve_run(&kyozon.reserve, PERMISSION_PAGES);
	if (!kyozon_vmm.top || !permissions)
		return -ENOMEM;
	error = kyozon_iommu_take(&kyozon_vmm.iommu);
	if (error)
		return error;
	e->iommu = kyozon_vmm.iommu;
	e->permissions = __pa(permissions);
	kyozon_vmm.entry = image->header.entry;
	kyozon_vmm.cr3 = __pa(kyozon_vmm.top) | (w->cr3 & ~ENTRY_ADDRESS);
	error = kyozon_map_image(kyozon_vmm.top, image);
	if (!error)
		error = kyozon_map_own(kyozon_vmm.top, kyozon_trampoline,
				       kyozon_trampoline_end, ENTRY_TEXT);
	if (!error)
		error = kyozon_map_own(kyozon_vmm.top, w, w + 1, ENTRY_DATA);
	for_each_online_cpu(cpu) {
		u64 above = KYOZON_HOST_STACKS +
			    (e->cpu_count + 1) * KYOZON_HOST_STACK_STRIDE;

		if (cpu == kyozon.cpu)
			e->cokernel_cpu = e->cpu_count;
		e->apic_ids[e->cpu_count++] = cpu_physical_id(cpu);
		if (!error)
			error = kyozon_map_new(kyozon_vmm.top,
					       above - KYOZON_HOST_STACK_BYTES,
					       KYOZON_HOST_STACK_BYTES, NULL, 0,
					       ENTRY_DATA);
	}
	for (i = 0; i < kyozon.event_pages && !error; i++) {
		phys_addr_t page = page_to_phys(kyozon.events[i]);

		error = kyozon_map(kyozon_vmm.top, EVENTS_VA + i * PAGE_SIZE, page,
				   ENTRY_DATA);
		if (!error)
			error = show(e, page);
	}
	if (!error)
		error = show(e, __pa(kyozon_vmm.status));
	if (!error)
		error = map_window(e->ram, e->ram_count, ENTRY_DATA);
	if (!error)
		error = map_window(e->guest, e->guest_count, ENTRY_DATA);
	if (!error)
		error = map_window(e->host, e->host_count, ENTRY_DATA);
	if (!error)
		error = map_devices(e);
	return error;
}

/* Makes both worlds in the reserve, and fills the hypervisor's entry. */
int kyozon_vmm_make(struct kyozon_load *load,
		    const struct kyozon_images *images)
{
	static struct kyozon_host_entry e;
	unsigned int i;
	u8 off[2];
	int error;

	memset(&e, 0, sizeof(e));
	e.version = KYOZON_VMM_VERSION;
	e.paging_levels = kyozon.levels;
	e.largest_leaf = kyozon_largest_level();
	e.physical_bits = boot_cpu_data.x86_phys_bits;
	e.tick_hz = load->tick_hz;
	e.budget_us = load->budget_us;
	e.serial_port = load->serial_port;
	e.tsc_khz = kyozon.tsc_khz;
	e.check = kyozon_check;
	memcpy(e.key, kyozon_vmm.key, sizeof(e.key));
	e.status = __pa(kyozon_vmm.status);
	e.events = EVENTS_VA;
	e.events_bytes = (u64)kyozon.event_pages << PAGE_SHIFT;
	e.ram_count = kyozon.entry->ram_count;
	memcpy(e.ram, kyozon.entry->ram, sizeof(e.ram));
	kyozon.tick.source->describe(&e.timer);
	find_names(&e.names);
	e.sleep_ports[0] = port_of(&acpi_gbl_FADT.xpm1a_control_block,
				   acpi_gbl_FADT.pm1a_control_block);
	e.sleep_ports[1] = port_of(&acpi_gbl_FADT.xpm1b_control_block,
				   acpi_gbl_FADT.pm1b_control_block);
	e.off_types[0] = KYOZON_SLEEP_UNKNOWN;
	e.off_types[1] = KYOZON_SLEEP_UNKNOWN;
	if (ACPI_SUCCESS(acpi_get_sleep_type_data(ACPI_STATE_S5, &off[0], &off[1]))) {
		e.off_types[0] = off[0];
		e.off_types[1] = off[1];
	}
	error = make_guest(&e);
	if (!error)
		error = make_host(&e, images);
	for (i = 0; i < sizeof(e) && !error; i += PAGE_SIZE)
		error = kyozon_map_new(kyozon_vmm.top, KYOZON_HOST_ENTRY_VA + i,
				       PAGE_SIZE, NULL, 0, ENTRY_DATA);
	if (!error)
		error = kyozon_reserve_parts(&kyozon.reserve, false, e.pool,
					     &e.pool_count);
	if (error) {
		memzero_explicit(e.key, sizeof(e.key));
		return kyozon_err(load, error,
				  "the hypervisor's world could not be mapped");
	}
	for (i = 0; i < sizeof(e); i += PAGE_SIZE) {
		void *to = __va(*kyozon_entry(kyozon_vmm.top,
					      KYOZON_HOST_ENTRY_VA + i, 1) &
				ENTRY_ADDRESS);

		memcpy(to, (char *)&e + i, min(PAGE_SIZE, sizeof(e) - i));
		if (!i)
			kyozon_vmm.shared = to;
	}
	memzero_explicit(e.key, sizeof(e.key));
	return 0;
}
