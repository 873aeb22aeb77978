/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KYOZON_ATTACKS_H
#define KYOZON_ATTACKS_H

#include <linux/types.h>

struct file;
struct seq_file;
struct vm_area_struct;

/*
 * An attack tampers with Linux in one way, and undoes it. Each can be active
 * once; main.c serializes the calls.
 */
struct attack {
	const char *name;
	/* Tampers as @argument says, and calls attack_done(). */
	int (*begin)(struct attack *attack, char *argument);
	/* Undoes what is still in place. */
	void (*undo)(struct attack *attack);
	/* Whether it is still in place. */
	bool (*present)(struct attack *attack);
	bool active;
	u64 tsc;		/* time of the tampering */
	char about[96];		/* the target */
};

extern struct attack hide_list, hide_forged, hide_list_pid, hide_again;
extern struct attack hide_twice, hide_thread, hide_handler, hide_probe;
extern struct attack patch_text, patch_rodata, filter_symbol;

/*
 * Called with interrupts off, right after the tampering: marks @attack active,
 * then spins for the time set by "spin". @attack->tsc is the time before.
 */
void attack_done(struct attack *attack);

/* root.c: attempts against a cokernel; @line is the rest after "root" */
int root_try(char *line);
int root_mmap(struct file *file, struct vm_area_struct *vma);
void root_show(struct seq_file *out);

/* The address of @name, exported or not; 0 if there is none. */
unsigned long symbol(const char *name);

/* The address of NAME or NAME+OFFSET; 0 if there is none. */
unsigned long symbol_with_offset(char *name);

#endif
