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
#include <linux/file.h>
#include <linux/hrtimer.h>
#include <linux/kdebug.h>
#include <linux/mm.h>
#include <linux/pid.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <asm/fpu/api.h>
#include <asm/fpu/types.h>
#include <asm/irq_regs.h>
#include <asm/special_insns.h>
#include <asm/trapnr.h>

#include "context.h"

#ifndef CONFIG_PREEMPT_NOTIFIERS
#error "the kernel has no CONFIG_PREEMPT_NOTIFIERS, which CONFIG_KVM selects"
#endif

#define TICK	ms_to_ktime(1)

/* What exceptions of vector operations do, and of x87: nothing. */
#define MXCSR_MASKED	0x1f80
#define FCW_MASKED	0x37f

/* How often an access faults in a row at one address until it is given up. */
#define TRIES	8

static_assert(sizeof(struct typed_context) <= TYPED_CONTEXT_BYTES);
static_assert(offsetof(struct typed_context, stack) == TYPED_CONTEXT_STACK);
static_assert(offsetof(struct typed_context, resume) == TYPED_CONTEXT_RESUME);
static_assert(offsetof(struct typed_context, at) == TYPED_CONTEXT_AT);
static_assert(offsetof(struct typed_context, result) == TYPED_CONTEXT_RESULT);
static_assert(offsetof(struct typed_context, attention) == TYPED_CONTEXT_ATTENTION);
static_assert(offsetof(struct typed_context, vectors) == TYPED_CONTEXT_VECTORS);
static_assert(TYPED_AGAIN == -ERESTARTSYS);
static_assert(TYPED_OUTSIDE_GATES == KYOZON_TYPED_OUTSIDE_GATES);
static_assert(TYPED_WASI_CLOCK_TIME_GET == KYOZON_TYPED_WASI_CLOCK_TIME_GET);
static_assert(TYPED_WASI_FD_FILESTAT_GET == KYOZON_TYPED_WASI_FD_FILESTAT_GET);
static_assert(TYPED_WASI_FD_PREAD == KYOZON_TYPED_WASI_FD_PREAD);
static_assert(TYPED_WASI_FD_PWRITE == KYOZON_TYPED_WASI_FD_PWRITE);
static_assert(TYPED_WASI_FD_READ == KYOZON_TYPED_WASI_FD_READ);
static_assert(TYPED_WASI_FD_SEEK == KYOZON_TYPED_WASI_FD_SEEK);
static_assert(TYPED_WASI_FD_TELL == KYOZON_TYPED_WASI_FD_TELL);
static_assert(TYPED_WASI_FD_WRITE == KYOZON_TYPED_WASI_FD_WRITE);

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

/* The program calls a function that the process answers. */
unsigned int typed_call_outside(struct typed_context *context)
{
	save_registers(context);
	context->called = true;
	return TYPED_LEFT_CALL;
}

/* A task's own namespace is the deepest one in which it has a number. */
long typed_getpid(void)
{
	struct pid *pid = task_tgid(current);

	return pid->numbers[pid->level].nr;
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
	bool inside = typed_in_region(address, 1);

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

const struct kyozon_typed_gate typed_gates[] = {
	{ (unsigned long)typed_gate_exit, KYOZON_TYPED_EXIT, 1 },
	{ (unsigned long)typed_gate_getpid, KYOZON_TYPED_GETPID, 0 },
	{ (unsigned long)typed_gate_read, KYOZON_TYPED_READ, 3 },
	{ (unsigned long)typed_gate_write, KYOZON_TYPED_WRITE, 3 },
	{ (unsigned long)typed_gate_pread, KYOZON_TYPED_PREAD, 4 },
	{ (unsigned long)typed_gate_pwrite, KYOZON_TYPED_PWRITE, 4 },
	{ (unsigned long)typed_gate_fstat, KYOZON_TYPED_FSTAT, 2 },
	{ (unsigned long)typed_gate_lseek, KYOZON_TYPED_LSEEK, 3 },
	{ (unsigned long)typed_gate_file_view, KYOZON_TYPED_FILE_VIEW, 2 },
	{ (unsigned long)typed_gate_packet_view, KYOZON_TYPED_PACKET_VIEW, 1 },
	{ (unsigned long)typed_gate_filter_view, KYOZON_TYPED_FILTER_VIEW, 1 },
	{ (unsigned long)typed_gate_verdict, KYOZON_TYPED_VERDICT, 1 },
	{ (unsigned long)typed_gate_wasi_read, KYOZON_TYPED_WASI_FD_READ, 4 },
	{ (unsigned long)typed_gate_wasi_write, KYOZON_TYPED_WASI_FD_WRITE, 4 },
	{ (unsigned long)typed_gate_wasi_pread, KYOZON_TYPED_WASI_FD_PREAD, 5 },
	{ (unsigned long)typed_gate_wasi_pwrite, KYOZON_TYPED_WASI_FD_PWRITE, 5 },
	{ (unsigned long)typed_gate_wasi_seek, KYOZON_TYPED_WASI_FD_SEEK, 4 },
	{ (unsigned long)typed_gate_wasi_tell, KYOZON_TYPED_WASI_FD_TELL, 2 },
	{ (unsigned long)typed_gate_wasi_status, KYOZON_TYPED_WASI_FD_FILESTAT_GET, 2 },
	{ (unsigned long)typed_gate_wasi_time, KYOZON_TYPED_WASI_CLOCK_TIME_GET, 3 },
};
const unsigned int typed_gate_count = ARRAY_SIZE(typed_gates);
u64 typed_outside[TYPED_OUTSIDE_GATES] __ro_after_init;

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
	memcpy(context->operations, run->operations, sizeof(context->operations));
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

static int take_memory(struct typed_context *context, struct kyozon_typed_run *run)
{
	if (run->memory_bytes && !typed_in_region(run->memory, run->memory_bytes))
		return typed_err(run->message, -EINVAL,
				 "%llu bytes of memory at %#llx are not in the region",
				 run->memory_bytes, run->memory);
	context->memory = run->memory;
	context->memory_bytes = run->memory_bytes;
	return 0;
}

/* The process answers the call that the program waits in. */
static void answer(struct typed_context *context, u64 result)
{
	struct typed_frame *frame = (struct typed_frame *)context->resume;

	if (context->called)
		frame->ax = result;
	context->called = false;
}

/*
 * A stack, with a context that is zero. One that a program of this device had is
 * taken again: to clear it costs more than a run that has little to do, and the
 * checker proves that no program reads what it did not write there.
 */
static struct typed_context *stack_take(unsigned long *spare)
{
	unsigned long stack = *spare;
	struct typed_context *context;

	*spare = 0;
	if (!stack)
		stack = __get_free_pages(GFP_KERNEL_ACCOUNT | __GFP_ZERO,
					 get_order(TYPED_STACK_BYTES));
	if (!stack)
		return NULL;
	context = context_of(stack);
	memset(context, 0, sizeof(*context));
	return context;
}

static struct typed_context *context_take(const struct typed_code *code,
					  const u64 *arguments, unsigned long *spare)
{
	struct typed_context *context = stack_take(spare);
	struct typed_frame *frame;

	if (!context)
		return NULL;
	preempt_notifier_init(&context->notifier, &on_cpu);
	hrtimer_init(&context->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	context->timer.function = tick;
	__skb_queue_head_init(&context->packets);
	__skb_queue_head_init(&context->filtered);
	context->vectors = code->vectors;
	context->registers.cwd = FCW_MASKED;
	context->registers.mxcsr = MXCSR_MASKED;

	frame = (struct typed_frame *)context - 1;
	context->resume = (unsigned long)frame;
	memset(frame, 0, sizeof(*frame));
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

void typed_stack_give(unsigned long stack)
{
	free_pages(stack, get_order(TYPED_STACK_BYTES));
}

/* Gives what views show; the stack is left. */
static unsigned long context_end(struct typed_context *context)
{
	typed_pins_give(context);
	typed_packets_give(context);
	typed_filtered_give(context);
	return lowest_byte(context);
}

void typed_context_give(struct typed_context *context)
{
	if (context)
		typed_stack_give(context_end(context));
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
	if (context->vectors && left != TYPED_LEFT_INTERRUPTED && left != TYPED_LEFT_CALL)
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

/* Arguments of a call, in registers. */
static unsigned int arguments_of(const struct typed_code *code, u32 number)
{
	unsigned int n;

	if (number < TYPED_OUTSIDE_GATES)
		return code->outside_arguments[number];
	for (n = 0; n < typed_gate_count; n++)
		if (typed_gates[n].number == number)
			return typed_gates[n].arguments;
	return 0;
}

static void explain_call(const struct typed_code *code, struct typed_context *context,
			 struct kyozon_typed_run *run)
{
	struct typed_frame *frame = (struct typed_frame *)context->resume;
	const u64 registers[] = {
		frame->di, frame->si, frame->dx, frame->cx, frame->r8, frame->r9,
	};
	unsigned int n;

	run->outcome = KYOZON_TYPED_CALLED;
	run->offset = frame->ax;
	run->result = context->failed;
	context->failed = 0;
	memset(run->arguments, 0, sizeof(run->arguments));
	for (n = 0; n < arguments_of(code, run->offset); n++)
		run->arguments[n] = registers[n];
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
	case TYPED_LEFT_CALL:
		explain_call(code, context, run);
		break;
	}
}

static void end_run(struct typed_context **context, unsigned long *spare)
{
	*spare = context_end(*context);
	*context = NULL;
}

int typed_run(const struct typed_code *code, struct typed_context **context,
	      unsigned long *spare, struct typed_filter *filter,
	      struct kyozon_typed_run *run)
{
	u64 result = run->result;
	bool begins = !*context;
	unsigned int left;
	int error;

	run->result = 0;
	if (begins)
		*context = context_take(code, run->arguments, spare);
	if (!*context)
		return typed_err(run->message, -ENOMEM,
				 "no memory for a stack of 64 KiB");
	(*context)->filter = filter;
	error = take_memory(*context, run) ?: take_handles(*context, run);
	if (error) {
		if (begins)
			end_run(context, spare);
		return error;
	}
	answer(*context, result);
	left = enter(*context);
	give_handles(*context);
	if (left == TYPED_LEFT_INTERRUPTED)
		return -EINTR;
	explain(code, left, *context, run);
	if (left != TYPED_LEFT_CALL)
		end_run(context, spare);
	/* The page faults of a killed task fail. */
	return fatal_signal_pending(current) ? -EINTR : 0;
}

int typed_run_init(void)
{
	int error = register_die_notifier(&traps);
	unsigned int n;

	for (n = 0; n < TYPED_OUTSIDE_GATES; n++)
		typed_outside[n] = (unsigned long)typed_outside_gates +
				   n * TYPED_OUTSIDE_GATE_BYTES;
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
