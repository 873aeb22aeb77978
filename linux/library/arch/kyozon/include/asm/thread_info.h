/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_THREAD_INFO_H
#define _ASM_KYOZON_THREAD_INFO_H

/* Interrupts run on the stack of the task that they meet, and gcc may use SSE. */
#define THREAD_SIZE_ORDER	3
#define THREAD_SIZE		(4096 << THREAD_SIZE_ORDER)

#ifndef __ASSEMBLY__
struct thread_info {
	unsigned long flags;
	unsigned long syscall_work;
	int preempt_count;
};
#define INIT_THREAD_INFO(task)	{ .preempt_count = INIT_PREEMPT_COUNT }
#endif

#define TIF_SYSCALL_TRACE	0
#define TIF_NOTIFY_RESUME	1
#define TIF_SIGPENDING		2
#define TIF_NEED_RESCHED	3
#define TIF_RESTORE_SIGMASK	4
#define TIF_NOTIFY_SIGNAL	5
#define TIF_MEMDIE		6

#define _TIF_NOTIFY_RESUME	(1 << TIF_NOTIFY_RESUME)
#define _TIF_SIGPENDING		(1 << TIF_SIGPENDING)
#define _TIF_NEED_RESCHED	(1 << TIF_NEED_RESCHED)
#define _TIF_NOTIFY_SIGNAL	(1 << TIF_NOTIFY_SIGNAL)

#endif
