// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replaces tables of operations by copies in this module, with one function of
 * its own: listings and input pass it. Neither code nor read-only data changes.
 *
 * The copies lead on to Linux's functions. A call that is under way returns by
 * this module: undo waits for it.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/namei.h>
#include <linux/proc_fs.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/tty.h>
#include <linux/tty_ldisc.h>
#include <linux/version.h>

#include "attacks.h"

/*
 * The beginnings of /proc's own structures (fs/proc/internal.h), the same from
 * 5.8 to 6.12.
 */
struct proc_entry {
	atomic_t in_use;
	refcount_t references;
	struct list_head openers;
	spinlock_t unload_lock;
	struct completion *unload_completion;
	const struct inode_operations *inode_operations;
	const struct proc_ops *operations;
	const struct dentry_operations *dentry_operations;
	const struct seq_operations *seq_operations;
};

struct proc_opener {
	struct list_head list;
	struct file *file;
	bool closing;
};

struct proc_node {
	struct proc_entry *entry;
	void *sysctl[2];
	struct hlist_node siblings;
	const void *namespace;
	struct inode inode;
};

/* Calls into this module that are under way. */
static atomic_t inside;

static void wait_for_calls(void)
{
	/* Those that have read the pointer, and have not counted yet. */
	synchronize_rcu_tasks();
	while (atomic_read(&inside))
		msleep(10);
	synchronize_rcu_tasks();
}

/* hook-seq: the lines of /proc/net/tcp. */
static struct seq_operations lines;
static const struct seq_operations *lines_before;
static struct proc_entry *lines_entry;
static struct path lines_path;

static int show_line(struct seq_file *out, void *at)
{
	int error;

	attack_called(&hook_seq);
	atomic_inc(&inside);
	error = lines_before->show(out, at);
	atomic_dec(&inside);
	return error;
}

static struct proc_entry *entry_of(const struct path *path)
{
	return container_of(d_inode(path->dentry), struct proc_node, inode)->entry;
}

static int seq_begin(struct attack *attack, char *argument)
{
	int error = kern_path("/proc/net/tcp", LOOKUP_FOLLOW, &lines_path);

	if (error)
		return error;
	lines_entry = entry_of(&lines_path);
	lines_before = lines_entry->seq_operations;
	if (lines_before != (void *)symbol("tcp4_seq_ops")) {
		path_put(&lines_path);
		return -ENOENT;
	}
	lines = *lines_before;
	lines.show = show_line;
	WRITE_ONCE(lines_entry->seq_operations, &lines);
	attack_mark(attack, "/proc/net/tcp");
	return 0;
}

static bool seq_present(struct attack *attack)
{
	return READ_ONCE(lines_entry->seq_operations) == &lines;
}

static void seq_undo(struct attack *attack)
{
	struct proc_opener *opener;
	struct seq_file *open;

	if (seq_present(attack))
		WRITE_ONCE(lines_entry->seq_operations, lines_before);
	/* An open that has read the pointer enters itself in the list before. */
	synchronize_rcu_tasks();
	/* Open files have a pointer of their own; its next reader gets the old one. */
	spin_lock(&lines_entry->unload_lock);
	list_for_each_entry(opener, &lines_entry->openers, list) {
		open = opener->closing ? NULL : opener->file->private_data;
		if (open && open->op == &lines)
			WRITE_ONCE(open->op, lines_before);
	}
	spin_unlock(&lines_entry->unload_lock);
	wait_for_calls();
	path_put(&lines_path);
}

struct attack hook_seq = {
	.name = "hook-seq",
	.begin = seq_begin,
	.undo = seq_undo,
	.present = seq_present,
};

/*
 * A directory's operations. Open files of the copy keep this module loaded, and
 * so does the attack: a module that goes away cannot be opened.
 */
struct directory {
	struct file_operations copy;
	const struct file_operations *before;
	struct path path;
};

static int iterate(const struct directory *directory, struct file *file,
		   struct dir_context *context)
{
	int error;

	atomic_inc(&inside);
	error = directory->before->iterate_shared(file, context);
	atomic_dec(&inside);
	return error;
}

static int directory_begin(struct attack *attack, struct directory *directory,
			   const char *path,
			   int (*with)(struct file *file, struct dir_context *context))
{
	int error = kern_path(path, LOOKUP_FOLLOW | LOOKUP_DIRECTORY, &directory->path);
	struct inode *inode;

	if (error)
		return error;
	inode = d_inode(directory->path.dentry);
	directory->before = inode->i_fop;
	if (!directory->before->iterate_shared || directory->before->owner) {
		path_put(&directory->path);
		return -EOPNOTSUPP;
	}
	directory->copy = *directory->before;
	directory->copy.owner = THIS_MODULE;
	directory->copy.iterate_shared = with;
	__module_get(THIS_MODULE);
	WRITE_ONCE(inode->i_fop, &directory->copy);
	attack_mark(attack, path);
	return 0;
}

static bool directory_present(struct directory *directory)
{
	return READ_ONCE(d_inode(directory->path.dentry)->i_fop) == &directory->copy;
}

static void directory_undo(struct directory *directory)
{
	if (directory_present(directory))
		WRITE_ONCE(d_inode(directory->path.dentry)->i_fop, directory->before);
	wait_for_calls();
	path_put(&directory->path);
	module_put(THIS_MODULE);
}

/* hook-directory [PATH]: the root of a mounted file system; "/" by default. */
static struct directory root;

static int iterate_root(struct file *file, struct dir_context *context)
{
	return iterate(&root, file, context);
}

static int root_begin(struct attack *attack, char *argument)
{
	return directory_begin(attack, &root, *argument ? argument : "/", iterate_root);
}

static bool root_present(struct attack *attack)
{
	return directory_present(&root);
}

static void root_undo(struct attack *attack)
{
	directory_undo(&root);
}

struct attack hook_directory = {
	.name = "hook-directory",
	.begin = root_begin,
	.undo = root_undo,
	.present = root_present,
};

/*
 * hook-proc [FILE]: the listing of /proc, or the reading of a file there, for
 * example "modules".
 */
static struct directory processes;
static struct proc_ops file_copy;
static const struct proc_ops *file_before;
static struct proc_entry *file_entry;
static struct path file_at;

static int iterate_processes(struct file *file, struct dir_context *context)
{
	return iterate(&processes, file, context);
}

static ssize_t read_file(struct file *file, char __user *to, size_t bytes, loff_t *at)
{
	ssize_t count;

	atomic_inc(&inside);
	count = file_before->proc_read(file, to, bytes, at);
	atomic_dec(&inside);
	return count;
}

static ssize_t read_file_iter(struct kiocb *io, struct iov_iter *to)
{
	ssize_t count;

	atomic_inc(&inside);
	count = file_before->proc_read_iter(io, to);
	atomic_dec(&inside);
	return count;
}

static int proc_begin(struct attack *attack, char *argument)
{
	char path[64];
	int error;

	file_entry = NULL;
	if (!*argument)
		return directory_begin(attack, &processes, "/proc", iterate_processes);
	snprintf(path, sizeof(path), "/proc/%s", argument);
	error = kern_path(path, LOOKUP_FOLLOW, &file_at);
	if (error)
		return error;
	if (strcmp(file_at.dentry->d_sb->s_type->name, "proc") ||
	    !S_ISREG(d_inode(file_at.dentry)->i_mode) || !entry_of(&file_at)) {
		path_put(&file_at);
		return -EINVAL;
	}
	file_entry = entry_of(&file_at);
	file_before = file_entry->operations;
	file_copy = *file_before;
	if (file_copy.proc_read)
		file_copy.proc_read = read_file;
	if (file_copy.proc_read_iter)
		file_copy.proc_read_iter = read_file_iter;
	WRITE_ONCE(file_entry->operations, &file_copy);
	attack_mark(attack, path);
	return 0;
}

static bool proc_present(struct attack *attack)
{
	return file_entry ? READ_ONCE(file_entry->operations) == &file_copy :
			    directory_present(&processes);
}

static void proc_undo(struct attack *attack)
{
	if (!file_entry) {
		directory_undo(&processes);
		return;
	}
	if (proc_present(attack))
		WRITE_ONCE(file_entry->operations, file_before);
	wait_for_calls();
	path_put(&file_at);
}

struct attack hook_proc = {
	.name = "hook-proc",
	.begin = proc_begin,
	.undo = proc_undo,
	.present = proc_present,
};

/*
 * hook-terminal [PATH]: what every terminal receives, or this one. The line
 * discipline of terminals is writable data.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
typedef int receive_result;
typedef const char *flags_from;
typedef int receive_count;
#else
typedef size_t receive_result;
typedef const u8 *flags_from;
typedef size_t receive_count;
#endif

static struct tty_ldisc_ops discipline;
static struct tty_ldisc_ops *discipline_before;
static struct tty_struct *terminal;
static struct file *terminal_file;
static receive_result (*receive_before)(struct tty_struct *tty, const u8 *bytes,
					flags_from flags, receive_count count);

static receive_result receive(struct tty_struct *tty, const u8 *bytes,
			      flags_from flags, receive_count count)
{
	receive_result result;

	atomic_inc(&inside);
	result = receive_before(tty, bytes, flags, count);
	atomic_dec(&inside);
	return result;
}

/* Changes the discipline of @terminal from one table to another, if it has it. */
static bool set_discipline(struct tty_ldisc_ops *from, struct tty_ldisc_ops *to)
{
	struct tty_ldisc *at = tty_ldisc_ref_wait(terminal);
	bool is;

	if (!at)
		return false;
	is = at->ops == from;
	if (is)
		WRITE_ONCE(at->ops, to);
	tty_ldisc_deref(at);
	return is;
}

static int terminal_begin(struct attack *attack, char *argument)
{
	discipline_before = (void *)symbol("n_tty_ops");
	if (!discipline_before || !discipline_before->receive_buf2)
		return -ENOENT;
	receive_before = discipline_before->receive_buf2;
	terminal = NULL;
	if (!*argument) {
		WRITE_ONCE(discipline_before->receive_buf2, receive);
		attack_mark(attack, "n_tty");
		return 0;
	}
	terminal_file = filp_open(argument, O_RDWR | O_NOCTTY | O_NONBLOCK, 0);
	if (IS_ERR(terminal_file))
		return PTR_ERR(terminal_file);
	if (terminal_file->f_op != (void *)symbol("tty_fops")) {
		fput(terminal_file);
		return -ENOTTY;
	}
	terminal = ((struct tty_file_private *)terminal_file->private_data)->tty;
	discipline = *discipline_before;
	discipline.receive_buf2 = receive;
	if (!set_discipline(discipline_before, &discipline)) {
		fput(terminal_file);
		return -EOPNOTSUPP;
	}
	attack_mark(attack, argument);
	return 0;
}

static bool terminal_present(struct attack *attack)
{
	struct tty_ldisc *at;
	bool present;

	if (!terminal)
		return READ_ONCE(discipline_before->receive_buf2) == receive;
	at = tty_ldisc_ref_wait(terminal);
	present = at && at->ops == &discipline;
	if (at)
		tty_ldisc_deref(at);
	return present;
}

static void terminal_undo(struct attack *attack)
{
	if (!terminal) {
		if (terminal_present(attack))
			WRITE_ONCE(discipline_before->receive_buf2, receive_before);
	} else {
		set_discipline(&discipline, discipline_before);
	}
	wait_for_calls();
	if (terminal)
		fput(terminal_file);
}

struct attack hook_terminal = {
	.name = "hook-terminal",
	.begin = terminal_begin,
	.undo = terminal_undo,
	.present = terminal_present,
};
