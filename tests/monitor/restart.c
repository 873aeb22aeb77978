// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * restart keep	keeps the time in the memory of the machine's clock, which a
 *		restart leaves alone; ends once that has begun, and goes on in
 *		the background every tenth of a second
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
#define DAY	86400

static unsigned int get(int index)
{
	outb(index, INDEX);
	return inb(DATA);
}

/* Seconds of the day by the machine's clock: Linux's own drifts on an emulator. */
static long now(void)
{
	static const int hand[] = { 4, 2, 0 };	/* hours, minutes, seconds */
	long time = 0, before;

	do {
		before = time;
		time = 0;
		for (int i = 0; i < 3; i++) {
			unsigned int digits = get(hand[i]);

			time = 60 * time + 10 * (digits >> 4) + (digits & 0xf);
		}
	} while (time != before);
	return time;
}

static void keep(void)
{
	long time = now();

	for (int i = 0; i < BYTES; i++) {
		outb(FIRST + i, INDEX);
		outb(time >> 8 * i & 0xff, DATA);
	}
}

static void took(void)
{
	struct timespec up;
	long kept = 0, seconds;

	for (int i = 0; i < BYTES; i++)
		kept |= (long)get(FIRST + i) << 8 * i;
	clock_gettime(CLOCK_BOOTTIME, &up);
	seconds = now() - up.tv_sec - kept;
	/* The day may have ended. */
	printf("%ld\n", seconds < -DAY / 2 ? seconds + DAY : seconds);
}

int main(int count, char **words)
{
	if (count != 2 || ioperm(INDEX, 2, 1)) {
		perror("restart");
		return 1;
	}
	if (strcmp(words[1], "keep")) {
		took();
		return 0;
	}
	keep();
	if (daemon(0, 0)) {
		perror("restart");
		return 1;
	}
	for (;;) {
		usleep(100000);
		keep();
	}
}
