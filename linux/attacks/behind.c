// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hooks functions by the kernel's own tracing, behind code of the kernel: what
 * Linux calls first, and its users' own pointers to it, are the kernel's.
 */
#include <linux/ftrace.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/linkage.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rethook.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/version.h>
#include <asm/ibt.h>

#include "attacks.h"

#define ENDBR_BYTES 4
#define CALL_BYTES 5
#define CALL 0xe8

/* hook-return FUNCTION: a kretprobe without a handler, whose rethook has one. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
static void look_at_return(struct rethook_node *node, void *data,
			   struct pt_regs *regs)
#else
static void look_at_return(struct rethook_node *node, void *data,
			   unsigned long address, struct pt_regs *regs)
#endif
{
	attack_called(&hook_return);
}

static struct kretprobe empty;

static int return_begin(struct attack *attack, char *argument)
{
	int error;

	empty = (struct kretprobe){ .kp.addr = (void *)symbol(argument) };
	error = empty.kp.addr ? register_kretprobe(&empty) : -ENOENT;
	if (error)
		return error;
	WRITE_ONCE(empty.rh->handler, look_at_return);
	attack_mark(attack, argument);
	return 0;
}

static void return_undo(struct attack *attack)
{
	unregister_kretprobe(&empty);
}

struct attack hook_return = {
	.name = "hook-return",
	.begin = return_begin,
	.undo = return_undo,
	.present = attack_stays,
};

/*
 * hook-saved FUNCTION: a user of ftrace, before whose handler Linux's filter of
 * processes stands.
 */
static void notrace look_at_saved(unsigned long ip, unsigned long parent,
				  struct ftrace_ops *ops,
				  struct ftrace_regs *registers)
{
	attack_called(&hook_saved);
}

static struct ftrace_ops behind_filter = { .func = look_at_saved };

static int filter_begin(struct attack *attack, char *argument)
{
	void (*update)(struct ftrace_ops *ops) =
		(void *)symbol("arch_ftrace_update_trampoline");
	struct mutex *mutex = (void *)symbol("ftrace_lock");
	ftrace_func_t by_process = (void *)symbol("ftrace_pid_func");
	unsigned long at = symbol(argument);
	int error;

	if (!update || !mutex || !by_process || !at)
		return -ENOENT;
	error = ftrace_set_filter_ip(&behind_filter, at, 0, 1);
	if (!error)
		error = register_ftrace_function(&behind_filter);
	if (error) {
		ftrace_set_filter(&behind_filter, NULL, 0, 1);
		return error;
	}
	mutex_lock(mutex);
	WRITE_ONCE(behind_filter.func, by_process);
	update(&behind_filter);
	mutex_unlock(mutex);
	attack_mark(attack, argument);
	return 0;
}

static void filter_undo(struct attack *attack)
{
	unregister_ftrace_function(&behind_filter);
	ftrace_set_filter(&behind_filter, NULL, 0, 1);
}

struct attack hook_saved = {
	.name = "hook-saved",
	.begin = filter_begin,
	.undo = filter_undo,
	.present = attack_stays,
};

/*
 * hook-static-call FUNCTION: a user of ftrace calls the trampoline of the static
 * call of a tracepoint, whose only probe is this module's.
 */
static void notrace look_at_call(void *data)
{
	attack_called(&hook_static_call);
}

static struct tracepoint *idle_tracepoint;
static struct ftrace_ops by_trampoline;

static void find_idle_tracepoint(struct tracepoint *tracepoint, void *name)
{
	if (!strcmp(tracepoint->name, name))
		idle_tracepoint = tracepoint;
}

static void remove_probe(void)
{
	tracepoint_probe_unregister(idle_tracepoint, look_at_call, NULL);
	tracepoint_synchronize_unregister();
}

static int trampoline_begin(struct attack *attack, char *argument)
{
	char name[] = "sched_process_hang";
	unsigned long at = symbol(argument);
	int error;

	for_each_kernel_tracepoint(find_idle_tracepoint, name);
	by_trampoline.func = (void *)symbol("__SCT__tp_func_sched_process_hang");
	if (!idle_tracepoint || !by_trampoline.func || !at)
		return -ENOENT;
	error = tracepoint_probe_register(idle_tracepoint, look_at_call, NULL);
	if (error)
		return error;
	error = ftrace_set_filter_ip(&by_trampoline, at, 0, 1);
	if (!error)
		error = register_ftrace_function(&by_trampoline);
	if (error) {
		ftrace_set_filter(&by_trampoline, NULL, 0, 1);
		remove_probe();
		return error;
	}
	attack_mark(attack, argument);
	return 0;
}

static void trampoline_undo(struct attack *attack)
{
	unregister_ftrace_function(&by_trampoline);
	ftrace_set_filter(&by_trampoline, NULL, 0, 1);
	remove_probe();
}

struct attack hook_static_call = {
	.name = "hook-static-call",
	.begin = trampoline_begin,
	.undo = trampoline_undo,
	.present = attack_stays,
};

/*
 * hook-graph FUNCTION: a graph tracer. Linux 6.12 calls its own filter of
 * processes at the entry, before this module's function.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
static int notrace look_at_entry(struct ftrace_graph_ent *entry)
#else
static int notrace look_at_entry(struct ftrace_graph_ent *entry,
				 struct fgraph_ops *ops)
#endif
{
	attack_called(&hook_graph);
	return 0;
}

static struct fgraph_ops graph;

static int graph_filter(char *function)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	ftrace_set_global_filter(function, function ? strlen(function) : 0, 1);
	return 0;
#else
	return ftrace_set_filter(&graph.ops, function, function ? strlen(function) : 0, 1);
#endif
}

static int graph_begin(struct attack *attack, char *argument)
{
	int (*enter)(struct fgraph_ops *ops) = (void *)symbol("register_ftrace_graph");
	int error;

	graph = (struct fgraph_ops){
		.entryfunc = look_at_entry,
		.retfunc = (void *)symbol("ftrace_stub_graph"),
	};
	if (!enter || !graph.retfunc)
		return -ENOENT;
	error = graph_filter(argument);
	if (!error)
		error = enter(&graph);
	if (error) {
		graph_filter(NULL);
		return error;
	}
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
	graph.saved_func = look_at_entry;
	WRITE_ONCE(graph.entryfunc, (void *)symbol("fgraph_pid_func"));
#endif
	attack_mark(attack, argument);
	return 0;
}

static void graph_undo(struct attack *attack)
{
	void (*leave)(struct fgraph_ops *ops) = (void *)symbol("unregister_ftrace_graph");

	leave(&graph);
	graph_filter(NULL);
}

struct attack hook_graph = {
	.name = "hook-graph",
	.begin = graph_begin,
	.undo = graph_undo,
	.present = attack_stays,
};

/*
 * hook-poked FUNCTION: its entry calls what another function's user of ftrace
 * has a direct call to. at_poked() must keep all registers, and returns.
 */
void at_poked(void);
asm(".pushsection .text\n"
    ".type at_poked, @function\n"
    "at_poked:\n"
    ASM_ENDBR
    ASM_RET
    ".size at_poked, . - at_poked\n"
    ".popsection");

static struct ftrace_ops elsewhere;
static void *poked;
static u8 entry_bytes[CALL_BYTES];

static int poke(void *at, const u8 *bytes)
{
	void (*write)(void *at, const void *bytes, size_t count, const void *emulate) =
		(void *)symbol("text_poke_bp");
	struct mutex *mutex = (void *)symbol("text_mutex");

	if (!write || !mutex)
		return -ENOENT;
	mutex_lock(mutex);
	write(at, bytes, CALL_BYTES, NULL);
	mutex_unlock(mutex);
	return 0;
}

static int poked_begin(struct attack *attack, char *argument)
{
	unsigned long other = symbol("meminfo_proc_show"), at = symbol(argument);
	u8 call[CALL_BYTES] = { CALL };
	s32 distance;
	int error;

	if (!other || !at)
		return -ENOENT;
	if (is_endbr(*(u32 *)at))
		at += ENDBR_BYTES;
	distance = (unsigned long)at_poked - (at + CALL_BYTES);
	memcpy(&call[1], &distance, sizeof(distance));
	memcpy(entry_bytes, (void *)at, CALL_BYTES);
	error = ftrace_set_filter_ip(&elsewhere, other, 0, 1);
	if (error)
		return error;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
	error = register_ftrace_direct_multi(&elsewhere, (unsigned long)at_poked);
#else
	error = register_ftrace_direct(&elsewhere, (unsigned long)at_poked);
#endif
	poked = (void *)at;
	if (!error && poke(poked, call))
		error = -ENOENT;
	if (error)
		ftrace_set_filter(&elsewhere, NULL, 0, 1);
	else
		attack_mark(attack, argument);
	return error;
}

static void poked_undo(struct attack *attack)
{
	poke(poked, entry_bytes);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
	unregister_ftrace_direct_multi(&elsewhere, (unsigned long)at_poked);
#else
	unregister_ftrace_direct(&elsewhere, (unsigned long)at_poked, false);
#endif
	ftrace_set_filter(&elsewhere, NULL, 0, 1);
	synchronize_rcu_tasks();
}

static bool poked_present(struct attack *attack)
{
	return memcmp(poked, entry_bytes, CALL_BYTES);
}

struct attack hook_poked = {
	.name = "hook-poked",
	.begin = poked_begin,
	.undo = poked_undo,
	.present = poked_present,
};
