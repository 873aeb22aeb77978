/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_PTRACE_H
#define _ASM_KYOZON_PTRACE_H

#include <uapi/asm/ptrace.h>

/* A program's registers stay with the host. */
#define user_mode(regs)			0
#define kernel_mode(regs)		1
#define instruction_pointer(regs)	((regs)->ip)
#define profile_pc(regs)		((regs)->ip)
#define user_stack_pointer(regs)	((regs)->sp)
#define arch_has_single_step()		(0)
#define current_pt_regs()		task_pt_regs(current)
#define GET_IP(regs)			((regs)->ip)
#define GET_USP(regs)			((regs)->sp)
#define GET_FP(regs)			((regs)->bp)
#define SET_IP(regs, v)			((regs)->ip = (v))

static inline unsigned long regs_return_value(struct pt_regs *regs)
{
	return regs->ax;
}

static inline void instruction_pointer_set(struct pt_regs *regs, unsigned long v)
{
	regs->ip = v;
}

#endif
