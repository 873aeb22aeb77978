// SPDX-License-Identifier: GPL-2.0-only
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/seq_file.h>
#include <linux/version.h>

#include "probe.h"

static const ktime_t period = NSEC_PER_MSEC;

static struct hrtimer timer;
static bool running;
static u64 worst, sum, count;
static u32 sample[8192];

/* In interrupt context: records the delay since the expiry. */
static enum hrtimer_restart fired(struct hrtimer *t)
{
	s64 late = ktime_to_ns(ktime_sub(ktime_get(), hrtimer_get_expires(t)));
	u64 delay = late < 0 ? 0 : late;

	worst = max(worst, delay);
	sum += delay;
	if (count < ARRAY_SIZE(sample))
		sample[count] = min_t(u64, delay, U32_MAX);
	count++;
	hrtimer_forward_now(t, period);
	return HRTIMER_RESTART;
}

void probe_delay_start(void)
{
	worst = sum = count = 0;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&timer, fired, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer.function = fired;
#endif
	hrtimer_start(&timer, period, HRTIMER_MODE_REL_PINNED_HARD);
	running = true;
}

void probe_delay_stop(void)
{
	if (running)
		hrtimer_cancel(&timer);
	running = false;
}

int probe_delay_show(struct seq_file *out, void *unused)
{
	u64 i;

	seq_printf(out, "worst %llu average %llu count %llu\n", worst,
		   count ? div64_u64(sum, count) : 0, count);
	for (i = 0; i < min_t(u64, count, ARRAY_SIZE(sample)); i++)
		seq_printf(out, "%u\n", sample[i]);
	return 0;
}
