// SPDX-License-Identifier: GPL-2.0-only
/*
 * The real-time clock's periodic interrupt as tick, for machines without HPET.
 */
#include "kyozon.h"

static int take(struct kyozon_load *load)
{
	return kyozon_say(load, -EOPNOTSUPP, "not built into this module");
}

const struct kyozon_tick_source kyozon_rtc = {
	.id = KYOZON_TICK_RTC, .name = "rtc", .take = take,
};
