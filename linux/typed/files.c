// SPDX-License-Identifier: GPL-2.0-only
/* The functions that programs call on files, by handles. */
#include <linux/cred.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/fsnotify.h>
#include <linux/kdev_t.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/stat.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/uio.h>
#include <linux/version.h>

#include "context.h"

/*
 * Transfers are short. So what they consist of is inlined into the functions
 * that programs call, where the direction is constant; and variables have
 * initializers, because Linux may be built to clear those that have none.
 */

/* What a system call would leave to its restart. */
static __always_inline long restarted(long result)
{
	if (likely(result >= 0))
		return result;
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
		 "whether only a run's first read, write and fstat of a handle ask security modules (N)");

/* In a context's record of what was checked, beside READ and WRITE. */
#define STATUS	2

/*
 * A transfer goes through vfs_iter_read() or vfs_iter_write(), which ask
 * security modules. With skip_hooks the first one of a run does; later ones call
 * the file alone, as accesses of a mapping do. Both tell fsnotify.
 */
static __always_inline ssize_t transfer_direct(struct file *file, unsigned int direction,
					       struct iov_iter *iter, loff_t *position)
{
	struct kiocb request = {};
	ssize_t done;

	init_sync_kiocb(&request, file);
	request.ki_pos = *position;
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
	/* It may wait long for what vfs_iter_write() then refuses. */
	if (!(file->f_mode & FMODE_WRITE))
		return -EBADF;
	file_start_write(file);
#endif
	done = vfs_iter_write(file, iter, position, 0);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 8, 0)
	file_end_write(file);
#endif
	return done;
}

/* Whether vfs_iter_read() would call the file, if security modules agree. */
static __always_inline bool is_plain(const struct iov_iter *iter, loff_t position)
{
	return position >= 0 && position <= LLONG_MAX - MAX_RW_COUNT && iov_iter_count(iter);
}

static __always_inline ssize_t transfer_at(struct typed_context *context, struct file *file,
					   u64 handle, unsigned int direction,
					   struct iov_iter *iter, loff_t *position)
{
	u32 bit = BIT(handle);
	ssize_t done;

	if (READ_ONCE(skip_hooks) && context->checked[direction] & bit &&
	    is_plain(iter, *position))
		return transfer_direct(file, direction, iter, position);
	done = transfer_checked(file, direction, iter, position);
	if (done > 0)
		context->checked[direction] |= bit;
	return done;
}

static __always_inline void lock_position(struct file *file)
{
	if (file->f_mode & FMODE_ATOMIC_POS)
		mutex_lock(&file->f_pos_lock);
}

static __always_inline void unlock_position(struct file *file)
{
	if (file->f_mode & FMODE_ATOMIC_POS)
		mutex_unlock(&file->f_pos_lock);
}

/* A stream's position is always 0. Another one stays where it is after an error. */
static __always_inline long transfer(struct typed_context *context, struct file *file,
				     u64 handle, unsigned int direction,
				     struct iov_iter *iter)
{
	bool moves = !(file->f_mode & FMODE_STREAM);
	loff_t position = 0;
	ssize_t done;

	lock_position(file);
	if (moves)
		position = file->f_pos;
	done = transfer_at(context, file, handle, direction, iter, &position);
	if (moves && done >= 0)
		file->f_pos = position;
	unlock_position(file);
	return restarted(done);
}

static __always_inline long transfer_from(struct typed_context *context, struct file *file,
					  u64 handle, unsigned int direction,
					  struct iov_iter *iter, loff_t position)
{
	fmode_t mode = direction == READ ? FMODE_PREAD : FMODE_PWRITE;

	if (position < 0)
		return -EINVAL;
	if (!(file->f_mode & mode))
		return -ESPIPE;
	return restarted(transfer_at(context, file, handle, direction, iter, &position));
}

long typed_transfer(struct typed_context *context, struct file *file, u64 handle,
		    unsigned int direction, struct iov_iter *iter)
{
	return transfer(context, file, handle, direction, iter);
}

long typed_transfer_from(struct typed_context *context, struct file *file,
			 u64 handle, unsigned int direction,
			 struct iov_iter *iter, loff_t position)
{
	return transfer_from(context, file, handle, direction, iter, position);
}

loff_t typed_seek(struct file *file, u64 offset, unsigned int whence)
{
	loff_t at;

	lock_position(file);
	at = vfs_llseek(file, offset, whence);
	unlock_position(file);
	return at;
}

/*
 * The file of a handle, or an error, and a program's buffer for a transfer. Of
 * the arguments nothing is known but that they are numbers.
 */
static __always_inline struct file *prepare(const struct typed_context *context,
					    unsigned int direction, u64 handle,
					    u64 address, u64 bytes, struct iov_iter *iter)
{
	struct file *file = typed_file(context, handle);

	if (!file)
		return ERR_PTR(-EBADF);
	if (!typed_in_region(address, bytes))
		return ERR_PTR(-EFAULT);
	iov_iter_ubuf(iter, direction, u64_to_user_ptr(address),
		      min_t(u64, bytes, MAX_RW_COUNT));
	return file;
}

static __always_inline long transfer_buffer(struct typed_context *context,
					    unsigned int direction, u64 handle,
					    u64 address, u64 bytes)
{
	struct iov_iter iter = {};
	struct file *file = prepare(context, direction, handle, address, bytes, &iter);

	if (IS_ERR(file))
		return PTR_ERR(file);
	return transfer(context, file, handle, direction, &iter);
}

static __always_inline long transfer_buffer_from(struct typed_context *context,
						 unsigned int direction, u64 handle,
						 u64 address, u64 bytes, loff_t position)
{
	struct iov_iter iter = {};
	struct file *file = prepare(context, direction, handle, address, bytes, &iter);

	if (IS_ERR(file))
		return PTR_ERR(file);
	return transfer_from(context, file, handle, direction, &iter, position);
}

long typed_read(u64 handle, u64 address, u64 bytes,
		struct typed_context *context)
{
	return transfer_buffer(context, READ, handle, address, bytes);
}

long typed_write(u64 handle, u64 address, u64 bytes,
		 struct typed_context *context)
{
	return transfer_buffer(context, WRITE, handle, address, bytes);
}

long typed_pread(u64 handle, u64 address, u64 bytes, u64 position,
		 struct typed_context *context)
{
	return transfer_buffer_from(context, READ, handle, address, bytes, position);
}

long typed_pwrite(u64 handle, u64 address, u64 bytes, u64 position,
		  struct typed_context *context)
{
	return transfer_buffer_from(context, WRITE, handle, address, bytes, position);
}

/* As for transfers: with skip_hooks security modules are asked the first time. */
int typed_status(struct typed_context *context, struct file *file, u64 handle,
		 struct kstat *about)
{
	u32 *asked = &context->checked[STATUS];
	int error;

	if (READ_ONCE(skip_hooks) && *asked & BIT(handle))
		return vfs_getattr_nosec(&file->f_path, about, STATX_BASIC_STATS, 0);
	error = vfs_getattr(&file->f_path, about, STATX_BASIC_STATS, 0);
	if (!error)
		*asked |= BIT(handle);
	return error;
}

/* What fstat() tells; the rest of the structure is zero. */
static void describe(struct stat *to, const struct kstat *from)
{
	struct user_namespace *ns = current_user_ns();

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

/* No part of it is padding, which an initializer need not clear. */
static_assert(sizeof(struct stat) == 18 * sizeof(long));

long typed_fstat(u64 handle, u64 address, struct typed_context *context)
{
	struct file *file = typed_file(context, handle);
	struct stat stat = {};
	struct kstat about;
	int error;

	if (!file)
		return -EBADF;
	if (!typed_in_region(address, sizeof(stat)))
		return -EFAULT;
	error = typed_status(context, file, handle, &about);
	if (error)
		return error;
	describe(&stat, &about);
	return copy_to_user(u64_to_user_ptr(address), &stat, sizeof(stat)) ? -EFAULT : 0;
}

long typed_lseek(u64 handle, u64 offset, u64 whence,
		 struct typed_context *context)
{
	struct file *file = typed_file(context, handle);

	if (!file)
		return -EBADF;
	if (whence > SEEK_MAX)
		return -EINVAL;
	return typed_seek(file, offset, whence);
}
