// SPDX-License-Identifier: GPL-2.0-only
/*
 * Probes of Linux from inside, independent of the code under test:
 *
 *   /proc/kyozon_probe/state	read: IO-APIC, HPET, IDT, GDT, control registers
 *				and MSRs of every CPU, one per line
 *   /proc/kyozon_probe/spin	write N: spin N ms with interrupts off on this
 *				CPU; read: NMIs of this CPU meanwhile
 *   /proc/kyozon_probe/crash	write 1: panic(), 2: a null pointer in process context
 *   /proc/kyozon_probe/delay	write 1: start a 1 kHz timer on this CPU, 0: stop;
 *				read: worst and average delay, and each delay,
 *				in nanoseconds
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <asm/hardirq.h>
#include <asm/tsc.h>

#include "probe.h"

static struct proc_dir_entry *folder;
static unsigned int spin_nmis;

static ssize_t number(const char __user *from, size_t bytes, unsigned int *value)
{
	return kstrtouint_from_user(from, bytes, 0, value);
}

/* Measured by the time-stamp counter, as jiffies stand still. */
static ssize_t spin_write(struct file *file, const char __user *from,
			  size_t bytes, loff_t *at)
{
	unsigned long flags;
	unsigned int ms, turn;
	u64 end;
	int error = number(from, bytes, &ms);

	if (error)
		return error;
	if (ms > 10000)
		return -ERANGE;
	local_irq_save(flags);
	spin_nmis = this_cpu_read(irq_stat.__nmi_count);
	end = rdtsc_ordered() + (u64)ms * tsc_khz;
	/* Plain loops in between: RDTSC and PAUSE are slow in emulators. */
	while (rdtsc() < end)
		for (turn = 0; turn < 1000; turn++)
			barrier();
	spin_nmis = this_cpu_read(irq_stat.__nmi_count) - spin_nmis;
	local_irq_restore(flags);
	return bytes;
}

static int spin_show(struct seq_file *out, void *unused)
{
	seq_printf(out, "nmis %u\n", spin_nmis);
	return 0;
}

static int spin_open(struct inode *inode, struct file *file)
{
	return single_open(file, spin_show, NULL);
}

static ssize_t delay_write(struct file *file, const char __user *from,
			   size_t bytes, loff_t *at)
{
	unsigned int on;
	int error = number(from, bytes, &on);

	if (error)
		return error;
	probe_delay_stop();
	if (on)
		probe_delay_start();
	return bytes;
}

static ssize_t crash_write(struct file *file, const char __user *from,
			   size_t bytes, loff_t *at)
{
	unsigned int how;
	int error = number(from, bytes, &how);

	if (error)
		return error;
	if (how == 1)
		panic("kyozon_probe: panic requested");
	if (how == 2)
		*(volatile int *)NULL = 0;
	return -EINVAL;
}

static int delay_open(struct inode *inode, struct file *file)
{
	return single_open(file, probe_delay_show, NULL);
}

static const struct proc_ops spin_ops = {
	.proc_open	= spin_open,
	.proc_read	= seq_read,
	.proc_lseek	= seq_lseek,
	.proc_release	= single_release,
	.proc_write	= spin_write,
};

static const struct proc_ops crash_ops = {
	.proc_write	= crash_write,
};

static const struct proc_ops delay_ops = {
	.proc_open	= delay_open,
	.proc_read	= seq_read,
	.proc_lseek	= seq_lseek,
	.proc_release	= single_release,
	.proc_write	= delay_write,
};

static int __init probe_init(void)
{
	folder = proc_mkdir("kyozon_probe", NULL);
	if (!folder ||
	    !proc_create_single("state", 0400, folder, probe_state_show) ||
	    !proc_create("spin", 0600, folder, &spin_ops) ||
	    !proc_create("crash", 0200, folder, &crash_ops) ||
	    !proc_create("delay", 0600, folder, &delay_ops)) {
		proc_remove(folder);
		return -ENOMEM;
	}
	return 0;
}

static void __exit probe_exit(void)
{
	proc_remove(folder);
	probe_delay_stop();
}

module_init(probe_init);
module_exit(probe_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Machine state, spinning and timer delay for tests");
