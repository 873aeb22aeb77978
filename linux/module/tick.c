// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tick: which source, and the figures that all sources share.
 */
#include <linux/math64.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "kyozon.h"

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
	tick->watch_tsc = min(tick->budget_tsc, trip->period_tsc);
	tick->slack_tsc = max(div_u64(2 * kyozon.tsc_khz, 1000),
			      trip->period_tsc >> 6);
	for (i = 0; i < ARRAY_SIZE(sources); i++) {
		if (load->tick_source != KYOZON_TICK_AUTO &&
		    load->tick_source != sources[i]->id)
			continue;
		load->message[0] = 0;
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
		return kyozon_say(load, -EOPNOTSUPP,
				  "tick source %u is not built into this module",
				  load->tick_source);
	return kyozon_say(load, error, "no tick source: %s", reasons);
}

static void start_here(void *unused)
{
	WRITE_ONCE(kyozon.armed, true);
	kyozon.tick.source->start();
}

int kyozon_tick_start(void)
{
	if (kyozon.tick.source->open)
		kyozon.tick.source->open();
	return smp_call_function_single(kyozon.cpu, start_here, NULL, 1);
}

void kyozon_tick_give(void)
{
	kyozon.tick.source->give();
	kyozon.tick.source = NULL;
}
