/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the programs of this folder share. `PROGRAM WORK` prints the nanoseconds of CPU time that the work took, and a
 * sum of its results: two builds that agree print the same sum. `PROGRAM WORK start` ends where the work would begin.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long long started;

/* Nanoseconds of CPU time; -1 if nobody tells. */
static long long cpu_time(void)
{
	struct timespec time;

	if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time))
		return -1;
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Everything is prepared, the work begins. */
static void start(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[2], "start"))
		exit(0);
	started = cpu_time();
}

/* The work is done. */
static void finish(void)
{
	if (started < 0)
		printf("no clock\n");
	else
		printf("%lld ns\n", cpu_time() - started);
}
