// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hooks functions of the kernel by its own tracing: kprobes, kretprobes,
 * tracepoints, breakpoints of the processor, a handler of ftrace that leads a
 * call to this module, and a direct call of it.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/ftrace.h>
#include <linux/hw_breakpoint.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/linkage.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/version.h>
#include <asm/ibt.h>

#include "attacks.h"

/* hook-kprobe FUNCTION[+OFFSET] */
static int look_at_call(struct kprobe *probe, struct pt_regs *regs)
{
	attack_called(&hook_kprobe);
	return 0;
}

static struct kprobe probe;

static int kprobe_begin(struct attack *attack, char *argument)
{
	int error;

	strscpy(attack->about, argument, sizeof(attack->about));
	probe = (struct kprobe){
		.addr = (void *)symbol_with_offset(argument),
		.pre_handler = look_at_call,
	};
	error = probe.addr ? register_kprobe(&probe) : -ENOENT;
	if (!error)
		attack_mark(attack, NULL);
	return error;
}

static void kprobe_undo(struct attack *attack)
{
	unregister_kprobe(&probe);
}

struct attack hook_kprobe = {
	.name = "hook-kprobe",
	.begin = kprobe_begin,
	.undo = kprobe_undo,
	.present = attack_stays,
};

/* hook-breakpoint FUNCTION: a breakpoint of the processor on every CPU. */
static struct perf_event *__percpu *breakpoints;

static void look_at_breakpoint(struct perf_event *event, struct perf_sample_data *data,
			       struct pt_regs *regs)
{
	attack_called(&hook_breakpoint);
	/* The instruction runs before the next one is looked at. */
	regs->flags |= X86_EFLAGS_RF;
}

static int breakpoint_begin(struct attack *attack, char *argument)
{
	struct perf_event_attr settings;

	hw_breakpoint_init(&settings);
	settings.bp_addr = symbol(argument);
	settings.bp_len = sizeof(long);
	settings.bp_type = HW_BREAKPOINT_X;
	if (!settings.bp_addr)
		return -ENOENT;
	breakpoints = register_wide_hw_breakpoint(&settings, look_at_breakpoint, NULL);
	if (IS_ERR((void __force *)breakpoints))
		return PTR_ERR((void __force *)breakpoints);
	attack_mark(attack, argument);
	return 0;
}

static void breakpoint_undo(struct attack *attack)
{
	unregister_wide_hw_breakpoint(breakpoints);
}

struct attack hook_breakpoint = {
	.name = "hook-breakpoint",
	.begin = breakpoint_begin,
	.undo = breakpoint_undo,
	.present = attack_stays,
};

/* hook-kretprobe FUNCTION: what it returns. */
static int look_at_result(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	attack_called(&hook_kretprobe);
	return 0;
}

static struct kretprobe result;

static int kretprobe_begin(struct attack *attack, char *argument)
{
	int error;

	result = (struct kretprobe){
		.kp.addr = (void *)symbol(argument),
		.handler = look_at_result,
	};
	error = result.kp.addr ? register_kretprobe(&result) : -ENOENT;
	if (!error)
		attack_mark(attack, argument);
	return error;
}

static void kretprobe_undo(struct attack *attack)
{
	unregister_kretprobe(&result);
}

struct attack hook_kretprobe = {
	.name = "hook-kretprobe",
	.begin = kretprobe_begin,
	.undo = kretprobe_undo,
	.present = attack_stays,
};

/* hook-tracepoint [NAME]: a probe of sys_enter, or of another tracepoint. */
static struct tracepoint *probed;

static void find_tracepoint(struct tracepoint *tracepoint, void *name)
{
	if (!strcmp(tracepoint->name, name))
		probed = tracepoint;
}

/* The tracepoint's own parameters follow. */
static void look_at_tracepoint(void *data)
{
	attack_called(&hook_tracepoint);
}

static int tracepoint_begin(struct attack *attack, char *argument)
{
	char name[] = "sys_enter";
	int error;

	probed = NULL;
	for_each_kernel_tracepoint(find_tracepoint, *argument ? argument : name);
	error = probed ? tracepoint_probe_register(probed, look_at_tracepoint, NULL) :
			 -ENOENT;
	if (!error)
		attack_mark(attack, probed->name);
	return error;
}

static void tracepoint_undo(struct attack *attack)
{
	tracepoint_probe_unregister(probed, look_at_tracepoint, NULL);
	tracepoint_synchronize_unregister();
}

struct attack hook_tracepoint = {
	.name = "hook-tracepoint",
	.begin = tracepoint_begin,
	.undo = tracepoint_undo,
	.present = attack_stays,
};

/*
 * hook-ftrace FUNCTION [PATTERN...]: its calls lead to instead(), which calls
 * it. Functions with up to six integer arguments can be hooked. Functions whose
 * names match a pattern call the handler, too, which does nothing then.
 */
typedef unsigned long function(unsigned long a, unsigned long b, unsigned long c,
			       unsigned long d, unsigned long e, unsigned long f);
static function *original;
static atomic_t inside;
#define ENDBR_BYTES 4

static notrace noinline unsigned long instead(unsigned long a, unsigned long b,
					      unsigned long c, unsigned long d,
					      unsigned long e, unsigned long f)
{
	unsigned long result;

	atomic_inc(&inside);
	result = original(a, b, c, d, e, f);
	atomic_dec(&inside);
	return result;
}

/* The second time, the call is instead()'s own. */
static void notrace redirect(unsigned long ip, unsigned long parent,
			     struct ftrace_ops *ops, struct ftrace_regs *registers)
{
	struct pt_regs *regs = ftrace_get_regs(registers);

	if (ip - (unsigned long)original > ENDBR_BYTES)
		return;
	attack_called(&hook_ftrace);
	if (regs && !within_module(parent, THIS_MODULE))
		regs->ip = (unsigned long)instead;
}

static struct ftrace_ops redirection = {
	.func = redirect,
	.flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_RECURSION |
		 FTRACE_OPS_FL_IPMODIFY,
};

static int ftrace_begin(struct attack *attack, char *argument)
{
	char *name = strsep(&argument, " "), *pattern;
	int error;

	original = (function *)symbol(name);
	if (!original)
		return -ENOENT;
	error = ftrace_set_filter_ip(&redirection, (unsigned long)original, 0, 1);
	while (!error && (pattern = strsep(&argument, " ")))
		error = ftrace_set_filter(&redirection, pattern, strlen(pattern), 0);
	if (!error)
		error = register_ftrace_function(&redirection);
	if (error)
		ftrace_set_filter(&redirection, NULL, 0, 1);
	else
		attack_mark(attack, name);
	return error;
}

static void ftrace_undo(struct attack *attack)
{
	unregister_ftrace_function(&redirection);
	ftrace_set_filter(&redirection, NULL, 0, 1);
	/* Calls that are under way return by this module. */
	while (atomic_read(&inside))
		msleep(10);
	synchronize_rcu_tasks();
}

struct attack hook_ftrace = {
	.name = "hook-ftrace",
	.begin = ftrace_begin,
	.undo = ftrace_undo,
	.present = attack_stays,
};

/*
 * hook-direct FUNCTION: it calls at_entry() at its beginning, without Linux's
 * code in between. at_entry() must keep all registers, and returns.
 */
void at_entry(void);
asm(".pushsection .text\n"
    ".type at_entry, @function\n"
    "at_entry:\n"
    ASM_ENDBR
    ASM_RET
    ".size at_entry, . - at_entry\n"
    ".popsection");

static struct ftrace_ops direct_user;

static int direct_begin(struct attack *attack, char *argument)
{
	unsigned long at = symbol(argument);
	int error;

	if (!at)
		return -ENOENT;
	error = ftrace_set_filter_ip(&direct_user, at, 0, 1);
	if (error)
		return error;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
	error = register_ftrace_direct_multi(&direct_user, (unsigned long)at_entry);
#else
	error = register_ftrace_direct(&direct_user, (unsigned long)at_entry);
#endif
	if (error)
		ftrace_set_filter(&direct_user, NULL, 0, 1);
	else
		attack_mark(attack, argument);
	return error;
}

static void direct_undo(struct attack *attack)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
	unregister_ftrace_direct_multi(&direct_user, (unsigned long)at_entry);
#else
	unregister_ftrace_direct(&direct_user, (unsigned long)at_entry, false);
#endif
	ftrace_set_filter(&direct_user, NULL, 0, 1);
	synchronize_rcu_tasks();
}

struct attack hook_direct = {
	.name = "hook-direct",
	.begin = direct_begin,
	.undo = direct_undo,
	.present = attack_stays,
};
