// SPDX-License-Identifier: GPL-2.0-only
/*
 * The other CPUs show their registers to the cokernel, in turn: each once a
 * second. A CPU is asked by an NMI, and stores them in its handler. Nobody
 * waits for it; one that does not answer in time is passed over, and then
 * finds that the word has changed (see other_registers in the layer's none.rs).
 * Its NMI is taken for ours even then.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/math64.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <asm/debugreg.h>
#include <asm/desc.h>
#include <asm/msr.h>
#include <asm/nmi.h>
#include <asm/special_insns.h>

#include "kyozon.h"

#define ROUND_MS	1000	/* in which each CPU is asked once */
#define ANSWER_MS	20

/* The CPU that was asked last, and the time of the next question. */
static unsigned int last_cpu;
static u64 next_tsc;

/* CPUs whose NMI is on its way: it is theirs, however late it comes. */
static cpumask_t owed;

/* When another NMI has answered on this CPU; 0 if none has. */
static DEFINE_PER_CPU(u64, answered_tsc);

static u32 asked(unsigned int cpu)
{
	return cpu << KYOZON_LOOK_CPU_SHIFT | KYOZON_LOOK_ASKED;
}

static unsigned int next_cpu(unsigned int cpu)
{
	cpu = cpumask_next(cpu, cpu_online_mask);
	return cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
}

/* Asks the next CPU, if it is time. On the cokernel's CPU, at a trip's end. */
void kyozon_look_next(void)
{
	struct kyozon_trip *trip = &kyozon_world.trip;
	unsigned int cpu, others = num_online_cpus() - 1;
	u64 now = rdtsc();

	/* A time that lies far ahead is of before a suspend. */
	if (!others || next_tsc - now <= ROUND_MS * kyozon.tsc_khz)
		return;
	cpu = next_cpu(last_cpu);
	if (cpu == kyozon.cpu)
		cpu = next_cpu(cpu);
	last_cpu = cpu;
	next_tsc = now + div_u64(ROUND_MS * kyozon.tsc_khz, others);
	/* One that has not taken the last NMI is not asked again. */
	if (cpu == kyozon.cpu || cpumask_test_and_set_cpu(cpu, &owed))
		return;
	trip->look_until_tsc = now + ANSWER_MS * kyozon.tsc_khz;
	smp_store_release(&trip->look, asked(cpu));
	kyozon_nmi_send(cpu);
}

static void store(struct kyozon_linux_registers *to)
{
	struct desc_ptr gdt, idt;

	native_store_gdt(&gdt);
	store_idt(&idt);
	to->cpu = raw_smp_processor_id();
	to->cr0 = native_read_cr0();
	to->cr4 = native_read_cr4();
	to->idt_base = idt.address;
	to->idt_limit = idt.size;
	to->gdt_base = gdt.address;
	to->gdt_limit = gdt.size;
	to->efer = native_read_msr(MSR_EFER);
	to->star = native_read_msr(MSR_STAR);
	to->lstar = native_read_msr(MSR_LSTAR);
	to->cstar = native_read_msr(MSR_CSTAR);
	to->sfmask = native_read_msr(MSR_SYSCALL_MASK);
	to->sysenter_cs = native_read_msr(MSR_IA32_SYSENTER_CS);
	to->sysenter_esp = native_read_msr(MSR_IA32_SYSENTER_ESP);
	to->sysenter_eip = native_read_msr(MSR_IA32_SYSENTER_EIP);
	get_debugreg(to->breakpoints[0], 0);
	get_debugreg(to->breakpoints[1], 1);
	get_debugreg(to->breakpoints[2], 2);
	get_debugreg(to->breakpoints[3], 3);
	get_debugreg(to->dr7, 7);
}

/* Waits, for a short time, until no NMI is on its way. */
void kyozon_look_end(void)
{
	u64 end = rdtsc() + ANSWER_MS * kyozon.tsc_khz;

	while (!cpumask_empty(&owed) && (s64)(rdtsc() - end) < 0)
		usleep_range(100, 200);
	cpumask_clear(&owed);
}

/* In the NMI handler of a CPU that is not the cokernel's. */
int kyozon_look_here(void)
{
	struct kyozon_trip *trip = &kyozon_world.trip;
	unsigned int cpu = raw_smp_processor_id();
	u32 mine = asked(cpu);
	u64 answered;

	if (likely(!cpumask_test_cpu(cpu, &owed))) {
		/* Another NMI may have answered: the question's own is late. */
		answered = this_cpu_read(answered_tsc);
		if (likely(!answered))
			return NMI_DONE;
		this_cpu_write(answered_tsc, 0);
		return rdtsc() - answered > ANSWER_MS * kyozon.tsc_khz ?
			NMI_DONE : NMI_HANDLED;
	}
	if (cmpxchg(&trip->look, mine, mine - KYOZON_LOOK_ASKED +
					       KYOZON_LOOK_STORING) == mine) {
		store(&trip->shown);
		smp_store_release(&trip->look, mine - KYOZON_LOOK_ASKED +
						       KYOZON_LOOK_SHOWN);
	}
	this_cpu_write(answered_tsc, rdtsc());
	cpumask_clear_cpu(cpu, &owed);
	return NMI_HANDLED;
}
