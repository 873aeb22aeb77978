/* SPDX-License-Identifier: GPL-2.0-only */
/* A program that runs, for the functions that it calls. */
#ifndef KYOZON_TYPED_CONTEXT_H
#define KYOZON_TYPED_CONTEXT_H

#include <linux/hrtimer.h>
#include <linux/nospec.h>
#include <linux/preempt.h>
#include <linux/skbuff.h>
#include <asm/fpu/types.h>

#include "typed.h"

struct file;
struct iov_iter;
struct kstat;

/* A program that does not execute: what enter.S has on its stack. */
struct typed_frame {
	unsigned long r15, r14, r13, r12, r11, r10, r9, r8;
	unsigned long di, si, bp, bx, dx, cx, ax;
	unsigned long flags;
	unsigned long ip;
	/* The first frame only: where the entry returns to. */
	unsigned long caller;
};

struct typed_pins;

/* A view: the address in rax, the length in rdx. */
struct typed_view {
	u64 address, bytes;
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
	/* what views show, until the program ends */
	struct typed_pins *pins;
	struct sk_buff_head packets;
	/* those that it has of the filter, which is its device's, or NULL */
	struct sk_buff_head filtered;
	struct typed_filter *filter;
	/* whether it waits for the process's answer to a call, */
	bool called;
	/* and the error that it ended with here; 0 if it was not made */
	int failed;
	/* only while the program executes: its files, and what WASI may do with them */
	struct file *handles[KYOZON_TYPED_HANDLES];
	u32 operations[KYOZON_TYPED_HANDLES];
	/* WASI's memory, which lies in the region */
	u64 memory, memory_bytes;
	/* the handles that were read from, written to, and asked about, since it was entered */
	u32 checked[3];
};

static inline bool typed_in_region(u64 address, u64 bytes)
{
	u64 start = address - KYOZON_TYPED_REGION;

	return start <= KYOZON_TYPED_RESERVED &&
	       bytes <= KYOZON_TYPED_RESERVED - start;
}

static inline u64 typed_handle_index(u64 handle)
{
	return array_index_nospec(handle, KYOZON_TYPED_HANDLES);
}

static inline struct file *typed_file(const struct typed_context *context, u64 handle)
{
	return handle < KYOZON_TYPED_HANDLES ?
	       context->handles[typed_handle_index(handle)] : NULL;
}

/*
 * files.c: transfers, at the file's position and at another one. The handle is
 * one of the file. A result may be TYPED_AGAIN.
 */
long typed_transfer(struct typed_context *context, struct file *file, u64 handle,
		    unsigned int direction, struct iov_iter *iter);
long typed_transfer_from(struct typed_context *context, struct file *file,
			 u64 handle, unsigned int direction,
			 struct iov_iter *iter, loff_t position);
int typed_status(struct typed_context *context, struct file *file, u64 handle,
		 struct kstat *about);
loff_t typed_seek(struct file *file, u64 offset, unsigned int whence);

/* views.c */
struct typed_view typed_file_view(u64 handle, u64 offset, struct typed_context *context);
void typed_pins_give(struct typed_context *context);

/* packets.c */
struct typed_view typed_packet_view(u64 handle, struct typed_context *context);
void typed_packets_give(struct typed_context *context);

/* filter.c: the next packet, and what shall become of it */
struct typed_view typed_filter_view(u64 bytes, struct typed_context *context);
long typed_verdict(u64 number, struct typed_context *context);
/* Passes the packets of a program that ends, or drops them as it said. */
void typed_filtered_give(struct typed_context *context);

#endif
