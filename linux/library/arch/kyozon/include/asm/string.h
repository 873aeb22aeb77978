/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_STRING_H
#define _ASM_KYOZON_STRING_H

#include <linux/types.h>

#define __HAVE_ARCH_MEMCPY
void *memcpy(void *to, const void *from, size_t bytes);
#define __HAVE_ARCH_MEMMOVE
void *memmove(void *to, const void *from, size_t bytes);
#define __HAVE_ARCH_MEMSET
void *memset(void *to, int c, size_t bytes);
#define __HAVE_ARCH_MEMCMP
int memcmp(const void *a, const void *b, size_t bytes);

#endif
