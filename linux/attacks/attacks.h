/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KYOZON_ATTACKS_H
#define KYOZON_ATTACKS_H

#include <linux/atomic.h>
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
	atomic_long_t calls;	/* of the hook, if it counts them */
};

extern struct attack hide_list, hide_forged, hide_list_pid, hide_again;
extern struct attack hide_twice, hide_all, hide_thread, hide_handler, hide_probe;
extern struct attack patch_text, patch_rodata, patch_swapped, patch_behind, filter_symbol;
extern struct attack hook_lstar, hook_cstar, clear_wp, clear_smep, set_breakpoint;
extern struct attack move_idt, move_gdt, replace_tss, hook_gate, make_call_gate, move_stack;
extern struct attack hide_module, hide_module_sysfs, hide_module_all, clear_taint;
extern struct attack hide_bpf, hide_socket, hide_mount;
extern struct attack patch_bpf, patch_module, patch_crash;
extern struct attack exec_memory, writable_exec_memory, alias_text;
extern struct attack filter_process, filter_socket;
extern struct attack hook_netfilter, hook_packet, hook_keyboard, hook_notifier;
extern struct attack hook_format, hook_timer, hook_work, hook_thread;
extern struct attack hook_kprobe, hook_kretprobe, hook_ftrace, hook_tracepoint;
extern struct attack hook_breakpoint, hook_input, hook_direct;
extern struct attack hook_return, hook_saved, hook_static_call, hook_graph, hook_poked;
extern struct attack gain_root, gain_kernels, gain_written, lift_filter;
extern struct attack redirect_program, redirect_call, lift_protection;
extern struct attack hook_seq, hook_proc, hook_directory, hook_terminal;
extern struct attack forge_number, share_pid, forge_pid, forge_leader, fake_leader;
extern struct attack hide_first;
extern struct attack evade;

/*
 * Called with interrupts off, right after the tampering: marks @attack active,
 * then spins for the time set by "spin". @attack->tsc is the time before.
 */
void attack_done(struct attack *attack);

/* Calls attack_done() as it wants it; @about, if not NULL, is the target. */
void attack_mark(struct attack *attack, const char *about);

/* A hook of @attack was called. */
static inline void attack_called(struct attack *attack)
{
	atomic_long_inc(&attack->calls);
}

/* For attacks that nobody but undo takes away: always present. */
bool attack_stays(struct attack *attack);

/* unlist.c: counts how often it was taken out of the list of modules. */
int set_listed(bool listed);

/*
 * patch.c: a writable alias of the memory at @at, NULL without memory; and a
 * single store of @bytes if they lie in one word, since another CPU may execute
 * them.
 */
u8 *alias_map(const u8 *at);
void alias_unmap(u8 *alias);
void overwrite(u8 *alias, const u8 *bytes, size_t count);

/* A change of at most PATCH_MAX bytes of code or read-only data. */
#define PATCH_MAX	8

struct patch {
	u8 *at, old[PATCH_MAX], bad[PATCH_MAX];
	size_t bytes;
};

int patch_begin(struct attack *attack, struct patch *patch);
bool patch_present(const struct patch *patch);
void patch_undo(struct patch *patch);

/* Makes the code at @at return 0. */
int patch_to_zero(struct attack *attack, struct patch *patch, u8 *at);

/* root.c: attempts against a cokernel; @line is the rest after "root" */
int root_try(char *line);
int root_mmap(struct file *file, struct vm_area_struct *vma);
void root_show(struct seq_file *out);

/* The address of @name, exported or not; 0 if there is none. */
unsigned long symbol(const char *name);

/* The address of NAME or NAME+OFFSET; 0 if there is none. */
unsigned long symbol_with_offset(char *name);

#endif
