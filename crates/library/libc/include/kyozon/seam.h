/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The seam between a program and its host.
 *
 * A program that is linked with Kyozon's C library enters no kernel. It calls three functions of its host, which may be
 * Linux as a library in the same process, a unikernel's runtime, or a test. The program is a static
 * position-independent ELF file. The host maps it and enters it as Linux would (System V ABI, x86-64 supplement,
 * section 3.4.1), with one more entry in the auxiliary vector: AT_KYOZON, the address of a struct kyozon_seam. The
 * program copies the structure before its first call. Without the entry, or with another version, it prints one line
 * and exits with status 127.
 *
 * The auxiliary vector must have AT_PHDR, AT_PHENT, AT_PHNUM, AT_PAGESZ and AT_RANDOM. The program relocates itself,
 * and creates the main thread's TLS. It never uses AT_SYSINFO_EHDR: reading a clock is a call too.
 *
 * Rules for all three functions:
 *
 * Calls      They have the System V ABI of C, and run on the calling thread. They may change what a function of C may
 *            change, and nothing else.
 * Stack      They use at most KYOZON_SEAM_STACK bytes of the caller's stack. A host that needs more switches stacks.
 * FS base    It belongs to the program, from the entry on. A host whose own code uses thread-local data saves it,
 *            loads its own, and restores the program's before it returns or runs a handler.
 * GS base    It belongs to the host, which may keep its data of the thread there.
 * Errors     A result from -4095 to -1 is a negative error number of Linux.
 * Threads    Every thread may call at any time, also from a signal handler, and also while others are inside.
 *
 * Rules for signals:
 *
 * Return     The host returns from handlers by its own means. It ignores sa_restorer of rt_sigaction, which leads
 *            nowhere. A handler gets Linux's ucontext_t, and may change it.
 * Deferral   A handler may never return: it may jump to another frame, or end its thread. So while a thread is inside
 *            the host, its handlers wait. They see the state in which the call returns; if the handler has SA_RESTART,
 *            the host may repeat the call afterwards.
 * EINTR      A signal whose handler lacks SA_RESTART makes a call that waits, or is about to wait, return -EINTR. This
 *            holds from the call's first instruction on: otherwise pthread_cancel could come between the program's
 *            last check and the wait, and its target would sleep for ever.
 */
#ifndef KYOZON_SEAM_H
#define KYOZON_SEAM_H

/* Grows when the bytes of the structures, or their meaning, change. */
#define KYOZON_SEAM_VERSION 1

/* Type of the entry in the auxiliary vector. Linux has numbers below 64. */
#define AT_KYOZON 0x4b595a4e

/* Bytes of the caller's stack that a function of the host may use. POSIX threads may have stacks of 2048 bytes. */
#define KYOZON_SEAM_STACK 1024

/* A thread to start. The structure is valid until start_thread returns. */
struct kyozon_thread {
	/* What the thread executes. If it returns, the thread ends. */
	int (*function)(void *argument);
	void *argument;
	/* The thread's stack: its end, from which it grows down, and its lowest byte. A guard may lie below. */
	void *stack_end;
	void *stack_start;
	/* The thread's FS base. */
	void *fs_base;
	/* Receives the thread's ID before the thread's first instruction. */
	int *tid;
	/* When the thread ends, the host writes 0 here, and then wakes one waiter of this futex. set_tid_address
	 * chooses another word. */
	int *clear_tid;
};

struct kyozon_seam {
	/* KYOZON_SEAM_VERSION. */
	unsigned long version;

	/*
	 * A system call. Numbers, arguments and structures are those of Linux on x86-64; an unknown number returns
	 * -ENOSYS. Calls that are no plain functions:
	 *
	 * arch_prctl       ARCH_SET_FS sets the calling thread's FS base.
	 * fork, clone      Return twice. The library never asks for a thread or for a child that shares memory, but
	 *                  for a copy of the process. A host without processes returns -ENOSYS.
	 * exit             Ends the calling thread. The host must have left the thread's stack before it clears
	 *                  the word clear_tid: another thread may then reuse the stack.
	 * exit_group       Ends the program.
	 */
	long (*call)(long number, long a1, long a2, long a3, long a4, long a5, long a6);

	/* Starts a thread with the caller's signal mask. Returns its ID, which is positive, or an error. */
	int (*start_thread)(const struct kyozon_thread *thread);

	/* Unmaps the memory that holds the calling thread's stack, then ends the thread as exit does. Its signals are
	 * blocked. */
	void (*unmap_exit)(void *base, unsigned long bytes) __attribute__((__noreturn__));
};

#endif
