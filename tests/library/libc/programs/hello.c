/* Arguments, environment, formatted output, sorting, constructors, exit handlers and status. */
#include <errno.h>
#include <iconv.h>
#include <string.h>
#include "check.h"

static int constructed;

__attribute__((constructor)) static void construct(void)
{
	constructed = 1;
}

static void at_exit(void)
{
	puts("at exit");
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Two bytes that EUC-KR does not have: musl 1.2.3 read behind a table (CVE-2025-26519). */
static void convert(void)
{
	char *in = (char[]){0xc8, 0x41}, text[8], *out = text;
	size_t in_left = 2, out_left = sizeof text;
	iconv_t converter = iconv_open("UTF-8", "EUC-KR");
	CHECK(converter != (iconv_t)-1);
	CHECK(iconv(converter, &in, &in_left, &out, &out_left) == (size_t)-1 && errno == EILSEQ && out == text);
	CHECK(!iconv_close(converter));
}

int main(int argc, char **argv)
{
	CHECK(constructed && argc == 3 && !strcmp(argv[1], "one") && !argv[3]);
	CHECK(!atexit(at_exit));
	convert();
	printf("%s, %s\n", getenv("GREETING"), argv[2]);
	/* Blocks of many sizes, the largest with a mapping of their own. */
	for (size_t bytes = 1; bytes < 1 << 24; bytes *= 3) {
		char *block = malloc(bytes);
		CHECK(block);
		memset(block, 1, bytes);
		block = realloc(block, 2 * bytes);
		CHECK(block && block[bytes - 1] == 1);
		free(block);
	}
	int *squares = malloc(10 * sizeof *squares);
	for (int i = 0; i < 10; i++) squares[i] = (i * 7 % 10) * (i * 7 % 10);
	qsort(squares, 10, sizeof *squares, compare);
	for (int i = 0; i < 10; i++) printf("%d%c", squares[i], i < 9 ? ' ' : '\n');
	free(squares);
	return 3;
}
