/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_PROCESSOR_H
#define _ASM_KYOZON_PROCESSOR_H

#include <asm/ptrace.h>

/* Any address of the host may be passed to a system call; one that is not mapped gives EFAULT. */
#define TASK_SIZE		((1UL << 47) - PAGE_SIZE)
#define TASK_SIZE_MAX		TASK_SIZE
#define STACK_TOP		TASK_SIZE
#define STACK_TOP_MAX		TASK_SIZE
#define TASK_UNMAPPED_BASE	0

struct kyozon_library_thread;
struct task_struct;

struct thread_struct {
	unsigned long sp;		/* of a task that is switched out */
	int (*fn)(void *);		/* what a new task does */
	void *arg;
	struct kyozon_library_thread *host;	/* a host thread's task: its record */
};
#define INIT_THREAD { }

void kyozon_poll(void);
#define cpu_relax()		kyozon_poll()

#define task_pt_regs(task)	((struct pt_regs *)(task_stack_page(task) + THREAD_SIZE) - 1)
#define KSTK_EIP(task)		0UL
#define KSTK_ESP(task)		0UL

static inline unsigned long __get_wchan(struct task_struct *p)
{
	return 0;
}

static inline void start_thread(struct pt_regs *regs, unsigned long ip, unsigned long sp)
{
}

static inline void flush_thread(void)
{
}

#endif
