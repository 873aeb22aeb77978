// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a program that the checker accepted, in the caller's address space.
 *
 * A program may loop for ever, and a kernel with voluntary preemption does not
 * take the CPU from kernel code. So a timer looks every millisecond, on the CPU
 * of the program and while it executes: if the task should yield or has a
 * signal, the program continues in typed_interrupted, not where it was. It then
 * leaves to user mode with its state kept, as a task does that has a signal.
 *
 * A program that uses vector registers runs in a section of kernel_fpu_begin(),
 * where nothing may sleep. Page faults then lead to typed_fault(), which brings
 * the page in outside of the section. All that enter.S does is in the section,
 * but for the functions of gates.
 */
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fsnotify.h>
#include <linux/hrtimer.h>
#include <linux/kdebug.h>
#include <linux/kdev_t.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/nospec.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/stat.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/uio.h>
#include <linux/version.h>
#include <asm/fpu/api.h>
#include <asm/fpu/types.h>
#include <asm/irq_regs.h>
#include <asm/special_insns.h>
#include <asm/trapnr.h>

#include "typed.h"

#ifndef CONFIG_PREEMPT_NOTIFIERS
#error "the kernel has no CONFIG_PREEMPT_NOTIFIERS, which CONFIG_KVM selects"
#endif

#define TICK	ms_to_ktime(1)

/* What exceptions of vector operations do, and of x87: nothing. */
#define MXCSR_MASKED	0x1f80
#define FCW_MASKED	0x37f

/* How often an access faults in a row at one address until it is given up. */
#define TRIES	8

/* A program that does not execute: what enter.S has on its stack. */
struct typed_frame {
	unsigned long r15, r14, r13, r12, r11, r10, r9, r8;
	unsigned long di, si, bp, bx, dx, cx, ax;
	unsigned long flags;
	unsigned long ip;
	/* The first frame only: where the entry returns to. */
	unsigned long caller;
};

struct typed_context {
	/* enter.S knows these six. The stack pointer of the task, outside: */
	unsigned long stack;
	/* a struct typed_frame, */
	unsigned long resume;
	/* an address of the program, */
	unsigned long at;
	u64 result;
	/* whether a gate shall call typed_yield() */
	u32 attention;
	/* whether the program uses vector registers */
	u32 vectors;

	int trap;
	/* a program with vector registers: its last fault */
	unsigned long fault_at, fault_address;
	unsigned int tries;
	/* while it does not execute */
	struct fxregs_state registers __aligned(16);
	struct preempt_notifier notifier;
	struct hrtimer timer;
	/* only while the program executes */
	struct file *handles[KYOZON_TYPED_HANDLES];
	/* the handles that were read from, and written to, since it was entered */
	u32 checked[2];
};
static_assert(sizeof(struct typed_context) <= TYPED_CONTEXT_BYTES);
static_assert(offsetof(struct typed_context, stack) == TYPED_CONTEXT_STACK);
static_assert(offsetof(struct typed_context, resume) == TYPED_CONTEXT_RESUME);
static_assert(offsetof(struct typed_context, at) == TYPED_CONTEXT_AT);
static_assert(offsetof(struct typed_context, result) == TYPED_CONTEXT_RESULT);
static_assert(offsetof(struct typed_context, attention) == TYPED_CONTEXT_ATTENTION);
static_assert(offsetof(struct typed_context, vectors) == TYPED_CONTEXT_VECTORS);
static_assert(TYPED_AGAIN == -ERESTARTSYS);

static struct typed_context *context_of(unsigned long stack)
{
	return (void *)((stack | (TYPED_STACK_BYTES - 1)) -
			(TYPED_CONTEXT_BYTES - 1));
}

static unsigned long lowest_byte(struct typed_context *context)
{
	return (unsigned long)context & ~(TYPED_STACK_BYTES - 1ul);
}

static bool in_program(struct pt_regs *regs)
{
	return !user_mode(regs) && typed_in_image(regs->ip);
}

/* Whether there is something to do that a task does on its way to user mode. */
static bool must_leave(void)
{
	return signal_pending(current) || test_thread_flag(TIF_NOTIFY_RESUME);
}

/*
 * Grace periods of RCU's tasks end when each task has scheduled of its own
 * accord. To be preempted, which kernels do that preempt fully, is not that.
 */
static bool tasks_rcu_waits(void)
{
#ifdef CONFIG_TASKS_RCU
	return READ_ONCE(current->rcu_tasks_holdout);
#else
	return false;
#endif
}

/* The program's task executes on this CPU. */
static enum hrtimer_restart tick(struct hrtimer *timer)
{
	struct typed_context *context = container_of(timer, struct typed_context, timer);
	struct pt_regs *regs = get_irq_regs();

	if (need_resched() || must_leave() || tasks_rcu_waits()) {
		if (regs && in_program(regs)) {
			context->at = regs->ip;
			regs->ip = (unsigned long)typed_interrupted;
		} else {
			WRITE_ONCE(context->attention, 1);
		}
	}
	hrtimer_forward_now(timer, TICK);
	return HRTIMER_RESTART;
}

static void start_timer(struct preempt_notifier *notifier, int cpu)
{
	struct typed_context *context;

	context = container_of(notifier, struct typed_context, notifier);
	hrtimer_start(&context->timer, TICK, HRTIMER_MODE_REL_PINNED_HARD);
}

/* The timer is this CPU's, so its function does not run now. */
static void stop_timer(struct preempt_notifier *notifier, struct task_struct *next)
{
	struct typed_context *context;

	context = container_of(notifier, struct typed_context, notifier);
	hrtimer_try_to_cancel(&context->timer);
}

static struct preempt_ops on_cpu = {
	.sched_in = start_timer,
	.sched_out = stop_timer,
};

/*
 * In a section, page faults must not sleep. kernel_fpu_begin() does not say so
 * in kernels that do not count sections without preemption.
 */
static void begin_section(void)
{
	kernel_fpu_begin();
	pagefault_disable();
}

static void end_section(void)
{
	pagefault_enable();
	kernel_fpu_end();
}

/* Whether vector registers have upper parts that Linux has enabled. */
static bool upper_parts __ro_after_init;

/*
 * The registers may be anyone's when a section begins. A program uses no more
 * than xmm0 to xmm15; their upper parts, if they are not zero, make it slow.
 */
static void clear_registers(void)
{
	if (upper_parts) {
		asm volatile("vzeroall");
		return;
	}
	asm volatile("xorps %xmm0, %xmm0\n\t"
		     "xorps %xmm1, %xmm1\n\t"
		     "xorps %xmm2, %xmm2\n\t"
		     "xorps %xmm3, %xmm3\n\t"
		     "xorps %xmm4, %xmm4\n\t"
		     "xorps %xmm5, %xmm5\n\t"
		     "xorps %xmm6, %xmm6\n\t"
		     "xorps %xmm7, %xmm7\n\t"
		     "xorps %xmm8, %xmm8\n\t"
		     "xorps %xmm9, %xmm9\n\t"
		     "xorps %xmm10, %xmm10\n\t"
		     "xorps %xmm11, %xmm11\n\t"
		     "xorps %xmm12, %xmm12\n\t"
		     "xorps %xmm13, %xmm13\n\t"
		     "xorps %xmm14, %xmm14\n\t"
		     "xorps %xmm15, %xmm15");
}

/* Around the function of a gate: vector registers are the caller's to save. */
void typed_pause_vectors(void)
{
	end_section();
}

void typed_continue_vectors(void)
{
	begin_section();
	clear_registers();
}

static void save_registers(struct typed_context *context)
{
	if (!context->vectors)
		return;
	asm volatile("fxsaveq %0" : "=m" (context->registers));
	end_section();
}

static void load_registers(struct typed_context *context)
{
	if (!context->vectors)
		return;
	begin_section();
	clear_registers();
	asm volatile("fxrstorq %0" : : "m" (context->registers));
}

/* Lets other tasks run; whether the program may go on. */
static bool let_others(struct typed_context *context)
{
	WRITE_ONCE(context->attention, 0);
	cond_resched_tasks_rcu_qs();
	return !must_leave();
}

/* The program was interrupted, or is in a gate. Whether it goes on. */
unsigned int typed_yield(struct typed_context *context)
{
	save_registers(context);
	if (!let_others(context))
		return TYPED_LEFT_INTERRUPTED;
	load_registers(context);
	return TYPED_GOES_ON;
}

long typed_getpid(void)
{
	return task_tgid_vnr(current);
}

static struct file *file_of(struct typed_context *context, u64 handle)
{
	if (handle >= KYOZON_TYPED_HANDLES)
		return NULL;
	return context->handles[array_index_nospec(handle, KYOZON_TYPED_HANDLES)];
}

static bool in_region(u64 address, u64 bytes)
{
	u64 start = address - KYOZON_TYPED_REGION;

	return start <= KYOZON_TYPED_RESERVED &&
	       bytes <= KYOZON_TYPED_RESERVED - start;
}

static bool bring_in(unsigned long address, unsigned int flags)
{
	bool unlocked;
	int error;

	mmap_read_lock(current->mm);
	error = fixup_user_fault(current->mm, address, flags, &unlocked);
	mmap_read_unlock(current->mm);
	return !error;
}

/*
 * The processor keeps the address of a fault, but not whether it was a write.
 * So the page is brought in for writing if it can be. What fails is tried again
 * a few times: it may have been a read, or an interrupt had a fault of its own
 * before the address was read. An operand that is not aligned (Intel SDM 3A 6.15,
 * "Interrupt 13") leaves the address of before, which is 0 from the second time
 * on: only page faults write it (same place, "Interrupt 14").
 */
static unsigned int vector_fault(struct typed_context *context, unsigned long address)
{
	bool inside = in_region(address, 1);

	if (context->fault_at != context->at || context->fault_address != address)
		context->tries = 0;
	context->fault_at = context->at;
	context->fault_address = address;
	if (inside && bring_in(address, FAULT_FLAG_WRITE))
		return TYPED_GOES_ON;
	if (context->tries++ < TRIES) {
		if (inside)
			bring_in(address, 0);
		return TYPED_GOES_ON;
	}
	if (address)
		return TYPED_LEFT_FAULT;
	context->trap = X86_TRAP_GP;
	return TYPED_LEFT_TRAP;
}

/* The program's access faulted, and Linux could not handle that. */
unsigned int typed_fault(struct typed_context *context)
{
	struct typed_frame *frame = (struct typed_frame *)context->resume;
	unsigned long address = native_read_cr2();
	unsigned int left;

	frame->ip = typed_fault_address(frame->ip);
	context->at = frame->ip;
	if (!context->vectors)
		return TYPED_LEFT_FAULT;
	save_registers(context);
	left = vector_fault(context, address);
	if (!let_others(context))
		return TYPED_LEFT_INTERRUPTED;
	load_registers(context);
	native_write_cr2(0);
	return left;
}

/* What a system call would leave to its restart. */
static long restarted(long result)
{
	switch (result) {
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
	case -ERESTART_RESTARTBLOCK:
		return -ERESTARTSYS;
	}
	return result;
}

static bool skip_hooks;
module_param(skip_hooks, bool, 0644);
MODULE_PARM_DESC(skip_hooks,
		 "whether only a run's first read and first write of a handle ask security modules (N)");

/*
 * A transfer goes through vfs_iter_read() or vfs_iter_write(), which ask
 * security modules. With skip_hooks the first one of a run does; later ones call
 * the file alone, as accesses of a mapping do. Both tell fsnotify.
 */
static ssize_t transfer_direct(struct file *file, unsigned int direction,
			       struct iov_iter *iter, loff_t *position)
{
	struct kiocb request;
	ssize_t done;

	init_sync_kiocb(&request, file);
	request.ki_pos = position ? *position : 0;
	if (direction == READ) {
		done = file->f_op->read_iter(&request, iter);
		if (done >= 0)
			fsnotify_access(file);
	} else {
		file_start_write(file);
		done = file->f_op->write_iter(&request, iter);
		file_end_write(file);
		if (done > 0)
			fsnotify_modify(file);
	}
	if (position && done > 0)
		*position = request.ki_pos;
	return done;
}

static ssize_t transfer_checked(struct file *file, unsigned int direction,
				struct iov_iter *iter, loff_t *position)
{
	ssize_t done;

	if (direction == READ)
		return vfs_iter_read(file, iter, position, 0);
	/* Since 6.8, vfs_iter_write() does this. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
	file_start_write(file);
#endif
	done = vfs_iter_write(file, iter, position, 0);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
	file_end_write(file);
#endif
	return done;
}

/* What vfs_iter_read() looks at for each transfer. */
static bool is_plain(loff_t position)
{
	return position >= 0 && position <= LLONG_MAX - MAX_RW_COUNT;
}

/* The handle is one of a file. */
static ssize_t transfer_at(struct typed_context *context, struct file *file,
			   u64 handle, unsigned int direction, u64 address,
			   u64 bytes, loff_t *position)
{
	u32 bit = BIT(handle);
	struct iov_iter iter;
	ssize_t done;

	iov_iter_ubuf(&iter, direction, u64_to_user_ptr(address),
		      min_t(u64, bytes, MAX_RW_COUNT));
	if (READ_ONCE(skip_hooks) && context->checked[direction] & bit &&
	    (!position || is_plain(*position)))
		return transfer_direct(file, direction, &iter, position);
	done = transfer_checked(file, direction, &iter, position);
	if (done > 0)
		context->checked[direction] |= bit;
	return done;
}

static void lock_position(struct file *file)
{
	if (file->f_mode & FMODE_ATOMIC_POS)
		mutex_lock(&file->f_pos_lock);
}

static void unlock_position(struct file *file)
{
	if (file->f_mode & FMODE_ATOMIC_POS)
		mutex_unlock(&file->f_pos_lock);
}

/* Of the arguments of these nothing is known but that they are numbers. */
static long transfer(struct typed_context *context, unsigned int direction,
		     u64 handle, u64 address, u64 bytes)
{
	struct file *file = file_of(context, handle);
	loff_t *position = NULL;
	ssize_t done;

	if (!file)
		return -EBADF;
	if (!in_region(address, bytes))
		return -EFAULT;
	if (!(file->f_mode & FMODE_STREAM))
		position = &file->f_pos;
	lock_position(file);
	done = transfer_at(context, file, handle, direction, address, bytes, position);
	unlock_position(file);
	return restarted(done);
}

static long transfer_from(struct typed_context *context, unsigned int direction,
			  u64 handle, u64 address, u64 bytes, loff_t position)
{
	struct file *file = file_of(context, handle);
	fmode_t mode = direction == READ ? FMODE_PREAD : FMODE_PWRITE;

	if (!file)
		return -EBADF;
	if (position < 0)
		return -EINVAL;
	if (!(file->f_mode & mode))
		return -ESPIPE;
	if (!in_region(address, bytes))
		return -EFAULT;
	return restarted(transfer_at(context, file, handle, direction, address,
				     bytes, &position));
}

long typed_read(u64 handle, u64 address, u64 bytes,
		struct typed_context *context)
{
	return transfer(context, READ, handle, address, bytes);
}

long typed_write(u64 handle, u64 address, u64 bytes,
		 struct typed_context *context)
{
	return transfer(context, WRITE, handle, address, bytes);
}

long typed_pread(u64 handle, u64 address, u64 bytes, u64 position,
		 struct typed_context *context)
{
	return transfer_from(context, READ, handle, address, bytes, position);
}

long typed_pwrite(u64 handle, u64 address, u64 bytes, u64 position,
		  struct typed_context *context)
{
	return transfer_from(context, WRITE, handle, address, bytes, position);
}

/* What fstat() tells. */
static void describe(struct stat *to, const struct kstat *from)
{
	struct user_namespace *ns = current_user_ns();

	memset(to, 0, sizeof(*to));
	to->st_dev = new_encode_dev(from->dev);
	to->st_ino = from->ino;
	to->st_nlink = from->nlink;
	to->st_mode = from->mode;
	to->st_uid = from_kuid_munged(ns, from->uid);
	to->st_gid = from_kgid_munged(ns, from->gid);
	to->st_rdev = new_encode_dev(from->rdev);
	to->st_size = from->size;
	to->st_blksize = from->blksize;
	to->st_blocks = from->blocks;
	to->st_atime = from->atime.tv_sec;
	to->st_atime_nsec = from->atime.tv_nsec;
	to->st_mtime = from->mtime.tv_sec;
	to->st_mtime_nsec = from->mtime.tv_nsec;
	to->st_ctime = from->ctime.tv_sec;
	to->st_ctime_nsec = from->ctime.tv_nsec;
}

long typed_fstat(u64 handle, u64 address, struct typed_context *context)
{
	struct file *file = file_of(context, handle);
	struct kstat about;
	struct stat stat;
	int error;

	if (!file)
		return -EBADF;
	if (!in_region(address, sizeof(stat)))
		return -EFAULT;
	error = vfs_getattr(&file->f_path, &about, STATX_BASIC_STATS, 0);
	if (error)
		return error;
	describe(&stat, &about);
	return copy_to_user(u64_to_user_ptr(address), &stat, sizeof(stat)) ? -EFAULT : 0;
}

long typed_lseek(u64 handle, u64 offset, u64 whence,
		 struct typed_context *context)
{
	struct file *file = file_of(context, handle);
	loff_t at;

	if (!file)
		return -EBADF;
	if (whence > SEEK_MAX)
		return -EINVAL;
	lock_position(file);
	at = vfs_llseek(file, offset, whence);
	unlock_position(file);
	return at;
}

const struct kyozon_typed_gate typed_gates[] = {
	{ (unsigned long)typed_gate_exit, KYOZON_TYPED_EXIT, 1 },
	{ (unsigned long)typed_gate_getpid, KYOZON_TYPED_GETPID, 0 },
	{ (unsigned long)typed_gate_read, KYOZON_TYPED_READ, 3 },
	{ (unsigned long)typed_gate_write, KYOZON_TYPED_WRITE, 3 },
	{ (unsigned long)typed_gate_pread, KYOZON_TYPED_PREAD, 4 },
	{ (unsigned long)typed_gate_pwrite, KYOZON_TYPED_PWRITE, 4 },
	{ (unsigned long)typed_gate_fstat, KYOZON_TYPED_FSTAT, 2 },
	{ (unsigned long)typed_gate_lseek, KYOZON_TYPED_LSEEK, 3 },
};
const unsigned int typed_gate_count = ARRAY_SIZE(typed_gates);

/* An exception of a program, other than a page fault. */
static int trapped(struct notifier_block *block, unsigned long why, void *data)
{
	struct die_args *args = data;
	struct typed_context *context;

	if ((why != DIE_TRAP && why != DIE_GPF) || !in_program(args->regs))
		return NOTIFY_DONE;
	context = context_of(args->regs->sp);
	context->at = args->regs->ip;
	context->trap = args->trapnr;
	args->regs->ip = (unsigned long)typed_trapped;
	return NOTIFY_STOP;
}

static struct notifier_block traps = { .notifier_call = trapped };

static void give_handles(struct typed_context *context)
{
	unsigned int n;

	for (n = 0; n < KYOZON_TYPED_HANDLES; n++) {
		if (context->handles[n])
			fput(context->handles[n]);
		context->handles[n] = NULL;
	}
}

/*
 * A program that does not execute holds no files: a cycle of files that hold
 * each other would last for ever.
 */
static int take_handles(struct typed_context *context, struct kyozon_typed_run *run)
{
	unsigned int n;

	memset(context->checked, 0, sizeof(context->checked));
	for (n = 0; n < KYOZON_TYPED_HANDLES; n++) {
		if (run->handles[n] < 0)
			continue;
		context->handles[n] = fget(run->handles[n]);
		if (!context->handles[n]) {
			give_handles(context);
			return typed_err(run->message, -EBADF,
					 "handle %u: descriptor %d is not open",
					 n, run->handles[n]);
		}
	}
	return 0;
}

static struct typed_context *context_take(const struct typed_code *code,
					  const u64 *arguments)
{
	unsigned int order = get_order(TYPED_STACK_BYTES);
	struct typed_context *context;
	struct typed_frame *frame;
	unsigned long stack;

	stack = __get_free_pages(GFP_KERNEL_ACCOUNT | __GFP_ZERO, order);
	if (!stack)
		return NULL;
	context = context_of(stack);
	preempt_notifier_init(&context->notifier, &on_cpu);
	hrtimer_init(&context->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	context->timer.function = tick;
	context->vectors = code->vectors;
	context->registers.cwd = FCW_MASKED;
	context->registers.mxcsr = MXCSR_MASKED;

	frame = (struct typed_frame *)context - 1;
	context->resume = (unsigned long)frame;
	frame->di = arguments[0] & code->masks[0];
	frame->si = arguments[1] & code->masks[1];
	frame->dx = arguments[2] & code->masks[2];
	frame->cx = arguments[3] & code->masks[3];
	frame->r8 = arguments[4] & code->masks[4];
	frame->r9 = arguments[5] & code->masks[5];
	frame->flags = X86_EFLAGS_FIXED | X86_EFLAGS_IF;
	if (cpu_feature_enabled(X86_FEATURE_SMAP))
		frame->flags |= X86_EFLAGS_AC;
	frame->ip = typed_code_address(code) + code->entry;
	frame->caller = (unsigned long)typed_returned;
	return context;
}

void typed_context_give(struct typed_context *context)
{
	if (context)
		free_pages(lowest_byte(context), get_order(TYPED_STACK_BYTES));
}

static unsigned int enter(struct typed_context *context)
{
	unsigned int left;

	preempt_disable();
	preempt_notifier_register(&context->notifier);
	start_timer(&context->notifier, smp_processor_id());
	preempt_enable();

	load_registers(context);
	left = typed_enter(context);
	if (context->vectors && left != TYPED_LEFT_INTERRUPTED)
		end_section();

	preempt_disable();
	preempt_notifier_unregister(&context->notifier);
	stop_timer(&context->notifier, NULL);
	preempt_enable();
	return left;
}

static u32 outcome_of(int trap)
{
	switch (trap) {
	case X86_TRAP_DE:
		return KYOZON_TYPED_DIVIDED;
	case X86_TRAP_GP:
		return KYOZON_TYPED_MISALIGNED;
	}
	return KYOZON_TYPED_TRAPPED;
}

static void explain(const struct typed_code *code, unsigned int left,
		    struct typed_context *context, struct kyozon_typed_run *run)
{
	switch (left) {
	case TYPED_LEFT_RETURN:
		run->outcome = KYOZON_TYPED_RETURNED;
		if (code->properties & KYOZON_TYPED_HAS_RESULT)
			run->result = context->result;
		break;
	case TYPED_LEFT_EXIT:
		run->outcome = KYOZON_TYPED_EXITED;
		run->result = context->result;
		break;
	case TYPED_LEFT_FAULT:
		run->outcome = KYOZON_TYPED_FAULTED;
		run->offset = typed_code_offset(code, context->at);
		break;
	case TYPED_LEFT_TRAP:
		run->outcome = outcome_of(context->trap);
		run->offset = typed_code_offset(code, context->at);
		break;
	}
}

int typed_run(const struct typed_code *code, struct typed_context **context,
	      struct kyozon_typed_run *run)
{
	unsigned int left;
	int error;

	if (!*context)
		*context = context_take(code, run->arguments);
	if (!*context)
		return typed_err(run->message, -ENOMEM,
				 "no memory for a stack of 64 KiB");
	error = take_handles(*context, run);
	if (error)
		return error;
	left = enter(*context);
	give_handles(*context);
	if (left == TYPED_LEFT_INTERRUPTED)
		return -EINTR;
	explain(code, left, *context, run);
	typed_context_give(*context);
	*context = NULL;
	/* The page faults of a killed task fail. */
	return fatal_signal_pending(current) ? -EINTR : 0;
}

int typed_run_init(void)
{
	int error = register_die_notifier(&traps);

	upper_parts = cpu_has_xfeatures(XFEATURE_MASK_YMM, NULL);
	/*
	 * Each switch of tasks then looks for notifiers. This patches the
	 * scheduler, which interrupts every CPU: too much for each program.
	 */
	if (!error)
		preempt_notifier_inc();
	return error;
}

void typed_run_exit(void)
{
	preempt_notifier_dec();
	unregister_die_notifier(&traps);
}
