// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Starts and ends tasks in every way that Linux has.
 *
 *   tasks forks N	N processes that end at once; all become zombies before the first wait
 *   tasks orphans N	N processes whose parent ends before they do
 *   tasks threads N	N threads at a time that end at once, 10 times over
 *   tasks groups N	N processes of 8 threads, ended in turn by exit_group, SIGKILL and the exit of the first thread
 *   tasks execs N	N processes of 4 threads; one that is not the first calls exec
 *   tasks sessions N	N sessions, each killed as a process group
 *   tasks spaces N	N processes in their own PID namespaces, with a child each
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

enum { MAX_COUNT = 512 };

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

static void *return_at_once(void *unused)
{
	return unused;
}

static void *wait_for_kill(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static int start(pthread_t *thread, void *(*run)(void *))
{
	pthread_attr_t small;
	int error;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	error = pthread_create(thread, &small, run, NULL);
	pthread_attr_destroy(&small);
	return error;
}

static void threads(int count)
{
	pthread_t all[MAX_COUNT];

	for (int turn = 0; turn < 10; turn++) {
		int started = 0;

		while (started < count && !start(&all[started], return_at_once))
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
				start(&thread, i % 3 == 2 ? return_at_once : wait_for_kill);
			if (i % 3 == 0)
				_exit(0);
			if (i % 3 == 2)
				syscall(SYS_exit, 0); /* ends this thread only */
			wait_for_kill(NULL);
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
				start(&thread, wait_for_kill);
			start(&thread, become_true);
			wait_for_kill(NULL);
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
					wait_for_kill(NULL);
			wait_for_kill(NULL);
		}
		while (kill(-leader, SIGKILL)) /* until it has its own session */
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
			if (!child()) { /* PID 1 there: its exit ends the namespace */
				if (!child())
					wait_for_kill(NULL);
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
		void (*run)(int);
	} all[] = { { "forks", forks },	  { "orphans", orphans },   { "threads", threads }, { "groups", groups },
		    { "execs", execs },	  { "sessions", sessions }, { "spaces", spaces } };
	int count = argc == 3 ? atoi(argv[2]) : 0;

	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		if (count > 0 && count <= MAX_COUNT && !strcmp(argv[1], all[i].name)) {
			all[i].run(count);
			return 0;
		}
	fprintf(stderr, "usage: tasks KIND COUNT, with COUNT from 1 to %d\n", MAX_COUNT);
	return 2;
}
