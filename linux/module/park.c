// SPDX-License-Identifier: GPL-2.0-only
/*
 * The other CPUs stand still, in their NMI handlers, while the layer repairs.
 *
 * Whoever waits, waits for a bounded time: the cokernel's CPU for the others to
 * arrive, and a parked CPU for the word that lets it go.
 */
#include <linux/cpumask.h>
#include <linux/smp.h>
#include <asm/msr.h>
#include <asm/nmi.h>

#include "kyozon.h"

#define ARRIVE_US	500
#define STAND_MS	5
#define LATE_MS		20	/* an NMI of the last round is still ours */

static cpumask_t wanted;
static atomic_t arrived;
static u64 round_tsc;

static u64 after(u64 us)
{
	return rdtsc() + div_u64(us * kyozon.tsc_khz, 1000);
}

/* Asks every other CPU to stand; trip->parked says whether all do. */
void kyozon_park(void)
{
	struct kyozon_trip *trip = &kyozon_world.trip;
	u64 end = after(ARRIVE_US);
	int cpu, others = 0;

	atomic_set(&arrived, 0);
	WRITE_ONCE(round_tsc, rdtsc());
	WRITE_ONCE(trip->parked, 1);
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
			WRITE_ONCE(trip->parked, 0);
			return;
		}
		cpu_relax();
	}
}

int kyozon_park_here(void)
{
	struct kyozon_trip *trip = &kyozon_world.trip;
	int cpu = raw_smp_processor_id();
	u64 end;

	if (likely(!cpumask_test_cpu(cpu, &wanted)))
		/* Two rounds may have sent two NMIs, and one served both. */
		return likely(!round_tsc ||
			      rdtsc() - round_tsc > LATE_MS * kyozon.tsc_khz) ?
			NMI_DONE : NMI_HANDLED;
	cpumask_clear_cpu(cpu, &wanted);
	if (!READ_ONCE(trip->parked))
		return NMI_HANDLED;
	end = after(STAND_MS * 1000);
	atomic_inc(&arrived);
	while (READ_ONCE(trip->parked) && (s64)(rdtsc() - end) < 0)
		cpu_relax();
	return NMI_HANDLED;
}
