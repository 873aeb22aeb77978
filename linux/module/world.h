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
#define W_GDTR			384
#define W_IDTR			400
#define W_LINUX_RSP		416
#define W_LINUX_CR3		424
#define W_LINUX_CR2		432
#define W_CR3			440
#define W_STACK			448
#define W_ENTRY			456
#define W_LAYER_ENTRY		464
#define W_LINUX_CR3_KEEP	472
#define W_CET			480
#define W_FSGSBASE		488
#define W_LINUX_SS		496
#define W_LINUX_S_CET		504
#define W_GDT			512

/* Our task state segment in our GDT; Linux's has the index that it has in Linux. */
#define W_GDT_TSS		12

#endif
