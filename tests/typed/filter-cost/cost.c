// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * cost PID ADDRESS: sends UDP packets from the network namespace of a process to this one, and receives them. Prints
 * the median of the ticks for each, one at a time and 32 in a row.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <x86intrin.h>

#define SAMPLES	101

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* A socket in the namespace of a file. */
static int socket_in(const char *file)
{
	if (setns(open(file, O_RDONLY), CLONE_NEWNET))
		exit(2);
	return socket(AF_INET, SOCK_DGRAM, 0);
}

static uint64_t median(int from, int to, int count)
{
	uint64_t samples[SAMPLES], start;
	char byte;

	for (int n = 0; n < SAMPLES; n++) {
		start = __rdtsc();
		for (int k = 0; k < count; k++)
			if (send(from, "x", 1, 0) != 1)
				exit(2);
		for (int k = 0; k < count; k++)
			if (recv(to, &byte, 1, 0) != 1)
				exit(2);
		samples[n] = (__rdtsc() - start) / count;
	}
	qsort(samples, SAMPLES, sizeof(*samples), compare);
	return samples[SAMPLES / 2];
}

int main(int argc, char **argv)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_port = htons(5) };
	int here = open("/proc/self/ns/net", O_RDONLY), from, to;
	char file[64];

	if (argc != 3)
		return 2;
	snprintf(file, sizeof(file), "/proc/%s/ns/net", argv[1]);
	from = socket_in(file);
	if (setns(here, CLONE_NEWNET))
		return 2;
	to = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(to, (struct sockaddr *)&name, sizeof(name)))
		return 2;
	inet_pton(AF_INET, argv[2], &name.sin_addr);
	if (connect(from, (struct sockaddr *)&name, sizeof(name)))
		return 2;
	printf("one %lu", median(from, to, 1));
	printf(" of 32 %lu\n", median(from, to, 32));
	return 0;
}
