/*
 * The process that the attacks hide, and a check whether a walk over all tasks finds it.
 *
 *   target run FILE	a process of user 1234 with a second thread of user 1235; writes both PIDs to FILE
 *			and appends a byte every 100 ms as a sign of life; ends when the file is removed
 *   target busy FILE	a process of user 1236 with one thread and its own session that computes when no other
 *			process does; writes its PID to FILE; ends when the file is removed
 *   target idle FILE	the same, and it sleeps
 *   target member FILE	the same, and it sleeps in its parent's session
 *   target listed USER	succeeds if Linux's walk over all threads finds one of USER
 *   target whoami	prints getuid() as user 1234
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Changes this thread only; libc's setresuid changes all of them. */
static void become(unsigned user)
{
	if (syscall(SYS_setresuid, user, user, user))
		exit(1);
}

static volatile long thread_id;

static void *second(void *unused)
{
	become(1235);
	thread_id = syscall(SYS_gettid);
	pause();
	return NULL;
}

static int run(const char *name)
{
	int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	struct stat now;
	pthread_t thread;

	if (file < 0 || pthread_create(&thread, NULL, second, NULL))
		return 1;
	while (!thread_id)
		usleep(1000);
	become(1234);
	dprintf(file, "%d %ld\n", getpid(), thread_id);
	while (!fstat(file, &now) && now.st_nlink > 0 && write(file, ".", 1) == 1)
		usleep(100000);
	return 0;
}

static int alone(const char *name, int has_session, int computes)
{
	int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	struct stat now;

	if (file < 0 || (has_session && setsid() < 0) || nice(19) < 0)
		return 1;
	become(1236);
	dprintf(file, "%d\n", getpid());
	while (!fstat(file, &now) && now.st_nlink > 0)
		if (!computes)
			usleep(100000);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "run"))
		return run(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "busy"))
		return alone(argv[2], 1, 1);
	if (argc == 3 && !strcmp(argv[1], "idle"))
		return alone(argv[2], 1, 0);
	if (argc == 3 && !strcmp(argv[1], "member"))
		return alone(argv[2], 0, 0);
	if (argc == 3 && !strcmp(argv[1], "listed"))
		return getpriority(PRIO_USER, atoi(argv[2])) == -1;
	if (argc == 2 && !strcmp(argv[1], "whoami")) {
		become(1234);
		printf("%ld\n", syscall(SYS_getuid));
		return 0;
	}
	return 2;
}
