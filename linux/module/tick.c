// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tick: the choice of its source, and what all sources share.
 */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/math64.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/version.h>
#include <asm/apic.h>
#include <asm/msr.h>
#include <asm/smp.h>

#include "kyozon.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define del_timer_sync	timer_delete_sync
#endif

static const struct kyozon_tick_source *const sources[] = {
	&kyozon_hpet_msi, &kyozon_hpet_ioapic, &kyozon_rtc,
};

int kyozon_tick_take(struct kyozon_load *load)
{
	struct kyozon_tick *tick = &kyozon.tick;
	struct kyozon_trip *trip = &kyozon_world.trip;
	char reasons[KYOZON_MESSAGE_BYTES] = "";
	unsigned int i;
	int error = -ENODEV;

	memset(tick, 0, sizeof(*tick));
	tick->budget_tsc = div_u64(load->budget_us * kyozon.tsc_khz, 1000);
	trip->period_tsc = div_u64(kyozon.tsc_khz * 1000, load->tick_hz);
	tick->short_tsc = trip->period_tsc / 2;
	tick->watch_tsc = min(tick->budget_tsc, trip->period_tsc);
	trip->slack_tsc = div_u64(KYOZON_SLACK_US * kyozon.tsc_khz, 1000) +
			  div_u64(trip->period_tsc, KYOZON_SLACK_DIVISOR);
	tick->early_tsc = trip->slack_tsc;
	for (i = 0; i < ARRAY_SIZE(sources); i++) {
		if (load->tick_source != KYOZON_TICK_AUTO &&
		    load->tick_source != sources[i]->id)
			continue;
		load->message[0] = 0;
		error = kyozon.as->refuse_source(load, sources[i]);
		if (!error)
			error = sources[i]->take(load);
		if (!error) {
			tick->source = sources[i];
			return 0;
		}
		if (reasons[0])
			strlcat(reasons, "; ", sizeof(reasons));
		strlcat(reasons, sources[i]->name, sizeof(reasons));
		strlcat(reasons, ": ", sizeof(reasons));
		strlcat(reasons, load->message, sizeof(reasons));
	}
	if (!reasons[0])
		return kyozon_err(load, -EOPNOTSUPP,
				  "tick source %u is not built into this module",
				  load->tick_source);
	return kyozon_err(load, error, "no tick source: %s", reasons);
}

#define REVIVE_MS	200

/*
 * Each tick schedules the next, so a tick that the timer did not deliver would
 * be the last. This timer checks now and then, and sends the NMI in its place.
 */
static void revive(struct timer_list *timer)
{
	struct kyozon_tick *tick = &kyozon.tick;
	u64 due = kyozon.as->due();
	unsigned long flags;

	if (!READ_ONCE(kyozon.armed))
		return;
	if ((s64)(rdtsc() - due) > (s64)(REVIVE_MS * kyozon.tsc_khz)) {
		tick->revived++;
		if (kyozon.as->miss)
			kyozon.as->miss();
		local_irq_save(flags);
		kyozon_nmi_send(kyozon.cpu);
		local_irq_restore(flags);
	}
	mod_timer(timer, jiffies + msecs_to_jiffies(REVIVE_MS));
}

/*
 * Checks on another CPU, if there is one: the cokernel's may have interrupts
 * off.
 */
static void start_reviving(void)
{
	unsigned int cpu;

	timer_setup(&kyozon.tick.revive, revive, TIMER_PINNED);
	kyozon.tick.revive.expires = jiffies + msecs_to_jiffies(REVIVE_MS);
	cpus_read_lock();
	cpu = cpumask_any_but(cpu_online_mask, kyozon.cpu);
	add_timer_on(&kyozon.tick.revive, cpu < nr_cpu_ids ? cpu : kyozon.cpu);
	cpus_read_unlock();
}

int kyozon_tick_start_on(smp_call_func_t start)
{
	int error;

	error = smp_call_function_single(kyozon.cpu, start, NULL, 1);
	start_reviving();
	return error;
}

/* No trip is running when this returns. */
void kyozon_tick_stop_on(smp_call_func_t stop)
{
	smp_call_function_single(kyozon.cpu, stop, NULL, 1);
	del_timer_sync(&kyozon.tick.revive);
}

#define ALL_CPUS	0xff	/* Intel SDM 3A 11.6.2.1 */

/*
 * The APIC ID to which the tick is sent. In xAPIC mode Linux can change the ID
 * of a CPU. The only one is found without it.
 */
u32 kyozon_tick_destination(void)
{
	if (kyozon.mode == KYOZON_MODE_VMM && num_online_cpus() == 1 &&
	    !x2apic_mode)
		return ALL_CPUS;
	return cpu_physical_id(kyozon.cpu);
}

void kyozon_tick_give(void)
{
	kyozon.tick.source->give();
	kyozon.tick.source = NULL;
}
