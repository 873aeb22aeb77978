// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mode vmm: the same world for the cokernel, and a hypervisor between it and
 * Linux, launched under the running kernel.
 *
 * The hypervisor is an image of its own with page tables of its own. Each CPU
 * enters it once, through the trampoline, and comes back through the trampoline
 * as a guest. When all have, the reserve is hidden from them. On the way out
 * each CPU opens its view again, goes through the trampoline once more, and
 * comes back as what it was.
 *
 * While the reserve is hidden, nothing here touches it: what the hypervisor has
 * to say lies in a page of Linux's that Linux may only read.
 */
#include <linux/cpu.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/version.h>
#include <asm/apic.h>
#include <asm/asm.h>
#include <asm/cpufeature.h>
#include <asm/current.h>
#include <asm/msr.h>
#include <asm/nmi.h>
#include <asm/smp.h>

#include "kyozon.h"

#define ENTRY_VA	(KYOZON_HYPERVISOR_BASE + 0x01000000ull)
#define EVENTS_VA	(KYOZON_HYPERVISOR_BASE + 0x01800000ull)

#define PERMISSION_PAGES	7
#define STEP_PAGES		32	/* for each CPU, see step.rs */
#define CONTROL_PAGES		4
#define TABLE_PAGES		(5 * KYOZON_MAX_RANGES)

#define VM_CR_DISABLED	BIT_ULL(4)

static struct {
	u64 *top;
	u64 cr3;
	u64 entry;		/* the hypervisor's first instruction */
	struct kyozon_host_entry *shared;	/* its first page; hidden later */
	struct kyozon_host_status *status;
	struct kyozon_host_iommu iommu;
	u32 iommu_state;
	u64 extra_nmis;		/* so many of the status's were taken */
	bool launched, watched;
} host;

/* False where nobody answers: a CPU that was reset is no guest any more. */
static bool call(u64 number)
{
	asm volatile("1: .byte 0x0f, 0x01, 0xd9\n"	/* vmmcall */
		     "2:\n"
		     _ASM_EXTABLE(1b, 2b)
		     : "+a"(number) : : "memory");
	return !number;
}

static void look_for_owner(void *found)
{
	u64 efer;

	rdmsrl(MSR_EFER, efer);
	if (efer & EFER_SVME)
		WRITE_ONCE(*(bool *)found, true);
}

static int refuse(struct kyozon_load *load)
{
	bool owned = false;
	u64 vm_cr = 0;

	if (!boot_cpu_has(X86_FEATURE_SVM))
		return kyozon_say(load, -EOPNOTSUPP,
				  "isolation needs AMD SVM, which this CPU does not have%s: --isolation none goes without",
				  boot_cpu_has(X86_FEATURE_VMX) ?
					" (Intel VMX is not supported yet)" : "");
	if (!boot_cpu_has(X86_FEATURE_NPT))
		return kyozon_say(load, -EOPNOTSUPP,
				  "isolation needs nested paging, which this CPU does not have: --isolation none goes without");
	rdmsrl_safe(MSR_VM_CR, &vm_cr);
	if (vm_cr & VM_CR_DISABLED)
		return kyozon_say(load, -EOPNOTSUPP,
				  "the firmware has switched SVM off: switch it on in its setup");
	if (num_online_cpus() != num_present_cpus())
		return kyozon_say(load, -EBUSY,
				  "%u of %u CPUs are online: isolation needs all of them",
				  num_online_cpus(), num_present_cpus());
	if (num_online_cpus() > KYOZON_HOST_MAX_CPUS)
		return kyozon_say(load, -EOPNOTSUPP,
				  "%u CPUs: isolation knows at most %u",
				  num_online_cpus(), (u32)KYOZON_HOST_MAX_CPUS);
	on_each_cpu(look_for_owner, &owned, 1);
	if (owned)
		return kyozon_say(load, -EBUSY,
				  "another hypervisor has this CPU: rmmod kvm_amd comes first");
	return 0;
}

static u64 pages(const struct kyozon_images *images,
		 const struct kyozon_range *ram, u32 ram_count)
{
	const struct kyozon_image_header *h = &images->hypervisor.header;
	u64 pages = 64 + TABLE_PAGES + 2 * PERMISSION_PAGES;
	unsigned int i, devices;

	host.iommu_state = kyozon_iommu_find(&host.iommu);
	devices = kyozon_iommu_pages(&host.iommu);

	pages += (h->text_bytes + h->rodata_bytes + h->memory_bytes) >> PAGE_SHIFT;
	pages += sizeof(kyozon_world) >> PAGE_SHIFT;
	pages += num_online_cpus() * (STEP_PAGES + CONTROL_PAGES +
				      (KYOZON_HOST_STACK_BYTES >> PAGE_SHIFT));
	/* The window, and nested tables of 2 MiB pages, once and a half. */
	for (i = 0; i < ram_count; i++)
		pages += 2 * (ram[i].bytes >> 30) + 16;
	/* In a row: what is before it may be left out. */
	return pages + 2 * devices;
}

/* The trampoline and its data at the same addresses, out of Linux's reach. */
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
	/* The ring and the serial line are the hypervisor's. */
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

/* Physical memory where the hypervisor finds it. */
static int map_window(const struct kyozon_range *ranges, u32 count, u64 flags)
{
	int error = 0;
	u32 i;

	for (i = 0; i < count && !error; i++)
		error = kyozon_map_window(host.top, KYOZON_HOST_WINDOW_BASE,
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
	/* No IO-APIC: the timer's page once more. */
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

	/* All that is left of the reserve. */
	error = kyozon_reserve_parts(&kyozon.reserve, false, e->host,
				     &e->host_count);
	if (error)
		return error;
	host.top = kyozon_reserve_page(&kyozon.reserve);
	permissions = kyozon_reserve_run(&kyozon.reserve, PERMISSION_PAGES);
	if (!host.top || !permissions)
		return -ENOMEM;
	error = kyozon_iommu_take(&host.iommu);
	if (error)
		return error;
	e->iommu = host.iommu;
	e->permissions = __pa(permissions);
	host.entry = image->header.entry;
	host.cr3 = __pa(host.top) | (w->cr3 & ~ENTRY_ADDRESS);
	error = kyozon_map_image(host.top, image);
	if (!error)
		error = kyozon_map_own(host.top, kyozon_trampoline,
				       kyozon_trampoline_end, ENTRY_TEXT);
	if (!error)
		error = kyozon_map_own(host.top, w, w + 1, ENTRY_DATA);
	for_each_online_cpu(cpu) {
		u64 above = KYOZON_HOST_STACKS +
			    (e->cpu_count + 1) * KYOZON_HOST_STACK_STRIDE;

		if (cpu == kyozon.cpu)
			e->cokernel_cpu = e->cpu_count;
		e->apic_ids[e->cpu_count++] = cpu_physical_id(cpu);
		if (!error)
			error = kyozon_map_new(host.top,
					       above - KYOZON_HOST_STACK_BYTES,
					       KYOZON_HOST_STACK_BYTES, NULL, 0,
					       ENTRY_DATA);
	}
	for (i = 0; i < kyozon.event_pages && !error; i++) {
		phys_addr_t page = page_to_phys(kyozon.events[i]);

		error = kyozon_map(host.top, EVENTS_VA + i * PAGE_SIZE, page,
				   ENTRY_DATA);
		if (!error)
			error = show(e, page);
	}
	if (!error)
		error = show(e, __pa(host.status));
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

/* A CPU's place in e->apic_ids. */
static u32 index_of(int cpu)
{
	u32 index = 0;
	int at;

	for_each_online_cpu(at) {
		if (at == cpu)
			break;
		index++;
	}
	return index;
}

/* Into the hypervisor's world and back. Interrupts are off. */
static void enter(u32 operation)
{
	struct kyozon_world *w = &kyozon_world;
	u32 missed;

	kyozon_world_bind(NULL);
	host.shared->operation = operation;
	host.shared->cpu = index_of(raw_smp_processor_id());
	w->cr3 = host.cr3;
	w->entry = host.entry;
	w->layer_entry = ENTRY_VA;
	w->trip.in_transit = 0;
	kyozon_switch();
	missed = w->trip.in_transit;
	while (missed--)
		kyozon_nmi_send(raw_smp_processor_id());
}

static void launch_here(void *error)
{
	enter(KYOZON_HOST_LAUNCH);
	if (host.shared->result != KYOZON_HOST_DONE)
		*(int *)error = -EIO;
}

static void seal_here(void *unused)
{
	call(KYOZON_CALL_SEAL);
}

static void leave_here(void *unused)
{
	if (call(KYOZON_CALL_OPEN))
		enter(KYOZON_HOST_LEAVE);
}

static void leave_on(int cpu)
{
	u64 efer;

	rdmsrl_on_cpu(cpu, MSR_EFER, &efer);
	if (efer & EFER_SVME)
		smp_call_function_single(cpu, leave_here, NULL, 1);
}

/*
 * One CPU after the other: they share the trampoline's data. The caller's first:
 * the hypervisor reports the task that it finds there.
 */
static void leave_all(void)
{
	int cpu;

	leave_on(get_cpu());
	put_cpu();
	for_each_online_cpu(cpu)
		leave_on(cpu);
	host.launched = false;
}

/* An NMI that the hypervisor let through only in case that it is Linux's. */
static int take_doubtful(unsigned int type, struct pt_regs *regs)
{
	u64 extra_nmis;

	if (raw_smp_processor_id() != kyozon.cpu)
		return NMI_DONE;
	extra_nmis = READ_ONCE(host.status->extra_nmis);
	if (extra_nmis == host.extra_nmis)
		return NMI_DONE;
	host.extra_nmis = extra_nmis;
	return NMI_HANDLED;
}

static void give(void)
{
	if (host.launched)
		leave_all();
	if (host.watched)
		unregister_nmi_handler(NMI_LOCAL, "kyozon-vmm");
	host.watched = false;
	free_page((unsigned long)host.status);
	host.status = NULL;
}

static int take(struct kyozon_load *load, const struct kyozon_images *images)
{
	static struct kyozon_host_entry e;
	struct kyozon_tick *tick = &kyozon.tick;
	unsigned int i;
	int cpu, error;

	host.status = (void *)get_zeroed_page(GFP_KERNEL);
	if (!host.status)
		return kyozon_say(load, -ENOMEM, "no memory for the status");
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
	e.status = __pa(host.status);
	e.events = EVENTS_VA;
	e.events_bytes = (u64)kyozon.event_pages << PAGE_SHIFT;
	e.ram_count = kyozon.entry->ram_count;
	memcpy(e.ram, kyozon.entry->ram, sizeof(e.ram));
	tick->source->describe(&e.timer);
	find_names(&e.names);
	error = make_guest(&e);
	if (!error)
		error = make_host(&e, images);
	for (i = 0; i < sizeof(e) && !error; i += PAGE_SIZE)
		error = kyozon_map_new(host.top, ENTRY_VA + i, PAGE_SIZE, NULL, 0,
				       ENTRY_DATA);
	if (!error)
		error = kyozon_reserve_parts(&kyozon.reserve, false, e.pool,
					     &e.pool_count);
	if (error) {
		kyozon_say(load, error, "the hypervisor's world could not be mapped");
		goto give_status;
	}
	for (i = 0; i < sizeof(e); i += PAGE_SIZE) {
		void *to = __va(*kyozon_entry(host.top, ENTRY_VA + i, 1) &
				ENTRY_ADDRESS);

		memcpy(to, (char *)&e + i, min(PAGE_SIZE, sizeof(e) - i));
		if (!i)
			host.shared = to;
	}
	/* From the seal on the way is guarded. */
	if (tick->source->open)
		tick->source->open();
	host.extra_nmis = 0;
	error = register_nmi_handler(NMI_LOCAL, take_doubtful, 0, "kyozon-vmm");
	if (error) {
		kyozon_say(load, error, "Linux's NMIs cannot be watched");
		goto give_status;
	}
	host.watched = true;
	host.launched = true;
	for_each_online_cpu(cpu) {
		smp_call_function_single(cpu, launch_here, &error, 1);
		if (error) {
			leave_all();
			kyozon_say(load, error,
				   "CPU %d could not become a guest", cpu);
			goto give_status;
		}
	}
	on_each_cpu(seal_here, NULL, 1);
	return 0;

give_status:
	give();
	return error;
}

static void start_here(void *unused)
{
	call(KYOZON_CALL_START);
	WRITE_ONCE(kyozon.armed, true);
}

static void stop_here(void *unused)
{
	WRITE_ONCE(kyozon.armed, false);
	call(KYOZON_CALL_STOP);
}

static int start(void)
{
	return kyozon_tick_start_on(start_here);
}

static void stop(void)
{
	kyozon_tick_stop_on(stop_here);
}

/* Linux goes away: this CPU must be what the next kernel expects. */
static void abandon(bool all)
{
	unsigned long flags;

	if (!host.launched)
		return;
	local_irq_save(flags);
	if (READ_ONCE(kyozon.armed))
		stop_here(NULL);
	if (!all)
		leave_here(NULL);
	local_irq_restore(flags);
	if (all)
		leave_all();
	host.launched = false;
}

static u64 due(void)
{
	return READ_ONCE(host.status->state) == KYOZON_STATE_RUNNING ?
		READ_ONCE(host.status->due_tsc) : rdtsc();
}

static void miss(void)
{
	call(KYOZON_CALL_CHECK_TICK);
}

static const struct kyozon_fault *fault(void)
{
	return &host.status->fault;
}

static void status(struct kyozon_status *s, struct kyozon_tick *tick)
{
	const struct kyozon_host_status *from = host.status;

	s->state = from->state ?: KYOZON_STATE_RUNNING;
	tick->ticks = from->ticks;
	tick->missed = from->missed;
	tick->overruns = from->overruns;
	tick->longest_tsc = from->longest_tsc;
	memcpy(tick->histogram, from->histogram, sizeof(tick->histogram));
	memcpy(s->exits, from->exits, sizeof(s->exits));
	s->wall_findings = from->findings;
	s->differences = from->differences;
	s->nested_bytes = from->nested_bytes;
	s->iommu = host.iommu_state;
}

static bool needs_cpu(unsigned int cpu)
{
	return true;
}

const struct kyozon_mode kyozon_mode_vmm = {
	.refuse = refuse, .pages = pages, .take = take, .start = start,
	.stop = stop, .give = give, .abandon = abandon, .due = due,
	.miss = miss,
	.fault = fault, .status = status, .needs_cpu = needs_cpu,
	.drives_timer = true,
};
