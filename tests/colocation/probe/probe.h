/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROBE_H
#define PROBE_H

struct seq_file;

/* Registers and tables that nobody may have changed. */
int probe_state_show(struct seq_file *out, void *unused);

/* Worst and average lateness of a timer since it was started. */
int probe_delay_show(struct seq_file *out, void *unused);
void probe_delay_start(void);
void probe_delay_stop(void);

#endif
