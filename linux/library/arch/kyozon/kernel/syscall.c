// SPDX-License-Identifier: GPL-2.0-only
/* The table of system calls, with the numbers of x86-64. */

#include <linux/linkage.h>
#include <linux/syscalls.h>
#include <asm/syscalls.h>
#include "kyozon.h"

typedef long (*syscall_fn)(u64, u64, u64, u64, u64, u64);

SYSCALL_DEFINE6(kyozon_mmap, unsigned long, addr, unsigned long, len, unsigned long, prot, unsigned long, flags,
		unsigned long, fd, unsigned long, off)
{
	if (off & ~PAGE_MASK)
		return -EINVAL;
	return ksys_mmap_pgoff(addr, len, prot, flags, fd, off >> PAGE_SHIFT);
}
#define sys_mmap		sys_kyozon_mmap

/* Of the processor, or the host's: processes, their memory images and their signal frames. */
#define sys_arch_prctl		sys_ni_syscall
#define sys_clone		sys_ni_syscall
#define sys_clone3		sys_ni_syscall
#define sys_execve		sys_ni_syscall
#define sys_execveat		sys_ni_syscall
#define sys_exit		sys_ni_syscall
#define sys_exit_group		sys_ni_syscall
#define sys_fork		sys_ni_syscall
#define sys_ioperm		sys_ni_syscall
#define sys_iopl		sys_ni_syscall
#define sys_map_shadow_stack	sys_ni_syscall
#define sys_modify_ldt		sys_ni_syscall
#define sys_rt_sigreturn	sys_ni_syscall
#define sys_uretprobe		sys_ni_syscall
#define sys_vfork		sys_ni_syscall

#define __SYSCALL(nr, call)	[nr] = (syscall_fn)(void *)call,
#define __SYSCALL_NORETURN	__SYSCALL
static const syscall_fn table[NR_syscalls] = {
	[0 ... NR_syscalls - 1] = (syscall_fn)(void *)sys_ni_syscall,
#include <asm/syscall_table_64.h>
};

s64 kyozon_syscall(const struct kyozon_library_thread *t)
{
	if (unlikely(t->number >= NR_syscalls))
		return -ENOSYS;
	return table[t->number](t->arguments[0], t->arguments[1], t->arguments[2], t->arguments[3], t->arguments[4],
				t->arguments[5]);
}
