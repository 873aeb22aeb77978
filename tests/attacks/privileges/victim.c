/*
 * Processes that the attacks give privileges, and some that get them from Linux.
 *
 *   victim user FILE	a process of user 1000 with a filter of its system calls; executes sleep once FILE exists
 *   victim gains HOW	a process of user 1000 that gains privileges, keeps them for a while and loses them:
 *			"program" by this program's set-user-ID bit, "shell" by executing a shell in addition,
 *			"namespace" in a user namespace of its own
 */
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OTHER	1000
#define A_WHILE	700000

static int filter(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int user(const char *file)
{
	if (setresuid(OTHER, OTHER, OTHER) || filter())
		return 1;
	while (access(file, F_OK))
		usleep(10000);
	execl("/bin/busybox", "sleep", "600", NULL);
	return 1;
}

static int begin_without(const char *program, const char *how)
{
	if (setresuid(OTHER, OTHER, OTHER))
		return 1;
	usleep(A_WHILE);
	if (strcmp(how, "namespace"))
		execl(program, program, "gains", how, NULL);
	return unshare(CLONE_NEWUSER) || usleep(A_WHILE);
}

static int gains(const char *program, const char *how)
{
	if (!getuid())
		return begin_without(program, how);
	/* As sudo does it: another user, and user 0 once more. */
	if (geteuid() || usleep(A_WHILE) || seteuid(OTHER) || usleep(A_WHILE) || seteuid(0) ||
	    usleep(A_WHILE))
		return 1;
	if (strcmp(how, "shell"))
		return 0;
	if (setresuid(0, 0, 0))
		return 1;
	execl("/bin/busybox", "sleep", "1", NULL);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "user"))
		return user(argv[2]);
	if (argc == 3 && !strcmp(argv[1], "gains"))
		return gains(argv[0], argv[2]);
	return 2;
}
