// SPDX-License-Identifier: GPL-2.0-only
/* Memory, console and devices. */

#include <linux/console.h>
#include <linux/cpu.h>
#include <linux/init.h>
#include <linux/memblock.h>
#include <linux/mm.h>
#include <linux/panic.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <asm/sections.h>
#include <asm/setup.h>
#include "kyozon.h"

unsigned long kyozon_memory_start, kyozon_memory_end;
void *empty_zero_page;

static void print(struct console *console, const char *text, unsigned int bytes)
{
	host_print(text, bytes);
}

static struct console host_console = {
	.name = "host",
	.write = print,
	.flags = CON_PRINTBUFFER | CON_ENABLED | CON_ANYTIME,
	.index = -1,
};

void __init setup_arch(char **command_line)
{
	unsigned long zones[MAX_NR_ZONES] = { };

	strscpy(boot_command_line, (const char *)kyozon_host->command_line, COMMAND_LINE_SIZE);
	*command_line = boot_command_line;
	register_console(&host_console);
	/* The host sees a panic as the kernel's end. */
	panic_timeout = -1;
	add_bootloader_randomness(kyozon_host->seed, sizeof(kyozon_host->seed));

	kyozon_memory_start = kyozon_host->memory;
	kyozon_memory_end = kyozon_memory_start + kyozon_host->memory_bytes;
	min_low_pfn = kyozon_memory_start >> PAGE_SHIFT;
	max_low_pfn = kyozon_memory_end >> PAGE_SHIFT;
	max_pfn = max_low_pfn;
	memblock_add(kyozon_memory_start, kyozon_host->memory_bytes);
	memblock_reserve(kyozon_memory_start, PAGE_ALIGN((unsigned long)_end) - kyozon_memory_start);
	empty_zero_page = memblock_alloc(PAGE_SIZE, PAGE_SIZE);
	if (!empty_zero_page)
		panic("no memory");
	zones[ZONE_NORMAL] = max_low_pfn;
	free_area_init(zones);
}

void __init mem_init(void)
{
	max_mapnr = max_low_pfn;
	memblock_free_all();
}

extern char __initdata_begin[];

/* Code is not writable, so that only the data can serve as memory. */
void free_initmem(void)
{
	free_reserved_area(__initdata_begin, __init_end, -1, "unused kernel data");
}

void __init trap_init(void)
{
}

/* A device may raise its interrupt before its function returns; see kyozon_interrupt(). */
static void call_host(bool calling)
{
	WRITE_ONCE(kyozon_cpu.calling_host, calling);
	mb();
}

u64 kyozon_mmio_read(const volatile void __iomem *address, u32 bytes)
{
	u64 value;

	call_host(true);
	value = HOST_CALL(u64, mmio_read, (u64, u64, u32), (u64)address, bytes);
	call_host(false);
	return value;
}

void kyozon_mmio_write(volatile void __iomem *address, u32 bytes, u64 value)
{
	call_host(true);
	HOST_CALL(void, mmio_write, (u64, u64, u32, u64), (u64)address, bytes, value);
	call_host(false);
}

/* /proc/cpuinfo: the processors are the host's. */
static int cpuinfo_show(struct seq_file *m, void *v)
{
	seq_puts(m, "processor\t: 0\nmodel name\t: library Linux\n\n");
	return 0;
}

static void *cpuinfo_start(struct seq_file *m, loff_t *pos)
{
	return *pos ? NULL : SEQ_START_TOKEN;
}

static void *cpuinfo_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return NULL;
}

static void cpuinfo_stop(struct seq_file *m, void *v)
{
}

const struct seq_operations cpuinfo_op = {
	.start = cpuinfo_start,
	.next = cpuinfo_next,
	.stop = cpuinfo_stop,
	.show = cpuinfo_show,
};
