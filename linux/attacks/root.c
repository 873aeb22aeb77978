// SPDX-License-Identifier: GPL-2.0-only
/*
 * What somebody who is root and loads a module can try against a cokernel.
 *
 *	root find		where the cokernel's memory and image are; what
 *				follows uses that
 *	root write HOW		changes a word of its memory; HOW it is mapped:
 *				direct, memremap, ioremap, vmap, entry
 *	root read HOW		the first bytes of its image and of its memory
 *	root break HOW		overwrites its text with invalid instructions
 *	root table		makes its memory one of Linux's page tables
 *	root dma		as write, by a device (QEMU's edu)
 *	root timer HOW MS	for MS ms: counter, enable, comparator, route, pin
 *	root disarm MS		for MS ms kyozon.ko believes that no tick is due
 *	root hold MS		nothing, for as long
 *	root msr NAME		on its CPU: efer, hsave, vm-cr, apic-base
 *	root nmis MS		floods its CPU with NMIs
 *	root init		its CPU, from another, by INIT and SIPI
 *	root hotplug		kyozon.ko is not asked when a CPU goes away
 *
 * Memory can also be mapped by a program: mmap of /proc/kyozon-attacks gives
 * the page that write means. Everything is put back but what is overwritten, and
 * a CPU that was reset. The answer to the last word is the last line of
 * /proc/kyozon-attacks.
 */
#include <linux/cpuhotplug.h>
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/nmi.h>
#include <linux/page-flags.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/stop_machine.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <asm/apic.h>
#include <asm/hpet.h>
#include <asm/io_apic.h>
#include <asm/msr.h>
#include <asm/nmi.h>
#include <asm/pgtable.h>
#include <asm/smp.h>
#include <asm/tlbflush.h>
#include <asm/trapnr.h>

#include "kyozon.h"
#include "attacks.h"

#undef pr_fmt
#define pr_fmt(fmt) "kyozon-attacks: " fmt

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
#define del_timer_sync	timer_delete_sync
#endif

#define ENTRY_P		BIT_ULL(0)
#define ENTRY_NX	BIT_ULL(63)
#define ENTRY_ADDRESS	0x000ffffffffff000ull
#define TEXT_MAX	256	/* pages */
#define HOLD_MAX_MS	10000

static char said[160];

static struct {
	phys_addr_t memory;
	phys_addr_t text[TEXT_MAX];
	unsigned int pages;	/* of text */
	bool hidden;
} victim;

static struct kyozon *loaded(void)
{
	struct kyozon *k = (void *)symbol("kyozon");

	return k && k->state != KYOZON_STATE_EMPTY ? k : NULL;
}

static bool in_reserve(struct kyozon *k, phys_addr_t at)
{
	unsigned int i;

	for (i = 0; i < k->reserve.count; i++) {
		struct kyozon_piece *piece = &k->reserve.pieces[i];
		phys_addr_t start = page_to_phys(piece->page);

		if (at >= start && at - start < PAGE_SIZE << piece->order)
			return true;
	}
	return false;
}

/* The entry that maps @va in the cokernel's world; 0 where that cannot be read. */
static u64 entry_of(struct kyozon *k, u64 va)
{
	struct kyozon_world *world = (void *)symbol("kyozon_world");
	u64 entry = world ? world->cr3 | ENTRY_P : 0;
	int level;

	for (level = k->levels; level > 0; level--) {
		u64 *table = __va(entry & ENTRY_ADDRESS);

		if (!in_reserve(k, entry & ENTRY_ADDRESS))
			return 0;
		entry = READ_ONCE(table[va >> (3 + 9 * level) & 511]);
		if (!(entry & ENTRY_P))
			return 0;
	}
	return in_reserve(k, entry & ENTRY_ADDRESS) ? entry : 0;
}

/* Where its tables are hidden, the first page of the reserve is as good as any. */
static int find(struct kyozon *k, char *unused)
{
	phys_addr_t first = page_to_phys(k->reserve.pieces[0].page);
	u64 entry;

	victim.memory = entry_of(k, KYOZON_MEMORY_BASE) & ENTRY_ADDRESS;
	victim.hidden = !victim.memory;
	if (victim.hidden)
		victim.memory = first;
	for (victim.pages = 0; victim.pages < TEXT_MAX; victim.pages++) {
		entry = entry_of(k, KYOZON_COKERNEL_BASE + victim.pages * PAGE_SIZE);
		if (!entry || entry & ENTRY_NX)
			break;
		victim.text[victim.pages] = entry & ENTRY_ADDRESS;
	}
	if (!victim.pages)
		victim.text[victim.pages++] = first;
	snprintf(said, sizeof(said), "find memory %pa text %pa pages %u%s",
		 &victim.memory, &victim.text[0], victim.pages,
		 victim.hidden ? " (tables hidden)" : "");
	return 0;
}

static void *direct_map(phys_addr_t at)
{
	return __va(at);
}

static void direct_unmap(void *unused)
{
}

static void *memremap_map(phys_addr_t at)
{
	return memremap(at, PAGE_SIZE, MEMREMAP_WB);
}

/* Linux refuses to map RAM as a device's, unless it believes that nobody has it. */
static struct page *reserved;

static void *ioremap_map(phys_addr_t at)
{
	void *mapped;

	reserved = pfn_to_page(PHYS_PFN(at));
	SetPageReserved(reserved);
	mapped = (void __force *)ioremap_cache(at, PAGE_SIZE);
	if (!mapped)
		ClearPageReserved(reserved);
	return mapped;
}

static void ioremap_unmap(void *mapped)
{
	iounmap((void __iomem __force *)mapped);
	ClearPageReserved(reserved);
}

static void *vmap_map(phys_addr_t at)
{
	struct page *page = pfn_to_page(PHYS_PFN(at));

	return vmap(&page, 1, VM_MAP, PAGE_KERNEL);
}

/* An entry of Linux's page tables, changed by hand; this CPU only uses it. */
static struct {
	void *page;
	pte_t *entry, old;
} by_hand;

static void *entry_map(phys_addr_t at)
{
	unsigned int level;

	by_hand.page = vmalloc(PAGE_SIZE);
	if (!by_hand.page)
		return NULL;
	memset(by_hand.page, 0, PAGE_SIZE);
	by_hand.entry = lookup_address((unsigned long)by_hand.page, &level);
	if (WARN_ON(!by_hand.entry || level != PG_LEVEL_4K)) {
		vfree(by_hand.page);
		return NULL;
	}
	by_hand.old = *by_hand.entry;
	preempt_disable();
	WRITE_ONCE(*by_hand.entry, pfn_pte(PHYS_PFN(at), PAGE_KERNEL));
	asm volatile("invlpg (%0)" : : "r" (by_hand.page) : "memory");
	return by_hand.page;
}

static void entry_unmap(void *page)
{
	WRITE_ONCE(*by_hand.entry, by_hand.old);
	asm volatile("invlpg (%0)" : : "r" (page) : "memory");
	preempt_enable();
	vfree(page);
}

static const struct mapping {
	const char *name;
	void *(*map)(phys_addr_t at);
	void (*unmap)(void *mapped);
} mappings[] = {
	{ "direct", direct_map, direct_unmap },
	{ "memremap", memremap_map, memunmap },
	{ "ioremap", ioremap_map, ioremap_unmap },
	{ "vmap", vmap_map, (void (*)(void *))vunmap },
	{ "entry", entry_map, entry_unmap },
};

static const struct mapping *mapping_of(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mappings); i++)
		if (!strcmp(mappings[i].name, name))
			return &mappings[i];
	return NULL;
}

static int write(struct kyozon *k, char *how)
{
	const struct mapping *mapping = mapping_of(how);
	u64 value = rdtsc() | 1, *at;

	if (!mapping || !victim.memory)
		return -EINVAL;
	at = mapping->map(victim.memory);
	if (!at)
		return -ENOMEM;
	WRITE_ONCE(*at, value);
	mapping->unmap(at);
	snprintf(said, sizeof(said), "write %s %pa %#llx", how, &victim.memory, value);
	return 0;
}

static int read(struct kyozon *k, char *how)
{
	const struct mapping *mapping = mapping_of(how);
	u8 bytes[2][8];
	int i;

	if (!mapping || !victim.memory)
		return -EINVAL;
	for (i = 0; i < 2; i++) {
		u64 *at = mapping->map(i ? victim.memory : victim.text[0]);
		u64 word;

		if (!at)
			return -ENOMEM;
		word = READ_ONCE(*at);
		memcpy(bytes[i], &word, sizeof(word));
		mapping->unmap(at);
	}
	snprintf(said, sizeof(said), "read %s image %8ph memory %8ph", how, bytes[0], bytes[1]);
	return 0;
}

static int break_text(struct kyozon *k, char *how)
{
	const struct mapping *mapping = mapping_of(how);
	unsigned int i;

	if (!mapping || !victim.memory)
		return -EINVAL;
	for (i = 0; i < victim.pages; i++) {
		u16 *at = mapping->map(victim.text[i]);

		if (!at)
			return -ENOMEM;
		/* ud2; a page that cannot be read gets one word. */
		memset16(at, 0x0b0f, victim.hidden ? 4 : PAGE_SIZE / 2);
		mapping->unmap(at);
	}
	snprintf(said, sizeof(said), "break %s %u pages at %pa", how, i, &victim.text[0]);
	return 0;
}

/* The entry of Linux's page tables that maps @va at @wanted (1: 4 KiB). */
static u64 *linux_entry_of(unsigned long va, int wanted)
{
	u64 *table = __va(__read_cr3() & ENTRY_ADDRESS);
	int level = __read_cr4() & X86_CR4_LA57 ? 5 : 4;

	for (;; level--) {
		u64 *entry = &table[va >> (3 + 9 * level) & 511];

		if (level == wanted)
			return entry;
		if (!(*entry & ENTRY_P) || *entry & _PAGE_PSE)
			return NULL;
		table = __va(*entry & ENTRY_ADDRESS);
	}
}

#define LAST		511	/* the entry, and the word, that is used */
#define TABLE_MARK	0x656c626174ull

/* The cokernel's memory as a page table of Linux: the CPU itself goes there. */
static int table(struct kyozon *k, char *unused)
{
	void *area = vmalloc(2 * PMD_SIZE), *at;
	u64 *own = (u64 *)get_zeroed_page(GFP_KERNEL);
	u64 *entry, *word, old, found = 0;
	unsigned long flags;
	int error = -ENOMEM, turn;

	if (!area || !own || !victim.memory)
		goto out;
	at = (void *)ALIGN((unsigned long)area, PMD_SIZE) + LAST * PAGE_SIZE;
	entry = linux_entry_of((unsigned long)at, 2);
	error = -EFAULT;
	if (!entry)
		goto out;
	*own = TABLE_MARK;
	word = (u64 *)__va(victim.memory) + LAST;
	local_irq_save(flags);
	old = *entry;
	/* The cokernel may put its word back in between. */
	for (turn = 0; turn < 3 && found != TABLE_MARK; turn++) {
		WRITE_ONCE(*word, __pa(own) | pgprot_val(PAGE_KERNEL));
		WRITE_ONCE(*entry, victim.memory | (old & ~ENTRY_ADDRESS));
		asm volatile("invlpg (%0)" : : "r" (at) : "memory");
		error = copy_from_kernel_nofault(&found, at, sizeof(found));
		WRITE_ONCE(*entry, old);
		asm volatile("invlpg (%0)" : : "r" (at) : "memory");
	}
	local_irq_restore(flags);
	snprintf(said, sizeof(said), "table at %pa %s", &victim.memory,
		 found == TABLE_MARK ? "is used" : "is not used");
out:
	free_page((unsigned long)own);
	vfree(area);
	return error;
}

int root_mmap(struct file *file, struct vm_area_struct *vma)
{
	if (!victim.memory || vma->vm_end - vma->vm_start != PAGE_SIZE)
		return -EINVAL;
	return remap_pfn_range(vma, vma->vm_start, PHYS_PFN(victim.memory), PAGE_SIZE,
			       vma->vm_page_prot);
}

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

static int dma(struct kyozon *k, char *unused)
{
	struct pci_dev *pci = pci_get_device(0x1234, 0x11e8, NULL);
	u64 *source = kmalloc(sizeof(*source), GFP_KERNEL);
	u8 __iomem *edu = NULL;
	int error = -ENODEV;

	if (!pci || !source || !victim.memory || pci_enable_device(pci))
		goto out;
	edu = pci_ioremap_bar(pci, 0);
	if (!edu)
		goto disable;
	pci_set_master(pci);
	*source = rdtsc() | 1;
	error = edu_copy(edu, __pa(source), EDU_BUFFER, 0);
	if (!error)
		error = edu_copy(edu, EDU_BUFFER, victim.memory, EDU_TO_RAM);
	snprintf(said, sizeof(said), "dma %pa %#llx", &victim.memory, *source);
	iounmap(edu);
	pci_clear_master(pci);
disable:
	pci_disable_device(pci);
out:
	kfree(source);
	pci_dev_put(pci);
	return error;
}

/* The one that would send the tick in the timer's place goes first. */
static void no_rescue(struct kyozon *k)
{
	del_timer_sync(&k->tick.revive);
}

static int hold(unsigned int ms, void (*again)(struct kyozon *k), struct kyozon *k)
{
	u64 end = rdtsc() + (u64)ms * tsc_khz;

	while ((s64)(rdtsc() - end) < 0) {
		if (again)
			again(k);
		udelay(100);
		cond_resched();
	}
	return 0;
}

#define TICK_TIMER	2

static u8 __iomem *hpet;
static u32 hpet_timers, saved[32], saved_route[32];

static u32 hpet_get(u32 offset)
{
	return readl(hpet + offset);
}

static void hpet_set(u32 offset, u32 value)
{
	writel(value, hpet + offset);
}

static void stop_counter(struct kyozon *k)
{
	hpet_set(HPET_CFG, hpet_get(HPET_CFG) & ~HPET_CFG_ENABLE);
}

static void start_counter(struct kyozon *k)
{
	hpet_set(HPET_CFG, hpet_get(HPET_CFG) | HPET_CFG_ENABLE);
}

static void disable_timers(struct kyozon *k)
{
	u32 n;

	for (n = TICK_TIMER; n < hpet_timers; n++)
		hpet_set(HPET_Tn_CFG(n), saved[n] & ~HPET_TN_ENABLE);
}

static void enable_timers(struct kyozon *k)
{
	u32 n;

	for (n = TICK_TIMER; n < hpet_timers; n++)
		hpet_set(HPET_Tn_CFG(n), saved[n]);
}

static void far_comparators(struct kyozon *k)
{
	u32 n;

	for (n = TICK_TIMER; n < hpet_timers; n++)
		hpet_set(HPET_Tn_CMP(n), hpet_get(HPET_COUNTER) + 0x7fffffff);
}

static void away_routes(struct kyozon *k)
{
	u32 n;

	/* To an APIC that nobody has. */
	for (n = TICK_TIMER; n < hpet_timers; n++)
		hpet_set(HPET_Tn_ROUTE(n) + 4, 0xfeefe000);
}

static void restore_routes(struct kyozon *k)
{
	u32 n;

	for (n = TICK_TIMER; n < hpet_timers; n++)
		hpet_set(HPET_Tn_ROUTE(n) + 4, saved_route[n]);
}

/* Every pin that delivers NMIs, of the IO-APIC at GSI 0. */
static void set_pins(u32 from, u32 to)
{
	u8 __iomem *ioapic = ioremap(IO_APIC_DEFAULT_PHYS_BASE, PAGE_SIZE);
	u32 index, pin, pins, low;

	if (!ioapic)
		return;
	index = readl(ioapic);
	writel(1, ioapic);
	pins = (readl(ioapic + 0x10) >> 16 & 0xff) + 1;
	for (pin = 0; pin < pins; pin++) {
		writel(0x10 + 2 * pin, ioapic);
		low = readl(ioapic + 0x10);
		if ((low & (7 << 8 | BIT(16))) == (4 << 8 | from))
			writel((low & ~BIT(16)) | to, ioapic + 0x10);
	}
	writel(index, ioapic);
	iounmap(ioapic);
}

static int mask_stopped(void *unused)
{
	set_pins(0, BIT(16));
	return 0;
}

static int unmask_stopped(void *unused)
{
	set_pins(BIT(16), 0);
	return 0;
}

static void mask_pins(struct kyozon *k)
{
	stop_machine(mask_stopped, NULL, NULL);
}

static void unmask_pins(struct kyozon *k)
{
	stop_machine(unmask_stopped, NULL, NULL);
}

/* Once, as long as it lasts, and back. */
static const struct {
	const char *name;
	void (*once)(struct kyozon *k);
	void (*again)(struct kyozon *k);
	void (*back)(struct kyozon *k);
} timer_attacks[] = {
	{ "counter", NULL, stop_counter, start_counter },
	{ "enable", NULL, disable_timers, enable_timers },
	{ "comparator", NULL, far_comparators, NULL },
	{ "route", NULL, away_routes, restore_routes },
	{ "pin", mask_pins, NULL, unmask_pins },
};

static int timer(struct kyozon *k, char *argument)
{
	const char *how = strsep(&argument, " ");
	unsigned long *physical = (void *)symbol("hpet_address");
	unsigned int ms;
	size_t i;
	u32 n;

	if (!argument || kstrtouint(argument, 0, &ms) || ms > HOLD_MAX_MS)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(timer_attacks); i++)
		if (!strcmp(timer_attacks[i].name, how))
			break;
	if (i == ARRAY_SIZE(timer_attacks))
		return -EINVAL;
	hpet = physical && *physical ? ioremap(*physical, PAGE_SIZE) : NULL;
	if (!hpet)
		return -ENODEV;
	hpet_timers = ((hpet_get(HPET_ID) & HPET_ID_NUMBER) >> HPET_ID_NUMBER_SHIFT) + 1;
	for (n = TICK_TIMER; n < hpet_timers; n++) {
		saved[n] = hpet_get(HPET_Tn_CFG(n));
		saved_route[n] = hpet_get(HPET_Tn_ROUTE(n) + 4);
	}
	no_rescue(k);
	if (timer_attacks[i].once)
		timer_attacks[i].once(k);
	hold(ms, timer_attacks[i].again, k);
	if (timer_attacks[i].back)
		timer_attacks[i].back(k);
	/* A tick that was missed is the last one: one more, in 10 ms. */
	hpet_set(HPET_Tn_CMP(TICK_TIMER), hpet_get(HPET_COUNTER) +
		 (u32)(10000000000000ull / hpet_get(HPET_PERIOD)));
	iounmap(hpet);
	snprintf(said, sizeof(said), "timer %s for %u ms", how, ms);
	return 0;
}

static void set_disarmed(struct kyozon *k)
{
	WRITE_ONCE(k->armed, false);
}

static int disarm(struct kyozon *k, char *argument)
{
	unsigned int ms;

	if (kstrtouint(argument, 0, &ms) || ms > HOLD_MAX_MS)
		return -EINVAL;
	no_rescue(k);
	hold(ms, set_disarmed, k);
	WRITE_ONCE(k->armed, true);
	snprintf(said, sizeof(said), "disarm for %u ms", ms);
	return 0;
}

static int hold_only(struct kyozon *k, char *argument)
{
	unsigned int ms;

	if (kstrtouint(argument, 0, &ms) || ms > HOLD_MAX_MS)
		return -EINVAL;
	snprintf(said, sizeof(said), "hold for %u ms", ms);
	return hold(ms, NULL, k);
}

static struct rewrite {
	const char *name;
	u32 msr;
	u64 flip;
	u64 was, is;
	int error;
} rewrites[] = {
	{ "efer", MSR_EFER, EFER_SVME },
	{ "hsave", MSR_VM_HSAVE_PA, PAGE_SIZE },
	{ "vm-cr", MSR_VM_CR, BIT(1) },		/* INIT becomes an exception */
	{ "apic-base", MSR_IA32_APICBASE, PAGE_SIZE },
};

/* Interrupts are off. */
static void rewrite_here(void *data)
{
	struct rewrite *r = data;

	r->error = rdmsrl_safe(r->msr, &r->was);
	r->is = r->was;
	if (!r->error)
		r->error = wrmsrl_safe(r->msr, r->was ^ r->flip);
	if (!r->error)
		r->error = rdmsrl_safe(r->msr, &r->is);
	if (r->is != r->was)
		wrmsrl_safe(r->msr, r->was);
}

static int msr(struct kyozon *k, char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rewrites); i++) {
		struct rewrite *r = &rewrites[i];

		if (strcmp(r->name, name))
			continue;
		smp_call_function_single(k->cpu, rewrite_here, r, 1);
		snprintf(said, sizeof(said), "msr %s %s was %#llx is %#llx", name,
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

static atomic_t seen;

/* Ours, so that Linux does not ask the console about them. */
static int count_nmi(unsigned int type, struct pt_regs *regs)
{
	atomic_inc(&seen);
	return NMI_HANDLED;
}

static void send_nmi(struct kyozon *k)
{
	send(k->cpu, APIC_DM_NMI);
}

static int nmis(struct kyozon *k, char *argument)
{
	unsigned int ms;
	int error;

	if (kstrtouint(argument, 0, &ms) || ms > HOLD_MAX_MS)
		return -EINVAL;
	atomic_set(&seen, 0);
	error = register_nmi_handler(NMI_LOCAL, count_nmi, 0, "kyozon-attacks");
	if (error)
		return error;
	hold(ms, send_nmi, k);
	msleep(20);
	unregister_nmi_handler(NMI_LOCAL, "kyozon-attacks");
	snprintf(said, sizeof(said), "nmis for %u ms, seen %d", ms, atomic_read(&seen));
	return 0;
}

#define LOW_PAGE	0x8000	/* Linux leaves the first MiB alone */
#define LOW_MARK	0x100

/* That CPU is the attacker's then, with nothing below it. An NMI starts it, too. */
static int init(struct kyozon *k, char *unused)
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
	snprintf(said, sizeof(said), "init CPU %u: our code %s", k->cpu,
		 READ_ONCE(*mark) == 0x5150 ? "runs" : "does not run");
	return 0;
}

static int hotplug(struct kyozon *k, char *unused)
{
	int *state = (void *)symbol("kyozon:hotplug_state");

	if (!state)
		return -ENOENT;
	__cpuhp_remove_state(*state, false);
	snprintf(said, sizeof(said), "hotplug state %d removed", *state);
	return 0;
}

static const struct {
	const char *name;
	int (*try)(struct kyozon *k, char *argument);
} attempts[] = {
	{ "find", find }, { "write", write }, { "read", read }, { "break", break_text },
	{ "table", table }, { "dma", dma }, { "timer", timer }, { "disarm", disarm }, { "hold", hold_only },
	{ "msr", msr }, { "nmis", nmis }, { "init", init }, { "hotplug", hotplug },
};

int root_try(char *line)
{
	const char *name = strsep(&line, " ");
	struct kyozon *k = loaded();
	size_t i;

	said[0] = '\0';
	if (!k)
		return -ENODEV;
	for (i = 0; i < ARRAY_SIZE(attempts); i++)
		if (!strcmp(attempts[i].name, name))
			return attempts[i].try(k, line ? line : "");
	return -EINVAL;
}

void root_show(struct seq_file *out)
{
	if (said[0])
		seq_printf(out, "%s\n", said);
}
