/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_SYSCALL_H
#define _ASM_KYOZON_SYSCALL_H

#include <uapi/linux/audit.h>
#include <linux/sched.h>

/* Nothing traces system calls: a task's call is known to its host thread only. */
static inline int syscall_get_nr(struct task_struct *task, struct pt_regs *regs)
{
	return -1;
}

static inline void syscall_rollback(struct task_struct *task, struct pt_regs *regs)
{
}

static inline long syscall_get_error(struct task_struct *task, struct pt_regs *regs)
{
	return 0;
}

static inline long syscall_get_return_value(struct task_struct *task, struct pt_regs *regs)
{
	return 0;
}

static inline void syscall_set_return_value(struct task_struct *task, struct pt_regs *regs, int error, long val)
{
}

static inline void syscall_get_arguments(struct task_struct *task, struct pt_regs *regs, unsigned long *args)
{
	memset(args, 0, 6 * sizeof(*args));
}

static inline int syscall_get_arch(struct task_struct *task)
{
	return AUDIT_ARCH_X86_64;
}

#endif
