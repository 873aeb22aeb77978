// SPDX-License-Identifier: MIT OR Apache-2.0
/* twice FILE.typed: runs the program, and prints the arguments of a call that this process answers. */
#include "../typed.h"

int main(int argc, char **argv)
{
	int device = typed_device();
	struct kyozon_typed_run run = typed_run();
	const char *refused;

	if (argc != 2)
		return 2;
	refused = typed_load(device, argv[1], KYOZON_TYPED_OUTSIDE);
	if (refused) {
		printf("refused: %s\n", refused);
		return 0;
	}
	if (ioctl(device, KYOZON_IOCTL_TYPED_RUN, &run))
		return 2;
	printf("called with %#lx, and %#lx and %#lx behind\n", (unsigned long)run.arguments[0],
	       (unsigned long)run.arguments[1], (unsigned long)run.arguments[2]);
	return 1;
}
