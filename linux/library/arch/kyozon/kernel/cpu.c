// SPDX-License-Identifier: GPL-2.0-only
/*
 * One CPU, which host threads take turns to run.
 *
 * Kernel code runs on the stacks of its tasks. A host thread that enters takes the lock, leaves its own stack, and
 * continues where the current task stopped; whatever the scheduler picks then runs on this host thread. It returns to
 * its own stack at one of two points: when its own request is complete ("in user", the task's stack is empty), or when
 * nothing is left to run (the idle task, inside arch_cpu_idle()). So a task may be run by one host thread and be
 * completed by another, and switching tasks never switches host threads.
 *
 * Bias. A locked instruction costs more than a short system call. A host thread that took the lock many times in a row
 * keeps it while it is in user, and enters and leaves by plain stores (its word busy). Another host thread takes the
 * bias away, makes every thread pass a memory barrier, and waits until the owner is not busy; then the lock is its own.
 * The barrier on one side makes plain stores and loads suffice on the other.
 *
 * Time. The timer's deadline is only a number. A host thread that waits for its request keeps time meanwhile
 * ("keeper"); if none does, the service thread does.
 */

#include <linux/cpu.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/start_kernel.h>
#include <linux/time64.h>
#include "kyozon.h"

#define CPU_LOCKED	1
#define CPU_WAITERS	2
#define CPU_EVENT	4	/* interrupts or the deadline want a look */

/* Rounds before a host thread that finds the CPU locked sleeps. */
#define SPINS		200
/* Calls in a row after which the lock is biased. */
#define BIAS_AFTER	64
/* Nanoseconds after which a thread that keeps time looks again if another thread has the CPU. */
#define SERVICE_RETRY	(10 * NSEC_PER_MSEC)

struct kyozon_cpu kyozon_cpu = {
	.deadline = KYOZON_LIBRARY_NEVER,
	.until = KYOZON_LIBRARY_NEVER,
	.service_until = KYOZON_LIBRARY_NEVER,
};

#define cpu	kyozon_cpu

static bool cas(u32 *word, u32 old, u32 new)
{
	return __atomic_compare_exchange_n(word, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static u32 load(const u32 *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static bool cas_bias(struct kyozon_library_thread *old, struct kyozon_library_thread *new)
{
	return __atomic_compare_exchange_n(&cpu.bias, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/*
 * Sleeps while a word has a value. If the thread keeps time (timing), it wakes up now and then and looks at the timer's
 * deadline: the thread that has the CPU may be in a long system call, and looks only at its end.
 */
static void park(u32 *word, u32 value, bool timing)
{
	host_park(word, value, timing ? host_now() + SERVICE_RETRY : KYOZON_LIBRARY_NEVER);
	if (timing)
		kyozon_check_deadline();
}

/* Takes the lock from the thread that it is biased to. */
static bool revoke(bool timing)
{
	struct kyozon_library_thread *owner = __atomic_load_n(&cpu.bias, __ATOMIC_SEQ_CST);
	int i;

	if (!owner || !cas_bias(owner, NULL))
		return false;
	host_barrier();
	for (i = 0; load(&owner->busy) && i < SPINS; i++)
		asm volatile("pause");
	while (load(&owner->busy))
		park(&owner->busy, 1, timing);
	return true;
}

static noinline void lock_slowly(bool timing)
{
	u32 waiters = 0;
	u32 word;
	int i;

	for (i = 0; i < SPINS; i++) {
		if (revoke(timing))
			return;
		word = load(&cpu.word);
		if (!(word & CPU_LOCKED) && cas(&cpu.word, word, word | CPU_LOCKED))
			return;
		asm volatile("pause");
	}
	for (;;) {
		word = load(&cpu.word);
		if (!(word & CPU_LOCKED)) {
			/* Others may still wait: a thread that slept keeps the bit. */
			if (cas(&cpu.word, word, word | CPU_LOCKED | waiters))
				return;
		} else if (word & CPU_WAITERS || cas(&cpu.word, word, word | CPU_WAITERS)) {
			waiters = CPU_WAITERS;
			/* The owner looks at the word after it has set the bias. */
			if (revoke(timing))
				return;
			park(&cpu.word, word | CPU_WAITERS, timing);
		}
	}
}

static __always_inline void lock(void)
{
	if (unlikely(!cas(&cpu.word, 0, CPU_LOCKED)))
		lock_slowly(false);
}

/* The thread is outside. A thread that took the bias away may wait for that. */
static __always_inline void leave_biased(struct kyozon_library_thread *t)
{
	barrier();
	WRITE_ONCE(t->busy, 0);
	barrier();
	if (unlikely(READ_ONCE(cpu.bias) != t))
		host_unpark(&t->busy, 1);
}

static __always_inline bool enter_biased(struct kyozon_library_thread *t)
{
	if (READ_ONCE(cpu.bias) != t)
		return false;
	WRITE_ONCE(t->busy, 1);
	barrier();
	if (likely(READ_ONCE(cpu.bias) == t))
		return true;
	leave_biased(t);
	return false;
}

/* Keeps the lock while t is in user, unless somebody wants it. */
static noinline bool set_bias(struct kyozon_library_thread *t)
{
	cpu.streak = 0;
	if (!host_barrier())
		return false;
	__atomic_store_n(&cpu.bias, t, __ATOMIC_SEQ_CST);
	if (load(&cpu.word) == CPU_LOCKED)
		return true;
	/* If another thread was faster, the lock is its own. */
	return !cas_bias(t, NULL);
}

/* Continues what the CPU did last, on its stack, until it comes back. */
static void resume(struct kyozon_library_thread *t, void (*in_user)(void))
{
	cpu.runner = t;
	if (is_idle_task(current))
		kyozon_switch((unsigned long *)&t->host_stack, current->thread.sp, NULL);
	else
		kyozon_enter((unsigned long *)&t->host_stack, current->thread.host->stack_top, in_user);
}

/* Somebody must look at the deadline in time: this thread if it is going to wait, otherwise the service thread. */
static noinline void keep_time(struct kyozon_library_thread *t)
{
	cpu.until = cpu.deadline;
	if (load(&t->done) != KYOZON_LIBRARY_DONE) {
		cpu.keeper = t;
		t->until = cpu.deadline;
	} else {
		__atomic_add_fetch(&cpu.service_word, 1, __ATOMIC_RELEASE);
		host_unpark(&cpu.service_word, 1);
	}
}

/* Gives the lock up if its word has this value. */
static __always_inline bool release(u32 word)
{
	u32 *wake = cpu.wake;

	cpu.wake = NULL;
	if (unlikely(!cas(&cpu.word, word, 0))) {
		cpu.wake = wake;
		return false;
	}
	if (unlikely(word & CPU_WAITERS))
		host_unpark(&cpu.word, 1);
	if (unlikely(wake))
		host_unpark(wake, 1);
	return true;
}

static noinline void unlock_slowly(struct kyozon_library_thread *t)
{
	u32 word;

	for (;;) {
		word = load(&cpu.word);
		if (word & CPU_EVENT) {
			__atomic_and_fetch(&cpu.word, ~CPU_EVENT, __ATOMIC_SEQ_CST);
			if (cpu.halted)
				continue;
			kyozon_check_deadline();
			if (READ_ONCE(kyozon_irqs_pending))
				resume(t, kyozon_user_interrupt);
			if (cpu.deadline < cpu.until)
				keep_time(t);
		} else if (release(word)) {
			return;
		}
	}
}

static __always_inline void unlock(struct kyozon_library_thread *t)
{
	if (unlikely(cpu.deadline < cpu.until) && !cpu.halted)
		keep_time(t);
	if (t->busy) {
		/* It takes the bias away. */
		kyozon_wake();
		if (likely(READ_ONCE(cpu.word) == CPU_LOCKED && t->done == KYOZON_LIBRARY_DONE && t->task &&
			   !cpu.halted) || !cas_bias(t, NULL)) {
			leave_biased(t);
			return;
		}
		/* It was biased to this thread, and is an ordinary lock again. */
		t->busy = 0;
	} else if (unlikely(cpu.streak >= BIAS_AFTER) && cpu.last == t && !cpu.wake &&
		   t->done == KYOZON_LIBRARY_DONE && t->task && set_bias(t)) {
		return;
	}
	if (unlikely(!release(CPU_LOCKED)))
		unlock_slowly(t);
}

void kyozon_check_deadline(void)
{
	if (cpu.deadline != KYOZON_LIBRARY_NEVER && host_now() >= cpu.deadline)
		__atomic_or_fetch(&kyozon_irqs_pending, 1, __ATOMIC_RELEASE);
}

static noinline void wait(struct kyozon_library_thread *t)
{
	u64 until;

	while (load(&t->done) != KYOZON_LIBRARY_DONE) {
		until = READ_ONCE(cpu.keeper) == t ? READ_ONCE(t->until) : KYOZON_LIBRARY_NEVER;
		if (!cas(&t->done, KYOZON_LIBRARY_PENDING, KYOZON_LIBRARY_PARKED) &&
		    load(&t->done) == KYOZON_LIBRARY_DONE)
			break;
		host_wait(&t->done, KYOZON_LIBRARY_PARKED, until);
		if (load(&t->done) == KYOZON_LIBRARY_DONE)
			break;
		if (until == KYOZON_LIBRARY_NEVER || host_now() < until)
			continue;
		__atomic_or_fetch(&cpu.word, CPU_EVENT, __ATOMIC_SEQ_CST);
		lock_slowly(true);
		kyozon_stop_keeping(t);
		unlock(t);
	}
}

/*
 * The request of t is complete. The host thread may free t as soon as it sees that. It is woken when the CPU is
 * unlocked or runs another task: before, its next call would only wait for the lock.
 */
void kyozon_complete(struct kyozon_library_thread *t, s64 result)
{
	kyozon_stop_keeping(t);
	t->result = result;
	if (__atomic_exchange_n(&t->done, KYOZON_LIBRARY_DONE, __ATOMIC_ACQ_REL) == KYOZON_LIBRARY_PARKED) {
		kyozon_wake();
		cpu.wake = &t->done;
	}
}

/* Back to the host thread that runs the CPU. The current task is in user, and its stack is forgotten. */
void __noreturn kyozon_leave_cpu(void)
{
	kyozon_leave(cpu.runner->host_stack);
}

/* Lets everybody finish who takes the lock away. */
static void pass(void)
{
	struct kyozon_library_thread t = { .done = KYOZON_LIBRARY_DONE };

	/* This may be the thread that keeps time: it serves a device while it waits. */
	if (!cas(&cpu.word, 0, CPU_LOCKED))
		lock_slowly(true);
	unlock(&t);
}

s64 kyozon_call(struct kyozon_library_thread *t)
{
	/* A signal handler of a thread that is inside would wait for its own thread. */
	if (unlikely(t->inside))
		return -EDEADLK;
	t->inside = 1;
	t->done = KYOZON_LIBRARY_PENDING;
	if (!enter_biased(t)) {
		lock();
		cpu.streak = cpu.last == t ? cpu.streak + 1 : 0;
		cpu.last = t;
	}
	if (unlikely(cpu.halted)) {
		t->done = KYOZON_LIBRARY_DONE;
		t->result = -ESHUTDOWN;
	} else if (likely((u64)current == t->task)) {
		cpu.runner = t;
		kyozon_enter((unsigned long *)&t->host_stack, t->stack_top, kyozon_user_request);
	} else {
		t->submitted = 1;
		resume(t, kyozon_user_submit);
	}
	unlock(t);
	if (unlikely(load(&t->done) != KYOZON_LIBRARY_DONE))
		wait(t);
	/* The host may free t now: nobody may still look at it. */
	if (unlikely(t->kind == KYOZON_LIBRARY_DETACH))
		pass();
	t->inside = 0;
	return t->result;
}

static void __ref start(void)
{
	start_kernel();
	BUG();
}

s64 kyozon_start(struct kyozon_library_thread *t)
{
	t->done = KYOZON_LIBRARY_PENDING;
	t->kind = KYOZON_LIBRARY_ATTACH;
	t->submitted = 1;
	lock();
	cpu.runner = t;
	kyozon_enter((unsigned long *)&t->host_stack, (unsigned long)init_stack + THREAD_SIZE, start);
	unlock(t);
	wait(t);
	return t->result;
}

void kyozon_service(struct kyozon_library_thread *t)
{
	u32 word;
	u64 now;

	t->done = KYOZON_LIBRARY_DONE;
	while (!load(&cpu.halted)) {
		word = load(&cpu.service_word);
		now = host_now();
		/* A thread in the kernel looks at the deadline when it leaves, or enables interrupts. */
		if (now >= READ_ONCE(cpu.deadline)) {
			__atomic_or_fetch(&kyozon_irqs_pending, 1, __ATOMIC_RELEASE);
			if (__atomic_fetch_or(&cpu.word, CPU_EVENT, __ATOMIC_SEQ_CST) & CPU_LOCKED &&
			    !READ_ONCE(cpu.bias)) {
				host_park(&cpu.service_word, word, now + SERVICE_RETRY);
				continue;
			}
		}
		lock_slowly(true);
		if (cpu.halted) {
			unlock(t);
			return;
		}
		kyozon_check_deadline();
		/* A task whose host thread computes must not keep the tick going. */
		if (READ_ONCE(kyozon_irqs_pending))
			resume(t, kyozon_user_retire);
		cpu.service_until = cpu.deadline;
		cpu.until = cpu.keeper ? min(cpu.keeper->until, cpu.deadline) : cpu.deadline;
		now = cpu.service_until;
		unlock(t);
		host_park(&cpu.service_word, word, now);
	}
}

void kyozon_interrupt(u32 line)
{
	if (line >= KYOZON_LIBRARY_INTERRUPTS)
		return;
	__atomic_or_fetch(&kyozon_irqs_pending, 1UL << line, __ATOMIC_RELEASE);
	/*
	 * A thread in the kernel looks at the word when it leaves. The thread that the lock is biased to may be in
	 * user, but not while it calls the host: that may be this call.
	 */
	if (__atomic_fetch_or(&cpu.word, CPU_EVENT, __ATOMIC_SEQ_CST) & CPU_LOCKED &&
	    (!READ_ONCE(cpu.bias) || READ_ONCE(cpu.calling_host)))
		return;
	pass();
}

void arch_cpu_idle(void)
{
	struct kyozon_library_thread *t = cpu.runner;

	kyozon_check_deadline();
	if (!READ_ONCE(kyozon_irqs_pending)) {
		kyozon_switch(&current->thread.sp, t->host_stack, NULL);
		/* Another host thread, or the same one later. */
		kyozon_submit(cpu.runner);
	}
	raw_local_irq_enable();
	raw_local_irq_disable();
}

static void stop(struct kyozon_library_thread *t)
{
	if (load(&t->done) != KYOZON_LIBRARY_DONE)
		kyozon_complete(t, -ESHUTDOWN);
}

/* Nothing runs any more. Waiting host threads return; the caller of reboot(2) gets 0. */
void __noreturn kyozon_halt(u32 reason)
{
	struct kyozon_library_thread *t;

	__atomic_store_n(&cpu.halted, reason, __ATOMIC_RELEASE);
	for (t = kyozon_threads; t; t = (void *)t->next)
		stop(t);
	stop(cpu.runner);
	cpu.service_word++;
	host_unpark(&cpu.service_word, 1);
	kyozon_leave_cpu();
}
