/* Ends the program with status 1 and names the line if a condition is false. */
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition) check(!!(condition), __FILE__, __LINE__, #condition)

static inline void check(int condition, const char *file, int line, const char *text)
{
	if (condition) return;
	fprintf(stderr, "%s:%d: false: %s\n", file, line, text);
	exit(1);
}
