/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kyozon-typed.ko: runs machine code that a checker proves safe in kernel mode.
 *
 * The checker (crates/typed/checker) is linked with the module. It works on
 * the module's own copy of a program's file; no verdict of user space is
 * believed.
 */
#ifndef KYOZON_TYPED_H
#define KYOZON_TYPED_H

#include <linux/types.h>
#include <linux/wait.h>

#include <kyozon/abi.h>

#include "enter.h"

#undef pr_fmt
#define pr_fmt(fmt) "kyozon-typed: " fmt

/* Formats the line that explains a failed request; returns the error. */
__printf(3, 4)
int typed_err(char *message, int error, const char *format, ...);

/* check.c: the checker, and programs that it accepted */
struct typed_program {
	u8 *file;
	u64 bytes;
	/* offsets, in the text, of the instructions that may fault; sorted */
	u32 *faults;
	struct kyozon_typed_contents contents;
	u32 image_bytes;
	u32 properties;
};

/*
 * Copies the file of a program and checks it. On failure nothing is left, and
 * message, of KYOZON_TYPED_MESSAGE_BYTES, has the reason.
 */
int typed_program_take(struct typed_program *program,
		       const struct kyozon_image *file, char *message);
void typed_program_give(struct typed_program *program);

/* container.c: the code of programs, which executes */
struct typed_code {
	/* 0: there is none */
	unsigned int pages;
	unsigned int page;
	u32 entry;
	u32 properties;
	bool vectors;
	/* what each argument of the entry may be */
	u64 masks[6];
	/* arguments, in registers, of each import that the process answers */
	u8 outside_arguments[KYOZON_TYPED_OUTSIDE_GATES];
};

int typed_container_init(void);
/* Finds room for an accepted program. On failure, message has the reason. */
int typed_code_take(struct typed_code *code, const struct typed_program *program,
		    char *message);
/* Where its image will lie. */
u64 typed_code_address(const struct typed_code *code);
int typed_code_write(const struct typed_code *code, const u8 *image, size_t bytes,
		     const u32 *faults, unsigned int count);
void typed_code_give(struct typed_code *code);
/* The offset, in a program's text, of an address. */
u32 typed_code_offset(const struct typed_code *code, unsigned long address);
/* The instruction that faulted, by the return address of its fixup's call. */
unsigned long typed_fault_address(unsigned long fixup);
/* Whether it is an address of a program. */
bool typed_in_image(unsigned long address);

/* Which functions the imports of a program mean; see struct kyozon_typed_load. */
struct typed_imports {
	u64 count;
	/* whether the process says so */
	bool named;
	u32 numbers[KYOZON_TYPED_OUTSIDE_GATES];
};

/* check.c: makes the image of an accepted program and writes it. */
int typed_program_load(const struct typed_program *program,
		       const struct typed_imports *imports,
		       struct typed_code *code, char *message);

/* filter.c: a program's filter of the packets that an interface receives */
struct typed_filter;
struct seq_file;
int typed_filter_init(void);
void typed_filter_exit(void);
/*
 * waiters are woken for its packets and its end. On failure, message has the
 * reason if it is not a lack of memory.
 */
int typed_filter_start(struct typed_filter **to, wait_queue_head_t *waiters,
		       const struct kyozon_typed_filter *request, char *message);
/* Passes what is queued. No program has packets of it. */
void typed_filter_end(struct typed_filter *filter);
__poll_t typed_filter_events(struct typed_filter *filter);
void typed_filter_show(struct typed_filter *filter, struct seq_file *to);

/* run.c: runs of programs */
struct typed_context;
int typed_run_init(void);
void typed_run_exit(void);
/*
 * Starts a program if there is no context, and goes on with it if there is one.
 * spare is a stack for the next run, or 0.
 * Returns -EINTR and a context if the caller has to go to user mode first.
 */
int typed_run(const struct typed_code *code, struct typed_context **context,
	      unsigned long *spare, struct typed_filter *filter,
	      struct kyozon_typed_run *run);
/* Ends a program that was interrupted. */
void typed_context_give(struct typed_context *context);
void typed_stack_give(unsigned long stack);
extern const struct kyozon_typed_gate typed_gates[];
extern const unsigned int typed_gate_count;

/* Addresses of gates for imports that the process answers, by their numbers. */
extern u64 typed_outside[TYPED_OUTSIDE_GATES];

/* run.c, called by enter.S on the task's stack */
unsigned int typed_yield(struct typed_context *context);
unsigned int typed_fault(struct typed_context *context);
unsigned int typed_call_outside(struct typed_context *context);
void typed_pause_vectors(void);
void typed_continue_vectors(void);
long typed_getpid(void);
/* files.c */
long typed_read(u64 handle, u64 address, u64 bytes,
		struct typed_context *context);
long typed_write(u64 handle, u64 address, u64 bytes,
		 struct typed_context *context);
long typed_pread(u64 handle, u64 address, u64 bytes, u64 position,
		 struct typed_context *context);
long typed_pwrite(u64 handle, u64 address, u64 bytes, u64 position,
		  struct typed_context *context);
long typed_fstat(u64 handle, u64 address, struct typed_context *context);
long typed_lseek(u64 handle, u64 offset, u64 whence,
		 struct typed_context *context);
/* wasi.c */
long typed_wasi_read(u64 descriptor, u64 at, u64 count, u64 result,
		     struct typed_context *context);
long typed_wasi_write(u64 descriptor, u64 at, u64 count, u64 result,
		      struct typed_context *context);
long typed_wasi_pread(u64 descriptor, u64 at, u64 count, u64 position, u64 result,
		      struct typed_context *context);
long typed_wasi_pwrite(u64 descriptor, u64 at, u64 count, u64 position, u64 result,
		       struct typed_context *context);
long typed_wasi_seek(u64 descriptor, u64 distance, u64 whence, u64 result,
		     struct typed_context *context);
long typed_wasi_tell(u64 descriptor, u64 result, struct typed_context *context);
long typed_wasi_status(u64 descriptor, u64 result, struct typed_context *context);
long typed_wasi_time(u64 clock, u64 precision, u64 result,
		     struct typed_context *context);

/* enter.S */
unsigned int typed_enter(struct typed_context *context);
extern u8 typed_image[], typed_fixups[];
extern u8 typed_returned[], typed_faulted[], typed_trapped[], typed_interrupted[];
extern u8 typed_gate_exit[], typed_gate_getpid[], typed_gate_read[];
extern u8 typed_gate_write[], typed_gate_pread[], typed_gate_pwrite[];
extern u8 typed_gate_fstat[], typed_gate_lseek[];
extern u8 typed_gate_file_view[], typed_gate_packet_view[];
extern u8 typed_gate_filter_view[], typed_gate_verdict[];
extern u8 typed_gate_wasi_read[], typed_gate_wasi_write[];
extern u8 typed_gate_wasi_pread[], typed_gate_wasi_pwrite[];
extern u8 typed_gate_wasi_seek[], typed_gate_wasi_tell[];
extern u8 typed_gate_wasi_status[], typed_gate_wasi_time[];
extern u8 typed_outside_gates[];
extern const u64 typed_thunks[KYOZON_TYPED_THUNKS];

/* guard.S */
void typed_guard_call(void (*function)(void *request), void *request,
		      unsigned long *stack);
void typed_guard_leave(unsigned long stack);

/* checker.S calls these two; see crates/typed/kernel/src/ffi.rs */
bool kyozon_typed_pause(void);
void kyozon_typed_panicked(const char *file, size_t bytes, u32 line);
/* checker.S; struct kyozon_typed_checker and struct kyozon_typed_build */
void kyozon_typed_check(void *request);
void kyozon_typed_build(void *request);

#endif
