/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _ASM_KYOZON_IRQFLAGS_H
#define _ASM_KYOZON_IRQFLAGS_H

#include <linux/compiler.h>

/* "Interrupts enabled", a variable, and the lines that wait for it (kernel/irq.c). */
extern unsigned long kyozon_irqs_enabled;
extern unsigned long kyozon_irqs_pending;
void kyozon_run_irqs(void);

static __always_inline unsigned long arch_local_save_flags(void)
{
	return kyozon_irqs_enabled;
}
#define arch_local_save_flags arch_local_save_flags

static __always_inline void arch_local_irq_restore(unsigned long flags)
{
	barrier();
	kyozon_irqs_enabled = flags;
	if (flags && unlikely(READ_ONCE(kyozon_irqs_pending)))
		kyozon_run_irqs();
	barrier();
}
#define arch_local_irq_restore arch_local_irq_restore

static __always_inline void arch_local_irq_disable(void)
{
	kyozon_irqs_enabled = 0;
	barrier();
}
#define arch_local_irq_disable arch_local_irq_disable

static __always_inline unsigned long arch_local_irq_save(void)
{
	unsigned long flags = kyozon_irqs_enabled;

	arch_local_irq_disable();
	return flags;
}
#define arch_local_irq_save arch_local_irq_save

#include <asm-generic/irqflags.h>

#endif
