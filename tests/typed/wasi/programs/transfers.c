// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * transfers DIR [COUNT]: reads, writes, seeks and asks about files in all the ways of WASI, right ones and wrong ones,
 * and prints each result. With COUNT, only transfers so many bytes one by one, at positions.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MOST	12

static char room[MOST][100];

static void say(const char *what, long long result)
{
	if (result < 0)
		printf("%s: %s\n", what, strerror(errno));
	else
		printf("%s: %lld\n", what, result);
}

static int open_in(const char *directory, const char *name, int flags)
{
	char path[200];
	int file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = open(path, flags, 0644);
	if (file < 0) {
		printf("cannot open %s: %s\n", path, strerror(errno));
		exit(1);
	}
	return file;
}

static void show(const char *what, int file)
{
	struct stat status;

	if (fstat(file, &status)) {
		say(what, -1);
		return;
	}
	printf("%s: mode %o, %lld bytes, %d links\n", what, (unsigned int)(status.st_mode & S_IFMT),
	       (long long)status.st_size, (int)status.st_nlink);
}

/* Buffers of different lengths, one of them empty. */
static int buffers(struct iovec *vectors, int count)
{
	int total = 0;

	for (int n = 0; n < count; n++) {
		vectors[n].iov_base = room[n];
		vectors[n].iov_len = n == 1 ? 0 : 3 * n + 1;
		total += vectors[n].iov_len;
	}
	return total;
}

static void vectors(int file)
{
	struct iovec list[MOST];
	char line[40];

	for (int count = 0; count <= MOST; count++) {
		buffers(list, count);
		for (int n = 0; n < count; n++)
			memset(room[n], 'a' + n, sizeof(room[n]));
		snprintf(line, sizeof(line), "%d buffers written", count);
		say(line, writev(file, list, count));
		snprintf(line, sizeof(line), "%d buffers written at 1000", count);
		say(line, pwritev(file, list, count, 1000));
		memset(room, 0, sizeof(room));
		snprintf(line, sizeof(line), "%d buffers read at 998", count);
		say(line, preadv(file, list, count, 998));
		for (int n = 0; n < count; n++)
			printf(" %d:%d:%s", n, room[n][0], room[n] + 1);
		printf("\n");
	}
	lseek(file, 3, SEEK_SET);
	say("12 buffers read", readv(file, list, MOST));
	say("position", lseek(file, 0, SEEK_CUR));
}

static void positions(int file)
{
	const off_t far = 5LL << 30;
	char byte = 'x';

	say("far write", pwrite(file, &byte, 1, far));
	byte = 0;
	say("far read", pread(file, &byte, 1, far));
	printf("%c\n", byte);
	say("end", lseek(file, 0, SEEK_END));
	say("beyond the end", read(file, &byte, 1));
	say("before the start", lseek(file, -1, SEEK_SET));
	say("10 back", lseek(file, -10, SEEK_CUR));
	say("no such way", lseek(file, 0, 77));
	say("negative position read", pread(file, &byte, 1, -1));
	say("negative position written", pwrite(file, &byte, 1, -1));
	show("file", file);
	say("cut", ftruncate(file, 20));
	show("file", file);
}

static void wrong(int reads, int writes, int appends)
{
	char byte = 'y';

	say("write to a file for reading", write(reads, &byte, 1));
	say("write there at 0", pwrite(reads, &byte, 1, 0));
	say("read from a file for writing", read(writes, &byte, 1));
	say("read there at 0", pread(writes, &byte, 1, 0));
	say("append", write(appends, &byte, 1));
	say("position", lseek(appends, 0, SEEK_CUR));
	say("append at 0", pwrite(appends, &byte, 1, 0));
	show("file", appends);
	say("read of nothing that is open", read(99, &byte, 1));
	say("seek there", lseek(99, 0, SEEK_SET));
	show("look there", 99);
	say("seek in standard input", lseek(0, 0, SEEK_CUR));
	say("read there at 0", pread(0, &byte, 1, 0));
	show("standard input", 0);
}

#ifdef __wasi__
#include <wasi/api.h>

/* Pointers that lead out of the memory, and that just do not. */
static void pointers(int file)
{
	static __wasi_ciovec_t good = { (const uint8_t *)"pointers", 8 };
	const uint32_t end = __builtin_wasm_memory_size(0) << 16;
	const uint32_t places[] = { end - 65536, end - 8, end - 7, end - 4, end - 3, end - 1, end, 0x7fffffff,
				    0xfffffff8, 0xffffffff };
	__wasi_size_t bytes = 0;
	__wasi_filestat_t *status;

	for (unsigned int n = 0; n < sizeof(places) / sizeof(*places); n++) {
		void *place = (void *)places[n];
		__wasi_ciovec_t list = { place, 8 };

		printf("place %u:", n);
		printf(" %d", __wasi_fd_pwrite(file, &good, 1, 0, place));
		printf(" %d", __wasi_fd_pwrite(file, &list, 1, 0, &bytes));
		printf(" %d", __wasi_fd_pwrite(file, place, 1, 0, &bytes));
		printf(" %d", __wasi_fd_pread(file, (__wasi_iovec_t *)&list, 1, 0, &bytes));
		printf(" %d", __wasi_fd_tell(file, place));
		status = place;
		printf(" %d", __wasi_fd_filestat_get(file, status));
		printf(" %d\n", __wasi_clock_time_get(__WASI_CLOCKID_MONOTONIC, 1, place));
	}
	for (uint32_t length = 0x7fffffff; length; length += 0x40000000) {
		__wasi_ciovec_t list[2] = { { (const uint8_t *)places, length }, { (const uint8_t *)places, 1 } };

		printf("length %x: %d %d\n", length, __wasi_fd_write(file, list, 2, &bytes),
		       __wasi_fd_write(file, list, length, &bytes));
		if (length == 0xffffffff)
			break;
	}
	printf("clocks:");
	for (int clock = 0; clock < 6; clock++) {
		__wasi_timestamp_t time;

		printf(" %d", __wasi_clock_time_get(clock, 1, &time));
	}
	printf("\n");
	printf("rights: %d\n", __wasi_fd_fdstat_set_rights(file, __WASI_RIGHTS_FD_READ | __WASI_RIGHTS_FD_TELL, 0));
	printf("fewer rights: %d", __wasi_fd_write(file, &good, 1, &bytes));
	printf(" %d", __wasi_fd_pread(file, (__wasi_iovec_t *)&good, 1, 0, &bytes));
	printf(" %d", __wasi_fd_filestat_get(file, (__wasi_filestat_t *)room));
	printf(" %d\n", __wasi_fd_tell(file, (__wasi_filesize_t *)room));
}
#endif

static void times(void)
{
	struct timespec before, after;

	clock_gettime(CLOCK_MONOTONIC, &before);
	for (int n = 0; n < 1000; n++) {
		clock_gettime(CLOCK_MONOTONIC, &after);
		if (after.tv_sec < before.tv_sec ||
		    (after.tv_sec == before.tv_sec && after.tv_nsec < before.tv_nsec))
			printf("time went back\n");
		before = after;
	}
	clock_gettime(CLOCK_REALTIME, &after);
	/* 2020 to 2100 */
	printf("year: %d\n", after.tv_sec > 1577836800 && after.tv_sec < 4102444800);
}

static void one_by_one(int file, int count)
{
	char byte;
	long sum = 0;

	for (int n = 0; n < count; n++) {
		byte = n;
		if (pwrite(file, &byte, 1, n) != 1)
			say("write", -1);
	}
	for (int n = 0; n < count; n++) {
		if (pread(file, &byte, 1, n) != 1)
			say("read", -1);
		sum += byte;
	}
	printf("sum %ld\n", sum);
}

int main(int argc, char **argv)
{
	int file = open_in(argv[1], "transfers", O_RDWR | O_CREAT | O_TRUNC);
	int files[20];

	if (argc > 2) {
		one_by_one(file, atoi(argv[2]));
		return 0;
	}
	vectors(file);
	positions(file);
	wrong(open_in(argv[1], "transfers", O_RDONLY), open_in(argv[1], "transfers", O_WRONLY),
	      open_in(argv[1], "transfers", O_WRONLY | O_APPEND));
	times();
	/* More than the kernel knows of. */
	for (int n = 0; n < 20; n++) {
		files[n] = open_in(argv[1], "transfers", O_RDONLY);
		lseek(files[n], n, SEEK_SET);
	}
	for (int n = 19; n >= 0; n--) {
		say("position", lseek(files[n], 0, SEEK_CUR));
		say("bytes", read(files[n], room[0], 7));
		close(files[n]);
	}
#ifdef __wasi__
	pointers(file);
#endif
	say("close", close(file));
	say("again", close(file));
	return 5;
}
