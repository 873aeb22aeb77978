// SPDX-License-Identifier: MIT OR Apache-2.0
/* broken FILE.typed: runs the program with its import 0 as fd_read, and a socket that was reset as descriptor 0. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../crates/base/abi/include/kyozon/abi.h"

#define MEMORY	4096

static uint8_t file[1 << 16];

/* One end; the other end was closed before it received all. */
static int reset_socket(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || write(ends[0], "x", 1) != 1)
		return -1;
	close(ends[1]);
	return ends[0];
}

static int load(int device, const char *name)
{
	int program = open(name, O_RDONLY);
	uint32_t import = KYOZON_TYPED_WASI_FD_READ;
	struct kyozon_typed_load load = {
		.check.version = KYOZON_TYPED_VERSION,
		.check.file.address = (uintptr_t)file,
		.imports = (uintptr_t)&import,
		.import_count = 1,
	};

	load.check.file.bytes = read(program, file, sizeof(file));
	if (program < 0 || !ioctl(device, KYOZON_IOCTL_TYPED_LOAD, &load))
		return program < 0 ? -1 : 0;
	fprintf(stderr, "%s\n", load.check.message);
	return -1;
}

int main(int argc, char **argv)
{
	int device = open("/dev/kyozon-typed", O_RDWR), socket = reset_socket();
	struct kyozon_typed_run run = {
		.version = KYOZON_TYPED_VERSION,
		.operations = { KYOZON_TYPED_MAY_READ },
		.memory = KYOZON_TYPED_REGION,
		.memory_bytes = MEMORY,
	};
	uint32_t *memory = mmap((void *)(uintptr_t)KYOZON_TYPED_REGION, MEMORY, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	char byte;

	if (argc != 2 || device < 0 || socket < 0 || memory == MAP_FAILED || load(device, argv[1]))
		return 2;
	/* A buffer of 16 bytes at 64 */
	memory[0] = 64;
	memory[1] = 16;
	memset(run.handles, -1, sizeof(run.handles));
	run.handles[0] = socket;
	if (ioctl(device, KYOZON_IOCTL_TYPED_RUN, &run))
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
