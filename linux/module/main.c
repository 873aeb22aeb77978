// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/kyozon: load, unload, status, and read-only access to the event ring.
 *
 * While a cokernel is loaded the module holds a reference to itself: rmmod
 * fails until `kyozon unload`.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/suspend.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <asm/tsc.h>

#include "kyozon.h"

#define EVENT_RECORDS	256
#define EVENT_PAGES	DIV_ROUND_UP(KYOZON_RECORDS_OFFSET + \
				     EVENT_RECORDS * sizeof(struct kyozon_event_record), \
				     PAGE_SIZE)

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define vm_flags_clear(vma, flags)	((vma)->vm_flags &= ~(flags))
#endif

struct kyozon kyozon;

static DEFINE_MUTEX(kyozon_lock);

/*
 * Whoever changes kyozon.events holds this too. mmap() takes it alone: it has
 * mmap_lock, which a load takes at a fault on its images, under kyozon_lock.
 * Nothing is copied from or to user memory under this lock.
 */
static DEFINE_MUTEX(events_lock);

static const char *const exceptions[] = {
	"#DE divide error", "#DB debug", "NMI", "#BP breakpoint",
	"#OF overflow", "#BR bound range", "#UD invalid instruction",
	"#NM no FPU", "#DF double fault", "vector 9", "#TS invalid TSS",
	"#NP segment not present", "#SS stack segment",
	"#GP general protection", "#PF page fault", "vector 15",
	"#MF floating point", "#AC alignment", "#MC machine check",
	"#XM SIMD", "#VE virtualization", "#CP control protection",
};

/* Writes one line on why the cokernel was stopped. */
static void describe_stop(char *line, size_t bytes)
{
	const struct kyozon_fault *f = kyozon.as->fault();
	const struct kyozon_frame *r = &f->frame;

	switch (f->reason) {
	case KYOZON_FAULT_EXCEPTION:
		snprintf(line, bytes,
			 "cokernel stopped: %s, error %#llx, rip %#llx, cr2 %#llx, rsp %#llx, rax %#llx, rdi %#llx, rsi %#llx",
			 r->vector < ARRAY_SIZE(exceptions) ?
				exceptions[r->vector] : "exception",
			 r->error, r->rip, f->cr2, r->rsp, r->rax, r->rdi,
			 r->rsi);
		break;
	case KYOZON_FAULT_RUNAWAY:
		snprintf(line, bytes,
			 "cokernel stopped: exceeded its budget of %u us too often, rip %#llx, cs %#llx, rsp %#llx",
			 kyozon.budget_us, r->rip, r->cs, r->rsp);
		break;
	case KYOZON_FAULT_RETURNED:
		snprintf(line, bytes, "cokernel stopped: it returned from start");
		break;
	case KYOZON_FAULT_WALL:
		snprintf(line, bytes,
			 "cokernel stopped: it accessed memory that is not its own, exit %#llx, information %#llx and %#llx, rip %#llx, rsp %#llx",
			 r->vector, r->error, f->cr2, r->rip, r->rsp);
		break;
	case KYOZON_FAULT_LOST_CPU:
		snprintf(line, bytes,
			 "cokernel stopped: Linux cannot run on its CPU any more, exit %#llx",
			 r->vector);
		break;
	case KYOZON_FAULT_PROCESSOR:
		snprintf(line, bytes,
			 "cokernel stopped: the processor lost its state at an exit and stored the hypervisor's, a known defect of QEMU");
		break;
	case KYOZON_FAULT_CALL:
		snprintf(line, bytes,
			 "cokernel stopped: Linux had its ticks stopped, see kyozon events");
		break;
	default:
		snprintf(line, bytes,
			 "cokernel stopped: the layer failed, rip %#llx, cr2 %#llx",
			 r->rip, f->cr2);
	}
}

/* In interrupt context, soon after the trip that stopped the cokernel. */
static void report_stop(struct irq_work *work)
{
	char line[232];

	describe_stop(line, sizeof(line));
	pr_warn("%s\n", line);
}

static void free_pages_of(struct page **pages, u32 count)
{
	while (count)
		__free_page(pages[--count]);
	kfree(pages);
}

/* A reader may keep the pages: version 0 marks them as no ring. */
static void events_give(void)
{
	struct page **pages = kyozon.events;
	u32 count = kyozon.event_pages;
	struct kyozon_event_ring *ring = page_address(pages[0]);

	WRITE_ONCE(ring->version, 0);
	mutex_lock(&events_lock);
	kyozon.events = NULL;
	kyozon.event_pages = 0;
	mutex_unlock(&events_lock);
	free_pages_of(pages, count);
}

/* Single pages with reference counts: a reader's mapping keeps them. */
static int events_take(struct kyozon_load *load)
{
	struct kyozon_event_ring *ring;
	struct page **pages;
	u32 count;

	pages = kcalloc(EVENT_PAGES, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return kyozon_err(load, -ENOMEM, "no memory for the event ring");
	for (count = 0; count < EVENT_PAGES; count++) {
		pages[count] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!pages[count]) {
			free_pages_of(pages, count);
			return kyozon_err(load, -ENOMEM,
					  "no memory for the event ring");
		}
	}
	ring = page_address(pages[0]);
	ring->version = KYOZON_EVENTS_VERSION;
	ring->records = EVENT_RECORDS;
	ring->tsc_khz = kyozon.tsc_khz;
	ring->loaded_tsc = rdtsc();
	mutex_lock(&events_lock);
	kyozon.events = pages;
	kyozon.event_pages = count;
	mutex_unlock(&events_lock);
	return 0;
}

/* Under kyozon_lock. On failure nothing is changed. */
static int do_load(struct kyozon_load *load)
{
	static struct kyozon_range ram[KYOZON_MAX_RANGES];
	static struct kyozon_images images;
	u64 pages;
	u32 ram_count;
	int error;

	if (kyozon.state != KYOZON_STATE_EMPTY)
		return kyozon_err(load, -EBUSY,
				  "a cokernel is already loaded: run kyozon unload first");
	error = kyozon_refuse(load);
	if (error)
		return error;
	error = kyozon_images_take(&images, load);
	if (error)
		return error;

	kyozon.cpu = load->cpu;
	kyozon.mode = load->mode;
	kyozon.as = kyozon_mode(load->mode);
	kyozon.tick_hz = load->tick_hz;
	kyozon.budget_us = load->budget_us;
	kyozon.tsc_khz = tsc_khz;
	kyozon.levels = __read_cr4() & X86_CR4_LA57 ? 5 : 4;
	kyozon.differences = 0;

	error = kyozon_ram(NULL, ram, &ram_count);
	if (error) {
		kyozon_err(load, error, "System RAM has more than %u ranges",
			   (u32)KYOZON_MAX_RANGES);
		goto give_images;
	}
	pages = kyozon_world_pages(&images, load->memory_bytes, ram, ram_count) +
		kyozon.as->pages(&images, ram, ram_count);
	error = kyozon_reserve_take(&kyozon.reserve, pages);
	if (error) {
		kyozon_err(load, error,
			   "no %llu KiB of free memory in at most %u pieces: reduce --memory",
			   pages << (PAGE_SHIFT - 10), (u32)KYOZON_MAX_RANGES);
		goto give_images;
	}
	error = events_take(load);
	if (error)
		goto give_reserve;
	error = kyozon_world_make(load, &images);
	if (error)
		goto give_events;
	/* From here on the CPU stays online. */
	error = kyozon_leave_take(load);
	if (error)
		goto give_events;
	error = smp_call_function_single(load->cpu, kyozon_world_bind, NULL, 1);
	if (error) {
		kyozon_err(load, error, "CPU %u is not online", load->cpu);
		goto give_leave;
	}
	error = kyozon_tick_take(load);
	if (error)
		goto give_leave;
	error = kyozon.as->take(load, &images);
	if (error)
		goto give_tick;
	if (!try_module_get(THIS_MODULE)) {
		error = kyozon_err(load, -ENODEV, "the module is being unloaded");
		goto give_mode;
	}
	WRITE_ONCE(kyozon.state, KYOZON_STATE_RUNNING);
	error = kyozon.as->start();
	if (error) {
		kyozon_err(load, error, "CPU %u is not online", load->cpu);
		goto put_module;
	}
	kyozon_images_give(&images);
	pr_info("cokernel on CPU %u, %u ticks a second from %s, %llu KiB\n",
		kyozon.cpu, kyozon.tick_hz, kyozon.tick.source->name,
		kyozon.reserve.pages << (PAGE_SHIFT - 10));
	return 0;

put_module:
	kyozon.as->stop(NULL);
	WRITE_ONCE(kyozon.state, KYOZON_STATE_EMPTY);
	module_put(THIS_MODULE);
give_mode:
	kyozon.as->give();
give_tick:
	kyozon_tick_give();
give_leave:
	kyozon_leave_give();
give_events:
	events_give();
give_reserve:
	kyozon_reserve_give(&kyozon.reserve);
give_images:
	kyozon_images_give(&images);
	return error;
}

/* Under kyozon_lock. On failure nothing is changed. */
static int do_unload(const struct kyozon_unload *unload)
{
	int error;

	if (unload->version != KYOZON_DEVICE_VERSION)
		return -EINVAL;
	if (kyozon.state == KYOZON_STATE_EMPTY)
		return -ENODEV;
	error = kyozon.as->stop(&unload->key);
	if (error)
		return error;
	kyozon.as->give();
	irq_work_sync(&kyozon.stopped);
	kyozon_tick_give();
	kyozon_leave_give();
	events_give();
	kyozon_reserve_give(&kyozon.reserve);
	WRITE_ONCE(kyozon.state, KYOZON_STATE_EMPTY);
	module_put(THIS_MODULE);
	kyozon_check_report();
	pr_info("cokernel unloaded\n");
	return 0;
}

static u64 tsc_to_ns(u64 tsc)
{
	return kyozon.tsc_khz ? mul_u64_u64_div_u64(tsc, 1000000, kyozon.tsc_khz) : 0;
}

static u64 percentile_99(const struct kyozon_tick *tick)
{
	u64 total = 0, seen = 0;
	unsigned int i;

	for (i = 0; i < KYOZON_HISTOGRAM; i++)
		total += tick->histogram[i];
	for (i = 0; i < KYOZON_HISTOGRAM - 1; i++) {
		seen += tick->histogram[i];
		if (seen * 100 >= total * 99)
			break;
	}
	return total ? tsc_to_ns(min(2ull << i, tick->longest_tsc)) : 0;
}

static void do_status(struct kyozon_status *s)
{
	struct kyozon_tick *tick = &kyozon.tick;

	s->version = KYOZON_DEVICE_VERSION;
	s->state = kyozon.state;
	if (s->state == KYOZON_STATE_EMPTY)
		return;
	s->differences = kyozon.differences;
	kyozon.as->status(s, tick);
	s->mode = kyozon.mode;
	s->tick_hz = kyozon.tick_hz;
	s->budget_us = kyozon.budget_us;
	s->cpu = kyozon.cpu;
	s->tick_source = tick->source->id;
	s->ticks = tick->ticks;
	s->missed = tick->missed;
	s->overruns = tick->overruns;
	s->longest_ns = tsc_to_ns(tick->longest_tsc);
	s->p99_ns = percentile_99(tick);
	s->reserve_bytes = (kyozon.reserve.pages + kyozon.event_pages)
			   << PAGE_SHIFT;
	s->events_bytes = (u64)kyozon.event_pages << PAGE_SHIFT;
	if (s->state == KYOZON_STATE_STOPPED)
		describe_stop(s->message, sizeof(s->message));
}

static long ioctl_load(void __user *arg)
{
	struct kyozon_load *load;
	unsigned int sleep;
	long error;

	if (!capable(CAP_SYS_MODULE))
		return -EPERM;
	load = memdup_user(arg, sizeof(*load));
	if (IS_ERR(load))
		return PTR_ERR(load);
	load->message[0] = 0;
	/* No suspend may begin before its notifier is registered. */
	sleep = lock_system_sleep();
	mutex_lock(&kyozon_lock);
	error = do_load(load);
	mutex_unlock(&kyozon_lock);
	unlock_system_sleep(sleep);
	/* A load that succeeded must not fail here, and has no message. */
	if (error)
		(void)!copy_to_user(arg + offsetof(struct kyozon_load, message),
				    load->message, sizeof(load->message));
	kfree(load);
	return error;
}

static long ioctl_unload(void __user *arg)
{
	struct kyozon_unload unload;
	long error;

	if (!capable(CAP_SYS_MODULE))
		return -EPERM;
	if (copy_from_user(&unload, arg, sizeof(unload)))
		return -EFAULT;
	mutex_lock(&kyozon_lock);
	error = do_unload(&unload);
	mutex_unlock(&kyozon_lock);
	return error;
}

static long ioctl_status(void __user *arg)
{
	struct kyozon_status *status = kzalloc(sizeof(*status), GFP_KERNEL);
	long error;

	if (!status)
		return -ENOMEM;
	mutex_lock(&kyozon_lock);
	do_status(status);
	mutex_unlock(&kyozon_lock);
	error = copy_to_user(arg, status, sizeof(*status)) ? -EFAULT : 0;
	kfree(status);
	return error;
}

static long kyozon_ioctl(struct file *file, unsigned int request,
			 unsigned long arg)
{
	switch (request) {
	case KYOZON_IOCTL_LOAD:
		return ioctl_load((void __user *)arg);
	case KYOZON_IOCTL_UNLOAD:
		return ioctl_unload((void __user *)arg);
	case KYOZON_IOCTL_STATUS:
		return ioctl_status((void __user *)arg);
	}
	return -ENOTTY;
}

static int kyozon_mmap(struct file *file, struct vm_area_struct *vma)
{
	unsigned long pages = vma_pages(vma);
	int error;

	if (vma->vm_flags & VM_WRITE)
		return -EPERM;
	vm_flags_clear(vma, VM_MAYWRITE);
	mutex_lock(&events_lock);
	if (!kyozon.events)
		error = -ENODEV;
	else if (vma->vm_pgoff || pages > kyozon.event_pages)
		error = -EINVAL;
	else
		error = vm_insert_pages(vma, vma->vm_start, kyozon.events,
					&pages);
	mutex_unlock(&events_lock);
	return error;
}

static const struct file_operations kyozon_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = kyozon_ioctl,
	.mmap = kyozon_mmap,
};

static struct miscdevice kyozon_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "kyozon",
	.mode = 0640,
	.fops = &kyozon_fops,
};

static int __init kyozon_init(void)
{
	init_irq_work(&kyozon.stopped, report_stop);
	return misc_register(&kyozon_device);
}

static void __exit kyozon_exit(void)
{
	misc_deregister(&kyozon_device);
}

module_init(kyozon_init);
module_exit(kyozon_exit);

MODULE_DESCRIPTION("Lets a cokernel run beside this Linux, ticked by NMIs");
MODULE_AUTHOR("The Kyozon authors");
MODULE_LICENSE("GPL");
