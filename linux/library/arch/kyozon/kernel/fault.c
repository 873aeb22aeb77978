// SPDX-License-Identifier: GPL-2.0-only
/* Faults on addresses that a program passed: the host's signal handler asks where to continue. */

#include <linux/extable.h>
#include <linux/uaccess.h>
#include <asm/sections.h>
#include "kyozon.h"

u64 kyozon_fixup(u64 ip)
{
	const struct exception_table_entry *entry;

	if (ip < (u64)_text || ip >= (u64)__init_end)
		return 0;
	entry = search_exception_tables(ip);
	return entry ? (u64)&entry->fixup + entry->fixup : 0;
}
