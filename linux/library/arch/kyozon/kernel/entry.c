// SPDX-License-Identifier: GPL-2.0-only
/* The image's only entry: exchanges the two sides' structures. */

#include <linux/errno.h>
#include <linux/init.h>
#include <asm/setup.h>
#include "kyozon.h"

const struct kyozon_library_host *kyozon_host;

s64 kyozon_entry(const struct kyozon_library_host *host, struct kyozon_library_kernel *kernel);

s64 __used kyozon_entry(const struct kyozon_library_host *host, struct kyozon_library_kernel *kernel)
{
	if (host->version != KYOZON_LIBRARY_VERSION || host->reserved)
		return -EPROTONOSUPPORT;
	if (host->memory % KYOZON_LIBRARY_MEMORY_ALIGN || host->memory_bytes % KYOZON_LIBRARY_MEMORY_ALIGN ||
	    host->memory_bytes < KYOZON_LIBRARY_MEMORY_MIN)
		return -EINVAL;
	kyozon_host = host;
	*kernel = (struct kyozon_library_kernel) {
		.version = KYOZON_LIBRARY_VERSION,
		.start = (u64)kyozon_start,
		.call = (u64)kyozon_call,
		.service = (u64)kyozon_service,
		.interrupt = (u64)kyozon_interrupt,
		.fixup = (u64)kyozon_fixup,
		.halted = (u64)&kyozon_cpu.halted,
	};
	return 0;
}
