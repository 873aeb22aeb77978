// SPDX-License-Identifier: GPL-2.0-only
/* What generic code links, and nothing calls: programs are traced by the host. */

#include <linux/ptrace.h>

void user_disable_single_step(struct task_struct *task)
{
}

void ptrace_disable(struct task_struct *task)
{
}

long arch_ptrace(struct task_struct *task, long request, unsigned long addr, unsigned long data)
{
	return -EIO;
}
