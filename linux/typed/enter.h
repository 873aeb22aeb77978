/* SPDX-License-Identifier: GPL-2.0-only */
/* What C and assembly share about a program that runs. */
#ifndef KYOZON_TYPED_ENTER_H
#define KYOZON_TYPED_ENTER_H

/* A stack lies at a multiple of its size, and its context at its upper end. */
#define TYPED_STACK_BYTES	0x10000
#define TYPED_CONTEXT_BYTES	0x400

/* Offsets in struct typed_context */
#define TYPED_CONTEXT_STACK	0
#define TYPED_CONTEXT_RESUME	8
#define TYPED_CONTEXT_AT	16
#define TYPED_CONTEXT_RESULT	24
#define TYPED_CONTEXT_ATTENTION	32
#define TYPED_CONTEXT_VECTORS	36

/* How typed_enter() was left; of a function of C, that it is not left. */
#define TYPED_GOES_ON		0
#define TYPED_LEFT_RETURN	1
#define TYPED_LEFT_EXIT		2
#define TYPED_LEFT_FAULT	3
#define TYPED_LEFT_TRAP		4
#define TYPED_LEFT_INTERRUPTED	5
#define TYPED_LEFT_CALL		6

/*
 * A function of C returns this (-ERESTARTSYS) if a signal came first: it shall
 * be called again when the program continues.
 */
#define TYPED_AGAIN		(-512)
/* A function of WASI returns this, which is no result, if the process shall. */
#define TYPED_OUTSIDE		(-4096)

/* Gates for imports that the process answers, and the bytes of one. */
#define TYPED_OUTSIDE_GATES	64
#define TYPED_OUTSIDE_GATE_BYTES	16

/* Numbers of functions of WASI, for calls that the process makes. */
#define TYPED_WASI_CLOCK_TIME_GET	0x105
#define TYPED_WASI_FD_FILESTAT_GET	0x10d
#define TYPED_WASI_FD_PREAD	0x110
#define TYPED_WASI_FD_PWRITE	0x113
#define TYPED_WASI_FD_READ	0x114
#define TYPED_WASI_FD_SEEK	0x117
#define TYPED_WASI_FD_TELL	0x119
#define TYPED_WASI_FD_WRITE	0x11a

/*
 * The container: images, and a call for each instruction that may fault. One in
 * so many bytes may; an image with more of them takes more pages.
 */
#define TYPED_IMAGE_BYTES	0x200000
#define TYPED_BYTES_PER_FAULT	8
#define TYPED_FAULTS		(TYPED_IMAGE_BYTES / TYPED_BYTES_PER_FAULT)
#define TYPED_FIXUP_BYTES	5

#endif
