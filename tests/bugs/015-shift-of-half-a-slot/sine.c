/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints sine and cosine of each argument. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		double x = strtod(argv[i], NULL);

		printf("%.12f %.12f\n", sin(x), cos(x));
	}
}
