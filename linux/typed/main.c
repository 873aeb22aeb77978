// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/kyozon-typed: checks and runs programs. Who may open it may run them.
 * An open device has one program and one run of it.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <asm/cpufeature.h>

#include "typed.h"

struct typed_open {
	struct mutex lock;
	struct typed_code code;
	/* of a run that was interrupted, or NULL */
	struct typed_context *context;
	/* a stack for the next run, or 0 */
	unsigned long spare;
	/* of packets, or NULL; it stays until the device is closed */
	struct typed_filter *filter;
	/* for its packets, perhaps before it is there */
	wait_queue_head_t waiters;
};

int typed_err(char *message, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, KYOZON_TYPED_MESSAGE_BYTES, format, arguments);
	va_end(arguments);
	return error;
}

static int check_version(u32 version, u32 flags, char *message)
{
	if (version != KYOZON_TYPED_VERSION)
		return typed_err(message, -EINVAL,
				 "version %u of the interface; this module has %u",
				 version, KYOZON_TYPED_VERSION);
	if (flags)
		return typed_err(message, -EINVAL,
				 "flags %#x of the request are unknown to this module", flags);
	return 0;
}

static void unload(struct typed_open *open)
{
	typed_context_give(open->context);
	open->context = NULL;
	typed_code_give(&open->code);
}

static int take_imports(struct typed_imports *imports,
			const struct kyozon_typed_load *request)
{
	imports->named = request->imports;
	imports->count = request->import_count;
	if (imports->count > KYOZON_TYPED_OUTSIDE_GATES)
		return -EINVAL;
	if (copy_from_user(imports->numbers, u64_to_user_ptr(request->imports),
			   imports->count * sizeof(*imports->numbers)))
		return -EFAULT;
	return 0;
}

static int load(struct typed_open *open, const struct typed_program *program,
		struct kyozon_typed_load *request)
{
	char *message = request->check.message;
	struct typed_imports imports;
	int error;

	error = take_imports(&imports, request);
	if (error)
		return typed_err(message, error, "%llu imports: at most %d, at an address of readable memory",
				 request->import_count, KYOZON_TYPED_OUTSIDE_GATES);
	if (!mutex_trylock(&open->lock))
		return typed_err(message, -EBUSY,
				 "another thread runs the program of this device");
	unload(open);
	error = typed_program_load(program, &imports, &open->code, message);
	mutex_unlock(&open->lock);
	return error;
}

/* Without an open device, the program is checked only. */
static int do_check(struct typed_open *open, struct kyozon_typed_load *request)
{
	struct kyozon_typed_check *check = &request->check;
	struct typed_program program;
	int error;

	error = check_version(check->version, check->flags, check->message);
	if (error)
		return error;
	error = typed_program_take(&program, &check->file, check->message);
	if (error)
		return error;
	check->contents = program.contents;
	if (open)
		error = load(open, &program, request);
	typed_program_give(&program);
	return error;
}

static long ioctl_check(struct typed_open *open, void __user *arg)
{
	size_t bytes = open ? sizeof(struct kyozon_typed_load) : sizeof(struct kyozon_typed_check);
	struct kyozon_typed_load *request = kzalloc(sizeof(*request), GFP_KERNEL);
	struct kyozon_typed_check *check;
	long error;

	if (!request)
		return -ENOMEM;
	check = &request->check;
	if (copy_from_user(request, arg, bytes)) {
		kfree(request);
		return -EFAULT;
	}
	memset(check->message, 0, sizeof(check->message));
	memset(&check->contents, 0, sizeof(check->contents));
	error = do_check(open, request);
	if (copy_to_user(arg, check, sizeof(*check)))
		error = -EFAULT;
	kfree(request);
	return error;
}

static int do_run(struct typed_open *open, struct kyozon_typed_run *run)
{
	int error;

	error = check_version(run->version, run->flags, run->message);
	if (error)
		return error;
	if (!mutex_trylock(&open->lock))
		return typed_err(run->message, -EBUSY,
				 "another thread runs the program of this device");
	if (open->code.pages)
		error = typed_run(&open->code, &open->context, &open->spare,
				  open->filter, run);
	else
		error = typed_err(run->message, -ENOEXEC,
				  "no program was loaded by this device");
	mutex_unlock(&open->lock);
	return error;
}

static long ioctl_run(struct typed_open *open, void __user *arg)
{
	struct kyozon_typed_run *run = memdup_user(arg, sizeof(*run));
	long error;

	if (IS_ERR(run))
		return PTR_ERR(run);
	memset(run->message, 0, sizeof(run->message));
	run->outcome = 0;
	run->offset = 0;
	error = do_run(open, run);
	if (copy_to_user(arg, run, sizeof(*run)))
		error = -EFAULT;
	kfree(run);
	return error;
}

static int do_filter(struct typed_open *open, struct kyozon_typed_filter *request)
{
	int error;

	error = check_version(request->version,
			      (request->flags & ~KYOZON_TYPED_FULL_PASSES) | request->reserved,
			      request->message);
	if (error)
		return error;
	if (!mutex_trylock(&open->lock))
		return typed_err(request->message, -EBUSY,
				 "another thread runs the program of this device");
	if (open->filter)
		error = typed_err(request->message, -EBUSY, "this device has a filter already");
	else
		error = typed_filter_start(&open->filter, &open->waiters, request,
					   request->message);
	mutex_unlock(&open->lock);
	return error;
}

static long ioctl_filter(struct typed_open *open, void __user *arg)
{
	struct kyozon_typed_filter *request = memdup_user(arg, sizeof(*request));
	long error;

	if (IS_ERR(request))
		return PTR_ERR(request);
	memset(request->message, 0, sizeof(request->message));
	error = do_filter(open, request);
	if (copy_to_user(arg, request, sizeof(*request)))
		error = -EFAULT;
	kfree(request);
	return error;
}

static long typed_ioctl(struct file *file, unsigned int request,
			unsigned long arg)
{
	switch (request) {
	case KYOZON_IOCTL_TYPED_CHECK:
		return ioctl_check(NULL, (void __user *)arg);
	case KYOZON_IOCTL_TYPED_LOAD:
		return ioctl_check(file->private_data, (void __user *)arg);
	case KYOZON_IOCTL_TYPED_RUN:
		return ioctl_run(file->private_data, (void __user *)arg);
	case KYOZON_IOCTL_TYPED_FILTER:
		return ioctl_filter(file->private_data, (void __user *)arg);
	}
	return -ENOTTY;
}

static int typed_open(struct inode *inode, struct file *file)
{
	struct typed_open *open = kzalloc(sizeof(*open), GFP_KERNEL_ACCOUNT);

	if (!open)
		return -ENOMEM;
	mutex_init(&open->lock);
	init_waitqueue_head(&open->waiters);
	file->private_data = open;
	return 0;
}

/* Nothing runs: a request holds the file. */
static int typed_release(struct inode *inode, struct file *file)
{
	struct typed_open *open = file->private_data;

	unload(open);
	typed_stack_give(open->spare);
	typed_filter_end(open->filter);
	kfree(open);
	return 0;
}

static __poll_t typed_poll(struct file *file, struct poll_table_struct *table)
{
	struct typed_open *open = file->private_data;
	struct typed_filter *filter;

	poll_wait(file, &open->waiters, table);
	filter = smp_load_acquire(&open->filter);
	return filter ? typed_filter_events(filter) : DEFAULT_POLLMASK;
}

static void typed_show(struct seq_file *to, struct file *file)
{
	struct typed_open *open = file->private_data;
	struct typed_filter *filter = smp_load_acquire(&open->filter);

	if (filter)
		typed_filter_show(filter, to);
}

static const struct file_operations typed_fops = {
	.owner = THIS_MODULE,
	.open = typed_open,
	.release = typed_release,
	.unlocked_ioctl = typed_ioctl,
	.poll = typed_poll,
	.show_fdinfo = typed_show,
};

static struct miscdevice typed_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kyozon-typed",
	.mode = 0600,
	.fops = &typed_fops,
};

static int __init typed_init(void)
{
	int error;

	if (boot_cpu_has(X86_FEATURE_XENPV)) {
		pr_err("a paravirtualized guest of Xen has no kernel mode\n");
		return -ENODEV;
	}
	error = typed_container_init();
	if (error)
		return error;
	error = typed_run_init();
	if (error)
		return error;
	error = typed_filter_init();
	if (error)
		goto no_filters;
	error = misc_register(&typed_device);
	if (error)
		goto no_device;
	return 0;

no_device:
	typed_filter_exit();
no_filters:
	typed_run_exit();
	return error;
}

/* An open device holds the module. */
static void __exit typed_exit(void)
{
	misc_deregister(&typed_device);
	typed_filter_exit();
	typed_run_exit();
}

module_init(typed_init);
module_exit(typed_exit);

MODULE_DESCRIPTION("Runs machine code in kernel mode that a checker proves safe");
MODULE_AUTHOR("The Kyozon authors");
MODULE_LICENSE("GPL");
