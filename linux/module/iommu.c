// SPDX-License-Identifier: GPL-2.0-only
/*
 * IOMMUs that the firmware describes and Linux does not use. In mode vmm the
 * hypervisor drives them, so that no device reaches hidden memory. It drives
 * all of them or none: devices could go around the others through one left out.
 */
#include <linux/acpi.h>
#include <linux/io.h>
#include <linux/pci.h>

#include "kyozon.h"

/* AMD I/O Virtualization Technology (IOMMU) Specification, 48882, 3.4. */
#define CONTROL		0x18
#define CONTROL_ON	BIT_ULL(0)
#define FEATURES	0x30
#define FEATURE_FORGET_ALL	BIT_ULL(6)
#define FEATURE_LEVELS(f)	(4 + ((f) >> 10 & 3))
#define DEVICE_BYTES	32

/* The state of one IOMMU: KYOZON_IOMMU_*. */
static u32 state_of(u64 registers, u16 segment)
{
	void __iomem *at = ioremap(registers, KYOZON_HOST_IOMMU_BYTES);
	u64 control, features;

	if (!at)
		return KYOZON_IOMMU_UNUSED;
	control = readq(at + CONTROL);
	features = readq(at + FEATURES);
	iounmap(at);
	if (control & CONTROL_ON)
		return KYOZON_IOMMU_LINUX;
	if (segment || registers & ~PAGE_MASK ||
	    !(features & FEATURE_FORGET_ALL) ||
	    FEATURE_LEVELS(features) < kyozon.levels)
		return KYOZON_IOMMU_UNUSED;
	return KYOZON_IOMMU_DRIVEN;
}

/* The table may describe an IOMMU several times, in formats of several ages. */
static bool add(struct kyozon_host_iommu *iommu, u64 registers)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(iommu->registers); i++) {
		if (!iommu->registers[i])
			iommu->registers[i] = registers;
		if (iommu->registers[i] == registers)
			return true;
	}
	return false;
}

/* Adds every IOMMU of the table; returns the worst of their states. */
static u32 read_table(struct kyozon_host_iommu *iommu,
		      const struct acpi_table_ivrs *table)
{
	const u8 *at = (const u8 *)(table + 1);
	const u8 *end = (const u8 *)table + table->header.length;
	u32 state = KYOZON_IOMMU_NONE, this;

	while (end - at >= sizeof(struct acpi_ivrs_header)) {
		const struct acpi_ivrs_header *h = (const void *)at;
		const struct acpi_ivrs_hardware_10 *hardware = (const void *)at;

		if (h->length < sizeof(*h) || h->length > end - at)
			return KYOZON_IOMMU_UNUSED;
		at += h->length;
		if (h->type != ACPI_IVRS_TYPE_HARDWARE1 &&
		    h->type != ACPI_IVRS_TYPE_HARDWARE2 &&
		    h->type != ACPI_IVRS_TYPE_HARDWARE3)
			continue;
		if (h->length < sizeof(*hardware))
			return KYOZON_IOMMU_UNUSED;
		this = state_of(hardware->base_address,
			       hardware->pci_segment_group);
		if (this == KYOZON_IOMMU_LINUX)
			return this;
		if (!add(iommu, hardware->base_address))
			this = KYOZON_IOMMU_UNUSED;
		if (state != KYOZON_IOMMU_UNUSED)
			state = this;
	}
	return state;
}

u32 kyozon_iommu_find(struct kyozon_host_iommu *iommu)
{
	struct acpi_table_header *table;
	u32 state;

	memset(iommu, 0, sizeof(*iommu));
	if (ACPI_SUCCESS(acpi_get_table(ACPI_SIG_DMAR, 0, &table))) {
		acpi_put_table(table);
		return KYOZON_IOMMU_LINUX;
	}
	if (ACPI_FAILURE(acpi_get_table(ACPI_SIG_IVRS, 0, &table)))
		return KYOZON_IOMMU_NONE;
	state = read_table(iommu, (const void *)table);
	acpi_put_table(table);
	if (state != KYOZON_IOMMU_DRIVEN)
		memset(iommu, 0, sizeof(*iommu));
	return state;
}

/* 256 devices on each bus; bridges may get more buses later. */
static unsigned int device_pages(void)
{
	struct pci_dev *dev = NULL;
	unsigned int last = 0;

	for_each_pci_dev(dev) {
		last = max_t(unsigned int, last, dev->bus->number);
		if (dev->subordinate)
			last = max_t(unsigned int, last,
				     dev->subordinate->busn_res.end);
	}
	return DIV_ROUND_UP((last + 1) * 256 * DEVICE_BYTES, PAGE_SIZE);
}

/* Pages of the reserve for the tables and buffers. */
unsigned int kyozon_iommu_pages(const struct kyozon_host_iommu *iommu)
{
	if (!iommu->registers[0])
		return 0;
	return device_pages() + 2 * ARRAY_SIZE(iommu->registers);
}

/*
 * An empty device table for the time after the unload. It is never freed; the
 * next load uses it again.
 */
static u64 idle_table(unsigned int pages)
{
	static unsigned int has_pages;
	static void *table;

	if (has_pages < pages) {
		table = alloc_pages_exact((size_t)pages << PAGE_SHIFT,
					  GFP_KERNEL | __GFP_ZERO);
		has_pages = table ? pages : 0;
	}
	return table ? __pa(table) : 0;
}

int kyozon_iommu_take(struct kyozon_host_iommu *iommu)
{
	void *devices, *buffers;
	unsigned int pages;

	if (!iommu->registers[0])
		return 0;
	pages = device_pages();
	devices = kyozon_reserve_run(&kyozon.reserve, pages);
	buffers = kyozon_reserve_run(&kyozon.reserve,
				     2 * ARRAY_SIZE(iommu->registers));
	iommu->idle = idle_table(pages);
	if (!devices || !buffers || !iommu->idle)
		return -ENOMEM;
	iommu->devices = __pa(devices);
	iommu->devices_bytes = (u64)pages << PAGE_SHIFT;
	iommu->buffers = __pa(buffers);
	return 0;
}
