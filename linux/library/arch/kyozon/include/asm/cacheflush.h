/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_CACHEFLUSH_H
#define _ASM_KYOZON_CACHEFLUSH_H

/* A mapping of scattered pages is a copy (kernel/vmap.c). */
#define ARCH_IMPLEMENTS_FLUSH_KERNEL_VMAP_RANGE 1
void flush_kernel_vmap_range(void *address, int bytes);
void invalidate_kernel_vmap_range(void *address, int bytes);

#include <asm-generic/cacheflush.h>

#endif
