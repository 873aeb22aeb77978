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
#include <linux/kernel.h>
#include <linux/seq_file.h>
#include <linux/string.h>

#include "root.h"

static char last_report[160];

void root_report(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(last_report, sizeof(last_report), format, arguments);
	va_end(arguments);
}

static struct kyozon *loaded(void)
{
	struct kyozon *k = (void *)symbol("kyozon");

	return k && k->state != KYOZON_STATE_EMPTY ? k : NULL;
}

static const struct {
	const char *name;
	int (*try)(struct kyozon *k, char *argument);
} attempts[] = {
	{ "find", root_find },
	{ "write", root_write },
	{ "read", root_read },
	{ "break", root_break },
	{ "table", root_table },
	{ "dma", root_dma },
	{ "iommu", root_iommu },
	{ "timer", root_timer },
	{ "disarm", root_disarm },
	{ "hold", root_hold },
	{ "msr", root_msr },
	{ "nmis", root_nmis },
	{ "init", root_init },
	{ "hotplug", root_hotplug },
};

int root_try(char *line)
{
	const char *name = strsep(&line, " ");
	struct kyozon *k = loaded();
	size_t i;

	last_report[0] = '\0';
	if (!k)
		return -ENODEV;
	for (i = 0; i < ARRAY_SIZE(attempts); i++)
		if (!strcmp(attempts[i].name, name))
			return attempts[i].try(k, line ? line : "");
	return -EINVAL;
}

void root_show(struct seq_file *out)
{
	if (last_report[0])
		seq_printf(out, "%s\n", last_report);
}
