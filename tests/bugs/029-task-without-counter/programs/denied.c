/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* denied SECONDS: denies itself the time-stamp counter, as a user who needs no rights, and computes. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct rlimit limit = {atoi(argv[argc - 1]), atoi(argv[argc - 1])};

	if (setgid(1000) || setuid(1000) || setrlimit(RLIMIT_CPU, &limit)) return 1;
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0)) return 1;
	for (volatile unsigned long turn = 0;; turn++);
}
