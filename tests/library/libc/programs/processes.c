/* Processes and clocks. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "check.h"

static int shared = 1;

static int child(void *argument)
{
	shared = 2;
	return *(int *)argument;
}

int main(int argc, char **argv)
{
	(void)argc;
	int status;
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		shared = 2;
		_exit(getpid() == gettid() && getppid() > 1 ? 7 : 8);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7 && shared == 1);

	pid = vfork();
	if (!pid) _exit(9);
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 9);

	/* The child of posix_spawn is a copy. It reports the error of its execve. */
	CHECK(posix_spawn(&pid, "/no such program", NULL, NULL, argv, environ) == ENOENT);

	static char stack[4096] __attribute__((aligned(16)));
	int wanted = 11;
	pid = clone(child, stack + sizeof stack, SIGCHLD, &wanted);
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 11 && shared == 1);
	/* What a copy cannot replace is refused. */
	CHECK(clone(child, stack + sizeof stack, CLONE_VM | SIGCHLD, &wanted) == -1 && errno == EINVAL);
	CHECK(clone(child, stack + sizeof stack, CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, &wanted) == -1);

	struct timespec before, after, cpu;
	CHECK(!clock_gettime(CLOCK_MONOTONIC, &before) && !nanosleep(&(struct timespec){0, 2000000}, NULL));
	CHECK(!clock_gettime(CLOCK_MONOTONIC, &after) && !clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu));
	long waited = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
	CHECK(waited >= 2000000 && (cpu.tv_sec || cpu.tv_nsec) && time(NULL) > 1700000000);
	return 0;
}
