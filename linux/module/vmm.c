// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mode vmm: the same world for the cokernel, and a hypervisor between it and
 * Linux, launched under the running kernel.
 *
 * The hypervisor is an image with page tables of its own. Each CPU enters it
 * once, through the trampoline, and returns through the trampoline as a guest.
 * When all CPUs are guests, the reserve is hidden from them. To unload, each
 * CPU opens its view, goes through the trampoline once more, and returns as a
 * CPU without a hypervisor.
 *
 * While the reserve is hidden, this file does not touch it: the hypervisor's
 * status is in a page of Linux's memory that Linux may only read.
 */
#include <linux/cpu.h>
#include <linux/smp.h>
#include <asm/apic.h>
#include <asm/asm.h>
#include <asm/cpufeature.h>
#include <asm/mach_traps.h>
#include <asm/msr.h>
#include <asm/nmi.h>
#include <asm/smp.h>

#include "vmm.h"

#define VM_CR_DISABLED	BIT_ULL(4)

struct kyozon_vmm kyozon_vmm;

/* This CPU's index in the hypervisor's list, see enter(). */
static DEFINE_PER_CPU(u32, index);

/*
 * False if the hypervisor refuses the key, or if none answers: a CPU that was
 * reset is not a guest.
 */
static bool call(u64 number)
{
	asm volatile("1: .byte 0x0f, 0x01, 0xd9\n"	/* vmmcall */
		     "2:\n"
		     _ASM_EXTABLE(1b, 2b)
		     : "+a"(number)
		     : "D"(kyozon_vmm.key[0]), "S"(kyozon_vmm.key[1])
		     : "memory");
	return !number;
}

static void find_hypervisor(void *found)
{
	u64 efer;

	rdmsrl(MSR_EFER, efer);
	if (efer & EFER_SVME)
		WRITE_ONCE(*(bool *)found, true);
}

/*
 * A CPU that Linux does not use waits for its INIT and SIPI. Whoever sends them
 * has a CPU without a wall.
 */
static int refuse_unused_cpus(struct kyozon_load *load)
{
	u32 apic_id;
	int unused;

	if (num_online_cpus() != num_present_cpus())
		return kyozon_err(load, -EBUSY,
				  "%u of %u CPUs are online: isolation needs all of them: bring them online, or boot without maxcpus= and nosmt",
				  num_online_cpus(), num_present_cpus());
	unused = kyozon_madt_unused_cpu(&apic_id);
	if (unused < 0)
		return kyozon_err(load, unused,
				  "the firmware has no table of CPUs (MADT), and isolation needs all of them: boot without acpi=off");
	if (unused)
		return kyozon_err(load, -EBUSY,
				  "Linux does not use the CPU with APIC ID %u: isolation needs all CPUs: boot without nr_cpus=, possible_cpus= and disable_cpu_apicid=",
				  apic_id);
	return 0;
}

static int refuse(struct kyozon_load *load)
{
	bool found = false;
	u64 vm_cr = 0;
	int error;

	if (!boot_cpu_has(X86_FEATURE_SVM))
		return kyozon_err(load, -EOPNOTSUPP,
				  "isolation needs AMD SVM, which this CPU does not have%s: use --isolation none",
				  boot_cpu_has(X86_FEATURE_VMX) ?
					" (Intel VMX is not supported yet)" : "");
	if (!boot_cpu_has(X86_FEATURE_NPT))
		return kyozon_err(load, -EOPNOTSUPP,
				  "isolation needs nested paging, which this CPU does not have: use --isolation none");
	rdmsrl_safe(MSR_VM_CR, &vm_cr);
	if (vm_cr & VM_CR_DISABLED)
		return kyozon_err(load, -EOPNOTSUPP,
				  "the firmware has switched SVM off: enable it in the firmware setup");
#ifdef X86_FEATURE_INVLPGB
	/* In a guest without a control for it the instruction is undefined. */
	if (cpu_feature_enabled(X86_FEATURE_INVLPGB))
		return kyozon_err(load, -EOPNOTSUPP,
				  "Linux flushes TLBs by INVLPGB, which it cannot do as a guest: boot with clearcpuid=invlpgb");
#endif
	error = refuse_unused_cpus(load);
	if (error)
		return error;
	if (num_online_cpus() > KYOZON_HOST_MAX_CPUS)
		return kyozon_err(load, -EOPNOTSUPP,
				  "%u CPUs are online: isolation supports at most %u",
				  num_online_cpus(), (u32)KYOZON_HOST_MAX_CPUS);
	on_each_cpu(find_hypervisor, &found, 1);
	if (found)
		return kyozon_err(load, -EBUSY,
				  "another hypervisor uses this CPU: run rmmod kvm_amd first");
	return 0;
}

/* The hypervisor drives the timer, so the source must describe it. */
static int refuse_source(struct kyozon_load *load,
			 const struct kyozon_tick_source *source)
{
	if (source->describe)
		return 0;
	return kyozon_err(load, -EOPNOTSUPP,
			  "not usable behind nested paging: an HPET is needed");
}

/* The index of `cpu` in e->apic_ids. */
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
	kyozon_vmm.shared->operation = operation;
	kyozon_vmm.shared->cpu = index_of(raw_smp_processor_id());
	__this_cpu_write(index, kyozon_vmm.shared->cpu);
	w->cr3 = kyozon_vmm.cr3;
	w->entry = kyozon_vmm.entry;
	w->layer_entry = KYOZON_HOST_ENTRY_VA;
	w->trip.in_transit = 0;
	kyozon_switch();
	missed = w->trip.in_transit;
	while (missed--)
		kyozon_nmi_send(raw_smp_processor_id());
}

static void launch_here(void *error)
{
	enter(KYOZON_HOST_LAUNCH);
	if (kyozon_vmm.shared->result != KYOZON_HOST_DONE)
		*(int *)error = -EIO;
}

/* @open: the last CPU that has no wall. */
static void seal_here(void *open)
{
	if (!call(KYOZON_CALL_SEAL))
		atomic_set(open, raw_smp_processor_id());
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
 * One CPU after the other, since they share the trampoline's data. The caller's
 * CPU is first: the hypervisor reports the task that it finds there.
 */
static void leave_all(void)
{
	int cpu;

	leave_on(get_cpu());
	put_cpu();
	for_each_online_cpu(cpu)
		leave_on(cpu);
	kyozon_vmm.launched = false;
}

/*
 * An NMI that the hypervisor passed on although it may not be Linux's. Linux
 * looks at the chipset's reasons only if no handler took the NMI.
 */
static int take_doubtful(unsigned int type, struct pt_regs *regs)
{
	u64 doubtful = READ_ONCE(kyozon_vmm.status->doubtful_nmis);

	/* Behind a locked wall a crash kernel would run beside the ticks. */
	if (READ_ONCE(kyozon_vmm.status->crash) && !kyozon_vmm.locked &&
	    raw_smp_processor_id() == kyozon.cpu)
		kyozon_start_crash_kernel(regs);
	if (!(doubtful >> __this_cpu_read(index) & 1))
		return NMI_DONE;
	return default_get_nmi_reason() & NMI_REASON_MASK ? NMI_DONE : NMI_HANDLED;
}

static void forget_key(void)
{
	memzero_explicit(kyozon_vmm.key, sizeof(kyozon_vmm.key));
}

static void give(void)
{
	if (kyozon_vmm.launched)
		leave_all();
	forget_key();
	if (kyozon_vmm.watched)
		unregister_nmi_handler(NMI_LOCAL, "kyozon-vmm");
	kyozon_vmm.watched = false;
	free_page((unsigned long)kyozon_vmm.status);
	kyozon_vmm.status = NULL;
}

static int take(struct kyozon_load *load, const struct kyozon_images *images)
{
	struct kyozon_tick *tick = &kyozon.tick;
	atomic_t open = ATOMIC_INIT(-1);
	int cpu, error, lost;

	/* Since the first look one may have gone offline. Now none can. */
	error = refuse_unused_cpus(load);
	if (error)
		return error;
	error = kyozon_key_take(load, kyozon_vmm.key);
	if (error)
		return error;
	kyozon_vmm.locked = load->key.bytes;
	kyozon_vmm.status = (void *)get_zeroed_page(GFP_KERNEL);
	if (!kyozon_vmm.status) {
		forget_key();
		return kyozon_err(load, -ENOMEM, "no memory for the status");
	}
	error = kyozon_vmm_make(load, images);
	if (error)
		goto give_status;
	/* From the seal on the hypervisor guards the IO-APIC. */
	if (tick->source->open)
		tick->source->open();
	error = register_nmi_handler(NMI_LOCAL, take_doubtful, 0, "kyozon-vmm");
	if (error) {
		kyozon_err(load, error, "Linux's NMIs cannot be watched");
		goto give_status;
	}
	kyozon_vmm.watched = true;
	kyozon_vmm.launched = true;
	for_each_online_cpu(cpu) {
		lost = smp_call_function_single(cpu, launch_here, &error, 1);
		if (error || lost) {
			error = error ?: lost;
			leave_all();
			kyozon_err(load, error,
				   "CPU %d could not become a guest", cpu);
			goto give_status;
		}
	}
	if (kyozon_vmm.status->version != KYOZON_VMM_VERSION) {
		leave_all();
		error = kyozon_err(load, -EINVAL,
				   "the hypervisor's status has version %u instead of %u",
				   kyozon_vmm.status->version,
				   KYOZON_VMM_VERSION);
		goto give_status;
	}
	on_each_cpu(seal_here, &open, 1);
	if (atomic_read(&open) >= 0) {
		leave_all();
		error = kyozon_err(load, -EIO,
				   "the wall does not close on CPU %d, which has lost its hypervisor: try again",
				   atomic_read(&open));
		goto give_status;
	}
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
	int error = kyozon_tick_start_on(start_here);

	if (!error && kyozon_vmm.locked)
		forget_key();
	return error;
}

static int stop(const struct kyozon_image *key)
{
	int error;

	if (kyozon_vmm.locked && key) {
		if (!key->bytes)
			return -ENOKEY;
		error = kyozon_key_read(key, kyozon_vmm.key);
		if (error)
			return error;
		/* The hypervisor compares: any CPU may ask it. */
		if (!call(KYOZON_CALL_STOP)) {
			forget_key();
			return -EKEYREJECTED;
		}
	}
	kyozon_tick_stop_on(stop_here);
	return 0;
}

/* Linux is about to end: the next kernel expects no hypervisor. */
static void abandon(bool all)
{
	unsigned long flags;

	if (!kyozon_vmm.launched)
		return;
	if (kyozon_vmm.locked) {
		pr_emerg("the wall stays closed: only the operator's key opens it\n");
		return;
	}
	local_irq_save(flags);
	if (READ_ONCE(kyozon.armed))
		stop_here(NULL);
	if (!all)
		leave_here(NULL);
	local_irq_restore(flags);
	if (all)
		leave_all();
	kyozon_vmm.launched = false;
}

static u64 due(void)
{
	return READ_ONCE(kyozon_vmm.status->state) == KYOZON_STATE_RUNNING ?
		READ_ONCE(kyozon_vmm.status->due_tsc) : rdtsc();
}

static void miss(void)
{
	call(KYOZON_CALL_CHECK_TICK);
}

static const struct kyozon_fault *fault(void)
{
	return &kyozon_vmm.status->fault;
}

static void status(struct kyozon_status *s, struct kyozon_tick *tick)
{
	const struct kyozon_host_status *from = kyozon_vmm.status;

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
	s->iommu = kyozon_vmm.iommu_state;
	s->locked = kyozon_vmm.locked;
}

static bool needs_cpu(unsigned int cpu)
{
	return true;
}

const struct kyozon_mode kyozon_mode_vmm = {
	.refuse = refuse, .refuse_source = refuse_source,
	.pages = kyozon_vmm_pages, .take = take, .start = start,
	.stop = stop, .give = give, .abandon = abandon, .due = due,
	.miss = miss,
	.fault = fault, .status = status, .needs_cpu = needs_cpu,
};
