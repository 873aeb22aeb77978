/* Prints the working directory, and the first line of each file that an argument names. A plus behind the name: creates
 * the file. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "check.h"

int main(int argc, char **argv)
{
	char text[256];
	CHECK(getcwd(text, sizeof text));
	puts(text);
	for (int i = 1; i < argc; i++) {
		char *plus = strchr(argv[i], '+');
		if (plus) *plus = 0;
		FILE *file = fopen(argv[i], plus ? "w" : "r");
		if (!file) {
			printf("%s: %s\n", argv[i], strerror(errno));
			continue;
		}
		if (plus || !fgets(text, sizeof text, file)) strcpy(text, "\n");
		printf("%s: %s", argv[i], text);
		fclose(file);
	}
	return 0;
}
