// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random privileged operations on every CPU at once, repeatable from a seed.
 *
 * Each CPU takes its operations from its own generator, so that its sequence
 * depends on the seed alone; how the CPUs interleave does not repeat. What
 * Linux needs is put back with interrupts off. Linux may die all the same:
 * that harm is its own. Operations that end the machine at once by design
 * (reset and power-off ports) are left out.
 */
#include <linux/completion.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <asm/apicdef.h>
#include <asm/asm.h>
#include <asm/desc.h>
#include <asm/hpet.h>
#include <asm/io_apic.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#include "root.h"

#define STORM_MAX_MS	60000
/* The test cokernel's words (cokernel-test, "KEEP"), without their number. */
#define CANARY		0x5045454b00000000ull

struct storm {
	struct kyozon *k;
	struct rnd_state random;
	unsigned int cpu;
	u64 operations;
	struct task_struct *task;
	struct completion done;
};

static u64 storm_end;
static bool storm_trace;
static atomic_t canaries;
static u8 __iomem *apic, *ioapic, *hpet;

static u32 next(struct storm *s)
{
	return prandom_u32_state(&s->random);
}

static u64 next64(struct storm *s)
{
	return (u64)next(s) << 32 | next(s);
}

/* One of @n. */
static u32 one_of(struct storm *s, u32 n)
{
	return next(s) % n;
}

/* A value that is likely to be looked at: @old with a bit flipped, or noise. */
static u64 value_near(struct storm *s, u64 old)
{
	switch (one_of(s, 4)) {
	case 0:
		return next64(s);
	case 1:
		return one_of(s, 2) ? 0 : ~0ull;
	default:
		return old ^ BIT_ULL(one_of(s, 64));
	}
}

/* With storm_trace, the console has the operation before it begins. */
#define trace(s, format, ...) do {					\
	if (storm_trace)						\
		pr_emerg("storm: cpu %u op %llu " format "\n",		\
			 (s)->cpu, (s)->operations, ##__VA_ARGS__);	\
} while (0)

static void msr(struct storm *s)
{
	static const struct {
		u32 from, count;
	} ranges[] = {
		{ 0x0, 0x1000 }, { 0x10, 1 }, { 0x1b, 1 }, { 0x48, 2 },
		{ 0x79, 1 }, { 0x8b, 1 }, { 0x9e, 1 }, { 0x174, 3 },
		{ 0x1d9, 5 }, { 0x200, 0x20 }, { 0x250, 0x20 }, { 0x277, 1 },
		{ 0x2ff, 1 }, { 0x6e0, 1 }, { 0x800, 0x40 }, { 0xda0, 1 },
		{ 0xc0000080, 5 }, { 0xc0000100, 5 }, { 0xc0010000, 0x70 },
		{ 0xc0010100, 0x40 }, { 0xc0010110, 0x10 },
		{ 0xc0011000, 0x50 }, { 0xc0000000, 0x2000 },
		{ 0x40000000, 0x200 }, { 0, 0xffffffff },
	};
	u32 range = one_of(s, ARRAY_SIZE(ranges));
	u32 number = ranges[range].from + one_of(s, ranges[range].count);
	u64 old, value;
	unsigned long flags;

	local_irq_save(flags);
	if (!rdmsrl_safe(number, &old)) {
		value = value_near(s, old);
		trace(s, "wrmsr %#x %#llx was %#llx", number, value, old);
		if (!wrmsrl_safe(number, value))
			wrmsrl_safe(number, old);
	} else {
		value = next64(s);
		trace(s, "wrmsr %#x %#llx unread", number, value);
		wrmsrl_safe(number, value);
	}
	local_irq_restore(flags);
}

static void vmmcall(struct storm *s)
{
	unsigned long call = one_of(s, 8) ? one_of(s, 32) : next64(s);
	unsigned long b = next64(s), c = next64(s), d = next64(s);
	unsigned long si = one_of(s, 2) ? one_of(s, 64) : next64(s);
	unsigned long di = one_of(s, 2) ? root_victim() : next64(s);

	trace(s, "vmmcall %#lx %#lx %#lx", call, di, si);
	asm volatile("1: vmmcall\n2:\n" _ASM_EXTABLE(1b, 2b)
		     : "+a" (call), "+b" (b), "+c" (c), "+d" (d), "+S" (si),
		       "+D" (di) : : "memory", "r8", "r9", "r10", "r11");
}

#define try_asm(text, ...) \
	asm volatile("1: " text "\n2:\n" _ASM_EXTABLE(1b, 2b) : : __VA_ARGS__ : "memory")

static void virtualization(struct storm *s)
{
	unsigned long at = one_of(s, 2) ? root_victim() : next64(s) & ~0xfffull;
	u32 which = one_of(s, 7);

	trace(s, "svm %u at %#lx", which, at);
	switch (which) {
	case 0:
		try_asm("vmrun", "a" (at));
		break;
	case 1:
		try_asm("vmload", "a" (at));
		break;
	case 2:
		try_asm("vmsave", "a" (at));
		break;
	case 3:
		try_asm("stgi", "a" (0));
		break;
	case 4:
		try_asm("clgi", "a" (0));
		break;
	case 5:
		try_asm("skinit", "a" (0));
		break;
	default:
		try_asm("invlpga %%rax, %%ecx", "a" (at), "c" (next(s)));
	}
}

/*
 * @value without a request for SMIs: QEMU handles one in the guest that runs
 * (docs/emulators.md).
 */
static u32 without_smi(u32 value)
{
	return (value & APIC_MODE_MASK) == APIC_DM_SMI ? value & ~APIC_MODE_MASK : value;
}

/* Writes to @reg, and puts the old value back. */
static void poke(struct storm *s, const char *what, u8 __iomem *base, u32 offset)
{
	unsigned long flags;
	u32 old, value;

	local_irq_save(flags);
	old = readl(base + offset);
	value = without_smi(value_near(s, old));
	trace(s, "%s %#x = %#x was %#x", what, offset, value, old);
	writel(value, base + offset);
	writel(old, base + offset);
	local_irq_restore(flags);
}

static void poke_apic(struct storm *s)
{
	u32 offset = one_of(s, 0x54) * 0x10;

	/* Commands have their own operation; EOI and self-IPI have no state. */
	if (!apic || offset == APIC_ICR || offset == APIC_EOI)
		return;
	poke(s, "apic", apic, offset);
}

/*
 * NMIs, SIPIs and interrupts, to any CPU. No INITs: QEMU resets the CPU although
 * the hypervisor holds them back (docs/emulators.md). tests/attacks/root has
 * them.
 */
static void command(struct storm *s)
{
	static const u32 modes[] = {
		APIC_DM_NMI, APIC_DM_NMI, APIC_DM_NMI, APIC_DM_STARTUP,
		APIC_DM_REMRD, APIC_DM_LOWEST,
	};
	u32 mode = modes[one_of(s, ARRAY_SIZE(modes))];
	u32 to = one_of(s, 4) << 18;
	u32 id = one_of(s, 4) ? one_of(s, 4) : one_of(s, 256);
	unsigned long flags;

	mode |= to | APIC_INT_ASSERT | (one_of(s, 8) ? 0 : next(s) & 0xff);
	trace(s, "icr %#x to %#x", mode, id);
	local_irq_save(flags);
	if (apic) {
		writel(id << 24, apic + APIC_ICR2);
		writel(mode, apic + APIC_ICR);
	} else {
		wrmsrl_safe(0x830, (u64)id << 32 | mode);
	}
	local_irq_restore(flags);
}

/* The index and the data race with those of other CPUs, on purpose. */
static void poke_ioapic(struct storm *s)
{
	u32 index = one_of(s, 4) ? 0x10 + one_of(s, 48) : one_of(s, 256);
	u32 was, old, value;
	unsigned long flags;

	if (!ioapic)
		return;
	local_irq_save(flags);
	was = readl(ioapic);
	writel(index, ioapic);
	old = readl(ioapic + 0x10);
	value = without_smi(value_near(s, old));
	trace(s, "ioapic %#x = %#x was %#x", index, value, old);
	writel(value, ioapic + 0x10);
	writel(index, ioapic);
	writel(old, ioapic + 0x10);
	writel(was, ioapic);
	local_irq_restore(flags);
}

static void poke_hpet(struct storm *s)
{
	if (hpet)
		poke(s, "hpet", hpet, one_of(s, 0x100) * 4);
}

static void tables(struct storm *s)
{
	struct desc_ptr old, bad = { .size = next(s), .address = next64(s) };
	u32 which = one_of(s, 6);
	unsigned long flags;

	trace(s, "table %u %#x %#lx", which, bad.size, bad.address);
	local_irq_save(flags);
	switch (which) {
	case 0:
		store_idt(&old);
		try_asm("lidt %0", "m" (bad));
		load_idt(&old);
		break;
	case 1:
		native_store_gdt(&old);
		try_asm("lgdt %0", "m" (bad));
		load_gdt(&old);
		break;
	case 2:
		try_asm("lldt %w0", "r" (next(s)));
		try_asm("lldt %w0", "r" (0));
		break;
	case 3:
		try_asm("ltr %w0", "r" (next(s) & 0xfff8));
		break;
	case 4:
		try_asm("invd", "a" (0));
		break;
	default:
		try_asm("xsetbv", "a" (next(s)), "d" (next(s)), "c" (one_of(s, 2)));
	}
	local_irq_restore(flags);
}

/*
 * What a processor refuses, the emulator must refuse, too: in CR0, NW without
 * CD, or PG without PE, would end the CPU in QEMU (docs/emulators.md).
 */
static void control(struct storm *s)
{
	unsigned long old, value, flags;
	u32 which = one_of(s, 4);

	local_irq_save(flags);
	switch (which) {
	case 0:
		asm volatile("mov %%cr0, %0" : "=r" (old));
		value = old ^ BIT_ULL(1 + one_of(s, 28));
		trace(s, "cr0 %#lx", value);
		try_asm("mov %0, %%cr0", "r" (value));
		try_asm("mov %0, %%cr0", "r" (old));
		break;
	case 1:
		asm volatile("mov %%cr4, %0" : "=r" (old));
		/* Without PAE and LA57 as they are, Linux ends here. */
		value = old ^ (BIT_ULL(one_of(s, 64)) & ~(BIT_ULL(5) | BIT_ULL(12)));
		trace(s, "cr4 %#lx", value);
		try_asm("mov %0, %%cr4", "r" (value));
		try_asm("mov %0, %%cr4", "r" (old));
		break;
	case 2:
		value = next64(s);
		trace(s, "cr8 %#lx", value);
		try_asm("mov %0, %%cr8", "r" (value));
		try_asm("mov %0, %%cr8", "r" (0ul));
		break;
	default:
		value = next64(s);
		trace(s, "dr7 %#lx", value);
		try_asm("mov %0, %%dr7", "r" (value & 0xffff00ffull));
		try_asm("mov %0, %%dr7", "r" (0x400ul));
	}
	local_irq_restore(flags);
}

/* Reads, and in hidden memory writes: Linux's own must stay as it is. */
static void memory(struct storm *s)
{
	struct kyozon_piece *piece = &s->k->reserve.pieces[one_of(s, s->k->reserve.count)];
	u64 bytes = PAGE_SIZE << piece->order;
	u64 *word = page_address(piece->page) + (next64(s) % bytes & ~7ull);
	u64 found = 0;

	trace(s, "memory %px", word);
	if (!copy_from_kernel_nofault(&found, word, 8) &&
	    (found & ~0x1ffull) == CANARY)
		atomic_inc(&canaries);
	if (!one_of(s, 4))
		try_asm("movq %1, %0", "m" (*word), "r" (s->operations));
}

/*
 * Known ports of the chipset and the cokernel's serial line. Not the interval
 * timer: QEMU does nothing else any more if its period is one count
 * (docs/emulators.md).
 */
static void ports(struct storm *s)
{
	static const struct {
		u16 from, count;
	} ranges[] = {
		{ 0x20, 2 }, { 0xa0, 2 }, { 0x70, 2 }, { 0x61, 1 },
		{ 0x3e8, 8 }, { 0xcd6, 2 },
	};
	u32 range = one_of(s, ARRAY_SIZE(ranges));
	u16 port = ranges[range].from + one_of(s, ranges[range].count);
	unsigned long flags;
	u8 old;

	local_irq_save(flags);
	old = inb(port);
	trace(s, "port %#x was %#x", port, old);
	outb(value_near(s, old), port);
	outb(old, port);
	local_irq_restore(flags);
}

static const struct {
	void (*run)(struct storm *s);
	u32 weight;
} operations[] = {
	{ msr, 20 }, { vmmcall, 10 }, { virtualization, 5 }, { poke_apic, 8 },
	{ command, 4 }, { poke_ioapic, 8 }, { poke_hpet, 8 }, { tables, 4 },
	{ control, 6 }, { memory, 20 }, { ports, 4 },
};

static int storm_cpu(void *data)
{
	struct storm *s = data;
	u32 total = 0, pick;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(operations); i++)
		total += operations[i].weight;
	while ((s64)(rdtsc() - storm_end) < 0) {
		pick = one_of(s, total);
		for (i = 0; pick >= operations[i].weight; i++)
			pick -= operations[i].weight;
		operations[i].run(s);
		s->operations++;
		cond_resched();
	}
	complete(&s->done);
	return 0;
}

/* SEED MS [trace] */
int root_storm(struct kyozon *k, char *argument)
{
	static struct storm storms[NR_CPUS];
	unsigned long *hpet_at = (void *)symbol("hpet_address");
	char *seed_text = strsep(&argument, " "), *ms_text = strsep(&argument, " ");
	u64 seed, done = 0, apic_base;
	unsigned int ms, cpu;

	if (!ms_text || kstrtou64(seed_text, 0, &seed) ||
	    kstrtouint(ms_text, 0, &ms) || ms > STORM_MAX_MS)
		return -EINVAL;
	storm_trace = argument && !strcmp(argument, "trace");
	rdmsrl(MSR_IA32_APICBASE, apic_base);
	apic = apic_base & BIT(10) ? NULL : ioremap(APIC_DEFAULT_PHYS_BASE, PAGE_SIZE);
	ioapic = ioremap(IO_APIC_DEFAULT_PHYS_BASE, PAGE_SIZE);
	hpet = hpet_at && *hpet_at ? ioremap(*hpet_at, PAGE_SIZE) : NULL;
	root_find(k, "");
	atomic_set(&canaries, 0);
	storm_end = rdtsc() + (u64)ms * tsc_khz;
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		struct storm *s = &storms[cpu];

		*s = (struct storm) { .k = k, .cpu = cpu };
		prandom_seed_state(&s->random, seed + cpu * 0x9e3779b97f4a7c15ull);
		init_completion(&s->done);
		s->task = kthread_create(storm_cpu, s, "storm/%u", cpu);
		if (IS_ERR(s->task)) {
			complete(&s->done);
			continue;
		}
		kthread_bind(s->task, cpu);
		wake_up_process(s->task);
	}
	for_each_online_cpu(cpu) {
		wait_for_completion(&storms[cpu].done);
		done += storms[cpu].operations;
	}
	cpus_read_unlock();
	if (apic)
		iounmap(apic);
	if (ioapic)
		iounmap(ioapic);
	if (hpet)
		iounmap(hpet);
	if (atomic_read(&canaries))
		pr_emerg("kyozon-attacks: storm: saw %d canaries\n", atomic_read(&canaries));
	root_report("storm %llu: %llu operations, %d canaries", seed, done,
		    atomic_read(&canaries));
	return 0;
}
