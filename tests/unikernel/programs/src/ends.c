/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ends HOW: the ways in which a program ends. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *how = "";
static volatile int *volatile nowhere = (int *)8;

static int is(const char *word)
{
	return !strcmp(how, word);
}

static void *end(void *result)
{
	usleep(10000);
	if (is("exit")) exit(200);
	if (is("crash")) *nowhere = 1;
	if (is("signal")) raise(SIGTERM);
	/* After the first thread's end. */
	if (is("last")) usleep(100000);
	puts("the last thread");
	return result;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 1) how = argv[1];
	if (is("abort")) abort();
	if (is("streams")) {
		fprintf(stderr, "an error\n");
		printf("%s\n", getenv("GREETING"));
		return 255;
	}
	if (pthread_create(&thread, NULL, end, NULL)) return 1;
	if (is("last")) pthread_exit(NULL);
	/* It computes, and makes no call. */
	for (volatile unsigned long n = 0;; n++);
}
