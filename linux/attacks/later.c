// SPDX-License-Identifier: GPL-2.0-only
/* Code of this module that Linux runs again and again: timers, work, a thread. */
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "attacks.h"

#define PERIOD	msecs_to_jiffies(100)

/* hook-timer: a timer; with the argument "high", one of high resolution. */
static void tick(struct timer_list *timer)
{
	attack_called(&hook_timer);
	mod_timer(timer, jiffies + PERIOD);
}

static enum hrtimer_restart tick_high(struct hrtimer *timer)
{
	attack_called(&hook_timer);
	hrtimer_forward_now(timer, ms_to_ktime(100));
	return HRTIMER_RESTART;
}

static struct timer_list low;
static struct hrtimer high;
static bool is_high;

static int timer_begin(struct attack *attack, char *argument)
{
	is_high = !strcmp(argument, "high");
	if (is_high) {
		hrtimer_init(&high, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
		high.function = tick_high;
		hrtimer_start(&high, ms_to_ktime(100), HRTIMER_MODE_REL);
	} else {
		timer_setup(&low, tick, 0);
		mod_timer(&low, jiffies + PERIOD);
	}
	attack_mark(attack, is_high ? "high resolution" : "jiffies");
	return 0;
}

static void timer_undo(struct attack *attack)
{
	if (is_high)
		hrtimer_cancel(&high);
	else
		timer_delete_sync(&low);
}

struct attack hook_timer = {
	.name = "hook-timer",
	.begin = timer_begin,
	.undo = timer_undo,
	.present = attack_stays,
};

/* hook-work: delayed work that queues itself. */
static void work(struct work_struct *item);
static DECLARE_DELAYED_WORK(again, work);

static void work(struct work_struct *item)
{
	attack_called(&hook_work);
	queue_delayed_work(system_wq, &again, PERIOD);
}

static int work_begin(struct attack *attack, char *argument)
{
	queue_delayed_work(system_wq, &again, PERIOD);
	attack_mark(attack, "delayed work");
	return 0;
}

static void work_undo(struct attack *attack)
{
	cancel_delayed_work_sync(&again);
}

struct attack hook_work = {
	.name = "hook-work",
	.begin = work_begin,
	.undo = work_undo,
	.present = attack_stays,
};

/* hook-thread [NAME]: a kernel thread, named like one of Linux's. */
static struct task_struct *thread;

static int idle(void *unused)
{
	while (!kthread_should_stop())
		schedule_timeout_interruptible(PERIOD);
	return 0;
}

static int thread_begin(struct attack *attack, char *argument)
{
	thread = kthread_run(idle, NULL, "%s", *argument ? argument : "kworker/u9:7");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	snprintf(attack->about, sizeof(attack->about), "%s (%d)", thread->comm,
		 task_pid_nr(thread));
	attack_mark(attack, NULL);
	return 0;
}

static void thread_undo(struct attack *attack)
{
	kthread_stop(thread);
}

struct attack hook_thread = {
	.name = "hook-thread",
	.begin = thread_begin,
	.undo = thread_undo,
	.present = attack_stays,
};
