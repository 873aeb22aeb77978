/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_BARRIER_H
#define _ASM_KYOZON_BARRIER_H

/* A device may be served by another host thread. Loads, and stores, keep their order among themselves. */
#define mb()	asm volatile("lock; addl $0, -4(%%rsp)" ::: "memory", "cc")
#define rmb()	barrier()
#define wmb()	barrier()

#include <asm-generic/barrier.h>

#endif
