// SPDX-License-Identifier: MIT OR Apache-2.0
// Adds vectors.

typedef int vector __attribute__((vector_size(16)));

int main(int argc, char **argv)
{
	volatile vector x = { argc };

	(void)argv;
	return (x + x)[0];
}
