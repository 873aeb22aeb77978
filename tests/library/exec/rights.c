/* Root gives up its rights, in one thread or in all. The argument is an empty folder: of an image, or of the host. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOBODY	65534

static int folder;

/* What the calling thread may do with root's file, and whose its own file is. */
static void show(const char *who)
{
	int mine, root = openat(folder, "root", O_RDWR);
	struct stat stat = { 0 };

	printf("%s: open %s", who, root < 0 ? strerror(errno) : "works");
	printf(", access %s", faccessat(folder, "root", W_OK, 0) ? strerror(errno) : "works");
	printf(", chown %s", fchownat(folder, "given", 6, 5, 0) ? strerror(errno) : "works");
	mine = openat(folder, "mine", O_RDWR | O_CREAT, 0600);
	if (mine < 0)
		printf(", create %s\n", strerror(errno));
	else if (!fstat(mine, &stat))
		printf(", owner %d:%d\n", stat.st_uid, stat.st_gid);
	unlinkat(folder, "mine", 0);
	close(root);
	close(mine);
}

static int step;

/* Threads do each step alternately: the first changes the process, the other one shows what it may do. */
static void *other(void *unused)
{
	int seen;

	show("other");
	__atomic_store_n(&step, 1, __ATOMIC_RELEASE);
	while ((seen = __atomic_load_n(&step, __ATOMIC_ACQUIRE)) != 2)
		usleep(1000);
	show("other");
	return NULL;
}

static void *file_user(void *unused)
{
	setfsuid(NOBODY);
	show("file user");
	return NULL;
}

static void *only_chown(void *unused)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 1 << CAP_CHOWN, 1 << CAP_CHOWN, 0 } };

	if (syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY) || syscall(SYS_capset, &header, data))
		perror("capset");
	show("chown");
	return NULL;
}

static void in_thread(void *(*run)(void *))
{
	pthread_t thread;

	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const gid_t groups[] = { 7, 9 };
	pthread_t thread;

	folder = open(argv[1], O_RDONLY | O_DIRECTORY);
	fchmod(folder, 0775);
	fchown(folder, 0, 9);
	close(openat(folder, "root", O_RDWR | O_CREAT, 0600));
	close(openat(folder, "given", O_RDWR | O_CREAT, 0600));
	show("root");
	in_thread(file_user);
	prctl(PR_SET_KEEPCAPS, 1);
	in_thread(only_chown);
	prctl(PR_SET_KEEPCAPS, 0);
	pthread_create(&thread, NULL, other, NULL);
	while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) != 1)
		usleep(1000);
	/* Files of the folder's group can be made, and nothing else. */
	if (setgroups(2, groups) || setegid(8) || seteuid(NOBODY))
		perror("seteuid");
	show("effective");
	if (seteuid(0) || setgid(8) || setuid(NOBODY))
		perror("setuid");
	show("nobody");
	printf("back: %s\n", setuid(0) ? strerror(errno) : "works");
	show("nobody");
	__atomic_store_n(&step, 2, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	return 0;
}
