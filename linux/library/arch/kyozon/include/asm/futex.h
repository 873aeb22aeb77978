/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_FUTEX_H
#define _ASM_KYOZON_FUTEX_H

#include <linux/futex.h>
#include <linux/uaccess.h>

/* Host threads change futex words while the kernel does. */
static inline int futex_atomic_cmpxchg_inatomic(u32 *uval, u32 __user *uaddr, u32 oldval, u32 newval)
{
	int ret = 0;

	asm volatile("1: lock; cmpxchgl %3, %2\n"
		     "2:\n"
		     ".subsection 1\n"
		     "3: movl %4, %0\n"
		     "   jmp 2b\n"
		     ".previous\n"
		     _ASM_EXTABLE(1b, 3b)
		     : "+r" (ret), "+a" (oldval), "+m" (*(u32 __force *)uaddr)
		     : "r" (newval), "i" (-EFAULT)
		     : "memory", "cc");
	*uval = oldval;
	return ret;
}

static inline int arch_futex_atomic_op_inuser(int op, u32 oparg, int *oval, u32 __user *uaddr)
{
	u32 old, seen, new;

	if (get_user(old, uaddr))
		return -EFAULT;
	for (;;) {
		switch (op) {
		case FUTEX_OP_SET:
			new = oparg;
			break;
		case FUTEX_OP_ADD:
			new = old + oparg;
			break;
		case FUTEX_OP_OR:
			new = old | oparg;
			break;
		case FUTEX_OP_ANDN:
			new = old & ~oparg;
			break;
		case FUTEX_OP_XOR:
			new = old ^ oparg;
			break;
		default:
			return -ENOSYS;
		}
		if (futex_atomic_cmpxchg_inatomic(&seen, uaddr, old, new))
			return -EFAULT;
		if (seen == old)
			break;
		old = seen;
	}
	*oval = old;
	return 0;
}

#endif
