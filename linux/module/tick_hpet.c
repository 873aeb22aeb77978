// SPDX-License-Identifier: GPL-2.0-only
/*
 * HPET timer 2 as tick, timer 3 as guard. Without a timer 3, timer 2 is both:
 * it is armed as guard when a trip begins.
 *
 * One-shot, 32 bits wide, scheduled absolutely: the next tick is the last one
 * plus a period with 32 fractional bits, whatever happened in between. A
 * comparator that the counter has passed is silent for minutes, so the counter
 * is read after each write, and the tick moved on if it was passed.
 *
 * Reference: IA-PC HPET Specification 1.0a, 2.3.8 to 2.3.10. The HPET belongs
 * to Linux: timers 0 and 1 are its legacy timers. It does not touch a timer
 * that it has not enabled.
 */
#include <linux/acpi.h>
#include <linux/hpet.h>
#include <linux/io.h>
#include <linux/math64.h>
#include <asm/hpet.h>
#include <asm/msr.h>
#include <asm/smp.h>

#include "kyozon.h"

#define REGISTERS_BYTES	4096
#define TICK_TIMER	2
#define GUARD_TIMER	3
#define MARGIN_FS	2000000000ull	/* 2 us: a comparator this near may be missed */
#define LEAD_MS		5
#define REST_MAX	(1u << 28)	/* counts, well below half the counter */

#define MESSAGE_ADDRESS	0xfee00000u
#define MESSAGE_NMI	(4u << 8)

#define FSB_ROUTE(n)	(HPET_Tn_ROUTE(n))
#define ROUTE_CAP(n)	(HPET_Tn_CFG(n) + 4)

static struct {
	phys_addr_t physical;
	u8 __iomem *registers;
	u32 guard_timer;
	u32 config;		/* of both timers, interrupts off */
	u32 saved_config[2];
	u64 saved_route[2];
	u64 period;		/* counter ticks, 32 fractional bits */
	u64 next;		/* the same */
	u32 margin;
	u32 furthest;		/* no tick is further ahead than this */
	u32 watch;		/* from a trip's begin to the guard */
	u64 tsc_per_count;	/* 20 fractional bits, so that a second fits */
	u64 count_per_tsc;	/* 32 fractional bits */
	u8 __iomem *guard;	/* its comparator, or NULL if the tick's timer is it */
} hpet;

static u32 get(u32 offset)
{
	return readl(hpet.registers + offset);
}

static void set(u32 offset, u32 value)
{
	writel(value, hpet.registers + offset);
}

static int find(struct kyozon_load *load)
{
	struct acpi_table_header *table;

	if (ACPI_FAILURE(acpi_get_table(ACPI_SIG_HPET, 0, &table)))
		return kyozon_err(load, -ENODEV, "no HPET");
	hpet.physical = ((struct acpi_table_hpet *)table)->address.address;
	acpi_put_table(table);
	hpet.registers = ioremap(hpet.physical, REGISTERS_BYTES);
	if (!hpet.registers)
		return kyozon_err(load, -ENOMEM, "HPET registers cannot be mapped");
	if (get(HPET_ID) == 0xffffffff || !(get(HPET_CFG) & HPET_CFG_ENABLE)) {
		iounmap(hpet.registers);
		return kyozon_err(load, -ENODEV,
				  "Linux does not run the HPET: boot without hpet=disable");
	}
	return 0;
}

static bool is_used(unsigned int timer)
{
	return get(HPET_Tn_CFG(timer)) & (HPET_TN_ENABLE | HPET_TN_FSB);
}

static int take(struct kyozon_load *load, bool message)
{
	u32 period_fs, capability, route = 0;
	struct kyozon_layer_entry *e = kyozon.entry;
	unsigned int i;
	int error, pin;

	error = find(load);
	if (error)
		return error;
	error = -EBUSY;
	if (((get(HPET_ID) & HPET_ID_NUMBER) >> HPET_ID_NUMBER_SHIFT) < TICK_TIMER) {
		kyozon_err(load, error, "the HPET has no timer 2");
		goto unmap;
	}
	if (is_used(TICK_TIMER)) {
		kyozon_err(load, error,
			   "Linux uses HPET timer 2: close /dev/hpet");
		goto unmap;
	}
	capability = get(HPET_Tn_CFG(TICK_TIMER));
	hpet.guard_timer = TICK_TIMER;
	if (((get(HPET_ID) & HPET_ID_NUMBER) >> HPET_ID_NUMBER_SHIFT) >= GUARD_TIMER &&
	    !is_used(GUARD_TIMER) &&
	    (get(HPET_Tn_CFG(GUARD_TIMER)) & HPET_TN_FSB_CAP) ==
		    (capability & HPET_TN_FSB_CAP) &&
	    get(ROUTE_CAP(GUARD_TIMER)) == get(ROUTE_CAP(TICK_TIMER)))
		hpet.guard_timer = GUARD_TIMER;
	if (message) {
		error = -EOPNOTSUPP;
		if (!(capability & HPET_TN_FSB_CAP)) {
			kyozon_err(load, error,
				   "HPET timer 2 cannot send messages");
			goto unmap;
		}
		if (cpu_physical_id(kyozon.cpu) > 0xfe) {
			kyozon_err(load, error,
				   "CPU %u has an APIC id above 254, too large for a message",
				   kyozon.cpu);
			goto unmap;
		}
		route = HPET_TN_FSB;
	} else {
		pin = kyozon_ioapic_take(load, get(ROUTE_CAP(TICK_TIMER)));
		if (pin < 0) {
			error = pin;
			goto unmap;
		}
		route = pin << HPET_TN_ROUTE_SHIFT;
	}

	period_fs = get(HPET_PERIOD);
	hpet.config = HPET_TN_32BIT | route;
	hpet.period = mul_u64_u64_div_u64(1000000000000000ull, 1ull << 32,
					  (u64)period_fs * load->tick_hz);
	hpet.margin = div_u64(MARGIN_FS, period_fs) + 1;
	hpet.watch = min_t(u64, hpet.period >> 32,
			   div_u64(load->budget_us * 1000000000ull, period_fs));
	/* A femtosecond is 10^-15 s, and the HPET states its period exactly. */
	hpet.tsc_per_count = mul_u64_u64_div_u64(kyozon.tsc_khz * period_fs,
						 1ull << 20, 1000000000000ull);
	hpet.count_per_tsc = mul_u64_u64_div_u64(1000000000000ull, 1ull << 32,
						 kyozon.tsc_khz * period_fs);
	for (i = 0; i < 2; i++) {
		u32 timer = i ? hpet.guard_timer : TICK_TIMER;

		hpet.saved_config[i] = get(HPET_Tn_CFG(timer));
		hpet.saved_route[i] = get(FSB_ROUTE(timer)) |
			(u64)get(FSB_ROUTE(timer) + 4) << 32;
	}
	/* The armed guard covers a trip that begins before half of it. */
	kyozon.tick.late_tsc = hpet.guard_timer == TICK_TIMER ?
		S64_MIN : kyozon.tick.watch_tsc / 2;

	error = kyozon_world_map_guard(hpet.physical);
	if (error) {
		kyozon_err(load, error, "the HPET could not be mapped");
		goto give_pin;
	}
	e->guard += offset_in_page(hpet.physical);
	e->guard_comparator = HPET_Tn_CMP(hpet.guard_timer);
	e->guard_counter = HPET_COUNTER;
	e->guard_per_tsc = hpet.count_per_tsc;
	return 0;

give_pin:
	if (!message)
		kyozon_ioapic_give();
unmap:
	iounmap(hpet.registers);
	return error;
}

static int take_msi(struct kyozon_load *load)
{
	return take(load, true);
}

static int take_ioapic(struct kyozon_load *load)
{
	return take(load, false);
}

static u64 to_tsc(u32 counts)
{
	return counts * hpet.tsc_per_count >> 20;
}

/* Whether a tick `left` counts ahead, more than `rest`, will surely come. */
static __always_inline bool is_good(s32 left, u32 rest)
{
	return (u32)left - rest - 1 < hpet.furthest;
}

/* The timer is set for hpet.next, `left` counts ahead of `now`. */
static __always_inline void armed(s32 left, u32 now)
{
	struct kyozon_tick *tick = &kyozon.tick;
	u32 end = now + left + hpet.watch;
	u64 tsc = rdtsc();

	tick->due_tsc = tsc + to_tsc(left);
	if (likely(hpet.guard))
		writel(end, hpet.guard);
	tick->end_tsc = rdtsc();
	/* A 32-bit one-shot timer interrupts when the counter wraps, too. */
	tick->wrap_tsc = likely(end > now) ? 0 : tsc + to_tsc(-now);
}

/* Skips from hpet.next to the first tick that is `rest` ahead. */
static noinline u32 arm_later(s32 left, u32 now, u32 rest)
{
	u32 passed = 0;

	while (!is_good(left, rest)) {
		u64 skip;

		/* It may have fired already, or may fire now. */
		if (left <= (s32)hpet.margin)
			kyozon.tick.swallow++;
		if (left > (s32)rest) {
			/* The machine stood still for half the counter. */
			hpet.next = (u64)now << 32;
			left = 0;
		}
		skip = div64_u64((u64)(rest - left) << 32, hpet.period) + 1;
		hpet.next += skip * hpet.period;
		passed += skip;
		set(HPET_Tn_CMP(TICK_TIMER), hpet.next >> 32);
		now = get(HPET_COUNTER);
		left = (hpet.next >> 32) - now;
	}
	armed(left, now);
	return passed;
}

/* Schedules hpet.next, or the first tick after it that is `rest` ahead. */
static __always_inline u32 arm_next(u32 rest)
{
	u32 at = hpet.next >> 32, now;

	set(HPET_Tn_CMP(TICK_TIMER), at);
	now = get(HPET_COUNTER);
	if (unlikely(!is_good(at - now, rest)))
		return arm_later(at - now, now, rest);
	armed(at - now, now);
	return 0;
}

/* Linux gets the CPU for at least as long as the stop was. */
static noinline u32 next_after_rest(u64 stop_tsc)
{
	u64 rest = mul_u64_u64_shr(stop_tsc, hpet.count_per_tsc, 32);

	return arm_next(hpet.margin + min_t(u64, rest, REST_MAX));
}

static u32 next(u64 stop_tsc)
{
	hpet.next += hpet.period;
	if (unlikely(stop_tsc > kyozon.tick.short_tsc))
		return next_after_rest(stop_tsc);
	return arm_next(hpet.margin);
}

static void set_up(u32 timer)
{
	set(HPET_Tn_CFG(timer), hpet.config);
	if (hpet.config & HPET_TN_FSB) {
		set(FSB_ROUTE(timer), MESSAGE_NMI);
		set(FSB_ROUTE(timer) + 4,
		    MESSAGE_ADDRESS | cpu_physical_id(kyozon.cpu) << 12);
	}
}

static void start(void)
{
	u64 lead = mul_u64_u64_shr(LEAD_MS * kyozon.tsc_khz,
				   hpet.count_per_tsc, 32);

	set_up(TICK_TIMER);
	if (hpet.guard_timer != TICK_TIMER)
		set_up(hpet.guard_timer);
	hpet.guard = hpet.guard_timer == TICK_TIMER ? NULL :
		     hpet.registers + HPET_Tn_CMP(hpet.guard_timer);
	hpet.furthest = (hpet.period >> 32) + lead + 1;
	hpet.next = (get(HPET_COUNTER) + lead) << 32;
	arm_next(hpet.margin);
	/* Interrupts last: a timer that is enabled first fires once at once. */
	set(HPET_Tn_CFG(TICK_TIMER), hpet.config | HPET_TN_ENABLE);
	if (hpet.guard_timer != TICK_TIMER)
		set(HPET_Tn_CFG(hpet.guard_timer),
		    hpet.config | HPET_TN_ENABLE);
}

/*
 * The guard is due one budget after the trip began, or at the next tick; the
 * layer moves it on from there. The TSC shows that it was armed before it was
 * due, so the counter need not be read here.
 */
static void watch(u64 late_tsc)
{
	struct kyozon_tick *tick = &kyozon.tick;
	struct kyozon_trip *trip = &kyozon_world.trip;
	u64 began = trip->event.entered_tsc;

	if ((s64)late_tsc < 0)
		late_tsc = 0;
	if (hpet.guard_timer != TICK_TIMER &&
	    late_tsc + trip->slack_tsc >= tick->watch_tsc)
		trip->stale++;
	for (;;) {
		u32 late = mul_u64_u64_shr(late_tsc, hpet.count_per_tsc, 32);

		trip->guard_tsc = trip->event.scheduled_tsc + late_tsc +
				  tick->watch_tsc;
		set(HPET_Tn_CMP(hpet.guard_timer),
		    (u32)(hpet.next >> 32) + late + hpet.watch);
		if (likely(rdtsc() - began < tick->watch_tsc / 2))
			return;
		/* Firmware held the CPU meanwhile: the budget starts again. */
		began = rdtsc();
		late_tsc = began - trip->event.scheduled_tsc;
		trip->deadline_tsc = began + tick->budget_tsc;
	}
}

static int claim(void)
{
	return (s32)(get(HPET_COUNTER) + hpet.margin -
		     (u32)(hpet.next >> 32)) >= 0;
}

static void describe(struct kyozon_host_timer *timer)
{
	timer->registers = hpet.physical;
	timer->config = hpet.config;
	timer->guard = hpet.guard_timer;
	timer->message[0] = MESSAGE_NMI;
	timer->message[1] = MESSAGE_ADDRESS | kyozon_tick_destination() << 12;
	timer->period_fs = get(HPET_PERIOD);
	if (hpet.config & HPET_TN_FSB)
		return;
	timer->ioapic = kyozon_ioapic_physical();
	timer->pin = hpet.config >> HPET_TN_ROUTE_SHIFT & 31;
}

static void stop(void)
{
	set(HPET_Tn_CFG(TICK_TIMER), hpet.config);
	if (hpet.guard_timer != TICK_TIMER)
		set(HPET_Tn_CFG(hpet.guard_timer), hpet.config);
}

static void give(void)
{
	unsigned int i;

	for (i = 0; i < (hpet.guard_timer == TICK_TIMER ? 1 : 2); i++) {
		u32 timer = i ? hpet.guard_timer : TICK_TIMER;

		if (hpet.config & HPET_TN_FSB) {
			set(FSB_ROUTE(timer), hpet.saved_route[i]);
			set(FSB_ROUTE(timer) + 4, hpet.saved_route[i] >> 32);
		}
		set(HPET_Tn_CFG(timer), hpet.saved_config[i]);
	}
	if (!(hpet.config & HPET_TN_FSB))
		kyozon_ioapic_give();
	iounmap(hpet.registers);
}

const struct kyozon_tick_source kyozon_hpet_msi = {
	.id = KYOZON_TICK_HPET_MSI, .name = "hpet-msi",
	.take = take_msi, .start = start, .watch = watch, .next = next,
	.claim = claim, .stop = stop, .give = give, .describe = describe,
};

const struct kyozon_tick_source kyozon_hpet_ioapic = {
	.id = KYOZON_TICK_HPET_IOAPIC, .name = "hpet-ioapic",
	.take = take_ioapic, .open = kyozon_ioapic_open, .start = start,
	.watch = watch, .next = next,
	.claim = claim, .stop = stop, .give = give, .describe = describe,
};
