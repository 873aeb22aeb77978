// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes back a protection that Linux lets nobody take back, has the kernel start
 * another program than the system's, or forges the record of a static call: what
 * exploits do with a single write.
 */
#include <linux/errno.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "attacks.h"

/* Static calls that have one name and different numbers. */
#define MOST_CALLS	16

/* A path that the kernel starts, and its text before. */
#define PATH_BYTES	128
static char *path;
static char path_old[PATH_BYTES];

/* VARIABLE PATH */
static int redirect_program_begin(struct attack *attack, char *argument)
{
	char *name = strsep(&argument, " ");

	path = (char *)symbol(name);
	if (!path || !argument)
		return -EINVAL;
	strscpy(path_old, path, sizeof(path_old));
	strscpy(path, argument, PATH_BYTES);
	attack_mark(attack, name);
	return 0;
}

static void redirect_program_undo(struct attack *attack)
{
	strscpy(path, path_old, PATH_BYTES);
}

struct attack redirect_program = {
	.name = "redirect-program",
	.begin = redirect_program_begin,
	.undo = redirect_program_undo,
	.present = attack_stays,
};

static int *protection, protection_old;

/* VARIABLE, an int */
static int lift_protection_begin(struct attack *attack, char *argument)
{
	protection = (int *)symbol(argument);
	if (!protection)
		return -EINVAL;
	protection_old = *protection;
	*protection = 0;
	attack_mark(attack, argument);
	return 0;
}

static void lift_protection_undo(struct attack *attack)
{
	*protection = protection_old;
}

struct attack lift_protection = {
	.name = "lift-protection",
	.begin = lift_protection_begin,
	.undo = lift_protection_undo,
	.present = attack_stays,
};

static void **record, *record_old;

/*
 * CALL FUNCTION [NOW]: the record of the static call leads to FUNCTION; code
 * makes the call as before. With NOW, it is one of those called CALL_0, CALL_1
 * and so on: the one that leads to NOW.
 */
static int redirect_call_begin(struct attack *attack, char *argument)
{
	char name[KSYM_NAME_LEN], *call = strsep(&argument, " "), *to = strsep(&argument, " ");
	void *function = to ? (void *)symbol(to) : NULL;
	void *now = argument ? (void *)symbol(argument) : NULL;
	int number;

	if (argument && !now)
		return -EINVAL;
	record = NULL;
	for (number = -1; function && !record && number < MOST_CALLS; number++) {
		snprintf(name, sizeof(name), number < 0 ? "__SCK__%s" : "__SCK__%s_%d", call, number);
		record = (void **)symbol(name);
		if (record && now && *record != now)
			record = NULL;
	}
	if (!record)
		return -EINVAL;
	record_old = *record;
	WRITE_ONCE(*record, function);
	attack_mark(attack, call);
	return 0;
}

static void redirect_call_undo(struct attack *attack)
{
	WRITE_ONCE(*record, record_old);
}

struct attack redirect_call = {
	.name = "redirect-call",
	.begin = redirect_call_begin,
	.undo = redirect_call_undo,
	.present = attack_stays,
};
