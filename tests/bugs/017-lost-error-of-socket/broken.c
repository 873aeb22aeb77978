// SPDX-License-Identifier: MIT OR Apache-2.0
/* broken FILE.typed: runs the program with its import 0 as fd_read, and a socket that was reset as descriptor 0. */
#include <errno.h>
#include <sys/socket.h>

#include "../typed.h"

/* One end; the other end was closed before it received all. */
static int reset_socket(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || write(ends[0], "x", 1) != 1)
		return -1;
	close(ends[1]);
	return ends[0];
}

int main(int argc, char **argv)
{
	int device = typed_device(), socket = reset_socket();
	struct kyozon_typed_run run = wasi_run(socket, KYOZON_TYPED_MAY_READ);
	char byte;

	if (argc != 2 || socket < 0 || typed_load(device, argv[1], KYOZON_TYPED_WASI_FD_READ) ||
	    ioctl(device, KYOZON_IOCTL_TYPED_RUN, &run))
		return 2;
	if (run.outcome != KYOZON_TYPED_CALLED) {
		printf("the kernel's result: %d\n", (int)run.result);
		return 1;
	}
	if (run.result)
		printf("the kernel was told: %s\n", strerror(-run.result));
	else
		printf("the process is told: %s\n", read(socket, &byte, 1) < 0 ? strerror(errno) : "no error");
	return 0;
}
