/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by root*.c: each attempt gets kyozon.ko's state and its argument, and
 * reports its result.
 */
#ifndef KYOZON_ATTACKS_ROOT_H
#define KYOZON_ATTACKS_ROOT_H

#include "kyozon.h"		/* the module's */

#include "attacks.h"

#define HOLD_MAX_MS	10000

__printf(1, 2) void root_report(const char *format, ...);

/* Waits for @ms ms, and calls @again, if not NULL, repeatedly. */
void root_wait(unsigned int ms, void (*again)(struct kyozon *k), struct kyozon *k);

/* The page that root_find() chose to attack; 0 before it ran. */
phys_addr_t root_victim(void);
phys_addr_t root_known_victim(void);

int root_find(struct kyozon *k, char *argument);
int root_write(struct kyozon *k, char *argument);
int root_read(struct kyozon *k, char *argument);
int root_copy(struct kyozon *k, char *argument);
int root_break(struct kyozon *k, char *argument);
int root_table(struct kyozon *k, char *argument);
int root_dma(struct kyozon *k, char *argument);
int root_hpet(struct kyozon *k, char *argument);
int root_iommu(struct kyozon *k, char *argument);
int root_timer(struct kyozon *k, char *argument);
int root_disarm(struct kyozon *k, char *argument);
int root_hold(struct kyozon *k, char *argument);
int root_msr(struct kyozon *k, char *argument);
int root_sleep(struct kyozon *k, char *argument);
int root_serial(struct kyozon *k, char *argument);
int root_nmis(struct kyozon *k, char *argument);
int root_init(struct kyozon *k, char *argument);
int root_call(struct kyozon *k, char *argument);
int root_forge(struct kyozon *k, char *argument);
int root_hotplug(struct kyozon *k, char *argument);
int root_storm(struct kyozon *k, char *argument);

#endif
