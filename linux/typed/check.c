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

/* The call of the crate that runs, under check_lock. */
static struct {
	char *message;
	struct task_struct *task;
	unsigned long stack;
	bool panicked;
} call;

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

/* The checker's panic handler. Does not return, as tracers of functions expect. */
notrace void kyozon_typed_panicked(const char *file, size_t bytes, u32 line)
{
	/* Only the task that checks can get here, on its stack. */
	BUG_ON(call.task != current);
	snprintf(call.message, KYOZON_TYPED_MESSAGE_BYTES,
		 "the checker failed, which is a bug: %.*s:%u",
		 (int)min_t(size_t, bytes, 128), file, line);
	call.panicked = true;
	typed_guard_leave(call.stack);
}

/* Whether the function returned. If not, message has the reason. */
static bool guarded(void (*function)(void *), void *request, char *message)
{
	call.message = message;
	call.task = current;
	call.panicked = false;
	typed_guard_call(function, request, &call.stack);
	call.task = NULL;
	if (call.panicked)
		pr_err_ratelimited("%s\n", message);
	return !call.panicked;
}

/* One attempt, with so much memory. */
static int check_once(struct typed_program *program, size_t bytes,
		      char *message)
{
	struct kyozon_typed_checker request;
	void *memory = big_alloc(bytes);
	bool returned;

	if (!memory)
		return typed_err(message, -ENOMEM,
				 "no memory for the check: it needs %zu MiB",
				 bytes >> 20);
	request = (struct kyozon_typed_checker) {
		.file = (unsigned long)program->file,
		.file_bytes = program->bytes,
		.memory = (unsigned long)memory,
		.memory_bytes = bytes,
		.faults = (unsigned long)program->faults,
		.fault_room = program->bytes / 2,
		.message = (unsigned long)message,
		.message_bytes = KYOZON_TYPED_MESSAGE_BYTES,
		.host = host(),
	};
	returned = guarded(kyozon_typed_check, &request, message);
	kvfree(memory);
	if (!returned)
		return -ENOEXEC;
	program->contents = request.contents;
	program->image_bytes = request.image_bytes;
	program->properties = request.properties;

	switch (request.result) {
	case KYOZON_TYPED_ACCEPTED:
		return 0;
	case KYOZON_TYPED_NO_MEMORY:
		return -E2BIG;
	case KYOZON_TYPED_STOPPED:
		return -EINTR;
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

static int build(const struct typed_program *program,
		 const struct typed_imports *imports, struct typed_code *code,
		 u8 *image, char *message)
{
	struct kyozon_typed_build request = {
		.file = (unsigned long)program->file,
		.file_bytes = program->bytes,
		.image = (unsigned long)image,
		.image_bytes = program->image_bytes,
		.address = typed_code_address(code),
		.gates = (unsigned long)typed_gates,
		.gate_count = typed_gate_count,
		.thunks = (unsigned long)typed_thunks,
		.imports = imports->named ? (unsigned long)imports->numbers : 0,
		.import_count = imports->count,
		.outside = (unsigned long)typed_outside,
		.message = (unsigned long)message,
		.message_bytes = KYOZON_TYPED_MESSAGE_BYTES,
		.host = host(),
	};
	bool returned;
	int error;

	error = mutex_lock_killable(&check_lock);
	if (error)
		return error;
	returned = guarded(kyozon_typed_build, &request, message);
	mutex_unlock(&check_lock);
	if (!returned || request.result != KYOZON_TYPED_ACCEPTED)
		return -ENOEXEC;
	code->entry = request.entry;
	code->properties = request.properties;
	code->vectors = program->properties & KYOZON_TYPED_USES_VECTORS;
	memcpy(code->masks, request.masks, sizeof(code->masks));
	memcpy(code->outside_arguments, request.outside_arguments,
	       sizeof(code->outside_arguments));
	return 0;
}

int typed_program_load(const struct typed_program *program,
		       const struct typed_imports *imports,
		       struct typed_code *code, char *message)
{
	u8 *image;
	int error;

	error = typed_code_take(code, program, message);
	if (error)
		return error;
	image = big_alloc(program->image_bytes);
	if (image)
		error = build(program, imports, code, image, message);
	else
		error = typed_err(message, -ENOMEM,
				  "no memory for an image of %u bytes",
				  program->image_bytes);
	if (!error) {
		error = typed_code_write(code, image, program->image_bytes,
					 program->faults, program->contents.faults);
		if (error)
			typed_err(message, error, "no memory to write the program's code");
	}
	kvfree(image);
	if (error)
		typed_code_give(code);
	return error;
}
