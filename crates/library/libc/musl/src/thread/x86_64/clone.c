/* SPDX-License-Identifier: MIT */
/* Replaces musl's assembly: the host starts threads. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include "pthread_impl.h"

/* What pthread_create asks for. CLONE_DETACHED has had no meaning since Linux 2.6, so no other caller passes it. */
#define THREAD (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS \
	| CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_DETACHED)

/* What only a thread, or assembly of the caller's own, could use. */
#define UNSUPPORTED (CLONE_THREAD | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID \
	| CLONE_PIDFD)

static int start_thread(int (*function)(void *), void *stack, void *argument, int *tid, pthread_t self, int *clear_tid)
{
	return __kyozon_seam.start_thread(&(struct kyozon_thread){
		.function = function,
		.argument = argument,
		.stack_end = stack,
		.stack_start = (char *)self->stack - self->stack_size,
		.fs_base = TP_ADJ(self),
		.tid = tid,
		.clear_tid = clear_tid,
	});
}

int __clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
	if (flags == THREAD) {
		va_list ap;
		va_start(ap, argument);
		int *tid = va_arg(ap, int *);
		pthread_t self = va_arg(ap, pthread_t);
		int *clear_tid = va_arg(ap, int *);
		va_end(ap);
		return start_thread(function, stack, argument, tid, self, clear_tid);
	}
	/* A process. posix_spawn shares its memory with the child until that executes a program, to save time: a copy
	 * serves as well. A child that shares memory and runs beside its parent cannot be replaced by a copy. */
	if (flags & UNSUPPORTED || (flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM) return -EINVAL;
	int pid = __syscall(SYS_clone, flags & ~CLONE_VM, 0, 0, 0, 0);
	if (!pid) _Exit(function(argument));
	return pid;
}
