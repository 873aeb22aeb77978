/*
 * Calls that name this process by its id reach this process. Where a call changes something, the check shows a value
 * that was set by the id 0 and that no other process is likely to have.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)							\
	do {								\
		if (!(what)) {						\
			printf("line %d: %s\n", __LINE__, #what);	\
			exit(1);					\
		}							\
	} while (0)

static volatile sig_atomic_t handled;

static void handler(int signal)
{
	handled++;
}

int main(void)
{
	struct rlimit limit = { 4096 * 7, 4096 * 7 }, seen;
	cpu_set_t all, one, now;
	pid_t own = getpid(), child;
	char from = 'x', to = 0;
	struct iovec source = { &from, 1 }, target = { &to, 1 };
	int pipes[2], fd, status;

	CHECK(!setrlimit(RLIMIT_CORE, &limit) && !prlimit(own, RLIMIT_CORE, NULL, &seen));
	CHECK(seen.rlim_cur == limit.rlim_cur && !setpriority(PRIO_PROCESS, 0, 7));
	CHECK(getpriority(PRIO_PROCESS, own) == 7);
	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one);
	for (fd = 0; !CPU_ISSET(fd, &all); fd++)
		;
	CPU_SET(fd, &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one) && !sched_getaffinity(own, sizeof(now), &now));
	CHECK(CPU_EQUAL(&one, &now));
	CHECK(process_vm_readv(own, &target, 1, &source, 1, 0) == 1 && to == 'x');
	CHECK(getpgid(own) == getpgrp() && getpgid(0) == getpgrp() && getsid(own) == getsid(0));
	CHECK(!pipe(pipes) && !fcntl(pipes[0], F_SETOWN, own));
	CHECK(signal(SIGIO, handler) != SIG_ERR && !fcntl(pipes[0], F_SETFL, O_ASYNC));
	CHECK(write(pipes[1], "", 1) == 1 && handled == 1);
	fd = syscall(SYS_pidfd_open, own, 0);
	CHECK(fd >= 0 && !syscall(SYS_pidfd_send_signal, fd, SIGIO, NULL, 0) && handled == 2);
	CHECK(getppid() != 0 && !kill(getppid(), 0));
	/* A forked process knows its parent by that id, as the subshells of `kill $$` do. */
	child = fork();
	if (!child)
		_exit(kill(own, SIGIO) != 0);
	CHECK(child > 0 && waitpid(child, &status, 0) == child && !status && handled == 3);
	puts("own id: ok");
	return 0;
}
