// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Makes Linux rewrite jump labels: each command turns a static key on, and off again.
 *
 *   labels perf N	software events of all kinds, N times
 *   labels stamps N	a socket with time stamps, N times
 *   labels tunnels N	a UDP socket that carries IPsec, whose key is never turned off; then N sockets with filters
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int perf(void)
{
	int files[PERF_COUNT_SW_MAX];

	for (int kind = 0; kind < PERF_COUNT_SW_MAX; kind++) {
		struct perf_event_attr event = {
			.type = PERF_TYPE_SOFTWARE,
			.size = sizeof event,
			.config = kind,
			.sample_period = 1000,
		};

		/* -1: not every kernel has all kinds. */
		files[kind] = syscall(SYS_perf_event_open, &event, 0, -1, -1, 0);
	}
	if (files[PERF_COUNT_SW_CONTEXT_SWITCHES] < 0)
		return -1;
	usleep(1000);
	for (int kind = 0; kind < PERF_COUNT_SW_MAX; kind++)
		if (files[kind] >= 0)
			close(files[kind]);
	return 0;
}

static int stamps(void)
{
	int on = 1, file = socket(AF_INET, SOCK_DGRAM, 0);

	if (file < 0 || setsockopt(file, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof on))
		return -1;
	usleep(1000);
	return close(file);
}

static int tunnels(void)
{
	int kind = UDP_ENCAP_ESPINUDP, file = socket(AF_INET, SOCK_DGRAM, 0);
	struct sock_filter accept = BPF_STMT(BPF_RET | BPF_K, 0xffff);
	struct sock_fprog program = { .len = 1, .filter = &accept };

	if (file < 0 || setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program))
		return -1;
	setsockopt(file, IPPROTO_UDP, UDP_ENCAP, &kind, sizeof kind); /* not every kernel has it */
	return close(file);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} all[] = { { "perf", perf }, { "stamps", stamps }, { "tunnels", tunnels } };

	for (unsigned i = 0; argc == 3 && i < sizeof all / sizeof *all; i++)
		if (!strcmp(argv[1], all[i].name)) {
			for (int n = atoi(argv[2]); n > 0; n--)
				if (all[i].run()) {
					perror(all[i].name);
					return 1;
				}
			return 0;
		}
	return 2;
}
