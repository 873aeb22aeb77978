// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mode none: nothing stands between Linux and the cokernel. The tick goes from
 * Linux's NMI handler straight into the cokernel's world.
 *
 * Linux calls every handler for every CPU's NMI, whatever an earlier handler
 * returned. So the handler first checks whether this is the cokernel's CPU and
 * whether its tick is due. Neither check touches the timer: the due time was
 * noted, in TSC ticks, when the timer was armed.
 *
 * The first IRET in the cokernel's world unblocks NMIs. Linux copes with NMIs
 * that arrive in the rest of its handler: it runs again (entry_64.S).
 */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/smp.h>
#include <asm/msr.h>
#include <asm/nmi.h>

#include "kyozon.h"

static __always_inline void account(struct kyozon_tick *tick, u64 began)
{
	u64 stop = tick->end_tsc - began;

	tick->histogram[__fls(stop | 1)]++;
	if (unlikely(stop > tick->longest_tsc))
		tick->longest_tsc = stop;
}

/* Handles every end of a trip but the usual one, an idle cokernel. */
static noinline void unusual(struct kyozon_tick *tick, struct kyozon_trip *trip,
			     struct pt_regs *regs)
{
	while (trip->result == KYOZON_TRIP_PARK) {
		kyozon_park();
		trip->result = KYOZON_TRIP_IDLE;
		kyozon_switch();
	}
	trip->parked &= ~KYOZON_PARKED_STATE;
	if (trip->machine_check) {
		trip->machine_check = 0;
		asm volatile("int $18" : : : "memory");
	}
	if (trip->foreign || trip->in_transit) {
		/*
		 * The handlers after this one see it; one that was registered
		 * meanwhile does not. So it is sent once more.
		 */
		tick->foreign += trip->foreign + trip->in_transit;
		trip->foreign = 0;
		trip->in_transit = 0;
		tick->swallow++;
		kyozon_nmi_send(kyozon.cpu);
	}
	tick->ticks += trip->ticks_inside;
	if (trip->result == KYOZON_TRIP_CUT_OFF)
		tick->overruns++;
	if (trip->result == KYOZON_TRIP_CRASH)
		kyozon_start_crash_kernel(regs);
	if (trip->result == KYOZON_TRIP_STOPPED) {
		kyozon_silence();
		WRITE_ONCE(kyozon.state, KYOZON_STATE_STOPPED);
		irq_work_queue(&kyozon.stopped);
	}
}

/* Reads result with ticks_inside, or foreign with in_transit, in one load. */
static __always_inline u64 pair(const u32 *first)
{
	static_assert(offsetof(struct kyozon_trip, ticks_inside) ==
		      offsetof(struct kyozon_trip, result) + 4);
	static_assert(offsetof(struct kyozon_trip, in_transit) ==
		      offsetof(struct kyozon_trip, foreign) + 4);
	return READ_ONCE(*(const u64 *)first);
}

/* The number of missed ticks among the `passed` ones. */
static noinline u32 missed_of(struct kyozon_tick *tick,
			      struct kyozon_trip *trip, u32 passed)
{
	/* The layer delivered some of them during the trip. */
	passed -= min(passed, trip->ticks_inside);
	trip->event.number += trip->ticks_inside;
	tick->missed += passed;
	return passed;
}

static __always_inline void run(struct kyozon_tick *tick,
				struct kyozon_trip *trip, u64 now,
				struct pt_regs *regs)
{
	u64 due = tick->due_tsc, stop;
	u32 passed;

	trip->event.entered_tsc = now;
	trip->deadline_tsc = now + tick->budget_tsc;
	/*
	 * If this is an NMI that was expected earlier, or came too early to be
	 * the timer's, the timer's own still follows.
	 */
	tick->overdue = tick->swallow;
	tick->swallow = (s64)(now - due) < (s64)tick->early_tsc;
	trip->stale = tick->overdue + tick->swallow;
	if ((s64)(now - due) >= (s64)tick->late_tsc)
		tick->source->watch(now - due);
	if (unlikely(kyozon_check))
		kyozon_switch_checked();
	else
		kyozon_switch();
	tick->ticks++;
	if (unlikely(pair(&trip->result) | pair(&trip->foreign) |
		     trip->machine_check))
		unusual(tick, trip, regs);
	if (unlikely(READ_ONCE(trip->look) == KYOZON_LOOK_WANTED) &&
	    READ_ONCE(kyozon.armed))
		kyozon_look_next();
	if (unlikely(!READ_ONCE(kyozon.armed))) {
		if (tick->source->leave)
			tick->source->leave();
		tick->end_tsc = rdtsc();
		account(tick, now);
		return;
	}
	stop = rdtsc() - now;
	passed = tick->source->next(stop);
	if (unlikely(passed | trip->ticks_inside))
		passed = missed_of(tick, trip, passed);
	if ((s64)(tick->end_tsc + tick->early_tsc - trip->guard_tsc) >= 0)
		tick->swallow++;
	kyozon_plan(passed);
	account(tick, now);
}

static int kyozon_nmi(unsigned int type, struct pt_regs *regs)
{
	struct kyozon_tick *tick = &kyozon.tick;
	struct kyozon_trip *trip = &kyozon_world.trip;
	int claimed = 0;
	u64 now;

	if (raw_smp_processor_id() != kyozon.cpu)
		return kyozon_look_here() | kyozon_park_here();
	now = rdtsc();
	/* In this order, see abandon(). */
	smp_store_mb(kyozon.in_trip, true);
	if (likely(READ_ONCE(kyozon.armed))) {
		claimed = 1;
		/*
		 * Linux's TSC rate may be off by more than the slack. A clock
		 * that needs an acknowledgement gets it here.
		 */
		if (unlikely((s64)(now + tick->early_tsc - tick->due_tsc) < 0))
			claimed = tick->source->claim();
		if (likely(claimed > 0))
			run(tick, trip, now, regs);
	}
	WRITE_ONCE(kyozon.in_trip, false);
	if (claimed)
		return NMI_HANDLED;
	if (tick->overdue) {
		tick->overdue--;
		return NMI_HANDLED;
	}
	if (tick->swallow) {
		tick->swallow--;
		return NMI_HANDLED;
	}
	if (tick->wrap_tsc &&
	    (s64)(now + tick->early_tsc - tick->wrap_tsc) >= 0)
		return NMI_HANDLED;
	return NMI_DONE;
}

/* No more trips. Any context; on another CPU a trip may still be running. */
void kyozon_silence(void)
{
	WRITE_ONCE(kyozon.armed, false);
	kyozon.tick.swallow = 2;
	if (kyozon.tick.source)
		kyozon.tick.source->stop();
}

static int refuse(struct kyozon_load *load)
{
	if (load->key.bytes)
		return kyozon_err(load, -EINVAL,
				  "a key needs isolation: use --isolation vmm");
	return 0;
}

/* The module itself drives every source. */
static int refuse_source(struct kyozon_load *load,
			 const struct kyozon_tick_source *source)
{
	return 0;
}

static u64 pages(const struct kyozon_images *images,
		 const struct kyozon_range *ram, u32 ram_count)
{
	return 0;
}

static int take(struct kyozon_load *load, const struct kyozon_images *images)
{
	int error = register_nmi_handler(NMI_LOCAL, kyozon_nmi, NMI_FLAG_FIRST,
					 "kyozon");

	return error ? kyozon_err(load, error, "Linux refused the NMI handler") : 0;
}

static void give(void)
{
	kyozon_silence();
	/* NMIs that the timer sent before arrive here. */
	usleep_range(1000, 2000);
	kyozon_look_end();
	unregister_nmi_handler(NMI_LOCAL, "kyozon");
}

static void start_here(void *unused)
{
	kyozon.tick.swallow = 1;
	kyozon.tick.source->start();
	kyozon_plan(0);
	WRITE_ONCE(kyozon.armed, true);
}

static void stop_here(void *unused)
{
	kyozon_silence();
}

static int start(void)
{
	if (kyozon.tick.source->open)
		kyozon.tick.source->open();
	return kyozon_tick_start_on(start_here);
}

static int stop(const struct kyozon_image *key)
{
	kyozon_tick_stop_on(stop_here);
	return 0;
}

#define LAST_TRIP_US	20000

/*
 * Waits for the last trip: Linux stops its CPU by an NMI next. That CPU writes
 * in_trip and then reads armed; this one writes armed and then reads in_trip.
 * All four accesses have one order, so at least one of the two reads the
 * other's write: either no trip begins, or this one waits for it.
 */
static void abandon(bool all)
{
	u64 end = rdtsc() + div_u64(LAST_TRIP_US * kyozon.tsc_khz, 1000);

	if (!READ_ONCE(kyozon.armed))
		return;
	kyozon_silence();
	if (raw_smp_processor_id() == kyozon.cpu)
		return;
	smp_mb();
	while (READ_ONCE(kyozon.in_trip) && (s64)(rdtsc() - end) < 0)
		cpu_relax();
	/* The end of that trip may have armed the timer again. */
	kyozon_silence();
}

static u64 due(void)
{
	return READ_ONCE(kyozon.tick.due_tsc);
}

static const struct kyozon_fault *fault(void)
{
	return &kyozon_world.trip.fault;
}

static void status(struct kyozon_status *status, struct kyozon_tick *tick)
{
}

static bool needs_cpu(unsigned int cpu)
{
	return cpu == kyozon.cpu;
}

const struct kyozon_mode kyozon_mode_none = {
	.refuse = refuse, .refuse_source = refuse_source,
	.pages = pages, .take = take, .start = start,
	.stop = stop, .give = give, .abandon = abandon, .due = due,
	.fault = fault, .status = status, .needs_cpu = needs_cpu,
};
