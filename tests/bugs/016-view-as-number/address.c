// SPDX-License-Identifier: MIT OR Apache-2.0
/* address FILE.typed: runs the program with its import 0 as file_view, and its standard input as handle 0. */
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
	uint32_t import = KYOZON_TYPED_FILE_VIEW;
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
	run.handles[0] = 0;
	if (ioctl(device, KYOZON_IOCTL_TYPED_RUN, &run))
		return 2;
	printf("returned %#lx\n", (unsigned long)run.result);
	return 1;
}
