// SPDX-License-Identifier: GPL-2.0-only
#include <linux/cpumask.h>
#include <linux/crc32.h>
#include <linux/io.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/stop_machine.h>
#include <asm/desc.h>
#include <asm/msr.h>
#include <asm/special_insns.h>

#include "probe.h"

#define IOAPIC		0xfec00000
#define IOAPIC_DATA	0x10
#define IOAPIC_VERSION	1
#define IOAPIC_TABLE	0x10
#define HPET		0xfed00000
#define HPET_CONFIG	0x10
#define HPET_TIMERS	0x100
#define PINS_MAX	64

struct ioapic {
	void __iomem *at;
	u32 index, version, pins, entry[2 * PINS_MAX];
};

/* In stop_machine, as Linux does not export the index register's lock. */
static int ioapic_read(void *argument)
{
	struct ioapic *io = argument;
	u32 i;

	io->index = readl(io->at);
	writel(IOAPIC_VERSION, io->at);
	io->version = readl(io->at + IOAPIC_DATA);
	io->pins = min_t(u32, (io->version >> 16 & 0xff) + 1, PINS_MAX);
	for (i = 0; i < 2 * io->pins; i++) {
		writel(IOAPIC_TABLE + i, io->at);
		io->entry[i] = readl(io->at + IOAPIC_DATA);
	}
	writel(io->index, io->at);
	return 0;
}

static void ioapic_show(struct seq_file *out)
{
	static struct ioapic io;
	u32 i;

	io.at = ioremap(IOAPIC, PAGE_SIZE);
	if (!io.at)
		return;
	stop_machine(ioapic_read, &io, NULL);
	for (i = 0; i < io.pins; i++)	/* without bits 12 and 14, which the device sets */
		seq_printf(out, "ioapic pin %u: %08x %08x\n", i,
			   io.entry[2 * i + 1], io.entry[2 * i] & ~0x5000U);
	iounmap(io.at);
}

static void hpet_show(struct seq_file *out)
{
	void __iomem *hpet = ioremap(HPET, PAGE_SIZE);
	u32 capabilities, i;

	if (!hpet)
		return;
	capabilities = readl(hpet);
	seq_printf(out, "hpet: %08x configuration %08x\n", capabilities,
		   readl(hpet + HPET_CONFIG));
	for (i = 0; capabilities != ~0U && i <= (capabilities >> 8 & 0x1f); i++) {
		void __iomem *timer = hpet + HPET_TIMERS + 0x20 * i;

		seq_printf(out, "hpet timer %u: configuration %08x message %08x %08x\n",
			   i, readl(timer), readl(timer + 0x10),
			   readl(timer + 0x14));
	}
	iounmap(hpet);
}

struct cpu_state {
	struct desc_ptr idt, gdt;
	u32 idt_crc, gdt_crc;
	u16 tr, ldt;
	unsigned long cr0, cr4;
	u64 msr[9];
};

static const struct {
	const char *name;
	u32 number;
} msrs[] = {
	{ "efer", MSR_EFER }, { "star", MSR_STAR }, { "lstar", MSR_LSTAR },
	{ "cstar", MSR_CSTAR }, { "fmask", MSR_SYSCALL_MASK },
	{ "pat", MSR_IA32_CR_PAT }, { "apicbase", MSR_IA32_APICBASE },
	{ "sysenter_eip", MSR_IA32_SYSENTER_EIP },
	{ "gsbase", MSR_GS_BASE },
};

static void cpu_read(void *argument)
{
	struct cpu_state *s = argument;
	unsigned int i;

	store_idt(&s->idt);
	native_store_gdt(&s->gdt);
	s->idt_crc = crc32_le(0, (void *)s->idt.address, s->idt.size + 1);
	s->gdt_crc = crc32_le(0, (void *)s->gdt.address, s->gdt.size + 1);
	asm volatile("str %0" : "=r" (s->tr));
	asm volatile("sldt %0" : "=r" (s->ldt));
	s->cr0 = read_cr0() & ~X86_CR0_TS;
	s->cr4 = __read_cr4();
	for (i = 0; i < ARRAY_SIZE(msrs); i++)
		rdmsrl(msrs[i].number, s->msr[i]);
}

static void cpu_show(struct seq_file *out, unsigned int cpu)
{
	struct cpu_state s;
	unsigned int i;

	if (smp_call_function_single(cpu, cpu_read, &s, true))
		return;
	seq_printf(out, "cpu %u idt: %lx+%x crc %08x\n", cpu, s.idt.address, s.idt.size, s.idt_crc);
	seq_printf(out, "cpu %u gdt: %lx+%x crc %08x\n", cpu, s.gdt.address, s.gdt.size, s.gdt_crc);
	seq_printf(out, "cpu %u tr %x ldt %x cr0 %lx cr4 %lx\n", cpu, s.tr, s.ldt, s.cr0, s.cr4);
	for (i = 0; i < ARRAY_SIZE(msrs); i++)
		seq_printf(out, "cpu %u %s: %llx\n", cpu, msrs[i].name, s.msr[i]);
}

int probe_state_show(struct seq_file *out, void *unused)
{
	unsigned int cpu;

	BUILD_BUG_ON(ARRAY_SIZE(msrs) != ARRAY_SIZE(((struct cpu_state *)0)->msr));
	ioapic_show(out);
	hpet_show(out);
	for_each_online_cpu(cpu)
		cpu_show(out, cpu);
	return 0;
}
