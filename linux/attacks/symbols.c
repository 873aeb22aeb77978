// SPDX-License-Identifier: GPL-2.0-only
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/string.h>

#include "attacks.h"

/* Not exported; a kprobe gives its address. */
static unsigned long lookup_function(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };
	unsigned long at;

	if (register_kprobe(&probe))
		return 0;
	at = (unsigned long)probe.addr;
	unregister_kprobe(&probe);
	return at;
}

unsigned long symbol(const char *name)
{
	static unsigned long (*lookup)(const char *name);

	if (!lookup)
		lookup = (void *)lookup_function();
	return lookup ? lookup(name) : 0;
}

unsigned long symbol_with_offset(char *name)
{
	char *plus = strchr(name, '+');
	unsigned long at, offset = 0;

	if (plus) {
		*plus++ = '\0';
		if (kstrtoul(plus, 0, &offset))
			return 0;
	}
	at = symbol(name);
	return at ? at + offset : 0;
}
