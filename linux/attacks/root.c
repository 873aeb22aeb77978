// SPDX-License-Identifier: GPL-2.0-only
/*
 * What root can try against a cokernel by loading a module.
 *
 *	root find		finds the cokernel's memory and image for the
 *				other attempts
 *	root write HOW		changes a word of its memory, mapped by HOW:
 *				direct, memremap, ioremap, vmap, entry
 *	root read HOW		reads the start of its image and of its memory
 *	root copy		copies a word of it to an unused address
 *	root break HOW		overwrites its text with invalid instructions
 *	root table		uses its memory as one of Linux's page tables
 *	root dma		writes by a device (QEMU's edu)
 *	root iommu ADDRESS	switches off the IOMMU with registers at ADDRESS
 *	root timer HOW MS	for MS ms: counter, enable, comparator, route, pin,
 *				race, apic-id, touch
 *	root disarm MS		for MS ms, kyozon.ko believes that nothing runs
 *	root hold MS		does nothing for MS ms, to compare with
 *	root msr NAME		rewrites a register (see rewrites) of its CPU
 *	root sleep		puts the machine to sleep (S3) by ACPI's port
 *	root serial PORT	switches off the output of a serial port
 *	root nmis MS		floods its CPU with NMIs
 *	root init		resets its CPU by INIT and SIPI from another CPU
 *	root hotplug		removes kyozon.ko's veto against CPU hotplug
 *	root storm SEED MS	for MS ms, random privileged operations on all
 *				CPUs; "trace" as a third word prints each
 *	root vmmcall WHAT KEY [MS]
 *				calls the hypervisor to open the wall, or to
 *				start or stop the ticks, with a guessed key or
 *				the one leaked from kyozon.ko's memory; for MS
 *				ms again and again
 *	root forge		opens the wall with the leaked key, and rewrites
 *				all events
 *
 * A program can map the memory, too: mmap of /proc/kyozon-attacks gives the
 * page that "write" changes. All attempts restore the old state, except for
 * overwritten memory and a CPU that was reset. The last line of
 * /proc/kyozon-attacks is the result of the last attempt.
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
	{ "copy", root_copy },
	{ "break", root_break },
	{ "table", root_table },
	{ "dma", root_dma },
	{ "iommu", root_iommu },
	{ "timer", root_timer },
	{ "disarm", root_disarm },
	{ "hold", root_hold },
	{ "hpet", root_hpet },
	{ "msr", root_msr },
	{ "sleep", root_sleep },
	{ "serial", root_serial },
	{ "nmis", root_nmis },
	{ "init", root_init },
	{ "hotplug", root_hotplug },
	{ "storm", root_storm },
	{ "vmmcall", root_call },
	{ "forge", root_forge },
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
