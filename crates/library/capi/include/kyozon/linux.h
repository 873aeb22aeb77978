/* SPDX-License-Identifier: GPL-2.0-only */
/* Linux as a library: a kernel in this process, whose system calls are function calls. */
#ifndef KYOZON_LINUX_H
#define KYOZON_LINUX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel. */
struct kyozon_linux;
/* A thread's task in a kernel. Only its own thread may use it. */
struct kyozon_linux_thread;

/* A disk: /dev/vda is the first. */
struct kyozon_linux_disk {
	/* A file or a block device of the host. */
	const char *path;
	/* Not 0: open for reading only. */
	int read_only;
};

/* What to boot. Zeros are defaults. */
struct kyozon_linux_options {
	/* The kernel's image; required. */
	const char *image;
	/* Bytes of the kernel's memory; 0: 128 MiB. */
	uint64_t memory;
	/* Linux's command line, or NULL. */
	const char *command_line;
	const struct kyozon_linux_disk *disks;
	size_t disk_count;
	/* Takes text of the kernel's log, on any thread; or NULL. It must not call the kernel. */
	void (*log)(void *context, const char *text, size_t bytes);
	void *log_context;
};

/*
 * Boots a kernel and attaches the calling thread. Returns 0, or -1: kyozon_linux_error() has the reason. /dev, /proc
 * and /sys are mounted; everything else is an empty root file system in memory.
 */
int kyozon_linux_boot(const struct kyozon_linux_options *options, struct kyozon_linux **kernel,
		      struct kyozon_linux_thread **thread);

/* Attaches the calling thread to a kernel. Returns 0 or -1. */
int kyozon_linux_attach(struct kyozon_linux *kernel, struct kyozon_linux_thread **thread);

/*
 * Performs a system call with the number, arguments and structures of x86-64 Linux. Returns its result, or a negative
 * error number: -EFAULT for an address that is not mapped, -ENOSYS for calls about processes (fork, execve, exit),
 * -ESHUTDOWN after the kernel halted.
 */
long kyozon_linux_syscall(struct kyozon_linux_thread *thread, long number, const uint64_t arguments[6]);

/* Ends the calling thread's task. */
void kyozon_linux_detach(struct kyozon_linux_thread *thread);

/*
 * Writes everything back, halts the kernel and frees the calling thread's task. Calls of other threads return
 * -ESHUTDOWN; the kernel's memory is freed when they have detached. Returns 0 or -1.
 */
int kyozon_linux_halt(struct kyozon_linux *kernel, struct kyozon_linux_thread *thread);

/* Why the last function of this thread that returned -1 failed. Valid until the next failure. */
const char *kyozon_linux_error(void);

#ifdef __cplusplus
}
#endif

#endif
