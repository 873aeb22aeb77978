/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
#ifndef _UAPI_ASM_KYOZON_PTRACE_H
#define _UAPI_ASM_KYOZON_PTRACE_H

struct pt_regs {
	unsigned long ip, sp, bp, ax;
};

#endif
