// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Tasks that begin and end in every way that Linux has.
 *
 *   tasks forks N	N processes that end at once, waited for by nobody until all are zombies
 *   tasks orphans N	N processes whose parent ends before they do
 *   tasks threads N	N threads at a time that end at once, 10 times over
 *   tasks groups N	N processes of 8 threads, ended in turn by exit_group, by SIGKILL and by the first thread's own end
 *   tasks execs N	N processes of 4 threads, of which one that is not the first becomes another program
 *   tasks sessions N	N sessions, each a process group that is killed as a whole
 *   tasks spaces N	N processes in number spaces of their own, with a child each
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MANY = 512 };

static void wait_for_all(void)
{
	while (wait(NULL) > 0 || errno == EINTR)
		;
}

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	return pid;
}

static void forks(int count)
{
	for (int i = 0; i < count; i++)
		if (!child())
			_exit(0);
	usleep(20000);
	wait_for_all();
}

static void orphans(int count)
{
	if (!child()) {
		for (int i = 0; i < count; i++)
			if (!child()) {
				usleep(i * 100);
				_exit(0);
			}
		_exit(0);
	}
	wait_for_all();
	usleep(count * 100);
}

static void *nothing(void *unused)
{
	return unused;
}

static void *stay(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static int start(pthread_t *thread, void *(*does)(void *))
{
	pthread_attr_t small;
	int error;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	error = pthread_create(thread, &small, does, NULL);
	pthread_attr_destroy(&small);
	return error;
}

static void threads(int count)
{
	pthread_t all[MANY];

	for (int turn = 0; turn < 10; turn++) {
		int started = 0;

		while (started < count && !start(&all[started], nothing))
			started++;
		while (started > 0)
			pthread_join(all[--started], NULL);
	}
}

static void groups(int count)
{
	for (int i = 0; i < count; i++) {
		pid_t pid = child();

		if (!pid) {
			pthread_t thread;

			for (int n = 0; n < 7; n++)
				start(&thread, i % 3 == 2 ? nothing : stay);
			if (i % 3 == 0)
				_exit(0);
			if (i % 3 == 2)
				syscall(SYS_exit, 0); /* this thread only */
			stay(NULL);
		}
		if (i % 3 == 1) {
			usleep(i % 7 * 500);
			kill(pid, SIGKILL);
		}
	}
	wait_for_all();
}

static void *become_true(void *unused)
{
	execl("/bin/true", "true", NULL);
	_exit(1);
	return unused;
}

static void execs(int count)
{
	for (int i = 0; i < count; i++)
		if (!child()) {
			pthread_t thread;

			for (int n = 0; n < 2; n++)
				start(&thread, stay);
			start(&thread, become_true);
			stay(NULL);
		}
	wait_for_all();
}

static void sessions(int count)
{
	for (int i = 0; i < count; i++) {
		pid_t leader = child();

		if (!leader) {
			setsid();
			for (int n = 0; n < 4; n++)
				if (!child())
					stay(NULL);
			stay(NULL);
		}
		while (kill(-leader, SIGKILL)) /* until it has a session of its own */
			usleep(100);
	}
	wait_for_all();
}

static void spaces(int count)
{
	for (int i = 0; i < count; i++)
		if (!child()) {
			if (unshare(CLONE_NEWPID | CLONE_NEWUTS)) {
				perror("unshare");
				_exit(1);
			}
			if (!child()) { /* number 1 there: its end is the end of all */
				if (!child())
					stay(NULL);
				usleep(1000);
				_exit(0);
			}
			wait_for_all();
			_exit(0);
		}
	wait_for_all();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*does)(int);
	} all[] = { { "forks", forks },	  { "orphans", orphans },   { "threads", threads }, { "groups", groups },
		    { "execs", execs },	  { "sessions", sessions }, { "spaces", spaces } };
	int count = argc == 3 ? atoi(argv[2]) : 0;

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		if (count > 0 && count <= MANY && !strcmp(argv[1], all[i].name)) {
			all[i].does(count);
			return 0;
		}
	fprintf(stderr, "tasks: what, and how many, 1 to %d\n", MANY);
	return 2;
}
