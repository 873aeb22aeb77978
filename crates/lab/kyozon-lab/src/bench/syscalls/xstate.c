// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A library for LD_PRELOAD, with which User-Mode Linux 6.1 starts processes on processors with AMX.
 *
 * User-Mode Linux reads and writes its processes' extended registers through a buffer of 2696 bytes, the size with
 * AVX-512. The host's kernel fills such a buffer as far as it goes, but takes only a complete state: with AMX, 11008
 * bytes. This ptrace() completes a state that is too short with zeros. The state's header has a bit for each part that
 * is not in its initial state, and a process that did not ask for AMX (arch_prctl(2), ARCH_REQ_XCOMP_PERM) has none
 * there: so nobody looks at the zeros, and nothing of the process is lost.
 *
 * Only one thread of User-Mode Linux traces processes.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef NT_X86_XSTATE
#define NT_X86_XSTATE 0x202
#endif

#define MOST 65536

/* Bytes of a complete state, as the host's kernel gives it. 0 if that fails. */
static size_t complete_bytes(pid_t pid)
{
	static char state[MOST];
	static size_t bytes;
	struct iovec all = { state, sizeof(state) };

	if (!bytes && syscall(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, &all) == 0)
		bytes = all.iov_len;
	return bytes;
}

long ptrace(enum __ptrace_request request, ...)
{
	static char state[MOST];
	struct iovec all = { state, 0 };
	long word, result;
	va_list list;

	va_start(list, request);
	pid_t pid = va_arg(list, pid_t);
	void *address = va_arg(list, void *);
	void *data = va_arg(list, void *);
	va_end(list);
	switch (request) {
	case PTRACE_PEEKTEXT:
	case PTRACE_PEEKDATA:
	case PTRACE_PEEKUSER:
		/* The system call stores the word; the C library's function returns it. */
		result = syscall(SYS_ptrace, request, pid, address, &word);
		if (result < 0)
			return result;
		errno = 0;
		return word;
	case PTRACE_SETREGSET:
		if ((unsigned long)address != NT_X86_XSTATE)
			break;
		const struct iovec *given = data;

		all.iov_len = complete_bytes(pid);
		if (given->iov_len >= all.iov_len)
			break;
		memcpy(state, given->iov_base, given->iov_len);
		data = &all;
		break;
	default:
		break;
	}
	return syscall(SYS_ptrace, request, pid, address, data);
}
