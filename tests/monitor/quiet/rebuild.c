/* rebuild FROM TO NUMBER: copies a file, with NUMBER in each place of it plus 1, as another build would have it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments)
{
	static unsigned char bytes[16 << 20];
	uint64_t number, next;
	size_t size, at, places = 0;
	FILE *from, *to;

	if (count != 4)
		return 2;
	from = fopen(arguments[1], "rb");
	to = fopen(arguments[2], "wb");
	if (!from || !to) {
		perror(arguments[from ? 2 : 1]);
		return 1;
	}
	number = strtoull(arguments[3], NULL, 0);
	next = number + 1;
	size = fread(bytes, 1, sizeof(bytes), from);
	for (at = 0; at + sizeof(number) <= size; at++)
		if (!memcmp(bytes + at, &number, sizeof(number))) {
			memcpy(bytes + at, &next, sizeof(next));
			places++;
		}
	if (!places) {
		fprintf(stderr, "rebuild: %s lacks %s\n", arguments[1], arguments[3]);
		return 1;
	}
	if (fwrite(bytes, 1, size, to) != size || fclose(to)) {
		perror(arguments[2]);
		return 1;
	}
	return 0;
}
