/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_UACCESS_H
#define _ASM_KYOZON_UACCESS_H

#include <linux/string.h>
#include <asm/extable.h>

/*
 * A program's memory is the host's memory. The instructions below may fault; the host's handler then asks for the fixup
 * (kernel/fault.c).
 */
unsigned long kyozon_copy_user(void *to, const void *from, unsigned long bytes);
unsigned long kyozon_clear_user(void *to, unsigned long bytes);

#define __kyozon_load(insn, constraint, type, to, from, ret)				\
do {											\
	type __loaded;									\
	asm volatile("1: " insn " %2, %1\n"						\
		     "2:\n"								\
		     ".subsection 1\n"							\
		     "3: movl %3, %0\n"							\
		     "   xorl %k1, %k1\n"						\
		     "   jmp 2b\n"							\
		     ".previous\n"							\
		     _ASM_EXTABLE(1b, 3b)						\
		     : "+r" (ret), "=" constraint (__loaded)				\
		     : "m" (*(const type __force *)(from)), "i" (-EFAULT));		\
	*(type *)(to) = __loaded;							\
} while (0)

#define __kyozon_store(insn, constraint, type, to, from, ret)				\
	asm volatile("1: " insn " %2, %1\n"						\
		     "2:\n"								\
		     ".subsection 1\n"							\
		     "3: movl %3, %0\n"							\
		     "   jmp 2b\n"							\
		     ".previous\n"							\
		     _ASM_EXTABLE(1b, 3b)						\
		     : "+r" (ret), "=m" (*(type __force *)(to))				\
		     : constraint (*(const type *)(from)), "i" (-EFAULT))

static __always_inline int __get_user_fn(size_t size, const void __user *from, void *to)
{
	int ret = 0;

	switch (size) {
	case 1:
		__kyozon_load("movb", "q", u8, to, from, ret);
		break;
	case 2:
		__kyozon_load("movw", "r", u16, to, from, ret);
		break;
	case 4:
		__kyozon_load("movl", "r", u32, to, from, ret);
		break;
	case 8:
		__kyozon_load("movq", "r", u64, to, from, ret);
		break;
	default:
		BUILD_BUG();
	}
	return ret;
}
#define __get_user_fn(size, from, to)	__get_user_fn(size, from, to)

static __always_inline int __put_user_fn(size_t size, void __user *to, void *from)
{
	int ret = 0;

	switch (size) {
	case 1:
		__kyozon_store("movb", "q", u8, to, from, ret);
		break;
	case 2:
		__kyozon_store("movw", "r", u16, to, from, ret);
		break;
	case 4:
		__kyozon_store("movl", "r", u32, to, from, ret);
		break;
	case 8:
		__kyozon_store("movq", "r", u64, to, from, ret);
		break;
	default:
		BUILD_BUG();
	}
	return ret;
}
#define __put_user_fn(size, to, from)	__put_user_fn(size, to, from)

#define __get_kernel_nofault(dst, src, type, label)					\
do {											\
	if (__get_user_fn(sizeof(type), (const void __user *)(src), (dst)))		\
		goto label;								\
} while (0)

#define __put_kernel_nofault(dst, src, type, label)					\
do {											\
	if (__put_user_fn(sizeof(type), (void __user *)(dst), (void *)(src)))		\
		goto label;								\
} while (0)

static __always_inline __must_check unsigned long
raw_copy_from_user(void *to, const void __user *from, unsigned long bytes)
{
	return kyozon_copy_user(to, (const void __force *)from, bytes);
}

static __always_inline __must_check unsigned long
raw_copy_to_user(void __user *to, const void *from, unsigned long bytes)
{
	return kyozon_copy_user((void __force *)to, from, bytes);
}

static inline __must_check unsigned long __clear_user(void __user *to, unsigned long bytes)
{
	return kyozon_clear_user((void __force *)to, bytes);
}
#define __clear_user __clear_user

/* The generic access_ok() lets everything pass without an MMU. Addresses that are not canonical fault otherwise. */
#define __access_ok(ptr, size) \
	((size) <= TASK_SIZE_MAX && (unsigned long)(ptr) <= TASK_SIZE_MAX - (size))

#include <asm-generic/uaccess.h>

#endif
