// SPDX-License-Identifier: MIT OR Apache-2.0
/* twice FILE.typed: runs the program with its import 0 as fd_write, and a file that may not grow as descriptor 0. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../../crates/base/abi/include/kyozon/abi.h"

#define MEMORY	4096

static uint8_t file[1 << 16];
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

static int load(int device, const char *name)
{
	int program = open(name, O_RDONLY);
	uint32_t import = KYOZON_TYPED_WASI_FD_WRITE;
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
	int device = open("/dev/kyozon-typed", O_RDWR), full = full_file();
	struct kyozon_typed_run run = {
		.version = KYOZON_TYPED_VERSION,
		.operations = { KYOZON_TYPED_MAY_WRITE },
		.memory = KYOZON_TYPED_REGION,
		.memory_bytes = MEMORY,
	};
	uint32_t *memory = mmap((void *)(uintptr_t)KYOZON_TYPED_REGION, MEMORY, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (argc != 2 || device < 0 || full < 0 || memory == MAP_FAILED || load(device, argv[1]))
		return 2;
	/* A buffer of 16 bytes at 64 */
	memory[0] = 64;
	memory[1] = 16;
	memset(run.handles, -1, sizeof(run.handles));
	run.handles[0] = full;
	if (ioctl(device, KYOZON_IOCTL_TYPED_RUN, &run) || run.outcome != KYOZON_TYPED_CALLED)
		return 2;
	/* The kernel made the call if the signal is here; then the process must not. */
	printf("signals %d, to be made again: %s\n", (int)signals, run.result ? "no" : "yes");
	printf("%s\n", strerror(-run.result));
	return 0;
}
