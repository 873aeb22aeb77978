/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the programs of this folder share. `PROGRAM WORK` prints the nanoseconds of CPU time that the work took, and a
 * sum of its results: two builds that agree print the same sum.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long long started;

/* Nanoseconds of CPU time. */
static long long cpu_time(void)
{
	struct timespec time;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time))
		abort();
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Everything is prepared, the work begins. */
static void start(void)
{
	started = cpu_time();
}

/* The work is done. */
static void finish(void)
{
	printf("%lld ns\n", cpu_time() - started);
}
