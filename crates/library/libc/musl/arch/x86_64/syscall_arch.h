/* SPDX-License-Identifier: MIT */
/* Replaces musl's file: a system call is a call of the host. There is no vDSO, whose functions may enter the kernel. */
#include <kyozon/seam.h>

#define __SYSCALL_LL_E(x) (x)
#define __SYSCALL_LL_O(x) (x)

extern hidden struct kyozon_seam __kyozon_seam;

static __inline long __syscall6(long n, long a1, long a2, long a3, long a4, long a5, long a6)
{
	return __kyozon_seam.call(n, a1, a2, a3, a4, a5, a6);
}

static __inline long __syscall5(long n, long a1, long a2, long a3, long a4, long a5)
{
	return __syscall6(n, a1, a2, a3, a4, a5, 0);
}

static __inline long __syscall4(long n, long a1, long a2, long a3, long a4)
{
	return __syscall6(n, a1, a2, a3, a4, 0, 0);
}

static __inline long __syscall3(long n, long a1, long a2, long a3)
{
	return __syscall6(n, a1, a2, a3, 0, 0, 0);
}

static __inline long __syscall2(long n, long a1, long a2)
{
	return __syscall6(n, a1, a2, 0, 0, 0, 0);
}

static __inline long __syscall1(long n, long a1)
{
	return __syscall6(n, a1, 0, 0, 0, 0, 0);
}

static __inline long __syscall0(long n)
{
	return __syscall6(n, 0, 0, 0, 0, 0, 0);
}

#define IPC_64 0
