// SPDX-License-Identifier: GPL-2.0-only
/*
 * The real-time clock's periodic interrupt as tick, for machines without HPET.
 *
 * Its rate is the next power of two above the tick's; a tick comes with the
 * interrupt nearest to its due time. There is no timer for the guard: each
 * interrupt checks the budget, so a stop may be one interrupt's period longer.
 *
 * Each interrupt must be acknowledged by reading register C, or no other comes.
 * The ports are guarded by rtc_lock; NMI context can only try to take it. The
 * trip holds the lock, so that the layer may acknowledge; if Linux holds it, an
 * irq_work acknowledges later.
 *
 * Reference: Motorola MC146818A data sheet, registers A to C.
 */
#include <linux/device.h>
#include <linux/hpet.h>
#include <linux/io.h>
#include <linux/irq_work.h>
#include <linux/log2.h>
#include <linux/mc146818rtc.h>
#include <linux/rtc.h>
#include <linux/spinlock.h>
#include <asm/hpet.h>
#include <asm/msr.h>

#include "kyozon.h"

#define RTC_PIN		8
#define LEAD_MS		5
#define RATE_OF(log2)	(16 - (log2))	/* register A: 32768 >> (rate - 1) Hz */
#define RATE_MASK	0x0f

static struct {
	struct device *parent;
	u8 saved_a;
	u8 saved_b;
	u8 rate;
	bool locked;
	struct irq_work later;
} rtc;

static u8 get(u8 index)
{
	outb(index, RTC_PORT(0));
	return inb(RTC_PORT(1));
}

static void set(u8 index, u8 value)
{
	outb(index, RTC_PORT(0));
	outb(value, RTC_PORT(1));
}

static void acknowledge_later(struct irq_work *work)
{
	unsigned long flags;

	spin_lock_irqsave(&rtc_lock, flags);
	get(RTC_INTR_FLAGS);
	spin_unlock_irqrestore(&rtc_lock, flags);
}

/*
 * The device behind rtc_cmos, referenced, or NULL. It has another name after
 * each load: alarmtimer keeps the old one for ever.
 */
static struct device *find(void)
{
	char name[] = "rtc0";

	for (; name[3] <= '9'; name[3]++) {
		struct rtc_device *device = rtc_class_open(name);
		struct device *parent;

		if (!device)
			continue;
		parent = get_device(device->dev.parent);
		rtc_class_close(device);
		if (parent && parent->driver &&
		    !strcmp(parent->driver->name, "rtc_cmos"))
			return parent;
		put_device(parent);
	}
	return NULL;
}

static int take(struct kyozon_load *load)
{
	int pin, log2, error;

	if (is_hpet_enabled())
		return kyozon_err(load, -EBUSY,
				  "the HPET replaces its interrupt: boot with hpet=disable");
	rtc.parent = find();
	if (!rtc.parent)
		return kyozon_err(load, -ENODEV, "no PC real-time clock");
	/* Linux's driver releases the interrupt; give() attaches it again. */
	device_release_driver(rtc.parent);
	pin = kyozon_ioapic_take(load, BIT(RTC_PIN));
	if (pin < 0) {
		error = pin;
		goto attach;
	}
	init_irq_work(&rtc.later, acknowledge_later);
	log2 = max(order_base_2(load->tick_hz), 1);
	rtc.rate = RATE_OF(log2);
	kyozon.tick.early_tsc = kyozon.tsc_khz * 1000 >> (log2 + 1);
	spin_lock_irq(&rtc_lock);
	rtc.saved_a = get(RTC_FREQ_SELECT);
	rtc.saved_b = get(RTC_CONTROL);
	spin_unlock_irq(&rtc_lock);
	kyozon.tick.late_tsc = S64_MIN;
	return 0;

attach:
	if (device_attach(rtc.parent) < 0)
		pr_warn("rtc_cmos did not come back\n");
	put_device(rtc.parent);
	return error;
}

static void start(void)
{
	spin_lock(&rtc_lock);
	set(RTC_FREQ_SELECT, (rtc.saved_a & ~RATE_MASK) | rtc.rate);
	set(RTC_CONTROL, (rtc.saved_b & ~(RTC_AIE | RTC_UIE)) | RTC_PIE);
	get(RTC_INTR_FLAGS);
	spin_unlock(&rtc_lock);
	kyozon.tick.due_tsc = rdtsc() + LEAD_MS * kyozon.tsc_khz;
}

static void watch(u64 late_tsc)
{
	struct kyozon_trip *trip = &kyozon_world.trip;

	rtc.locked = spin_trylock(&rtc_lock);
	if (rtc.locked)
		get(RTC_INTR_FLAGS);
	kyozon.entry->acknowledge = rtc.locked;
	trip->guard_tsc = trip->deadline_tsc;
}

static void leave(void)
{
	if (rtc.locked) {
		get(RTC_INTR_FLAGS);
		rtc.locked = false;
		spin_unlock(&rtc_lock);
	} else {
		irq_work_queue(&rtc.later);
	}
}

static u32 next(u64 stop_tsc)
{
	struct kyozon_tick *tick = &kyozon.tick;
	struct kyozon_trip *trip = &kyozon_world.trip;
	u64 rest_tsc = stop_tsc > tick->short_tsc ? stop_tsc : 0;
	u32 passed = 0;

	leave();
	/* The layer advanced next_tsc by the ticks that it delivered. */
	passed = trip->ticks_inside;
	tick->end_tsc = rdtsc();
	tick->due_tsc = trip->next_tsc;
	while ((s64)(tick->due_tsc - tick->end_tsc - rest_tsc) <= 0) {
		tick->due_tsc += trip->period_tsc;
		passed++;
	}
	return passed;
}

static int claim(void)
{
	u64 now = rdtsc();
	u8 flags;

	if (!spin_trylock(&rtc_lock)) {
		/* The source is unknown; it is probably this clock. */
		irq_work_queue(&rtc.later);
		return -1;
	}
	flags = get(RTC_INTR_FLAGS);
	spin_unlock(&rtc_lock);
	if (!(flags & RTC_PF))
		return 0;
	return (s64)(now + kyozon.tick.early_tsc -
		     kyozon.tick.due_tsc) >= 0 ? 1 : -1;
}

static void stop(void)
{
	/* Also on the way to a crash kernel: does not wait for the lock. */
	bool locked = spin_trylock(&rtc_lock);

	set(RTC_CONTROL, rtc.saved_b & ~RTC_PIE);
	get(RTC_INTR_FLAGS);
	if (locked)
		spin_unlock(&rtc_lock);
}

static void give(void)
{
	irq_work_sync(&rtc.later);
	spin_lock_irq(&rtc_lock);
	set(RTC_FREQ_SELECT, rtc.saved_a);
	set(RTC_CONTROL, rtc.saved_b);
	get(RTC_INTR_FLAGS);
	spin_unlock_irq(&rtc_lock);
	kyozon_ioapic_give();
	if (device_attach(rtc.parent) < 0)
		pr_warn("rtc_cmos did not come back\n");
	put_device(rtc.parent);
}

const struct kyozon_tick_source kyozon_rtc = {
	.id = KYOZON_TICK_RTC, .name = "rtc",
	.take = take, .open = kyozon_ioapic_open, .start = start,
	.watch = watch, .next = next, .claim = claim, .leave = leave,
	.stop = stop, .give = give,
};
