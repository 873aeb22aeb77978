// SPDX-License-Identifier: GPL-2.0-only
/*
 * The firmware's table of interrupt controllers, and so of CPUs.
 *
 * Reference: ACPI 6.5, 5.2.12.
 */
#include <linux/acpi.h>
#include <linux/cpumask.h>
#include <asm/smp.h>

#include "kyozon.h"

/* Looks for an entry that matches. -ENODEV if there is no table. */
static int find(bool (*matches)(const struct acpi_subtable_header *at,
				void *data), void *data)
{
	struct acpi_table_header *madt;
	struct acpi_subtable_header *at;
	int found = false;
	void *end;

	if (ACPI_FAILURE(acpi_get_table(ACPI_SIG_MADT, 0, &madt)))
		return -ENODEV;
	at = (void *)madt + sizeof(struct acpi_table_madt);
	end = (void *)madt + madt->length;
	while (!found && (void *)(at + 1) <= end && at->length >= sizeof(*at) &&
	       (void *)at + at->length <= end) {
		found = matches(at, data);
		at = (void *)at + at->length;
	}
	acpi_put_table(madt);
	return found;
}

static bool is_first_ioapic(const struct acpi_subtable_header *at, void *data)
{
	const struct acpi_madt_io_apic *entry = (const void *)at;

	if (at->type != ACPI_MADT_TYPE_IO_APIC || entry->global_irq_base)
		return false;
	*(phys_addr_t *)data = entry->address;
	return true;
}

/* Physical address of the IO-APIC at GSI 0, or 0. */
phys_addr_t kyozon_madt_ioapic(void)
{
	phys_addr_t address = 0;

	find(is_first_ioapic, &address);
	return address;
}

/*
 * A slot that is merely online-capable has no CPU yet, and is no entry of this
 * kind. ACPI 6.5, table 5.20.
 */
static bool is_cpu(const struct acpi_subtable_header *at, u32 *id)
{
	const struct acpi_madt_local_apic *old = (const void *)at;
	const struct acpi_madt_local_x2apic *entry = (const void *)at;

	switch (at->type) {
	case ACPI_MADT_TYPE_LOCAL_APIC:
		*id = old->id;
		return old->lapic_flags & ACPI_MADT_ENABLED && *id != 0xff;
	case ACPI_MADT_TYPE_LOCAL_X2APIC:
		*id = entry->local_apic_id;
		return entry->lapic_flags & ACPI_MADT_ENABLED && *id != ~0u;
	}
	return false;
}

static bool is_unused_cpu(const struct acpi_subtable_header *at, void *data)
{
	unsigned int cpu;

	if (!is_cpu(at, data))
		return false;
	for_each_online_cpu(cpu)
		if (cpu_physical_id(cpu) == *(u32 *)data)
			return false;
	return true;
}

/*
 * Looks for a CPU that is not online, and sets its APIC ID. Returns 0 if all
 * are, -ENODEV if there is no table.
 */
int kyozon_madt_unused_cpu(u32 *apic_id)
{
	return find(is_unused_cpu, apic_id);
}
