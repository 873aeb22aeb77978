// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks programs. One check at a time: that bounds the checker's memory, and
 * lets the checker's panic find its way out.
 */
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>

#include "typed.h"

/*
 * The checker's memory: enough for all but unusual programs, and then more.
 * What a label keeps is as large as its function's frame, so more than this for
 * each byte of a file is not given.
 */
#define FIRST_BYTES	(1ul << 20)
#define BYTES_PER_BYTE	256

static unsigned int check_mib = 128;
module_param(check_mib, uint, 0644);
MODULE_PARM_DESC(check_mib,
		 "MiB of memory that a check may use, 1 to 1024 (128); a file has at most 1 MiB plus 256 times its size");

static bool check_panics;
module_param(check_panics, bool, 0600);
MODULE_PARM_DESC(check_panics, "Every check panics, for tests");

static DEFINE_MUTEX(check_lock);

/* The check that runs, under check_lock. */
static struct {
	struct kyozon_typed_checker request;
	struct task_struct *task;
	unsigned long stack;
} check;

static void *big_alloc(size_t bytes)
{
	/* No memory is an answer: nothing else shall be killed for a check. */
	return kvmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_NOWARN |
			       __GFP_RETRY_MAYFAIL);
}

/*
 * What the text of a program must do here. Where the kernel's own indirect
 * branches or returns go by thunks, a program's do as well.
 */
static u32 host(void)
{
	bool thunks = cpu_feature_enabled(X86_FEATURE_RETPOLINE);
	u32 flags = 0;

#ifdef X86_FEATURE_RETPOLINE_LFENCE
	thunks |= cpu_feature_enabled(X86_FEATURE_RETPOLINE_LFENCE);
#endif
#ifdef X86_FEATURE_RETHUNK
	thunks |= cpu_feature_enabled(X86_FEATURE_RETHUNK);
#endif
#ifdef X86_FEATURE_INDIRECT_THUNK_ITS
	thunks |= cpu_feature_enabled(X86_FEATURE_INDIRECT_THUNK_ITS);
#endif
	if (!thunks)
		flags |= KYOZON_TYPED_INDIRECT_BRANCHES;
	if (IS_ENABLED(CONFIG_X86_KERNEL_IBT) &&
	    cpu_feature_enabled(X86_FEATURE_IBT))
		flags |= KYOZON_TYPED_TRACKING;
	if (READ_ONCE(check_panics))
		flags |= KYOZON_TYPED_PANIC;
	return flags;
}

/*
 * The checker calls this every few milliseconds at most. Only a fatal signal
 * ends a check: others would have to begin it again, and may come faster.
 */
bool kyozon_typed_pause(void)
{
	cond_resched();
	return !fatal_signal_pending(current);
}

/* The checker's panic handler. Does not return. */
void kyozon_typed_panicked(const char *file, size_t bytes, u32 line)
{
	struct kyozon_typed_checker *request = &check.request;

	/* Only the task that checks can get here, on its stack. */
	BUG_ON(check.task != current);
	snprintf((char *)request->message, request->message_bytes,
		 "the checker failed, which is a bug: %.*s:%u",
		 (int)min_t(size_t, bytes, 128), file, line);
	request->result = KYOZON_TYPED_PANICKED;
	typed_guard_leave(check.stack);
}

/* One attempt, with so much memory. */
static int check_once(struct typed_program *program, size_t bytes,
		      char *message)
{
	struct kyozon_typed_checker *request = &check.request;
	void *memory = big_alloc(bytes);

	if (!memory)
		return typed_err(message, -ENOMEM,
				 "no memory for the check: it needs %zu MiB",
				 bytes >> 20);
	*request = (struct kyozon_typed_checker) {
		.file = (unsigned long)program->file,
		.file_bytes = program->bytes,
		.memory = (unsigned long)memory,
		.memory_bytes = bytes,
		.faults = (unsigned long)program->faults,
		.fault_room = program->bytes / 2,
		.message = (unsigned long)message,
		.message_bytes = KYOZON_TYPED_MESSAGE_BYTES,
		.host = host(),
		/* A panic must never look like this. */
		.result = KYOZON_TYPED_PANICKED,
	};
	check.task = current;
	typed_guard_call(request, &check.stack);
	check.task = NULL;
	program->contents = request->contents;
	kvfree(memory);

	switch (request->result) {
	case KYOZON_TYPED_ACCEPTED:
		return 0;
	case KYOZON_TYPED_NO_MEMORY:
		return -E2BIG;
	case KYOZON_TYPED_STOPPED:
		return -EINTR;
	case KYOZON_TYPED_PANICKED:
		pr_err_ratelimited("%s\n", message);
	}
	return -ENOEXEC;
}

static int check_program(struct typed_program *program, char *message)
{
	size_t limit = (size_t)clamp(READ_ONCE(check_mib), 1u, 1024u) << 20;
	size_t bytes;
	int error;

	limit = min(limit, FIRST_BYTES + BYTES_PER_BYTE * program->bytes);
	bytes = min(FIRST_BYTES, limit);

	/* An instruction that faults has at least two bytes. */
	program->faults = big_alloc(program->bytes / 2 * sizeof(u32));
	if (!program->faults)
		return typed_err(message, -ENOMEM,
				 "no memory for the check of %llu bytes",
				 program->bytes);
	for (;;) {
		error = mutex_lock_killable(&check_lock);
		if (error)
			return error;
		error = check_once(program, bytes, message);
		mutex_unlock(&check_lock);
		if (error != -E2BIG || bytes == limit)
			break;
		bytes = min(8 * bytes, limit);
	}
	return error;
}

int typed_program_take(struct typed_program *program,
		       const struct kyozon_image *file, char *message)
{
	int error;

	if (file->bytes > KYOZON_TYPED_MAX_FILE)
		return typed_err(message, -EFBIG,
				 "%llu bytes: a program has at most %u MiB",
				 file->bytes, KYOZON_TYPED_MAX_FILE >> 20);
	program->bytes = file->bytes;
	program->file = big_alloc(file->bytes);
	program->faults = NULL;
	if (!program->file)
		return typed_err(message, -ENOMEM,
				 "no memory for a file of %llu bytes",
				 file->bytes);
	if (copy_from_user(program->file, u64_to_user_ptr(file->address),
			   file->bytes))
		error = typed_err(message, -EFAULT,
				  "the file is not readable memory");
	else
		error = check_program(program, message);
	if (error)
		typed_program_give(program);
	return error;
}

void typed_program_give(struct typed_program *program)
{
	kvfree(program->file);
	kvfree(program->faults);
}
