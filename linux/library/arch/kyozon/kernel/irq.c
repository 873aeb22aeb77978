// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts: bits that any host thread sets. They are handled by the host thread that runs the CPU, when it enables
 * interrupts or leaves.
 */

#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <asm/irq_regs.h>
#include "kyozon.h"

unsigned long kyozon_irqs_enabled;
unsigned long kyozon_irqs_pending;

void kyozon_run_irqs(void)
{
	/* The tick does nothing without registers; nothing reads these. */
	static struct pt_regs regs;
	struct pt_regs *outer;
	unsigned long lines;

	/* The outer call handles what comes meanwhile. */
	if (in_hardirq() || !kyozon_irqs_enabled)
		return;
	kyozon_irqs_enabled = 0;
	outer = set_irq_regs(&regs);
	while ((lines = __atomic_exchange_n(&kyozon_irqs_pending, 0, __ATOMIC_ACQUIRE))) {
		irq_enter();
		if (lines & 1)
			kyozon_timer();
		for (lines &= ~1UL; lines; lines &= lines - 1)
			generic_handle_irq(__ffs(lines));
		irq_exit();
	}
	set_irq_regs(outer);
	kyozon_irqs_enabled = 1;
}

void __init init_IRQ(void)
{
	int i;

	for (i = 1; i < NR_IRQS; i++)
		irq_set_chip_and_handler(i, &dummy_irq_chip, handle_simple_irq);
}
