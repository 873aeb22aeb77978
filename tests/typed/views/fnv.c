// SPDX-License-Identifier: MIT OR Apache-2.0
/* fnv: prints the FNV-1a hash, of 64 bits, of its standard input. */
#include <stdio.h>

int main(void)
{
	unsigned long hash = 0xcbf29ce484222325;
	int byte;

	while ((byte = getchar()) != EOF)
		hash = (hash ^ byte) * 0x100000001b3;
	printf("%016lx\n", hash);
	return 0;
}
