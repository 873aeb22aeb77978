// SPDX-License-Identifier: GPL-2.0-only
/* Tasks, and the tasks that belong to host threads. */

#include <linux/binfmts.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/ptrace.h>
#include <linux/resume_user_mode.h>
#include <linux/sched.h>
#include <linux/sched/debug.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/task_work.h>
#include <asm/switch_to.h>
#include "kyozon.h"

struct task_struct *kyozon_current = &init_task;

/* Attached threads, and threads that wait to be attached by init. */
struct kyozon_library_thread *kyozon_threads;
static struct kyozon_library_thread *attaching;
static struct task_struct *init;

struct task_struct *__switch_to(struct task_struct *prev, struct task_struct *next)
{
	if (!is_idle_task(next))
		kyozon_wake();
	kyozon_current = next;
	return kyozon_switch(&prev->thread.sp, next->thread.sp, prev);
}

int copy_thread(struct task_struct *p, const struct kernel_clone_args *args)
{
	unsigned long *sp = (unsigned long *)ALIGN_DOWN((unsigned long)task_pt_regs(p), 16);

	memset(task_pt_regs(p), 0, sizeof(struct pt_regs));
	/* As kyozon_switch() leaves a stack. */
	*--sp = (unsigned long)kyozon_new_task;
	sp -= 6;
	memset(sp, 0, 6 * sizeof(*sp));
	p->thread = (struct thread_struct) {
		.sp = (unsigned long)sp,
		.fn = args->fn,
		.arg = args->fn_arg,
	};
	return 0;
}

void exit_thread(struct task_struct *task)
{
	task->thread.host = NULL;
}

/* Whether only the current task wants the CPU. */
static bool alone(void)
{
	return single_task_running() && !need_resched();
}

static void exit_work(void)
{
	unsigned long flags;

	while ((flags = READ_ONCE(current_thread_info()->flags)) &
	       (_TIF_NOTIFY_RESUME | _TIF_NOTIFY_SIGNAL | _TIF_SIGPENDING)) {
		if (flags & _TIF_NOTIFY_SIGNAL) {
			clear_notify_signal();
			task_work_run();
		}
		if (flags & _TIF_NOTIFY_RESUME)
			resume_user_mode_work(NULL);
		/* The host delivers signals; what the kernel sends has interrupted the call, which is all it can do. */
		if (flags & _TIF_SIGPENDING)
			flush_signals(current);
	}
}

static s64 perform(struct kyozon_library_thread *t)
{
	s64 result = kyozon_syscall(t);

	switch (result) {
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		result = -EINTR;
	}
	exit_work();
	return result;
}

static void detach(struct kyozon_library_thread *t)
{
	struct kyozon_library_thread *next = (void *)t->next;
	struct kyozon_library_thread *previous = (void *)t->previous;

	if (next)
		next->previous = t->previous;
	if (previous)
		previous->next = t->next;
	else
		kyozon_threads = next;
	current->thread.host = NULL;
	t->task = 0;
	kyozon_complete(t, 0);
}

/* Runs the current task's request. Returns whether the host thread that runs the CPU leaves now: it has its result. */
static bool run_request(struct kyozon_library_thread *t)
{
	s64 result;

	t->submitted = 0;
	if (unlikely(t->kind == KYOZON_LIBRARY_DETACH)) {
		detach(t);
		do_exit(0);
	}
	result = perform(t);
	if (unlikely(need_resched()) && single_task_running())
		schedule();
	if (likely(kyozon_cpu.runner == t && alone())) {
		/* The host thread itself is here, so that nobody waits. */
		kyozon_stop_keeping(t);
		t->result = result;
		t->done = KYOZON_LIBRARY_DONE;
		return true;
	}
	kyozon_complete(t, result);
	return false;
}

/* Runs requests of the current task for ever; sleeps between them. */
static void __noreturn user_loop(void)
{
	struct kyozon_library_thread *t = current->thread.host;

	for (;;) {
		for (;;) {
			set_current_state(TASK_IDLE);
			if (t->submitted)
				break;
			schedule();
		}
		__set_current_state(TASK_RUNNING);
		if (run_request(t))
			kyozon_leave_cpu();
	}
}

/*
 * The functions below run on the empty stack of the current task, which is in user. If they return, the host thread
 * leaves the CPU.
 */

void kyozon_user_request(void)
{
	if (!run_request(current->thread.host))
		user_loop();
}

void kyozon_user_submit(void)
{
	kyozon_submit(kyozon_cpu.runner);
	user_loop();
}

void kyozon_user_interrupt(void)
{
	kyozon_run_irqs();
	if (!alone())
		user_loop();
}

void kyozon_user_retire(void)
{
	kyozon_run_irqs();
	user_loop();
}

void kyozon_submit(struct kyozon_library_thread *t)
{
	if (!t->submitted)
		return;
	if (t->kind == KYOZON_LIBRARY_ATTACH) {
		t->submitted = 0;
		t->next = (u64)attaching;
		attaching = t;
		if (init)
			wake_up_process(init);
	} else if (t->task) {
		wake_up_process((struct task_struct *)t->task);
	} else {
		t->submitted = 0;
		kyozon_complete(t, -ESRCH);
	}
}

/* A new host thread's task. */
static int user_main(void *arg)
{
	struct kyozon_library_thread *t = arg;

	current->thread.host = t;
	t->task = (u64)current;
	t->stack_top = ALIGN_DOWN((unsigned long)task_pt_regs(current), 16);
	t->previous = 0;
	t->next = (u64)kyozon_threads;
	if (kyozon_threads)
		kyozon_threads->previous = (u64)t;
	kyozon_threads = t;
	kyozon_complete(t, task_pid_vnr(current));
	user_loop();
}

/* Init makes tasks: threads of its own, so that they share files and the working directory. */
static void __noreturn init_loop(void)
{
	struct kernel_clone_args args = {
		.flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
		.fn = user_main,
	};
	struct kyozon_library_thread *t;
	pid_t pid;

	init = current;
	/* kyozon_start() asks for the first one. */
	kyozon_submit(kyozon_cpu.runner);
	for (;;) {
		set_current_state(TASK_IDLE);
		t = attaching;
		if (!t) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		attaching = (void *)t->next;
		args.fn_arg = t;
		pid = kernel_clone(&args);
		if (pid < 0)
			kyozon_complete(t, pid);
		exit_work();
	}
}

void __noreturn kyozon_run_task(struct task_struct *prev);

void __used __noreturn kyozon_run_task(struct task_struct *prev)
{
	schedule_tail(prev);
	current->thread.fn(current->thread.arg);
	/* A function that returns has executed a program: init, and nobody else. */
	if (is_global_init(current))
		init_loop();
	do_exit(0);
}

/* The program /init is this kernel's own: executing it replaces nothing. */
static int load_init(struct linux_binprm *bprm)
{
	int ret;

	if (!is_global_init(current) || strcmp(bprm->filename, "/init"))
		return -ENOEXEC;
	ret = begin_new_exec(bprm);
	if (ret)
		return ret;
	set_binfmt(NULL);
	setup_new_exec(bprm);
	finalize_exec(bprm);
	return 0;
}

static struct linux_binfmt init_format = { .load_binary = load_init };

static int __init make_init(void)
{
	struct file *file;

	register_binfmt(&init_format);
	file = filp_open("/init", O_CREAT | O_WRONLY, 0755);
	if (IS_ERR(file))
		return PTR_ERR(file);
	/* Not later: a file that is open for writing cannot be executed. */
	__fput_sync(file);
	return 0;
}
late_initcall(make_init);

void show_stack(struct task_struct *task, unsigned long *sp, const char *loglvl)
{
}

void show_regs(struct pt_regs *regs)
{
}
