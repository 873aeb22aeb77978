// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parks the other CPUs, in their NMI handlers, while the layer repairs.
 *
 * Every wait is bounded: the cokernel's CPU waits for the others to arrive, and
 * a parked CPU waits for the word that lets it go. A CPU that has waited too
 * long takes the word back, and then nothing is written (see the layer's
 * cokernel/linux.rs). Once the layer writes, which takes microseconds, no CPU
 * leaves.
 */
#include <linux/cpumask.h>
#include <linux/smp.h>
#include <asm/msr.h>
#include <asm/nmi.h>

#include "kyozon.h"

#define ARRIVE_US	500
#define STAND_MS	5
#define LATE_MS		20	/* until then an NMI may be the last round's */
#define WRITE_MS	1000	/* no repair takes that long */

static cpumask_t wanted;
static atomic_t arrived;
static u64 round_tsc;

/* The state in the low bits, the number of the round above: abi.h. */
static u32 *parked(void)
{
	return &kyozon_world.trip.parked;
}

static u64 after(u64 us)
{
	return rdtsc() + div_u64(us * kyozon.tsc_khz, 1000);
}

/* Asks every other CPU to park; the word shows whether all did. */
void kyozon_park(void)
{
	u64 end = after(ARRIVE_US);
	u32 round = (*parked() | KYOZON_PARKED_STATE) + 1;
	int cpu, others = 0;

	atomic_set(&arrived, 0);
	WRITE_ONCE(round_tsc, rdtsc());
	WRITE_ONCE(*parked(), round | KYOZON_PARKED_STANDING);
	for_each_online_cpu(cpu) {
		if (cpu == kyozon.cpu)
			continue;
		cpumask_set_cpu(cpu, &wanted);
		others++;
	}
	smp_mb();
	for_each_online_cpu(cpu)
		if (cpu != kyozon.cpu)
			kyozon_nmi_send(cpu);
	while (atomic_read(&arrived) < others) {
		if ((s64)(rdtsc() - end) >= 0) {
			/* Parked CPUs go on; late ones do not park. */
			WRITE_ONCE(*parked(), round | KYOZON_PARKED_FREE);
			return;
		}
		cpu_relax();
	}
}

int kyozon_park_here(void)
{
	int cpu = raw_smp_processor_id();
	bool patient = false;
	u32 mine, writing;
	u64 end;

	if (likely(!cpumask_test_cpu(cpu, &wanted)))
		/* One NMI may have served two rounds: the other is late. */
		return likely(!round_tsc ||
			      rdtsc() - round_tsc > LATE_MS * kyozon.tsc_khz) ?
			NMI_DONE : NMI_HANDLED;
	cpumask_clear_cpu(cpu, &wanted);
	mine = READ_ONCE(*parked());
	if ((mine & KYOZON_PARKED_STATE) != KYOZON_PARKED_STANDING)
		return NMI_HANDLED;
	writing = mine - KYOZON_PARKED_STANDING + KYOZON_PARKED_WRITING;
	end = after(STAND_MS * 1000);
	atomic_inc(&arrived);
	for (;;) {
		u32 word = READ_ONCE(*parked());

		/* Free, or another round. */
		if (word != mine && word != writing)
			return NMI_HANDLED;
		if ((s64)(rdtsc() - end) < 0) {
			cpu_relax();
			continue;
		}
		/* If the layer wins this exchange, waits for it. */
		if (patient || cmpxchg(parked(), mine,
				       mine - KYOZON_PARKED_STANDING) == mine)
			return NMI_HANDLED;
		patient = true;
		end = after(WRITE_MS * 1000);
	}
}
