// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * restart keep	keeps the time, every tenth of a second, in the memory of the
 *		machine's clock, which a restart leaves alone
 * restart took	prints the seconds from the last kernel's end to this one's
 *		beginning
 */
#include <stdio.h>
#include <string.h>
#include <sys/io.h>
#include <time.h>
#include <unistd.h>

/* Index and data of the clock, and four bytes there that nobody uses. */
#define INDEX	0x70
#define DATA	0x71
#define FIRST	0x68
#define BYTES	4

static void keep(void)
{
	for (;;) {
		time_t now = time(NULL);

		for (int i = 0; i < BYTES; i++) {
			outb(FIRST + i, INDEX);
			outb(now >> 8 * i & 0xff, DATA);
		}
		usleep(100000);
	}
}

static void took(void)
{
	struct timespec up;
	unsigned int kept = 0;

	for (int i = 0; i < BYTES; i++) {
		outb(FIRST + i, INDEX);
		kept |= (unsigned int)inb(DATA) << 8 * i;
	}
	clock_gettime(CLOCK_BOOTTIME, &up);
	printf("%ld\n", (long)(time(NULL) - up.tv_sec - kept));
}

int main(int count, char **words)
{
	if (count != 2 || ioperm(INDEX, 2, 1)) {
		perror("restart");
		return 1;
	}
	if (!strcmp(words[1], "keep"))
		keep();
	took();
	return 0;
}
