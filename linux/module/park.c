// SPDX-License-Identifier: GPL-2.0-only
/*
 * The other CPUs stand still, in their NMI handlers, while the layer repairs.
 *
 * Whoever waits, waits for a bounded time: the cokernel's CPU for the others to
 * arrive, and a parked CPU for the word that lets it go. A CPU that has waited
 * too long takes the word back; then nothing is written (see the layer's
 * cokernel/linux.rs). Once the layer writes, which takes microseconds, nobody
 * leaves.
 */
#include <linux/cpumask.h>
#include <linux/smp.h>
#include <asm/msr.h>
#include <asm/nmi.h>

#include "kyozon.h"

#define ARRIVE_US	500
#define STAND_MS	5
#define LATE_MS		20	/* an NMI of the last round is still ours */
#define WRITE_MS	1000	/* nothing of ours takes that long */

static cpumask_t wanted;
static atomic_t arrived;
static u64 round_tsc;

/* In the low bits a state, above it the number of the round: abi.h. */
static u32 *parked(void)
{
	return &kyozon_world.trip.parked;
}

static u64 after(u64 us)
{
	return rdtsc() + div_u64(us * kyozon.tsc_khz, 1000);
}

/* Asks every other CPU to stand; the word says whether all do. */
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
			/* Those that stand go on; late ones find no wish. */
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
		/* Two rounds may have sent two NMIs, and one served both. */
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
		/* Who loses this exchange to the layer waits for it. */
		if (patient || cmpxchg(parked(), mine,
				       mine - KYOZON_PARKED_STANDING) == mine)
			return NMI_HANDLED;
		patient = true;
		end = after(WRITE_MS * 1000);
	}
}
