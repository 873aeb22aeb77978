// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changes system registers of every CPU, gates of the interrupt table, and a
 * CPU's descriptors and stacks.
 * Nothing calls the changed entries, except for LSTAR's: the module's entry
 * leads on to Linux's. The page tables of user mode have no module if the kernel
 * isolates page tables: hook-lstar, move-idt, move-gdt and replace-tss refuse
 * such a kernel.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <asm/cpufeature.h>
#include <asm/debugreg.h>
#include <asm/desc.h>
#include <asm/ibt.h>
#include <asm/msr.h>
#include <asm/nospec-branch.h>
#include <asm/processor-flags.h>
#include <asm/tsc.h>

#include "attacks.h"

/* Where SYSCALL leads after hook-lstar: to Linux's entry, by way of the module. */
static unsigned long lstar_old __used;
asm(".pushsection .text, \"ax\"\n"
    ".balign 16\n"
    ".type lstar_hook, @function\n"
    "lstar_hook:\n"
    ASM_ENDBR
    ANNOTATE_RETPOLINE_SAFE
    "jmp *lstar_old(%rip)\n"
    "int3\n"
    ".size lstar_hook, . - lstar_hook\n"
    ".popsection\n");
extern const u8 lstar_hook[];

/* An entry that is never used. */
static noinline void unused_entry(void)
{
	asm volatile("");
}

/* A register of every CPU, or of one, with its value before and after. */
struct change {
	u64 (*read)(void);
	void (*write)(u64 value);
	u64 old, bad;
	bool on_one;
	unsigned int cpu;
};

struct reading {
	struct change *change;
	u64 now;
};

static void write_bad(void *change)
{
	((struct change *)change)->write(((struct change *)change)->bad);
}

static void write_old(void *change)
{
	((struct change *)change)->write(((struct change *)change)->old);
}

static int on_cpus(struct change *change, smp_call_func_t write)
{
	if (change->on_one)
		return smp_call_function_single(change->cpu, write, change, 1);
	on_each_cpu(write, change, 1);
	return 0;
}

/* [CPU]: on that CPU alone. */
static int change_parse(struct change *change, const char *argument)
{
	change->on_one = *argument;
	return *argument ? kstrtouint(argument, 0, &change->cpu) : 0;
}

static int change_begin(struct attack *attack, struct change *change)
{
	unsigned long flags;
	int error;

	snprintf(attack->about, sizeof(attack->about), "%#llx was %#llx", change->bad,
		 change->old);
	attack->tsc = rdtsc_ordered();
	error = on_cpus(change, write_bad);
	if (error)
		return error;
	local_irq_save(flags);
	attack_done(attack);
	local_irq_restore(flags);
	return 0;
}

static void read_now(void *value)
{
	struct change *change = ((struct reading *)value)->change;

	((struct reading *)value)->now = change->read();
}

static bool change_present(struct change *change)
{
	struct reading value = { .change = change };

	if (!change->on_one)
		return change->read() == change->bad;
	return !smp_call_function_single(change->cpu, read_now, &value, 1) &&
	       value.now == change->bad;
}

#define MSR_ACCESS(name, number)					\
	static u64 name##_read(void)					\
	{								\
		return native_read_msr(number);				\
	}								\
	static void name##_write(u64 value)				\
	{								\
		native_write_msr(number, (u32)value, (u32)(value >> 32));	\
	}
MSR_ACCESS(lstar, MSR_LSTAR)
MSR_ACCESS(cstar, MSR_CSTAR)

/* Linux's own functions put pinned bits back. */
static u64 cr0_read(void)
{
	u64 value;

	asm volatile("mov %%cr0, %0" : "=r"(value));
	return value;
}

static void cr0_write(u64 value)
{
	asm volatile("mov %0, %%cr0" : : "r"(value) : "memory");
}

static u64 cr4_read(void)
{
	u64 value;

	asm volatile("mov %%cr4, %0" : "=r"(value));
	return value;
}

static void cr4_write(u64 value)
{
	asm volatile("mov %0, %%cr4" : : "r"(value) : "memory");
}

#define ATTACK(name_, text_, change_)					\
	static void name_##_undo(struct attack *attack)			\
	{								\
		on_cpus(&change_, write_old);				\
	}								\
	static bool name_##_present(struct attack *attack)		\
	{								\
		return change_present(&change_);			\
	}								\
	struct attack name_ = {						\
		.name = text_,						\
		.begin = name_##_begin,					\
		.undo = name_##_undo,					\
		.present = name_##_present,				\
	}

static struct change lstar = { .read = lstar_read, .write = lstar_write };

static int hook_lstar_begin(struct attack *attack, char *argument)
{
	if (boot_cpu_has(X86_FEATURE_PTI))
		return -EOPNOTSUPP;
	if (change_parse(&lstar, argument))
		return -EINVAL;
	lstar.old = lstar_old = lstar_read();
	lstar.bad = (u64)lstar_hook;
	return change_begin(attack, &lstar);
}
ATTACK(hook_lstar, "hook-lstar", lstar);

static struct change cstar = { .read = cstar_read, .write = cstar_write };

static int hook_cstar_begin(struct attack *attack, char *unused)
{
	cstar.old = cstar_read();
	cstar.bad = (u64)unused_entry;
	return change_begin(attack, &cstar);
}
ATTACK(hook_cstar, "hook-cstar", cstar);

static struct change write_protection = { .read = cr0_read, .write = cr0_write };

static int clear_wp_begin(struct attack *attack, char *unused)
{
	write_protection.old = cr0_read();
	write_protection.bad = write_protection.old & ~(u64)X86_CR0_WP;
	return change_begin(attack, &write_protection);
}
ATTACK(clear_wp, "clear-wp", write_protection);

/* CR4 differs from CPU to CPU in other bits: one bit is changed. */
static void smep_write(u64 value)
{
	u64 others = cr4_read() & ~(u64)X86_CR4_SMEP;

	cr4_write(others | (value & X86_CR4_SMEP));
}

static u64 smep_read(void)
{
	return cr4_read() & X86_CR4_SMEP;
}

static struct change smep = { .read = smep_read, .write = smep_write };

static int clear_smep_begin(struct attack *attack, char *unused)
{
	smep.old = smep_read();
	if (!smep.old)
		return -EOPNOTSUPP;
	smep.bad = 0;
	return change_begin(attack, &smep);
}
ATTACK(clear_smep, "clear-smep", smep);

/* A breakpoint that Linux does not know, at code that nobody executes. */
static u64 breakpoint_read(void)
{
	u64 value;

	asm volatile("mov %%db0, %0" : "=r"(value));
	return value;
}

static void breakpoint_write(u64 value)
{
	u64 control;

	asm volatile("mov %0, %%db0" : : "r"(value));
	asm volatile("mov %%db7, %0" : "=r"(control));
	control = value ? control | 2 : control & ~3ull;
	asm volatile("mov %0, %%db7" : : "r"(control));
}

static struct change breakpoint = { .read = breakpoint_read, .write = breakpoint_write };

static int set_breakpoint_begin(struct attack *attack, char *unused)
{
	breakpoint.old = 0;
	breakpoint.bad = (u64)unused_entry;
	return change_begin(attack, &breakpoint);
}
ATTACK(set_breakpoint, "set-breakpoint", breakpoint);

/* Another table with the same gates. */
static u64 table_read(void)
{
	struct desc_ptr table;

	asm volatile("sidt %0" : "=m"(table));
	return table.address;
}

static void table_write(u64 value)
{
	struct desc_ptr table = { .size = 256 * 16 - 1, .address = value };

	asm volatile("lidt %0" : : "m"(table));
}

static struct change table = { .read = table_read, .write = table_write };

static int move_idt_begin(struct attack *attack, char *argument)
{
	static gate_desc copy[256] __aligned(PAGE_SIZE);

	if (boot_cpu_has(X86_FEATURE_PTI))
		return -EOPNOTSUPP;
	if (change_parse(&table, argument))
		return -EINVAL;
	table.old = table_read();
	memcpy(copy, (void *)table.old, sizeof(copy));
	table.bad = (u64)copy;
	return change_begin(attack, &table);
}
ATTACK(move_idt, "move-idt", table);

/* Another table with the same descriptors. */
static u64 descriptors_read(void)
{
	struct desc_ptr now;

	asm volatile("sgdt %0" : "=m"(now));
	return now.address;
}

static void descriptors_write(u64 value)
{
	struct desc_ptr new = { .size = GDT_SIZE - 1, .address = value };

	asm volatile("lgdt %0" : : "m"(new));
}

static struct change descriptors = { .read = descriptors_read, .write = descriptors_write };

static int move_gdt_begin(struct attack *attack, char *unused)
{
	static struct desc_struct copy[GDT_ENTRIES] __aligned(PAGE_SIZE);

	if (boot_cpu_has(X86_FEATURE_PTI))
		return -EOPNOTSUPP;
	/* Each CPU has its own. */
	descriptors.on_one = true;
	descriptors.cpu = raw_smp_processor_id();
	descriptors.old = descriptors_read();
	memcpy(copy, (void *)descriptors.old, sizeof(copy));
	descriptors.bad = (u64)copy;
	return change_begin(attack, &descriptors);
}
ATTACK(move_gdt, "move-gdt", descriptors);

/*
 * A task state segment that the first CPU uses, although its descriptor leads
 * to Linux's: LTR reads it only once.
 */
static struct x86_hw_tss other_task_state __aligned(PAGE_SIZE);
static bool task_state_replaced;

static void load_task_state(void *segment)
{
	u64 *descriptor = (u64 *)&get_cpu_gdt_rw(0)[GDT_ENTRY_TSS];
	u64 old[2] = { descriptor[0], descriptor[1] };
	struct desc_ptr table, writable = {
		.size = GDT_SIZE - 1, .address = (u64)get_cpu_gdt_rw(0),
	};
	unsigned long flags;

	local_irq_save(flags);
	asm volatile("sgdt %0" : "=m"(table));
	/* LTR marks the descriptor as busy: Linux's own table is read-only. */
	asm volatile("lgdt %0" : : "m"(writable));
	set_tssldt_descriptor(descriptor, (unsigned long)segment, DESC_TSS,
			      segment == &other_task_state ?
			      sizeof(struct x86_hw_tss) - 1 : __KERNEL_TSS_LIMIT);
	asm volatile("ltr %w0" : : "q"(GDT_ENTRY_TSS * 8) : "memory");
	descriptor[0] = old[0];
	descriptor[1] = old[1];
	asm volatile("lgdt %0" : : "m"(table));
	local_irq_restore(flags);
}

static int replace_tss_begin(struct attack *attack, char *unused)
{
	unsigned long flags;
	int error;

	if (boot_cpu_has(X86_FEATURE_PTI))
		return -EOPNOTSUPP;
	other_task_state = per_cpu(cpu_tss_rw, 0).x86_tss;
	strscpy(attack->about, "CPU 0", sizeof(attack->about));
	attack->tsc = rdtsc_ordered();
	error = smp_call_function_single(0, load_task_state, &other_task_state, 1);
	if (error)
		return error;
	task_state_replaced = true;
	local_irq_save(flags);
	attack_done(attack);
	local_irq_restore(flags);
	return 0;
}

static void replace_tss_undo(struct attack *attack)
{
	void *own = &get_cpu_entry_area(0)->tss.x86_tss;

	task_state_replaced = smp_call_function_single(0, load_task_state, own, 1);
}

static bool replace_tss_present(struct attack *attack)
{
	return task_state_replaced;
}

struct attack replace_tss = {
	.name = "replace-tss",
	.begin = replace_tss_begin,
	.undo = replace_tss_undo,
	.present = replace_tss_present,
};

/* The gate of a vector that nothing raises: INTO does not exist in 64-bit mode. */
#define UNUSED_VECTOR	4

static struct {
	gate_desc *at, old, bad;
} gate;

/* Linux maps its table read-only. */
static bool gate_write(const gate_desc *value)
{
	struct page *page = pfn_to_page(PHYS_PFN(__pa(gate.at)));
	gate_desc *alias = vmap(&page, 1, VM_MAP, PAGE_KERNEL);

	if (!alias)
		return false;
	memcpy(alias + UNUSED_VECTOR, value, sizeof(*value));
	vunmap(alias);
	return true;
}

static bool hook_gate_present(struct attack *attack)
{
	return !memcmp(gate.at + UNUSED_VECTOR, &gate.bad, sizeof(gate.bad));
}

static int hook_gate_begin(struct attack *attack, char *unused)
{
	unsigned long flags, entry = (unsigned long)unused_entry;

	gate.at = (gate_desc *)symbol("idt_table");
	if (!gate.at)
		return -ENOENT;
	gate.old = gate.bad = gate.at[UNUSED_VECTOR];
	gate.bad.offset_low = (u16)entry;
	gate.bad.offset_middle = (u16)(entry >> 16);
	gate.bad.offset_high = (u32)(entry >> 32);
	snprintf(attack->about, sizeof(attack->about), "vector %d", UNUSED_VECTOR);
	attack->tsc = rdtsc_ordered();
	if (!gate_write(&gate.bad))
		return -ENOMEM;
	local_irq_save(flags);
	attack_done(attack);
	local_irq_restore(flags);
	return 0;
}

static void hook_gate_undo(struct attack *attack)
{
	WARN_ON(hook_gate_present(attack) && !gate_write(&gate.old));
}

struct attack hook_gate = {
	.name = "hook-gate",
	.begin = hook_gate_begin,
	.undo = hook_gate_undo,
	.present = hook_gate_present,
};

/* [CPU]: that CPU's, the first one's by default. */
static int parse_cpu(const char *argument, unsigned int *cpu)
{
	*cpu = 0;
	if (*argument && kstrtouint(argument, 0, cpu))
		return -EINVAL;
	return cpu_online(*cpu) ? 0 : -EINVAL;
}

/*
 * A gate in the place of the local descriptor table, which few processes have:
 * user mode can call the kernel by it.
 */
#define CALL_GATE_TYPE	0xec

static struct {
	u64 *at, old[2], bad[2];
} call_gate;

static bool call_gate_present(struct attack *attack)
{
	return READ_ONCE(*call_gate.at) == call_gate.bad[0];
}

static int call_gate_begin(struct attack *attack, char *argument)
{
	u64 entry = (u64)unused_entry;
	unsigned long flags;
	unsigned int cpu;

	if (parse_cpu(argument, &cpu))
		return -EINVAL;
	call_gate.at = (u64 *)&get_cpu_gdt_rw(cpu)[GDT_ENTRY_LDT];
	memcpy(call_gate.old, call_gate.at, sizeof(call_gate.old));
	call_gate.bad[0] = (entry & 0xffff) | (u64)__KERNEL_CS << 16 |
			   (u64)CALL_GATE_TYPE << 40 | (entry >> 16 & 0xffff) << 48;
	call_gate.bad[1] = entry >> 32;
	snprintf(attack->about, sizeof(attack->about), "CPU %u", cpu);
	local_irq_save(flags);
	attack->tsc = rdtsc_ordered();
	memcpy(call_gate.at, call_gate.bad, sizeof(call_gate.bad));
	attack_done(attack);
	local_irq_restore(flags);
	return 0;
}

static void call_gate_undo(struct attack *attack)
{
	memcpy(call_gate.at, call_gate.old, sizeof(call_gate.old));
}

struct attack make_call_gate = {
	.name = "make-call-gate",
	.begin = call_gate_begin,
	.undo = call_gate_undo,
	.present = call_gate_present,
};

/* Another stack for double faults, of which there are none. */
static struct {
	u64 *at, old;
} fault_stack;

static u64 other_stack[64];

static bool move_stack_present(struct attack *attack)
{
	return READ_ONCE(*fault_stack.at) != fault_stack.old;
}

static int move_stack_begin(struct attack *attack, char *argument)
{
	unsigned long flags;
	unsigned int cpu;

	if (parse_cpu(argument, &cpu))
		return -EINVAL;
	fault_stack.at = &per_cpu(cpu_tss_rw, cpu).x86_tss.ist[IST_INDEX_DF];
	fault_stack.old = *fault_stack.at;
	snprintf(attack->about, sizeof(attack->about), "CPU %u", cpu);
	local_irq_save(flags);
	attack->tsc = rdtsc_ordered();
	WRITE_ONCE(*fault_stack.at, (u64)(other_stack + ARRAY_SIZE(other_stack)));
	attack_done(attack);
	local_irq_restore(flags);
	return 0;
}

static void move_stack_undo(struct attack *attack)
{
	WRITE_ONCE(*fault_stack.at, fault_stack.old);
}

struct attack move_stack = {
	.name = "move-stack",
	.begin = move_stack_begin,
	.undo = move_stack_undo,
	.present = move_stack_present,
};
