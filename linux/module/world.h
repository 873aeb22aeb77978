/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Offsets in struct kyozon_world for the trampoline. kyozon.h asserts each.
 */
#ifndef KYOZON_WORLD_H
#define KYOZON_WORLD_H

#define W_RESULT		64
#define W_IN_TRANSIT		84
#define W_INSIDE		88
#define W_MACHINE_CHECK		92
#define W_NMI_ENTRY		96
#define W_MACHINE_CHECK_ENTRY	104
#define W_FAULT_REASON		112
#define W_USER_FS_BASE		312
#define W_USER_GS_BASE		320
#define W_USER_DS		328
#define W_USER_ES		330
#define W_USER_FS		332
#define W_USER_GS		334
#define W_USER_LDT		338
#define W_USER_SWITCHED		340

#define W_LINUX_GDTR		352
#define W_LINUX_IDTR		368
#define W_GDTR			560
#define W_IDTR			576
#define W_LINUX_RSP		592
#define W_LINUX_CR3		600
#define W_LINUX_CR2		608
#define W_CR3			616
#define W_STACK			624
#define W_ENTRY			632
#define W_LAYER_ENTRY		640
#define W_LINUX_CR3_KEEP	648
#define W_CET			656
#define W_FSGSBASE		664
#define W_LINUX_SS		672
#define W_LINUX_S_CET		680
#define W_GDT			688

/* Our task state segment in our GDT; Linux's has the index that it has in Linux. */
#define W_GDT_TSS		12

#endif
