// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of the hypervisor that only kyozon.ko should be able to make.
 */
#include <linux/kernel.h>
#include <linux/random.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <asm/asm.h>

#include "root.h"
#include "vmm.h"

static struct {
	u64 number;
	bool leaked;		/* with the key in the module's memory */
	unsigned int made, accepted;
} calls;

/* Called on the cokernel's CPU, with interrupts off. */
static void call_here(void *unused)
{
	struct kyozon_vmm *vmm = (void *)symbol("kyozon_vmm");
	u64 result = calls.number, key[2];

	if (calls.leaked && vmm)
		memcpy(key, vmm->key, sizeof(key));
	else
		get_random_bytes(key, sizeof(key));
	asm volatile("1: .byte 0x0f, 0x01, 0xd9\n"	/* vmmcall */
		     "2:\n"
		     _ASM_EXTABLE(1b, 2b)
		     : "+a" (result) : "D" (key[0]), "S" (key[1]) : "memory");
	calls.made++;
	calls.accepted += !result;
}

/* The wall is open on this CPU: the text of every event can be rewritten. */
static void forge_here(void *data)
{
	struct kyozon *k = data;
	struct kyozon_event_ring *ring = page_address(k->events[0]);
	const unsigned int each = PAGE_SIZE / sizeof(struct kyozon_event_record);
	unsigned int i;

	call_here(NULL);
	for (i = 0; i < ring->records; i++) {
		struct page *page = k->events[KYOZON_RECORDS_OFFSET / PAGE_SIZE + i / each];
		struct kyozon_event_record *record = page_address(page);

		memset(record[i % each].text, 'x', KYOZON_EVENT_TEXT_BYTES);
	}
}

/* Opens the wall with the leaked key, and rewrites what the opening reported. */
int root_forge(struct kyozon *k, char *unused)
{
	calls.number = KYOZON_CALL_OPEN;
	calls.leaked = true;
	calls.made = calls.accepted = 0;
	smp_call_function_single(k->cpu, forge_here, k, 1);
	root_report("forge: %u of %u accepted", calls.accepted, calls.made);
	return 0;
}

static void call_there(struct kyozon *k)
{
	smp_call_function_single(k->cpu, call_here, NULL, 1);
}

static const struct {
	const char *name;
	u64 number;
} numbers[] = {
	{ "open", KYOZON_CALL_OPEN },
	{ "start", KYOZON_CALL_START },
	{ "stop", KYOZON_CALL_STOP },
};

int root_call(struct kyozon *k, char *argument)
{
	const char *name = strsep(&argument, " ");
	const char *key = argument ? strsep(&argument, " ") : "";
	unsigned int ms = 0;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++)
		if (!strcmp(numbers[i].name, name))
			break;
	calls.leaked = !strcmp(key, "leaked");
	if (i == ARRAY_SIZE(numbers) ||
	    (!calls.leaked && strcmp(key, "guessed")) ||
	    (argument && kstrtouint(argument, 0, &ms)) || ms > HOLD_MAX_MS)
		return -EINVAL;
	calls.number = numbers[i].number;
	calls.made = calls.accepted = 0;
	call_there(k);
	if (ms)
		root_wait(ms, call_there, k);
	root_report("vmmcall %s: %u of %u accepted", name, calls.accepted, calls.made);
	return 0;
}
