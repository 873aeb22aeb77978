// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sends an NMI to a CPU. Called by every mode.
 */
#include <linux/percpu.h>
#include <linux/smp.h>
#include <asm/apic.h>
#include <asm/smp.h>

#include "kyozon.h"

/*
 * Waits, for a bounded time, until the local APIC has sent the last message.
 * Intel SDM 3A 11.6.1, "delivery status".
 */
static void icr_wait(void)
{
	int turn;

	for (turn = 0; turn < 1000; turn++)
		if (!(native_apic_mem_read(APIC_ICR) & APIC_ICR_BUSY))
			return;
}

/* Sends an NMI to one CPU. Any context: the ICR is restored. */
void kyozon_nmi_send(int cpu)
{
	u32 id = per_cpu(x86_cpu_to_apicid, cpu);
	u32 icr2;

	if (x2apic_mode) {
		native_x2apic_icr_write(APIC_DM_NMI, id);
		return;
	}
	/* Linux may have been interrupted right after a send of its own. */
	icr_wait();
	icr2 = native_apic_mem_read(APIC_ICR2);
	native_apic_mem_write(APIC_ICR2, id << 24);
	native_apic_mem_write(APIC_ICR, APIC_DM_NMI);
	icr_wait();
	native_apic_mem_write(APIC_ICR2, icr2);
}
