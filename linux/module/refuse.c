// SPDX-License-Identifier: GPL-2.0-only
/*
 * Conditions of a load, checked before anything is changed. Each error says in
 * one line what is wrong and what to do.
 */
#include <linux/capability.h>
#include <linux/cc_platform.h>
#include <linux/cpumask.h>
#include <linux/irq.h>
#include <linux/irqdomain.h>
#include <linux/security.h>
#include <linux/utsname.h>
#include <linux/version.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>
#include <asm/tsc.h>

#include "kyozon.h"

#define CR4_FRED	BIT_ULL(32)
#define BUDGET_US_MIN	20
#define BUDGET_US_MAX	10000
#define TICK_HZ_MAX	2000
#define MEMORY_MIN	(64ull << 10)
#define MEMORY_MAX	(1ull << 30)

const struct kyozon_mode *kyozon_mode(u32 mode)
{
	switch (mode) {
	case KYOZON_MODE_NONE:
		return &kyozon_mode_none;
	case KYOZON_MODE_VMM:
		return &kyozon_mode_vmm;
	default:
		return NULL;
	}
}

int kyozon_err(struct kyozon_load *load, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(load->message, sizeof(load->message), format, args);
	va_end(args);
	return error;
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define irq_get_nr_irqs()	nr_irqs
#endif

static bool is_tested_kernel(void)
{
	return LINUX_VERSION_MAJOR == 6 &&
	       (LINUX_VERSION_PATCHLEVEL == 1 || LINUX_VERSION_PATCHLEVEL == 12);
}

/* The tests run on QEMU TCG. */
static bool is_tested_hardware(void)
{
	u32 leaf, signature[3];

	if (!boot_cpu_has(X86_FEATURE_HYPERVISOR))
		return false;
	cpuid(0x40000000, &leaf, &signature[0], &signature[1], &signature[2]);
	return !memcmp(signature, "TCGTCGTCGTCG", sizeof(signature));
}

static bool has_interrupt_remapping(void)
{
	unsigned int irq;

	for (irq = 0; irq < irq_get_nr_irqs(); irq++) {
		struct irq_data *data = irq_get_irq_data(irq);

		if (data && data->chip && data->chip->name &&
		    !strncmp(data->chip->name, "IR-", 3))
			return true;
	}
	return false;
}

static int refuse_request(struct kyozon_load *load)
{
	if (load->version != KYOZON_DEVICE_VERSION)
		return kyozon_err(load, -EPROTO,
				  "the command has interface version %u, the module %u: install both from one release",
				  load->version, KYOZON_DEVICE_VERSION);
	if (!kyozon_mode(load->mode))
		return kyozon_err(load, -EOPNOTSUPP,
				  "mode %u is not built into this module: use none or vmm",
				  load->mode);
	if (!load->tick_hz || load->tick_hz > TICK_HZ_MAX)
		return kyozon_err(load, -ERANGE,
				  "%u ticks a second: use 1 to %u",
				  load->tick_hz, TICK_HZ_MAX);
	if (load->budget_us < BUDGET_US_MIN || load->budget_us > BUDGET_US_MAX)
		return kyozon_err(load, -ERANGE,
				  "a budget of %u us: use %u to %u",
				  load->budget_us, BUDGET_US_MIN, BUDGET_US_MAX);
	if (load->memory_bytes < MEMORY_MIN || load->memory_bytes > MEMORY_MAX ||
	    !PAGE_ALIGNED(load->memory_bytes))
		return kyozon_err(load, -ERANGE,
				  "%llu bytes of memory: use 64 KiB to 1 GiB, in whole pages",
				  load->memory_bytes);
	if (load->serial_port > 0xfff8)
		return kyozon_err(load, -ERANGE,
				  "serial port %#x is not an I/O port",
				  load->serial_port);
	if (load->flags & ~(KYOZON_LOAD_UNTESTED_KERNEL |
			    KYOZON_LOAD_UNTESTED_HARDWARE |
			    KYOZON_LOAD_OUTLIVES_PANIC))
		return kyozon_err(load, -EINVAL, "unknown flags %#x", load->flags);
	if (load->cpu >= nr_cpu_ids || !cpu_online(load->cpu))
		return kyozon_err(load, -ENODEV, "CPU %u is not online",
				  load->cpu);
	return 0;
}

static int refuse_machine(struct kyozon_load *load)
{
	if (!is_tested_kernel() && !(load->flags & KYOZON_LOAD_UNTESTED_KERNEL))
		return kyozon_err(load, -EOPNOTSUPP,
				  "kernel %s is untested (6.1 and 6.12 are tested): use --untested-kernel to load anyway",
				  init_utsname()->release);
	if (!is_tested_hardware() &&
	    !(load->flags & KYOZON_LOAD_UNTESTED_HARDWARE))
		return kyozon_err(load, -EOPNOTSUPP,
				  "this machine is untested (QEMU TCG is tested): use --untested-hardware to load anyway");
	if (security_locked_down(LOCKDOWN_DEV_MEM))
		return kyozon_err(load, -EPERM,
				  "the kernel is locked down: boot without Secure Boot or lockdown=");
	if (cc_platform_has(CC_ATTR_MEM_ENCRYPT))
		return kyozon_err(load, -EOPNOTSUPP,
				  "memory encryption is active: boot with mem_encrypt=off");
	if (__read_cr4() & CR4_FRED)
		return kyozon_err(load, -EOPNOTSUPP,
				  "Linux takes interrupts by FRED, without the tables that are switched: boot with fred=off");
	if (has_interrupt_remapping())
		return kyozon_err(load, -EOPNOTSUPP,
				  "interrupt remapping is active and would drop the tick: boot with intremap=off");
	if (!boot_cpu_has(X86_FEATURE_NX))
		return kyozon_err(load, -EOPNOTSUPP,
				  "this CPU has no execute-disable bit (NX)");
	if (!boot_cpu_has(X86_FEATURE_CONSTANT_TSC) && !is_tested_hardware())
		return kyozon_err(load, -EOPNOTSUPP,
				  "the time-stamp counter of this CPU changes its rate");
	return 0;
}

int kyozon_refuse(struct kyozon_load *load)
{
	int error = refuse_request(load);

	if (!error)
		error = refuse_machine(load);
	return error ? error : kyozon_mode(load->mode)->refuse(load);
}
