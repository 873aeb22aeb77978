// SPDX-License-Identifier: GPL-2.0-only
/* /dev/kyozon-typed: checks programs. Who may open it may use the checker. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "typed.h"

int typed_err(char *message, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, KYOZON_TYPED_MESSAGE_BYTES, format, arguments);
	va_end(arguments);
	return error;
}

static int do_check(struct kyozon_typed_check *check)
{
	struct typed_program program;
	int error;

	if (check->version != KYOZON_TYPED_VERSION || check->flags)
		return typed_err(check->message, -EINVAL,
				 "version %u of the interface; this module has %u",
				 check->version, KYOZON_TYPED_VERSION);
	error = typed_program_take(&program, &check->file, check->message);
	if (error)
		return error;
	check->contents = program.contents;
	typed_program_give(&program);
	return 0;
}

static long ioctl_check(void __user *arg)
{
	struct kyozon_typed_check *check = memdup_user(arg, sizeof(*check));
	long error;

	if (IS_ERR(check))
		return PTR_ERR(check);
	memset(check->message, 0, sizeof(check->message));
	memset(&check->contents, 0, sizeof(check->contents));
	error = do_check(check);
	if (copy_to_user(arg, check, sizeof(*check)))
		error = -EFAULT;
	kfree(check);
	return error;
}

static long typed_ioctl(struct file *file, unsigned int request,
			unsigned long arg)
{
	switch (request) {
	case KYOZON_IOCTL_TYPED_CHECK:
		return ioctl_check((void __user *)arg);
	}
	return -ENOTTY;
}

static const struct file_operations typed_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = typed_ioctl,
};

static struct miscdevice typed_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kyozon-typed",
	.mode = 0600,
	.fops = &typed_fops,
};

static int __init typed_init(void)
{
	return misc_register(&typed_device);
}

static void __exit typed_exit(void)
{
	misc_deregister(&typed_device);
}

module_init(typed_init);
module_exit(typed_exit);

MODULE_DESCRIPTION("Runs machine code in kernel mode that a checker proves safe");
MODULE_AUTHOR("The Kyozon authors");
MODULE_LICENSE("GPL");
