// SPDX-License-Identifier: GPL-2.0-only
/*
 * What must happen before Linux ends, or before the cokernel's CPU goes
 * offline.
 *
 *  - Reboot and power off: a notifier silences the timer.
 *  - Crash kernel: by default __crash_kexec() runs before panic notifiers, so a
 *    kprobe silences the timer there. panic(), oops and SysRq-c all call it. An
 *    NMI of the timer would reach the crash kernel before it has a handler.
 *  - Panic without a crash kernel: a notifier silences the timer, unless the
 *    operator wants a Linux that waits for ever to be watched.
 *  - The cokernel wants a restart: a panic, if a crash kernel is loaded.
 *  - Suspend and CPU hotplug: refused. Resume would restore neither the timer's
 *    nor the IO-APIC's state, and ticks are bound to one CPU.
 */
#include <linux/cpuhotplug.h>
#include <linux/kexec.h>
#include <linux/kprobes.h>
#include <linux/panic.h>
#include <linux/panic_notifier.h>
#include <linux/reboot.h>
#include <linux/suspend.h>

#include "kyozon.h"

static bool outlives_panic;
static bool panicked;

static void abandon_at_panic(void)
{
	WRITE_ONCE(panicked, true);
	if (!outlives_panic || panic_timeout || kexec_crash_loaded())
		kyozon.as->abandon(false);
}

static int before_crash_kernel(struct kprobe *probe, struct pt_regs *regs)
{
	abandon_at_panic();
	return 0;
}

static struct kprobe crash_probe = {
	.symbol_name = "__crash_kexec",
	.pre_handler = before_crash_kernel,
};

static int before_reboot(struct notifier_block *nb, unsigned long action,
			 void *data)
{
	kyozon.as->abandon(true);
	return NOTIFY_DONE;
}

static int before_panic(struct notifier_block *nb, unsigned long action,
			void *data)
{
	abandon_at_panic();
	return NOTIFY_DONE;
}

static struct notifier_block reboot_notifier = {
	.notifier_call = before_reboot,
	.priority = INT_MAX,
};

/* For a crash kernel that starts after the notifiers, or none. */
static struct notifier_block panic_notifier = {
	.notifier_call = before_panic,
	.priority = INT_MAX,
};

static int before_suspend(struct notifier_block *nb, unsigned long action,
			  void *data)
{
	switch (action) {
	case PM_HIBERNATION_PREPARE:
	case PM_SUSPEND_PREPARE:
	case PM_RESTORE_PREPARE:
		if (READ_ONCE(kyozon.state) == KYOZON_STATE_EMPTY)
			return NOTIFY_DONE;
		pr_warn("suspend refused: unload the cokernel first\n");
		return notifier_from_errno(-EBUSY);
	}
	return NOTIFY_DONE;
}

static struct notifier_block suspend_notifier = {
	.notifier_call = before_suspend,
};

static int before_cpu_down(unsigned int cpu)
{
	if (!kyozon.as->needs_cpu(cpu))
		return 0;
	pr_warn("CPU %u stays online: unload the cokernel first\n", cpu);
	return -EBUSY;
}

void kyozon_start_crash_kernel(struct pt_regs *regs)
{
	/* The CPU would wait for the first panic's for ever. */
	if (READ_ONCE(panicked) || !kexec_crash_loaded())
		return;
	nmi_panic(regs, "kyozon: a finding asks for a restart");
}

static enum cpuhp_state hotplug_state;

int kyozon_leave_take(struct kyozon_load *load)
{
	int error;

	outlives_panic = load->flags & KYOZON_LOAD_OUTLIVES_PANIC;
	crash_probe.flags = 0;
	crash_probe.addr = NULL;
	error = register_kprobe(&crash_probe);
	if (error)
		return kyozon_err(load, error,
				  "the start of a crash kernel cannot be watched: enable kprobes");
	error = cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "kyozon:online",
					  NULL, before_cpu_down);
	if (error < 0) {
		kyozon_err(load, error, "CPU hotplug cannot be watched");
		goto probe;
	}
	hotplug_state = error;
	error = register_pm_notifier(&suspend_notifier);
	if (error) {
		kyozon_err(load, error, "suspend cannot be watched");
		goto hotplug;
	}
	error = register_reboot_notifier(&reboot_notifier);
	if (error) {
		kyozon_err(load, error, "reboot cannot be watched");
		goto suspend;
	}
	atomic_notifier_chain_register(&panic_notifier_list, &panic_notifier);
	return 0;

suspend:
	unregister_pm_notifier(&suspend_notifier);
hotplug:
	cpuhp_remove_state_nocalls(hotplug_state);
probe:
	unregister_kprobe(&crash_probe);
	return error;
}

void kyozon_leave_give(void)
{
	atomic_notifier_chain_unregister(&panic_notifier_list, &panic_notifier);
	unregister_reboot_notifier(&reboot_notifier);
	unregister_pm_notifier(&suspend_notifier);
	cpuhp_remove_state_nocalls(hotplug_state);
	unregister_kprobe(&crash_probe);
}
