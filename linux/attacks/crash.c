// SPDX-License-Identifier: GPL-2.0-only
/*
 * Overwrites words of the crash kernel's image: whoever owns that has the
 * machine after the next crash. Linux maps the image read-only.
 */
#include <linux/errno.h>
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/kexec.h>
#include <linux/string.h>
#include <linux/types.h>

#include "attacks.h"

#define MAX_WORDS 8

/* The inverted words, and what they were. */
static struct {
	u64 *at, old;
} words[MAX_WORDS];
static unsigned int count;

static int write_word(u64 *at, u64 value)
{
	u8 *alias = alias_map((const u8 *)at);

	if (!alias)
		return -ENOMEM;
	overwrite(alias, (const u8 *)&value, sizeof(value));
	alias_unmap(alias);
	return 0;
}

static bool patch_crash_present(struct attack *attack)
{
	unsigned int i;

	for (i = 0; i < count && *words[i].at == ~words[i].old; i++)
		;
	return i == count;
}

static void patch_crash_undo(struct attack *attack)
{
	for (; count; count--) {
		u64 *at = words[count - 1].at, old = words[count - 1].old;

		if (*at == ~old)
			WARN_ON(write_word(at, old));
	}
}

static int invert(const struct kimage *image, char *place)
{
	char *first = strsep(&place, "+");
	unsigned long number = image->nr_segments - 1, offset = 0;
	u64 *at;
	int error;

	if (*first && kstrtoul(first, 0, &number))
		return -EINVAL;
	if (place && kstrtoul(place, 0, &offset))
		return -EINVAL;
	if (count == MAX_WORDS || number >= image->nr_segments || offset % sizeof(u64) ||
	    offset >= image->segment[number].memsz)
		return -ERANGE;
	at = phys_to_virt(image->segment[number].mem + offset);
	words[count].at = at;
	words[count].old = *at;
	error = write_word(at, ~*at);
	if (!error)
		count++;
	return error;
}

/* [SEGMENT[+OFFSET]][,...]: the word there, by default the first one of the last segment */
static int patch_crash_begin(struct attack *attack, char *argument)
{
	struct kimage **image = (struct kimage **)symbol("kexec_crash_image");
	char *place;
	int error = 0;

	if (!image || !*image)
		return -ENOENT;
	snprintf(attack->about, sizeof(attack->about), "%s", argument);
	count = 0;
	while (!error && (place = strsep(&argument, ",")))
		error = invert(*image, place);
	if (error) {
		patch_crash_undo(attack);
		return error;
	}
	attack_mark(attack, NULL);
	return 0;
}

struct attack patch_crash = {
	.name = "patch-crash",
	.begin = patch_crash_begin,
	.undo = patch_crash_undo,
	.present = patch_crash_present,
};
