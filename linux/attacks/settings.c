// SPDX-License-Identifier: GPL-2.0-only
/*
 * Takes back a protection that Linux lets nobody take back, and has the kernel
 * start another program than the system's: what exploits do with a single write.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "attacks.h"

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
