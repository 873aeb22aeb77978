// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * crowd COUNT	starts COUNT threads that sleep, a thousand a process, and
 *		prints "ready"
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS		1000
#define STACK_BYTES	65536

static void *sleep_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* A process with that many threads, its first one among them. */
static void start(int count, int ready)
{
	pthread_attr_t small;
	pthread_t thread;
	char done = 1;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK_BYTES);
	while (--count > 0)
		if (pthread_create(&thread, &small, sleep_on, NULL))
			_exit(1);
	if (write(ready, &done, 1) != 1)
		_exit(1);
	sleep_on(NULL);
}

int main(int argc, char **argv)
{
	int count = argc == 2 ? atoi(argv[1]) : 0, ready[2];
	char done;

	if (count <= 0 || pipe(ready)) {
		fprintf(stderr, "usage: crowd COUNT\n");
		return 2;
	}
	while (count > 0) {
		int threads = count < THREADS ? count : THREADS;
		pid_t child = fork();

		if (!child) {
			close(ready[0]);
			start(threads, ready[1]);
		}
		if (child < 0 || read(ready[0], &done, 1) != 1) {
			perror("crowd");
			return 1;
		}
		count -= threads;
	}
	printf("ready\n");
	fflush(stdout);
	sleep_on(NULL);
}
