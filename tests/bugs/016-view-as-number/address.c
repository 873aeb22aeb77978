// SPDX-License-Identifier: MIT OR Apache-2.0
/* address FILE.typed: runs the program with its import 0 as file_view, and its standard input as handle 0. */
#include "../typed.h"

int main(int argc, char **argv)
{
	int device = typed_device();
	struct kyozon_typed_run run = typed_run();
	const char *refused;

	if (argc != 2)
		return 2;
	refused = typed_load(device, argv[1], KYOZON_TYPED_FILE_VIEW);
	if (refused) {
		printf("refused: %s\n", refused);
		return 0;
	}
	run.handles[0] = 0;
	if (ioctl(device, KYOZON_IOCTL_TYPED_RUN, &run))
		return 2;
	printf("returned %#lx\n", (unsigned long)run.result);
	return 1;
}
