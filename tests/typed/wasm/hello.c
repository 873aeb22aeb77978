/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	printf("hello");
	for (int i = 1; i < argc; i++)
		printf(" %s", argv[i]);
	const char *name = getenv("NAME");
	printf("%s%s\n", name ? ", " : "", name ? name : "");
	return argc - 1;
}
