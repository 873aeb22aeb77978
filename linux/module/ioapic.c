// SPDX-License-Identifier: GPL-2.0-only
/*
 * One pin of the IO-APIC at GSI 0, delivering NMIs to the cokernel's CPU.
 *
 * Linux uses the index register too, under a lock that is not exported. So the
 * pin is programmed while all CPUs are stopped, and never from NMI context.
 *
 * Reference: Intel 82093AA data sheet, 3.2.4.
 */
#include <linux/bitops.h>
#include <linux/io.h>
#include <linux/stop_machine.h>
#include <asm/smp.h>

#include "kyozon.h"

#define INDEX		0x00
#define WINDOW		0x10
#define VERSION		0x01
#define PIN_LOW(pin)	(0x10 + 2 * (pin))
#define PIN_HIGH(pin)	(0x11 + 2 * (pin))

#define STATUS		(BIT(12) | BIT(14))	/* set by the device */
#define MASKED		BIT(16)
#define DELIVER_NMI	(4 << 8)	/* physical, edge, active high */

static struct {
	u8 __iomem *registers;
	phys_addr_t physical;
	u32 candidates;
	int pin;
	u32 saved_low;
	u32 saved_high;
} ioapic;

static u32 get(u32 index)
{
	writel(index, ioapic.registers + INDEX);
	return readl(ioapic.registers + WINDOW);
}

static void set(u32 index, u32 value)
{
	writel(index, ioapic.registers + INDEX);
	writel(value, ioapic.registers + WINDOW);
}

/* The highest candidate that Linux leaves masked: low pins are ISA's. */
static int choose(void *unused)
{
	u32 index = readl(ioapic.registers + INDEX);
	int pins = (get(VERSION) >> 16 & 0xff) + 1, pin;

	ioapic.pin = -1;
	for (pin = min(pins, 32) - 1; pin >= 0; pin--) {
		if (!(ioapic.candidates & BIT(pin)))
			continue;
		ioapic.saved_low = get(PIN_LOW(pin));
		if (!(ioapic.saved_low & MASKED))
			continue;
		ioapic.saved_high = get(PIN_HIGH(pin));
		ioapic.pin = pin;
		break;
	}
	writel(index, ioapic.registers + INDEX);
	return 0;
}

static int program(void *unused)
{
	u32 index = readl(ioapic.registers + INDEX);

	set(PIN_LOW(ioapic.pin), MASKED);
	set(PIN_HIGH(ioapic.pin), kyozon_tick_destination() << 24);
	set(PIN_LOW(ioapic.pin), DELIVER_NMI);
	writel(index, ioapic.registers + INDEX);
	return 0;
}

static int restore(void *unused)
{
	u32 index = readl(ioapic.registers + INDEX);

	/* If a driver has taken the pin since, it keeps it. */
	if ((get(PIN_LOW(ioapic.pin)) & ~STATUS) == DELIVER_NMI) {
		set(PIN_LOW(ioapic.pin), MASKED);
		set(PIN_HIGH(ioapic.pin), ioapic.saved_high);
		set(PIN_LOW(ioapic.pin), ioapic.saved_low);
	}
	writel(index, ioapic.registers + INDEX);
	return 0;
}

/* Returns a free pin among the bits of `candidates`, or an error. */
int kyozon_ioapic_take(struct kyozon_load *load, u32 candidates)
{
	phys_addr_t physical = kyozon_madt_ioapic();

	if (!physical)
		return kyozon_err(load, -ENODEV, "no IO-APIC");
	if (cpu_physical_id(kyozon.cpu) > 0xfe)
		return kyozon_err(load, -EOPNOTSUPP,
				  "CPU %u has an APIC id above 254, too large for a pin",
				  kyozon.cpu);
	ioapic.physical = physical;
	ioapic.registers = ioremap(physical, PAGE_SIZE);
	if (!ioapic.registers)
		return kyozon_err(load, -ENOMEM, "IO-APIC registers cannot be mapped");
	ioapic.candidates = candidates;
	stop_machine(choose, NULL, NULL);
	if (ioapic.pin < 0) {
		iounmap(ioapic.registers);
		return kyozon_err(load, -EBUSY,
				  "Linux uses every IO-APIC pin that the timer can reach (%#x)",
				  candidates);
	}
	return ioapic.pin;
}

/* Process context. The pin delivers from here on. */
void kyozon_ioapic_open(void)
{
	stop_machine(program, NULL, NULL);
}

void kyozon_ioapic_give(void)
{
	stop_machine(restore, NULL, NULL);
	iounmap(ioapic.registers);
}

phys_addr_t kyozon_ioapic_physical(void)
{
	return ioapic.physical;
}
