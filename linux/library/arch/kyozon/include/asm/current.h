/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_CURRENT_H
#define _ASM_KYOZON_CURRENT_H

struct task_struct;
extern struct task_struct *kyozon_current;
#define get_current()	(kyozon_current)
#define current		get_current()

#endif
