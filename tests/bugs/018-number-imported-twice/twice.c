// SPDX-License-Identifier: MIT OR Apache-2.0
/* twice FILE.typed: runs the program, and prints the arguments of a call that this process answers. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../../crates/base/abi/include/kyozon/abi.h"

static uint8_t file[1 << 16];

int main(int argc, char **argv)
{
	int device = open("/dev/kyozon-typed", O_RDWR);
	int program = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	uint32_t import = KYOZON_TYPED_OUTSIDE;
	struct kyozon_typed_load load = {
		.check.version = KYOZON_TYPED_VERSION,
		.check.file.address = (uintptr_t)file,
		.imports = (uintptr_t)&import,
		.import_count = 1,
	};
	struct kyozon_typed_run run = { .version = KYOZON_TYPED_VERSION };

	load.check.file.bytes = read(program, file, sizeof(file));
	if (device < 0 || program < 0)
		return 2;
	if (ioctl(device, KYOZON_IOCTL_TYPED_LOAD, &load)) {
		printf("refused: %s\n", load.check.message);
		return 0;
	}
	memset(run.handles, -1, sizeof(run.handles));
	if (ioctl(device, KYOZON_IOCTL_TYPED_RUN, &run))
		return 2;
	printf("called with %#lx, and %#lx and %#lx behind\n", (unsigned long)run.arguments[0],
	       (unsigned long)run.arguments[1], (unsigned long)run.arguments[2]);
	return 1;
}
