// SPDX-License-Identifier: GPL-2.0-only
/*
 * Views: memory of Linux that a program reads where it lies. The checker demands
 * that it stays until the program ends. So its pages are pinned, and count as
 * locked memory of the user, also when the process has another address space.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>

#include "context.h"

/* Pages that are counted at once: a page of pointers. */
#define PINS	((PAGE_SIZE - 3 * sizeof(void *)) / sizeof(struct page *))

struct typed_pins {
	struct typed_pins *next;
	struct user_struct *user;
	unsigned long count;
	struct page *pages[PINS];
};
static_assert(sizeof(struct typed_pins) == PAGE_SIZE);

/* Counts a piece's pages as locked memory of a user, within the limit. */
static bool count_pins(struct user_struct *user)
{
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	unsigned long locked = atomic_long_add_return(PINS, &user->locked_vm);

	if (locked <= limit || capable(CAP_IPC_LOCK))
		return true;
	atomic_long_sub(PINS, &user->locked_vm);
	return false;
}

/* Room for one more pin. */
static struct typed_pins *pins_with_room(struct typed_context *context)
{
	struct typed_pins *pins = context->pins;

	if (pins && pins->count < PINS)
		return pins;
	pins = kzalloc(sizeof(*pins), GFP_KERNEL_ACCOUNT);
	if (!pins)
		return NULL;
	if (!count_pins(current_user())) {
		kfree(pins);
		return NULL;
	}
	pins->user = get_uid(current_user());
	pins->next = context->pins;
	context->pins = pins;
	return pins;
}

void typed_pins_give(struct typed_context *context)
{
	struct typed_pins *pins;

	while ((pins = context->pins)) {
		context->pins = pins->next;
		while (pins->count)
			put_page(pins->pages[--pins->count]);
		atomic_long_sub(PINS, &pins->user->locked_vm);
		free_uid(pins->user);
		kfree(pins);
	}
}

/*
 * Asks security modules, as a read does, and brings the page into the cache.
 * kernel_read() complains of what cannot be read by it, so that comes first.
 */
static bool can_read(struct file *file, loff_t offset)
{
	u8 byte;

	return (file->f_mode & FMODE_READ) && (file->f_mode & FMODE_CAN_READ) &&
	       file->f_op->read_iter && !file->f_op->read &&
	       kernel_read(file, &byte, sizeof(byte), &offset) == sizeof(byte);
}

static struct page *page_of(struct file *file, loff_t offset)
{
	struct address_space *mapping = file->f_mapping;
	struct page *page;

	/* A read brings no page into a hole of tmpfs. */
	if (shmem_mapping(mapping))
		page = shmem_read_mapping_page(mapping, offset >> PAGE_SHIFT);
	else
		page = find_get_page(mapping, offset >> PAGE_SHIFT);
	if (IS_ERR_OR_NULL(page))
		return NULL;
	if (!PageUptodate(page) || PageHWPoison(page)) {
		put_page(page);
		return NULL;
	}
	return page;
}

/* Pages of hugetlbfs have numbers of their own. */
static bool has_views(const struct inode *inode)
{
	return S_ISREG(inode->i_mode) && inode->i_sb->s_magic != HUGETLBFS_MAGIC;
}

struct typed_view typed_file_view(u64 handle, u64 offset, struct typed_context *context)
{
	const struct typed_view nothing = {};
	struct file *file = typed_file(context, handle);
	struct typed_pins *pins;
	struct page *page;
	u64 bytes;

	if (!file || !has_views(file_inode(file)))
		return nothing;
	bytes = i_size_read(file_inode(file));
	if (offset >= bytes || !can_read(file, offset))
		return nothing;
	pins = pins_with_room(context);
	page = pins ? page_of(file, offset) : NULL;
	if (!page)
		return nothing;
	pins->pages[pins->count++] = page;
	return (struct typed_view) {
		.address = (unsigned long)page_address(page) + offset_in_page(offset),
		.bytes = min_t(u64, bytes - offset, PAGE_SIZE - offset_in_page(offset)),
	};
}
