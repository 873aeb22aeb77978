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

#include <kyozon/abi.h>

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
};

/*
 * Copies the file of a program and checks it. On failure nothing is left, and
 * message, of KYOZON_TYPED_MESSAGE_BYTES, has the reason.
 */
int typed_program_take(struct typed_program *program,
		       const struct kyozon_image *file, char *message);
void typed_program_give(struct typed_program *program);

/* guard.S */
void typed_guard_call(struct kyozon_typed_checker *request,
		      unsigned long *stack);
void typed_guard_leave(unsigned long stack);

/* checker.S calls these two; see crates/typed/kernel/src/ffi.rs */
bool kyozon_typed_pause(void);
void kyozon_typed_panicked(const char *file, size_t bytes, u32 line);
/* checker.S */
void kyozon_typed_check(struct kyozon_typed_checker *request);

#endif
