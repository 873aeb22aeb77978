/*
 * Processes that the attacks give privileges, and some that get them from Linux.
 *
 *   victim user FILE	a process of user 1000 with a filter of its system calls; executes sleep once FILE exists
 *   victim confined FILE	the same in a user namespace of its own
 *   victim bare FILE	the same of user 0 without capabilities, as in a container
 *   victim gains HOW	a process of user 1000 that gains privileges, keeps them for a while and loses them:
 *			"program" by this program's set-user-ID bit, "shell" by executing a shell in addition,
 *			"capability" by this file's capability, "namespace" in a user namespace of its own
 *   victim storm N	N processes of user 1000 that execute this program, which executes a shell, at once
 *   victim allow FILE	gives FILE the capability to change its user
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
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

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	return syscall(SYS_capset, &header, none);
}

static int user(const char *file, const char *kind)
{
	int bare = !strcmp(kind, "bare"), confined = !strcmp(kind, "confined");

	if (!bare && setresuid(OTHER, OTHER, OTHER))
		return 1;
	if ((confined && unshare(CLONE_NEWUSER)) || filter() || (bare && drop_capabilities()))
		return 1;
	while (access(file, F_OK))
		usleep(10000);
	execl("/bin/busybox", "sleep", "600", NULL);
	return 1;
}

static int allow(const char *file)
{
	struct vfs_cap_data data = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1 << CAP_SETUID,
	};

	return setxattr(file, "security.capability", &data, sizeof(data), 0);
}

static int storm(const char *program, int count)
{
	while (count-- > 0) {
		int pid = fork();

		if (!pid) {
			if (!setresuid(OTHER, OTHER, OTHER)) {
				usleep(rand() % 20000);
				execl(program, program, "gains", "at once", NULL);
			}
			_exit(1);
		}
		if (count % 8 == 0)
			while (wait(NULL) > 0)
				;
		else
			srand(pid);
	}
	return 0;
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
	if (!strcmp(how, "at once")) {
		if (!setresuid(0, 0, 0))
			execl("/bin/busybox", "sleep", "0.7", NULL);
		return 1;
	}
	if (!strcmp(how, "capability"))
		return setresuid(0, 0, 0) || usleep(A_WHILE);
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
	if (argc != 3)
		return 2;
	if (!strcmp(argv[1], "user") || !strcmp(argv[1], "confined") || !strcmp(argv[1], "bare"))
		return user(argv[2], argv[1]);
	if (!strcmp(argv[1], "gains"))
		return gains(argv[0], argv[2]);
	if (!strcmp(argv[1], "storm"))
		return storm(argv[0], atoi(argv[2]));
	if (!strcmp(argv[1], "allow"))
		return allow(argv[2]);
	return 2;
}
