/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kyozon.ko: lets a cokernel run beside this Linux, ticked by NMIs.
 *
 * The module takes memory, maps the images, owns the timer and switches worlds.
 * It does not know what a trip does in the cokernel's world: the layer runs
 * there, an image of its own that is mapped in that world only.
 *
 * One cokernel, one CPU: all state hangs off `kyozon` and `kyozon_world`, and
 * kyozon_lock orders everything that runs in process context, except mappings of
 * the event ring. NMI context reads only what was complete before `armed` was
 * set.
 */
#ifndef KYOZON_H
#define KYOZON_H

#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/smp.h>
#include <linux/timer.h>
#include <linux/types.h>
#include <asm/processor.h>
#include <asm/segment.h>

#include <kyozon/abi.h>

#include "world.h"

#undef pr_fmt
#define pr_fmt(fmt) "kyozon: " fmt

struct kyozon_table_pointer {
	u16 limit;
	u64 base;
	u8 pad[6];
} __packed;

/* The trampoline's data, mapped at the same address in both worlds. */
struct kyozon_world {
	struct kyozon_trip trip;
	struct kyozon_table_pointer gdtr;
	struct kyozon_table_pointer idtr;
	u64 linux_rsp;
	u64 linux_cr3;
	u64 linux_cr2;
	u64 cr3;
	u64 stack;
	u64 entry;
	u64 layer_entry;
	u64 linux_cr3_keep;	/* bit 63 if Linux's TLB entries survive */
	u64 cet;		/* whether CR4.CET is on */
	u64 fsgsbase;
	u64 linux_ss;
	u64 linux_s_cet;
	u64 gdt[16];
	struct x86_hw_tss tss __aligned(64);
	u64 idt[2 * 256] __aligned(PAGE_SIZE);
	u8 trip_stack[2 * PAGE_SIZE] __aligned(PAGE_SIZE);
	u8 nmi_stack[2 * PAGE_SIZE];
	u8 fault_stack[2 * PAGE_SIZE];
	u8 machine_check_stack[PAGE_SIZE];
} __aligned(PAGE_SIZE);

#define KYOZON_WORLD_ASSERT(name, field) \
	static_assert(offsetof(struct kyozon_world, field) == W_##name)
KYOZON_WORLD_ASSERT(RESULT, trip.result);
KYOZON_WORLD_ASSERT(IN_TRANSIT, trip.in_transit);
KYOZON_WORLD_ASSERT(INSIDE, trip.inside);
KYOZON_WORLD_ASSERT(MACHINE_CHECK, trip.machine_check);
KYOZON_WORLD_ASSERT(NMI_ENTRY, trip.nmi_entry);
KYOZON_WORLD_ASSERT(MACHINE_CHECK_ENTRY, trip.machine_check_entry);
KYOZON_WORLD_ASSERT(FAULT_REASON, trip.fault.reason);
KYOZON_WORLD_ASSERT(USER_FS_BASE, trip.user.fs_base);
KYOZON_WORLD_ASSERT(USER_GS_BASE, trip.user.gs_base);
KYOZON_WORLD_ASSERT(USER_DS, trip.user.ds);
KYOZON_WORLD_ASSERT(USER_ES, trip.user.es);
KYOZON_WORLD_ASSERT(USER_FS, trip.user.fs);
KYOZON_WORLD_ASSERT(USER_GS, trip.user.gs);
KYOZON_WORLD_ASSERT(USER_LDT, trip.user.ldt);
KYOZON_WORLD_ASSERT(USER_SWITCHED, trip.user.switched);
KYOZON_WORLD_ASSERT(LINUX_GDTR, trip.linux_gdtr);
KYOZON_WORLD_ASSERT(LINUX_IDTR, trip.linux_idtr);
KYOZON_WORLD_ASSERT(GDTR, gdtr);
KYOZON_WORLD_ASSERT(IDTR, idtr);
KYOZON_WORLD_ASSERT(LINUX_RSP, linux_rsp);
KYOZON_WORLD_ASSERT(LINUX_CR3, linux_cr3);
KYOZON_WORLD_ASSERT(LINUX_CR2, linux_cr2);
KYOZON_WORLD_ASSERT(CR3, cr3);
KYOZON_WORLD_ASSERT(STACK, stack);
KYOZON_WORLD_ASSERT(ENTRY, entry);
KYOZON_WORLD_ASSERT(LAYER_ENTRY, layer_entry);
KYOZON_WORLD_ASSERT(LINUX_CR3_KEEP, linux_cr3_keep);
KYOZON_WORLD_ASSERT(CET, cet);
KYOZON_WORLD_ASSERT(FSGSBASE, fsgsbase);
KYOZON_WORLD_ASSERT(LINUX_SS, linux_ss);
KYOZON_WORLD_ASSERT(LINUX_S_CET, linux_s_cet);
KYOZON_WORLD_ASSERT(GDT, gdt);

extern struct kyozon_world kyozon_world;

/* trampoline.S */
void kyozon_switch(void);
extern char kyozon_trampoline[], kyozon_trampoline_end[];
extern char kyozon_nmi_gate[], kyozon_nmi_in_transit[];
extern char kyozon_machine_check_gate[], kyozon_machine_check_in_transit[];
extern char kyozon_fault_gate[], kyozon_guest_exit[];

/* reserve.c: memory taken from Linux, in pieces of falling size */
struct kyozon_piece {
	struct page *page;
	unsigned int order;
};

struct kyozon_reserve {
	struct kyozon_piece pieces[KYOZON_MAX_RANGES];
	unsigned int count;
	u64 pages;
	unsigned int piece;	/* next page to hand out */
	u64 page;
};

int kyozon_reserve_take(struct kyozon_reserve *r, u64 pages);
void kyozon_reserve_give(struct kyozon_reserve *r);
void *kyozon_reserve_page(struct kyozon_reserve *r);
void *kyozon_reserve_run(struct kyozon_reserve *r, unsigned int pages);
int kyozon_reserve_parts(const struct kyozon_reserve *r, bool used,
			 struct kyozon_range *parts, u32 *count);

/* ram.c */
int kyozon_ram(const struct kyozon_reserve *r, struct kyozon_range *ram,
	       u32 *count);

/* load.c: images, compared with those that the module was built with */
struct kyozon_loaded_image {
	u8 *bytes;
	u64 size;
	struct kyozon_image_header header;
};

struct kyozon_images {
	u8 *data;		/* for the cokernel, unchecked */
	u64 data_bytes;
	u64 count;
	struct kyozon_loaded_image image[KYOZON_MAX_IMAGES];
	struct kyozon_loaded_image hypervisor;	/* bytes is NULL if there is none */
};

int kyozon_images_take(struct kyozon_images *images, struct kyozon_load *load);
void kyozon_images_give(struct kyozon_images *images);

/* space.c: page tables in the reserve's memory, AMD APM vol. 2 5.3 */
#define ENTRY_P		BIT_ULL(0)
#define ENTRY_RW	BIT_ULL(1)
#define ENTRY_US	BIT_ULL(2)
#define ENTRY_PCD	(BIT_ULL(3) | BIT_ULL(4))
#define ENTRY_AD	(BIT_ULL(5) | BIT_ULL(6))
#define ENTRY_NX	BIT_ULL(63)
#define ENTRY_ADDRESS	0x000ffffffffff000ull

#define ENTRY_TEXT	(ENTRY_P | ENTRY_AD)
#define ENTRY_RODATA	(ENTRY_P | ENTRY_AD | ENTRY_NX)
#define ENTRY_DATA	(ENTRY_RODATA | ENTRY_RW)

u64 *kyozon_entry(u64 *top, u64 va, unsigned int level);
int kyozon_map(u64 *top, u64 va, phys_addr_t pa, u64 flags);
int kyozon_map_own(u64 *top, const void *from, const void *to, u64 flags);
int kyozon_map_new(u64 *top, u64 va, u64 bytes, const void *from,
		   u64 from_bytes, u64 flags);
int kyozon_map_image(u64 *top, const struct kyozon_loaded_image *image);
int kyozon_map_window(u64 *top, u64 base, const struct kyozon_range *range,
		      u64 flags);
unsigned int kyozon_largest_level(void);

/* world.c */
u64 kyozon_world_pages(const struct kyozon_images *images, u64 memory_bytes,
		       const struct kyozon_range *ram, u32 ram_count);
int kyozon_world_make(struct kyozon_load *load,
		      const struct kyozon_images *images);
void kyozon_world_bind(void *unused);
int kyozon_world_map_guard(phys_addr_t registers);

/* refuse.c: conditions of a load, checked before anything is changed */
int kyozon_refuse(struct kyozon_load *load);
__printf(3, 4) int kyozon_err(struct kyozon_load *load, int error,
			      const char *format, ...);

/* tick.c and its sources */
struct kyozon_tick_source {
	u32 id;
	const char *name;
	/* Finds and claims the hardware; on failure load->message is set. */
	int (*take)(struct kyozon_load *load);
	/* Lets interrupts through, before the first is scheduled. */
	void (*open)(void);
	/* Schedules the first tick, as next() does. On the cokernel's CPU. */
	void (*start)(void);
	/* Arms the guard for a trip that began `late_tsc` after its tick. */
	void (*watch)(u64 late_tsc);
	/*
	 * End of a trip that stopped Linux for `stop_tsc`. Schedules the next
	 * tick: if the stop was longer than tick.short_tsc, at least `stop_tsc`
	 * from now. Sets tick.due_tsc and end_tsc; returns the ticks missed.
	 */
	u32 (*next)(u64 stop_tsc);
	/*
	 * Asks the timer itself, which is slow. Returns 1 if the tick is due, -1
	 * if the NMI is the timer's but no tick is due, 0 if it is not its NMI.
	 */
	int (*claim)(void);
	/* End of the last trip. */
	void (*leave)(void);
	/* Silent from here on. Any context, also NMI and crash. */
	void (*stop)(void);
	/* Restores the hardware. */
	void (*give)(void);
	/* For a hypervisor that drives it; NULL if none can. */
	void (*describe)(struct kyozon_host_timer *timer);
};

#define KYOZON_HISTOGRAM 64	/* stops of 2^n to 2^(n+1) TSC ticks */

struct kyozon_tick {
	const struct kyozon_tick_source *source;
	u64 budget_tsc;
	u64 short_tsc;		/* after a longer stop Linux gets a rest */
	u64 watch_tsc;		/* from a trip's begin to the guard's first look */
	u64 late_tsc;		/* a trip that begins later needs the guard anew */
	/*
	 * An NMI that comes at most this long before the tick is due is the
	 * tick's: the slack of the clocks, or half a period of a source that
	 * interrupts at a rate of its own.
	 */
	u64 early_tsc;
	u64 due_tsc;		/* the next tick */
	u64 end_tsc;		/* when the last trip armed the timer */
	u64 wrap_tsc;		/* when a 32-bit timer interrupts once more, or 0 */
	u32 swallow;		/* NMIs of tick or guard that may still arrive */
	u32 overdue;		/* the same, from the trip before */
	u64 ticks;
	u64 missed;
	u64 overruns;
	u64 longest_tsc;
	u64 foreign;
	u64 revived;
	struct timer_list revive;
	u64 histogram[KYOZON_HISTOGRAM];
};

int kyozon_tick_take(struct kyozon_load *load);
int kyozon_tick_start_on(smp_call_func_t start);
void kyozon_tick_stop_on(smp_call_func_t stop);
void kyozon_tick_give(void);
u32 kyozon_tick_destination(void);
extern const struct kyozon_tick_source kyozon_hpet_msi, kyozon_hpet_ioapic;
extern const struct kyozon_tick_source kyozon_rtc;

/* ioapic.c: one pin, delivering NMIs */
int kyozon_ioapic_take(struct kyozon_load *load, u32 candidates);
void kyozon_ioapic_open(void);
void kyozon_ioapic_give(void);
phys_addr_t kyozon_ioapic_physical(void);

/* madt.c: the firmware's table of interrupt controllers */
phys_addr_t kyozon_madt_ioapic(void);
int kyozon_madt_unused_cpu(u32 *apic_id);

/* nmi.c */
void kyozon_nmi_send(int cpu);

/* park.c: parks the other CPUs while the layer repairs */
void kyozon_park(void);
int kyozon_park_here(void);

/* look.c: other CPUs show their registers, in turn */
void kyozon_look_next(void);
int kyozon_look_here(void);
void kyozon_look_end(void);

/* leave.c: reboot, crash kernel, suspend, CPU hotplug */
int kyozon_leave_take(struct kyozon_load *load);
void kyozon_leave_give(void);
/* The cokernel wants another Linux. NMI context. Returns if none waits. */
void kyozon_start_crash_kernel(struct pt_regs *regs);

/* key.c: what mode vmm's calls must present */
#define KYOZON_KEY_WORDS 2
int kyozon_key_read(const struct kyozon_image *from, u64 key[KYOZON_KEY_WORDS]);
int kyozon_key_take(struct kyozon_load *load, u64 key[KYOZON_KEY_WORDS]);

/* check.c: compares Linux's state around a trip */
void kyozon_switch_checked(void);
void kyozon_check_report(void);
extern bool kyozon_check;

/*
 * What stands between Linux and the cokernel: nothing (none.c) or nested paging
 * (vmm.c). The rest of the module does not depend on the mode.
 */
struct kyozon_mode {
	/* Beyond kyozon_refuse(): on failure load->message is set. */
	int (*refuse)(struct kyozon_load *load);
	/* The same, if the mode cannot use this tick source. */
	int (*refuse_source)(struct kyozon_load *load,
			     const struct kyozon_tick_source *source);
	/* Upper bound of the reserve's pages beyond the cokernel's world. */
	u64 (*pages)(const struct kyozon_images *images,
		     const struct kyozon_range *ram, u32 ram_count);
	/* World and tick source exist. On failure nothing is changed. */
	int (*take)(struct kyozon_load *load, const struct kyozon_images *images);
	/*
	 * Ticks from here on; after stop() no tick and no trip. stop() fails,
	 * and changes nothing, if the load had a key and @key is not it. A load
	 * that fails passes NULL.
	 */
	int (*start)(void);
	int (*stop)(const struct kyozon_image *key);
	/* After stop(): undoes take(). */
	void (*give)(void);
	/*
	 * Linux is about to end: no tick and no trip after this. Any context;
	 * with `all`, process context.
	 */
	void (*abandon)(bool all);
	/* When the next tick is due, TSC. */
	u64 (*due)(void);
	/* Called when no tick has come for long; may be NULL. */
	void (*miss)(void);
	/* Why the cokernel was stopped. */
	const struct kyozon_fault *(*fault)(void);
	/* Fills in what only this mode knows. */
	void (*status)(struct kyozon_status *status, struct kyozon_tick *tick);
	/* Whether this CPU has to stay online. */
	bool (*needs_cpu)(unsigned int cpu);
};

/* iommu.c: finds the IOMMUs that the hypervisor is to drive. */
u32 kyozon_iommu_find(struct kyozon_host_iommu *iommu);
unsigned int kyozon_iommu_pages(const struct kyozon_host_iommu *iommu);
int kyozon_iommu_take(struct kyozon_host_iommu *iommu);

extern const struct kyozon_mode kyozon_mode_none, kyozon_mode_vmm;
const struct kyozon_mode *kyozon_mode(u32 mode);

/* main.c */
struct kyozon {
	const struct kyozon_mode *as;
	bool armed;		/* NMI context may enter the cokernel's world */
	bool in_trip;		/* mode none: a trip may be running */
	u32 state;
	u32 cpu;
	u32 mode;
	u32 tick_hz;
	u32 budget_us;
	u32 levels;
	u64 tsc_khz;
	u64 differences;
	struct kyozon_tick tick;
	struct kyozon_reserve reserve;
	struct kyozon_layer_entry *entry;
	struct page **events;
	u32 event_pages;
	struct irq_work stopped;
};

extern struct kyozon kyozon;

/*
 * Prepares the next trip as far as it is known before its tick comes; that
 * tick stands for `missed` others too.
 */
static inline void kyozon_plan(u32 missed)
{
	struct kyozon_tick *tick = &kyozon.tick;
	struct kyozon_trip *trip = &kyozon_world.trip;

	trip->event.number += 1 + missed;
	trip->event.missed = missed;
	trip->event.scheduled_tsc = tick->due_tsc;
	trip->guard_tsc = tick->due_tsc + tick->watch_tsc;
	trip->next_tsc = tick->due_tsc + trip->period_tsc;
	trip->result = KYOZON_TRIP_IDLE;
	trip->ticks_inside = 0;
}

void kyozon_silence(void);

#endif
