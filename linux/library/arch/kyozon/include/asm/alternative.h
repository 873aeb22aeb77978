/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_ALTERNATIVE_H
#define _ASM_KYOZON_ALTERNATIVE_H

#include <asm/asm.h>

/*
 * Kernel code runs under one lock (kernel/cpu.c), on one host thread at a time. Words that other host threads change
 * without the lock are accessed by __atomic builtins instead.
 */
#define LOCK_PREFIX_HERE	""
#define LOCK_PREFIX		""

#endif
