// SPDX-License-Identifier: GPL-2.0-only
/* The end. The host frees memory and image, and may boot another kernel in the same process. */

#include <linux/pm.h>
#include <linux/reboot.h>
#include "kyozon.h"

#define POWERED_OFF	1
#define PANICKED	2

void (*pm_power_off)(void);

static void __noreturn halt(void)
{
	kyozon_halt(READ_ONCE(panic_cpu.counter) == PANIC_CPU_INVALID ? POWERED_OFF : PANICKED);
}

void machine_halt(void)
{
	halt();
}

void machine_power_off(void)
{
	halt();
}

void machine_restart(char *command)
{
	halt();
}
