/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _KYOZON_H
#define _KYOZON_H

#include <linux/sched.h>
#include <linux/types.h>
#include <kyozon/abi.h>

/*
 * The host. Its functions are called with the host's registers and TLS as the calling host thread left them, on
 * whatever stack is current.
 */
extern const struct kyozon_library_host *kyozon_host;

#define HOST_CALL(ret, name, args, ...) \
	(((ret (*)args)kyozon_host->name)(kyozon_host->context, ##__VA_ARGS__))

static inline u64 host_now(void)
{
	return HOST_CALL(u64, now, (u64));
}

static inline u64 host_realtime(void)
{
	return HOST_CALL(u64, realtime, (u64));
}

static inline void host_print(const char *text, u64 bytes)
{
	HOST_CALL(void, print, (u64, const char *, u64), text, bytes);
}

static inline void host_park(u32 *word, u32 value, u64 deadline)
{
	HOST_CALL(void, park, (u64, u32 *, u32, u64), word, value, deadline);
}

/* For a host thread that has left the kernel: it may raise interrupts while it waits. */
static inline void host_wait(u32 *word, u32 value, u64 deadline)
{
	HOST_CALL(void, wait, (u64, u32 *, u32, u64), word, value, deadline);
}

static inline void host_unpark(u32 *word, u32 count)
{
	HOST_CALL(void, unpark, (u64, u32 *, u32), word, count);
}

static inline bool host_barrier(void)
{
	return HOST_CALL(s64, barrier, (u64)) == 0;
}

/* kernel/switch.S */
void *kyozon_switch(unsigned long *save, unsigned long sp, void *value);
void kyozon_enter(unsigned long *save, unsigned long top, void (*fn)(void));
void __noreturn kyozon_leave(unsigned long sp);
void kyozon_new_task(void);

/* kernel/cpu.c: the CPU that host threads share. All of it changes under its lock only. */
struct kyozon_cpu {
	u32 word;			/* the lock, CPU_* bits */
	u32 halted;			/* see struct kyozon_library_kernel */
	struct kyozon_library_thread *bias;	/* owns the lock while it is in user, or NULL */
	struct kyozon_library_thread *last;	/* took the lock last, and how often in a row */
	u32 streak;
	u32 calling_host;		/* in a function of the host that may raise interrupts */
	struct kyozon_library_thread *runner;	/* the host thread that runs kernel code */
	struct kyozon_library_thread *keeper;	/* waits on behalf of the timer, or NULL */
	u64 deadline;			/* of the timer */
	u64 until;			/* the earliest time at which somebody will look at the deadline */
	u64 service_until;		/* the service thread's */
	u32 service_word;		/* the service thread waits on it */
	u32 *wake;			/* a host thread to wake once the lock is free, or NULL */
};
extern struct kyozon_cpu kyozon_cpu;

/* Wakes a host thread whose request is complete. */
static inline void kyozon_wake(void)
{
	u32 *wake = kyozon_cpu.wake;

	if (likely(!wake))
		return;
	kyozon_cpu.wake = NULL;
	host_unpark(wake, 1);
}

static inline void kyozon_stop_keeping(const struct kyozon_library_thread *t)
{
	if (unlikely(kyozon_cpu.keeper == t)) {
		kyozon_cpu.keeper = NULL;
		kyozon_cpu.until = kyozon_cpu.service_until;
	}
}

s64 kyozon_start(struct kyozon_library_thread *t);
s64 kyozon_call(struct kyozon_library_thread *t);
void kyozon_service(struct kyozon_library_thread *t);
void kyozon_interrupt(u32 line);
void kyozon_complete(struct kyozon_library_thread *t, s64 result);
void kyozon_check_deadline(void);
void __noreturn kyozon_leave_cpu(void);
void __noreturn kyozon_halt(u32 reason);

/* kernel/task.c: tasks of host threads. */
extern struct kyozon_library_thread *kyozon_threads;
void kyozon_submit(struct kyozon_library_thread *t);
void kyozon_user_request(void);
void kyozon_user_submit(void);
void kyozon_user_interrupt(void);
void kyozon_user_retire(void);

/* kernel/syscall.c */
s64 kyozon_syscall(const struct kyozon_library_thread *t);

/* kernel/time.c */
void kyozon_timer(void);

/* kernel/fault.c */
u64 kyozon_fixup(u64 ip);

/* kernel/vmap.c: called for the functions with these names, without __wrap_. */
struct page;
void *__wrap_vm_map_ram(struct page **pages, unsigned int count, int node);
void __wrap_vm_unmap_ram(const void *address, unsigned int count);
void *__wrap_vmap(struct page **pages, unsigned int count, unsigned long flags, pgprot_t prot);
void __wrap_vunmap(const void *address);

#endif
