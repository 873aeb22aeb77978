/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PROBE_H
#define PROBE_H

struct seq_file;

/* Shows registers and tables that must be equal before and after a test. */
int probe_state_show(struct seq_file *out, void *unused);

/* Shows the delays of the timer since its start. */
int probe_delay_show(struct seq_file *out, void *unused);
void probe_delay_start(void);
void probe_delay_stop(void);

#endif
