/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mode vmm: what vmm.c and vmm_world.c share.
 */
#ifndef KYOZON_VMM_H
#define KYOZON_VMM_H

#include "kyozon.h"

#define KYOZON_HOST_ENTRY_VA	(KYOZON_HYPERVISOR_BASE + 0x01000000ull)

struct kyozon_vmm {
	u64 *top;
	u64 cr3;
	u64 entry;		/* the hypervisor's first instruction */
	struct kyozon_host_entry *shared;	/* first page; hidden by the seal */
	struct kyozon_host_status *status;
	struct kyozon_host_iommu iommu;
	u32 iommu_state;
	/* For calls. If locked, only the operator has it: it is zero here. */
	u64 key[KYOZON_KEY_WORDS];
	bool locked;
	bool launched, watched;
};

extern struct kyozon_vmm kyozon_vmm;

/* vmm_world.c: the hypervisor's world, and the cokernel's as a guest */
u64 kyozon_vmm_pages(const struct kyozon_images *images,
		     const struct kyozon_range *ram, u32 ram_count);
int kyozon_vmm_make(struct kyozon_load *load,
		    const struct kyozon_images *images);

#endif
