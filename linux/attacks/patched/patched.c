// SPDX-License-Identifier: GPL-2.0-only
/*
 * A live patch of a function that shows a line of a file: it shows another line,
 * or none. To remove it, write 0 into /sys/kernel/livepatch/patched/enabled, and
 * wait until that folder is gone.
 */
#include <linux/livepatch.h>
#include <linux/module.h>
#include <linux/seq_file.h>

/* In the code: whoever changes it there makes another build. */
#define BUILD	0x4b594f5a4f4e0001ULL

static char *function = "cmdline_proc_show";
module_param(function, charp, 0444);
MODULE_PARM_DESC(function, "the function that is replaced");

static char *shows = "";
module_param(shows, charp, 0444);
MODULE_PARM_DESC(shows, "how the line begins; the number of the build follows");

static int show(struct seq_file *out, void *value)
{
	if (*shows)
		seq_printf(out, "%s %llx\n", shows, BUILD);
	return 0;
}

static struct klp_func functions[] = {
	{ .new_func = show },
	{ }
};

static struct klp_object objects[] = {
	{ .funcs = functions },
	{ }
};

static struct klp_patch patch = {
	.mod = THIS_MODULE,
	.objs = objects,
};

static int __init patched_init(void)
{
	functions[0].old_name = function;
	return klp_enable_patch(&patch);
}

static void __exit patched_exit(void)
{
}

module_init(patched_init);
module_exit(patched_exit);
MODULE_DESCRIPTION("Replaces a function that shows a line");
MODULE_LICENSE("GPL");
MODULE_INFO(livepatch, "Y");
