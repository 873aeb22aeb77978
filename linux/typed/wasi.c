// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions of WASI preview 1 that a compiled program calls often. A call that
 * they return TYPED_OUTSIDE for goes to the process, which knows all the rules
 * and errors. If a transfer failed, the process is told Linux's error; if not,
 * nothing was done, and it makes the call from the start.
 *
 * Pointers and lengths have 32 bits, and may be anything. The upper half of a
 * register that passes one is not looked at.
 */
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/mm.h>
#include <linux/stat.h>
#include <linux/time_namespace.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "context.h"

/* Buffers of a call; with more of them, the process makes it. */
#define BUFFERS		8

/* errno::fault */
#define WASI_FAULT	21
/* clockid */
#define WASI_REALTIME	0
#define WASI_MONOTONIC	1
/* filetype */
#define WASI_UNKNOWN	0
#define WASI_BLOCK	1
#define WASI_CHARACTER	2
#define WASI_DIRECTORY	3
#define WASI_REGULAR	4

/* ciovec and iovec */
struct wasi_buffer {
	u32 at, bytes;
};

/* filestat */
struct wasi_status {
	u64 device, inode, kind, links, size, accessed, modified, changed;
};

struct buffers {
	struct iovec vectors[BUFFERS];
	struct iov_iter iter;
};

static bool in_memory(const struct typed_context *context, u32 at, u64 bytes)
{
	return at + bytes <= context->memory_bytes;
}

static void __user *pointer(const struct typed_context *context, u32 at)
{
	return u64_to_user_ptr(context->memory + at);
}

/* The transfer is done, so the process must not make the call again. */
static long give(const struct typed_context *context, u32 at, const void *from,
		 size_t bytes)
{
	return copy_to_user(pointer(context, at), from, bytes) ? WASI_FAULT : 0;
}

/* The file of a descriptor that this may be done with. */
static struct file *file_for(const struct typed_context *context, u32 descriptor,
			     u32 operation)
{
	u64 handle;

	if (descriptor >= KYOZON_TYPED_HANDLES)
		return NULL;
	handle = typed_handle_index(descriptor);
	return context->operations[handle] & operation ? context->handles[handle] : NULL;
}

/* Whether these buffers can be used: what they name lies within the memory. */
static bool take_buffers(const struct typed_context *context, struct buffers *buffers,
			 unsigned int direction, u32 at, u32 count)
{
	struct wasi_buffer copy[BUFFERS];
	u64 total = 0;
	u32 n;

	if (count > BUFFERS || !in_memory(context, at, count * sizeof(*copy)) ||
	    copy_from_user(copy, pointer(context, at), count * sizeof(*copy)))
		return false;
	for (n = 0; n < count; n++) {
		if (!in_memory(context, copy[n].at, copy[n].bytes))
			return false;
		buffers->vectors[n].iov_base = pointer(context, copy[n].at);
		buffers->vectors[n].iov_len = copy[n].bytes;
		total += copy[n].bytes;
	}
	iov_iter_init(&buffers->iter, direction, buffers->vectors, count, total);
	return total <= MAX_RW_COUNT;
}

static long transferred(struct typed_context *context, long done, u32 result)
{
	u32 bytes = done;

	if (done == TYPED_AGAIN)
		return TYPED_AGAIN;
	if (done < 0) {
		context->failed = done;
		return TYPED_OUTSIDE;
	}
	return give(context, result, &bytes, sizeof(bytes));
}

static long transfer(struct typed_context *context, unsigned int direction,
		     u32 descriptor, u32 at, u32 count, u32 result)
{
	u32 operation = direction == READ ? KYOZON_TYPED_MAY_READ : KYOZON_TYPED_MAY_WRITE;
	struct file *file = file_for(context, descriptor, operation);
	struct buffers buffers;

	if (!file || !in_memory(context, result, sizeof(u32)) ||
	    !take_buffers(context, &buffers, direction, at, count))
		return TYPED_OUTSIDE;
	return transferred(context, typed_transfer(context, file, descriptor, direction,
						   &buffers.iter), result);
}

static long transfer_from(struct typed_context *context, unsigned int direction,
			  u32 descriptor, u32 at, u32 count, u64 position, u32 result)
{
	u32 operation = direction == READ ? KYOZON_TYPED_MAY_PREAD : KYOZON_TYPED_MAY_PWRITE;
	struct file *file = file_for(context, descriptor, operation);
	struct buffers buffers;

	if (!file || !in_memory(context, result, sizeof(u32)) ||
	    !take_buffers(context, &buffers, direction, at, count))
		return TYPED_OUTSIDE;
	return transferred(context, typed_transfer_from(context, file, descriptor, direction,
							&buffers.iter, position), result);
}

long typed_wasi_read(u64 descriptor, u64 at, u64 count, u64 result,
		     struct typed_context *context)
{
	return transfer(context, READ, descriptor, at, count, result);
}

long typed_wasi_write(u64 descriptor, u64 at, u64 count, u64 result,
		      struct typed_context *context)
{
	return transfer(context, WRITE, descriptor, at, count, result);
}

long typed_wasi_pread(u64 descriptor, u64 at, u64 count, u64 position, u64 result,
		      struct typed_context *context)
{
	return transfer_from(context, READ, descriptor, at, count, position, result);
}

long typed_wasi_pwrite(u64 descriptor, u64 at, u64 count, u64 position, u64 result,
		       struct typed_context *context)
{
	return transfer_from(context, WRITE, descriptor, at, count, position, result);
}

static long seek(struct typed_context *context, struct file *file, u64 distance,
		 u32 whence, u32 result)
{
	loff_t position;

	if (!file || !in_memory(context, result, sizeof(position)))
		return TYPED_OUTSIDE;
	position = typed_seek(file, distance, whence);
	if (position < 0)
		return TYPED_OUTSIDE;
	return give(context, result, &position, sizeof(position));
}

/* WASI's numbers of SEEK_SET, SEEK_CUR and SEEK_END are Linux's. */
long typed_wasi_seek(u64 descriptor, u64 distance, u64 whence, u64 result,
		     struct typed_context *context)
{
	if ((u32)whence > SEEK_END)
		return TYPED_OUTSIDE;
	return seek(context, file_for(context, descriptor, KYOZON_TYPED_MAY_SEEK), distance,
		    whence, result);
}

long typed_wasi_tell(u64 descriptor, u64 result, struct typed_context *context)
{
	return seek(context, file_for(context, descriptor, KYOZON_TYPED_MAY_TELL), 0,
		    SEEK_CUR, result);
}

static u64 kind_of(umode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFBLK:
		return WASI_BLOCK;
	case S_IFCHR:
		return WASI_CHARACTER;
	case S_IFDIR:
		return WASI_DIRECTORY;
	case S_IFREG:
		return WASI_REGULAR;
	}
	return WASI_UNKNOWN;
}

/* Before 1970 there is no time. */
static u64 nanoseconds(struct timespec64 time)
{
	return time.tv_sec < 0 ? 0 : timespec64_to_ns(&time);
}

long typed_wasi_status(u64 descriptor, u64 result, struct typed_context *context)
{
	struct file *file = file_for(context, descriptor, KYOZON_TYPED_MAY_STATUS);
	struct wasi_status status;
	struct kstat about;

	if (!file || !in_memory(context, result, sizeof(status)) ||
	    typed_status(context, file, (u32)descriptor, &about) ||
	    S_ISSOCK(about.mode))
		return TYPED_OUTSIDE;
	status.device = new_encode_dev(about.dev);
	status.inode = about.ino;
	status.kind = kind_of(about.mode);
	status.links = about.nlink;
	status.size = about.size;
	status.accessed = nanoseconds(about.atime);
	status.modified = nanoseconds(about.mtime);
	status.changed = nanoseconds(about.ctime);
	return give(context, result, &status, sizeof(status));
}

long typed_wasi_time(u64 clock, u64 precision, u64 result, struct typed_context *context)
{
	struct timespec64 time;
	u64 now;

	if (!in_memory(context, result, sizeof(now)))
		return TYPED_OUTSIDE;
	switch ((u32)clock) {
	case WASI_REALTIME:
		ktime_get_real_ts64(&time);
		break;
	case WASI_MONOTONIC:
		ktime_get_ts64(&time);
		timens_add_monotonic(&time);
		break;
	default:
		return TYPED_OUTSIDE;
	}
	now = nanoseconds(time);
	return give(context, result, &now, sizeof(now));
}
