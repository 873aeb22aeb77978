// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Uses what Linux hooks into its own tables for a program.
 *
 *   busy packets N	N sockets that see all packets of all devices, as a packet analyzer has them
 *   busy filters N	a table of nftables with a chain before routing and one for output, made and removed N times
 *   busy terminals N	N pseudo terminals with a session each, which write, resize, change discipline and hang up
 *   busy timers N	timers of every kind, N times
 *   busy spaces N	N network namespaces with a device each, half of them at a time
 *   busy mounts N	N mounts of memory file systems and of /proc, with listings
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int packets(void)
{
	struct sockaddr_ll all = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	int file = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), to = socket(AF_INET, SOCK_DGRAM, 0);
	int group = 1;
	struct sockaddr_in self = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char packet[256];

	if (file < 0 || bind(file, (void *)&all, sizeof all))
		fail("AF_PACKET");
	setsockopt(file, SOL_PACKET, PACKET_FANOUT, &group, sizeof group);
	sendto(to, "", 1, 0, (void *)&self, sizeof self);
	if (recv(file, packet, sizeof packet, 0) < 0)
		fail("recv");
	usleep(5000);
	close(to);
	return close(file);
}

/* A message to nfnetlink, built in one buffer. */
static char batch[2048];
static size_t filled;

/* @resource: the subsystem of a batch, at its begin and its end */
static struct nlmsghdr *message(unsigned type, unsigned flags, unsigned family, unsigned resource)
{
	struct nlmsghdr *head = (void *)(batch + filled);
	struct nfgenmsg *rest = NLMSG_DATA(head);

	memset(head, 0, NLMSG_LENGTH(sizeof *rest));
	head->nlmsg_type = type;
	head->nlmsg_flags = NLM_F_REQUEST | flags;
	rest->nfgen_family = family;
	rest->res_id = htons(resource);
	filled += head->nlmsg_len = NLMSG_LENGTH(sizeof *rest);
	return head;
}

static struct nlattr *attribute(struct nlmsghdr *head, unsigned type, const void *data, size_t bytes)
{
	struct nlattr *at = (void *)(batch + filled);
	size_t size = NLA_ALIGN(NLA_HDRLEN + bytes);

	memset(at, 0, size);
	at->nla_type = type;
	at->nla_len = NLA_HDRLEN + bytes;
	memcpy((char *)at + NLA_HDRLEN, data, bytes);
	filled += size;
	head->nlmsg_len += size;
	return at;
}

static void chain(const char *name, unsigned hook)
{
	struct nlmsghdr *head = message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN, NLM_F_CREATE, NFPROTO_IPV4, 0);
	unsigned number = htonl(hook), priority = htonl(0);
	struct nlattr *nested;

	attribute(head, NFTA_CHAIN_TABLE, "busy", 5);
	attribute(head, NFTA_CHAIN_NAME, name, strlen(name) + 1);
	nested = attribute(head, NFTA_CHAIN_HOOK | NLA_F_NESTED, "", 0);
	attribute(head, NFTA_HOOK_HOOKNUM, &number, 4);
	attribute(head, NFTA_HOOK_PRIORITY, &priority, 4);
	nested->nla_len = batch + filled - (char *)nested;
	attribute(head, NFTA_CHAIN_TYPE, "filter", 7);
}

/* Sends the batch, and begins the next. Fails if the kernel has no nftables at the moment. */
static int send_batch(int file)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nlmsgerr *error;
	char answer[4096];
	ssize_t got;

	message(NFNL_MSG_BATCH_END, 0, 0, NFNL_SUBSYS_NFTABLES);
	if (sendto(file, batch, filled, 0, (void *)&kernel, sizeof kernel) < 0)
		fail("nfnetlink");
	while ((got = recv(file, answer, sizeof answer, MSG_DONTWAIT)) > 0)
		for (struct nlmsghdr *at = (void *)answer; NLMSG_OK(at, got); at = NLMSG_NEXT(at, got)) {
			error = NLMSG_DATA(at);
			if (at->nlmsg_type == NLMSG_ERROR && error->error) {
				errno = -error->error;
				if (errno == EOPNOTSUPP)
					return 1;
				fail("nftables");
			}
		}
	filled = 0;
	message(NFNL_MSG_BATCH_BEGIN, 0, 0, NFNL_SUBSYS_NFTABLES);
	return 0;
}

static int filters(void)
{
	int file = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
	struct nlmsghdr *head;

	if (file < 0)
		return 1; /* the module is not loaded */
	filled = 0;
	message(NFNL_MSG_BATCH_BEGIN, 0, 0, NFNL_SUBSYS_NFTABLES);
	head = message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE, NLM_F_CREATE, NFPROTO_IPV4, 0);
	attribute(head, NFTA_TABLE_NAME, "busy", 5);
	chain("early", NF_INET_PRE_ROUTING);
	chain("late", NF_INET_LOCAL_OUT);
	if (send_batch(file))
		return close(file) | 1;
	usleep(20000);
	head = message(NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE, 0, NFPROTO_IPV4, 0);
	attribute(head, NFTA_TABLE_NAME, "busy", 5);
	return send_batch(file) | close(file);
}

static int terminals(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), discipline;
	char byte;

	if (master < 0 || grantpt(master) || unlockpt(master))
		fail("posix_openpt");
	if (!fork()) {
		struct winsize size = { .ws_row = 24, .ws_col = 80 };
		int slave;

		setsid();
		slave = open(ptsname(master), O_RDWR);
		close(master);
		ioctl(slave, TIOCSCTTY, 0);
		ioctl(slave, TIOCSWINSZ, &size);
		/* N_NULL and N_SLIP exist in some kernels. */
		for (discipline = 0; discipline < 30; discipline++)
			ioctl(slave, TIOCSETD, &discipline);
		discipline = 0;
		ioctl(slave, TIOCSETD, &discipline);
		if (write(slave, "hello\n", 6) != 6 || read(slave, &byte, 1) < 1)
			_exit(1);
		_exit(0);
	}
	if (write(master, "line\n", 5) != 5)
		fail("pseudo terminal");
	usleep(10000);
	close(master); /* hangs up */
	while (wait(NULL) > 0)
		;
	return 0;
}

static void ignore(int signal)
{
}

static int timers(void)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_PROCESS_CPUTIME_ID,
					    CLOCK_THREAD_CPUTIME_ID };
	struct itimerspec often = { { 0, 2000000 }, { 0, 1000000 } };
	struct itimerval interval = { { 0, 2000 }, { 0, 1000 } };
	timer_t made[5];
	int files[3], n;

	signal(SIGALRM, ignore);
	signal(SIGPROF, ignore);
	signal(SIGVTALRM, ignore);
	for (n = 0; n < 5; n++)
		if (timer_create(clocks[n], NULL, &made[n]) || timer_settime(made[n], 0, &often, NULL))
			fail("timer_create");
	for (n = 0; n < 3; n++) {
		files[n] = timerfd_create(clocks[n], 0);
		timerfd_settime(files[n], 0, &often, NULL);
	}
	setitimer(ITIMER_REAL, &interval, NULL);
	setitimer(ITIMER_VIRTUAL, &interval, NULL);
	setitimer(ITIMER_PROF, &interval, NULL);
	for (n = 0; n < 10; n++) {
		poll(NULL, 0, 3);
		for (volatile int spin = 0; spin < 20000; spin++)
			;
	}
	for (n = 0; n < 3; n++)
		setitimer(n, &(struct itimerval){ 0 }, NULL);
	for (n = 0; n < 5; n++)
		timer_delete(made[n]);
	for (n = 0; n < 3; n++)
		close(files[n]);
	return 0;
}

static int spaces(void)
{
	int file;
	struct ifreq device = { .ifr_name = "lo", .ifr_flags = IFF_UP };

	if (fork())
		return 0;
	if (unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWCGROUP))
		fail("unshare");
	file = socket(AF_INET, SOCK_DGRAM, 0);
	if (ioctl(file, SIOCSIFFLAGS, &device))
		fail("lo");
	filters();
	usleep(50000);
	_exit(0);
}

static int mounts(void)
{
	static const char *const types[] = { "tmpfs", "proc", "sysfs", "ramfs", "devpts" };
	char folder[64];
	DIR *listing;

	for (unsigned n = 0; n < 5; n++) {
		snprintf(folder, sizeof folder, "/tmp/mount-%d-%u", getpid(), n);
		mkdir(folder, 0700);
		if (mount(types[n], folder, types[n], 0, NULL))
			fail(types[n]);
		listing = opendir(folder);
		while (readdir(listing))
			;
		closedir(listing);
		if (umount(folder))
			fail("umount");
		rmdir(folder);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} all[] = { { "packets", packets }, { "filters", filters }, { "terminals", terminals },
		    { "timers", timers },   { "spaces", spaces },   { "mounts", mounts } };

	for (unsigned i = 0; argc == 3 && i < sizeof all / sizeof *all; i++)
		if (!strcmp(argv[1], all[i].name)) {
			for (int n = atoi(argv[2]); n > 0; n--)
				if (all[i].run())
					return 1;
			while (wait(NULL) > 0)
				;
			return 0;
		}
	return 2;
}
