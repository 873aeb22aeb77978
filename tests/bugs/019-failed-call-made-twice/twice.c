// SPDX-License-Identifier: MIT OR Apache-2.0
/* twice FILE.typed: runs the program with its import 0 as fd_write, and a file that may not grow as descriptor 0. */
#include <signal.h>
#include <sys/resource.h>

#include "../typed.h"

static volatile sig_atomic_t signals;

static void count(int number)
{
	(void)number;
	signals++;
}

static int full_file(void)
{
	struct rlimit none = {};

	signal(SIGXFSZ, count);
	return setrlimit(RLIMIT_FSIZE, &none) ? -1 : open("/tmp/full", O_RDWR | O_CREAT, 0600);
}

int main(int argc, char **argv)
{
	int device = typed_device(), full = full_file();
	struct kyozon_typed_run run = wasi_run(full, KYOZON_TYPED_MAY_WRITE);

	if (argc != 2 || full < 0 || typed_load(device, argv[1], KYOZON_TYPED_WASI_FD_WRITE) ||
	    ioctl(device, KYOZON_IOCTL_TYPED_RUN, &run) || run.outcome != KYOZON_TYPED_CALLED)
		return 2;
	/* The kernel made the call if the signal is here; then the process must not. */
	printf("signals %d, to be made again: %s\n", (int)signals, run.result ? "no" : "yes");
	printf("%s\n", strerror(-run.result));
	return 0;
}
