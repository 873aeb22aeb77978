// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers a handler or a probe with Linux, as a module may, and takes this
 * module out of the list of modules: the registered code has no listed owner.
 */
#include <linux/ftrace.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "attacks.h"

static void notrace handle(unsigned long ip, unsigned long parent,
			   struct ftrace_ops *ops, struct ftrace_regs *regs)
{
}

static struct ftrace_ops handler = { .func = handle };

/* A handler of ftrace at the entry of a function. */
static int handler_begin(struct attack *attack, char *argument)
{
	static char function[] = "__x64_sys_setfsuid";
	int error;

	error = ftrace_set_filter(&handler, function, strlen(function), 1);
	if (!error)
		error = register_ftrace_function(&handler);
	if (error)
		return error;
	error = set_listed(false);
	if (error)
		unregister_ftrace_function(&handler);
	else
		attack_mark(attack, function);
	return error;
}

static void handler_undo(struct attack *attack)
{
	set_listed(true);
	unregister_ftrace_function(&handler);
}

struct attack hide_handler = {
	.name = "hide-handler",
	.begin = handler_begin,
	.undo = handler_undo,
	.present = attack_stays,
};

static struct tracepoint *forks;

static void find_forks(struct tracepoint *tracepoint, void *unused)
{
	if (!strcmp(tracepoint->name, "sched_process_fork"))
		forks = tracepoint;
}

static void watch_forks(void *data, struct task_struct *parent,
			struct task_struct *child)
{
}

/* A probe of a tracepoint: its static call leads to the probe. */
static int probe_begin(struct attack *attack, char *argument)
{
	int error;

	for_each_kernel_tracepoint(find_forks, NULL);
	if (!forks)
		return -ENOENT;
	error = tracepoint_probe_register(forks, watch_forks, NULL);
	if (error)
		return error;
	error = set_listed(false);
	if (error)
		tracepoint_probe_unregister(forks, watch_forks, NULL);
	else
		attack_mark(attack, forks->name);
	return error;
}

static void probe_undo(struct attack *attack)
{
	set_listed(true);
	tracepoint_probe_unregister(forks, watch_forks, NULL);
	tracepoint_synchronize_unregister();
}

struct attack hide_probe = {
	.name = "hide-probe",
	.begin = probe_begin,
	.undo = probe_undo,
	.present = attack_stays,
};
