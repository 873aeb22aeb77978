// SPDX-License-Identifier: MIT OR Apache-2.0
/* unlocked KIB COMMAND...: runs the command with a limit of locked memory that also root has. */
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rlimit limit;

	if (argc < 3)
		return 2;
	limit.rlim_cur = limit.rlim_max = strtoul(argv[1], NULL, 10) << 10;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK)) {
		perror("unlocked");
		return 1;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
