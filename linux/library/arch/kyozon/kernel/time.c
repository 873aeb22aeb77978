// SPDX-License-Identifier: GPL-2.0-only
/* Time: the host's clock, and one timer whose deadline the host's threads keep. */

#include <linux/clockchips.h>
#include <linux/clocksource.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/math64.h>
#include <linux/sched/clock.h>
#include <linux/timekeeping.h>
#include "kyozon.h"

static u64 read_clock(struct clocksource *source)
{
	return host_now();
}

static struct clocksource host_clock = {
	.name = "host",
	.rating = 400,
	.read = read_clock,
	.mask = CLOCKSOURCE_MASK(64),
	.flags = CLOCK_SOURCE_IS_CONTINUOUS,
};

static int set_deadline(unsigned long ns, struct clock_event_device *device)
{
	kyozon_cpu.deadline = host_now() + ns;
	return 0;
}

static int clear_deadline(struct clock_event_device *device)
{
	kyozon_cpu.deadline = KYOZON_LIBRARY_NEVER;
	return 0;
}

static struct clock_event_device host_timer = {
	.name = "host",
	.rating = 400,
	.features = CLOCK_EVT_FEAT_ONESHOT,
	.set_next_event = set_deadline,
	.set_state_oneshot = clear_deadline,
	.set_state_shutdown = clear_deadline,
};

void kyozon_timer(void)
{
	if (host_now() < kyozon_cpu.deadline)
		return;
	kyozon_cpu.deadline = KYOZON_LIBRARY_NEVER;
	host_timer.event_handler(&host_timer);
}

void __init time_init(void)
{
	host_timer.cpumask = cpumask_of(0);
	if (clocksource_register_hz(&host_clock, NSEC_PER_SEC))
		panic("no clock");
	clockevents_config_and_register(&host_timer, NSEC_PER_SEC, 1000, LONG_MAX);
}

void read_persistent_clock64(struct timespec64 *ts)
{
	*ts = ns_to_timespec64(host_realtime());
}

unsigned long long notrace sched_clock(void)
{
	return kyozon_host ? host_now() : 0;
}

/* Loops that wait for jiffies or for a device must let time pass. */
void kyozon_poll(void)
{
	static unsigned int calls;

	asm volatile("pause");
	if (++calls % 64)
		return;
	kyozon_check_deadline();
	if (kyozon_irqs_enabled && READ_ONCE(kyozon_irqs_pending))
		kyozon_run_irqs();
}

/* Nothing counts loops. */
void calibrate_delay(void)
{
	loops_per_jiffy = NSEC_PER_SEC / HZ;
}

void __delay(unsigned long ns)
{
	u64 end = host_now() + ns;

	while (host_now() < end)
		asm volatile("pause");
}

void __ndelay(unsigned long ns)
{
	__delay(ns);
}

void __udelay(unsigned long us)
{
	__delay(us * NSEC_PER_USEC);
}

/* Units of 2^-32 seconds. */
void __const_udelay(unsigned long xloops)
{
	__delay(mul_u64_u32_shr(xloops, NSEC_PER_SEC, 32));
}
