// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * outlive PROGRAM: the program has five packets of a namespace whose only process ends. Prints how many pass when the
 * program returns.
 */
#define _GNU_SOURCE
#include "../typed.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define PACKETS 5

static void check(int failed, const char *what)
{
	if (!failed)
		return;
	perror(what);
	exit(2);
}

/* In a namespace of its own: filters lo, and sends packets there. */
static void send_packets(int device, int ready)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(7), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_LOOPBACK };
	int n, at;

	check(unshare(CLONE_NEWNET), "unshare");
	at = socket(AF_INET6, SOCK_DGRAM, 0);
	check(ioctl(at, SIOCSIFFLAGS, &lo), "lo");
	typed_filter(device);
	for (n = 0; n < PACKETS; n++)
		check(sendto(at, "packet", 6, 0, (struct sockaddr *)&to, sizeof(to)) < 0, "send");
	check(write(ready, "x", 1) != 1, "ready");
	pause();
}

static void run(int device, int input)
{
	struct kyozon_typed_run run = typed_run();

	run.handles[0] = input;
	while (ioctl(device, KYOZON_IOCTL_TYPED_RUN, &run))
		check(errno != EINTR, "run");
	exit(0);
}

/* Namespaces are freed some turns after their end. */
static void make_namespaces(void)
{
	int n;

	for (n = 0; n < 4; n++) {
		if (!fork()) {
			check(unshare(CLONE_NEWNET), "unshare");
			exit(0);
		}
		wait(NULL);
		sleep(1);
	}
}

int main(int argc, char **argv)
{
	int device = typed_device(), ready[2], hold[2];
	struct pollfd packets = { .fd = device, .events = POLLIN };
	pid_t sender, runner;
	char line[64], byte;

	if (argc != 2 || typed_load(device, argv[1], 0) || pipe(ready) || pipe(hold))
		return 2;
	check(mmap((void *)(uintptr_t)KYOZON_TYPED_REGION, 4096, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED, "region");
	sender = fork();
	if (!sender)
		send_packets(device, ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return 2;
	runner = fork();
	if (!runner)
		run(device, hold[0]);
	while (poll(&packets, 1, 0) > 0)
		poll(NULL, 0, 10);
	kill(sender, SIGKILL);
	waitpid(sender, NULL, 0);
	make_namespaces();
	check(write(hold[1], "x", 1) != 1, "hold");
	waitpid(runner, NULL, 0);
	snprintf(line, sizeof(line), "grep packets-passed /proc/%d/fdinfo/%d", getpid(), device);
	check(system(line), line);
	close(device);
	make_namespaces();
	return 0;
}
