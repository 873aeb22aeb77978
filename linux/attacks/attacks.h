/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KYOZON_ATTACKS_H
#define KYOZON_ATTACKS_H

#include <linux/types.h>

struct file;
struct seq_file;
struct vm_area_struct;

/*
 * An attack: tampers with Linux in one way, and takes it back. One of a kind
 * at a time; main.c serializes the calls.
 */
struct attack {
	const char *name;
	/* Tampers as @argument says; attack_done() tells the moment. */
	int (*begin)(struct attack *attack, char *argument);
	/* Takes it back, as far as nobody else has. */
	void (*undo)(struct attack *attack);
	/* Whether it is still in place. */
	bool (*present)(struct attack *attack);
	bool active;
	u64 tsc;		/* when it was done */
	char about[96];		/* to whom */
};

extern struct attack hide_list, hide_list_pid, hide_thread;
extern struct attack patch_text, patch_rodata;

/*
 * Called with interrupts off, right after the tampering: takes the time, then
 * spins for as long as was asked. @attack->tsc is the time before.
 */
void attack_done(struct attack *attack);

/* root.c: attempts against a cokernel, the line behind the word "root" */
int root_try(char *line);
int root_mmap(struct file *file, struct vm_area_struct *vma);
void root_show(struct seq_file *out);

/* The address of @name, exported or not; 0 where there is none. */
unsigned long symbol(const char *name);

/* NAME or NAME+OFFSET; 0 where there is none. */
unsigned long symbol_with_offset(char *name);

#endif
