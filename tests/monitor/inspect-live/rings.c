// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Makes two rings of io_uring, and waits: one with registered files, to which
 * requests come by system call, and one with a kernel thread.
 */
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ring(unsigned int entries, unsigned int flags)
{
	struct io_uring_params params = { .flags = flags, .sq_thread_idle = 1000000 };
	int made = syscall(SYS_io_uring_setup, entries, &params);

	if (made < 0) {
		perror("io_uring_setup");
		exit(1);
	}
	return made;
}

int main(void)
{
	int files[] = { 0, 1, 2 };

	if (syscall(SYS_io_uring_register, ring(64, 0), IORING_REGISTER_FILES, files, 3)) {
		perror("io_uring_register");
		return 1;
	}
	ring(8, IORING_SETUP_SQPOLL);
	pause();
	return 0;
}
