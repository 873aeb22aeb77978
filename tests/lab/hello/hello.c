// SPDX-License-Identifier: GPL-2.0-only
/* The smallest module: shows that what is built here loads into a stock kernel. */
#include <linux/module.h>
#include <linux/utsname.h>

static int __init hello_init(void)
{
	pr_info("hello: loaded into %s\n", init_utsname()->release);
	return 0;
}

static void __exit hello_exit(void)
{
	pr_info("hello: gone\n");
}

module_init(hello_init);
module_exit(hello_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Prints one line");
