// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * files DIR ...: uses most of what WASI has, below DIR, and prints what must be the same in WASI and in a process.
 * Ends with 7, or with 1 and a line that says what went wrong.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what, const char *path)
{
	printf("cannot %s %s: %s\n", what, path, strerror(errno));
	exit(1);
}

static void check(int holds, const char *what)
{
	printf("%s: %s\n", what, holds ? "yes" : "no");
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list(const char *path)
{
	char *names[400];
	int count = 0;
	struct dirent *entry;
	DIR *directory = opendir(path);

	if (!directory)
		fail("list", path);
	while ((entry = readdir(directory)) && count < 400)
		names[count++] = strdup(entry->d_name);
	/* From the start again: the same number of entries. */
	rewinddir(directory);
	int again = 0;
	while (readdir(directory))
		again++;
	closedir(directory);
	qsort(names, count, sizeof(*names), compare);
	printf("%s: %d entries, then %d:", path, count, again);
	for (int i = 0; i < count; i++) {
		if (count < 10 || i % 50 == 0)
			printf(" %s", names[i]);
		free(names[i]);
	}
	printf("\n");
}

static void show(const char *path)
{
	struct stat status;

	if (lstat(path, &status))
		fail("look at", path);
	printf("%s: %s %lld bytes, %d links, modified %lld.%09ld\n", path,
	       S_ISDIR(status.st_mode) ? "directory" : S_ISLNK(status.st_mode) ? "link" : "file",
	       S_ISREG(status.st_mode) ? (long long)status.st_size : 0LL,
	       S_ISREG(status.st_mode) ? (int)status.st_nlink : 0,
	       S_ISREG(status.st_mode) ? (long long)status.st_mtim.tv_sec : 0LL,
	       S_ISREG(status.st_mode) ? status.st_mtim.tv_nsec : 0L);
}

static void contents(const char *path)
{
	char bytes[200];
	int file = open(path, O_RDONLY);
	ssize_t count;

	if (file < 0 || (count = read(file, bytes, sizeof(bytes))) < 0)
		fail("read", path);
	printf("%s:", path);
	for (ssize_t i = 0; i < count; i++)
		printf(bytes[i] > ' ' ? "%c" : " %02x ", bytes[i]);
	printf("\n");
	close(file);
}

static void write_files(void)
{
	struct iovec parts[] = { { "one ", 4 }, { "two ", 4 }, { "three\n", 6 } };
	struct timespec times[] = { { 1000000000, 5 }, { 1111111111, 123456789 } };
	char bytes[8] = "";
	int file = open("sub/note", O_RDWR | O_CREAT | O_EXCL, 0666);

	if (file < 0)
		fail("create", "sub/note");
	check(writev(file, parts, 3) == 14, "three parts are written at once");
	check(pwrite(file, "TWO", 3, 4) == 3 && lseek(file, 0, SEEK_CUR) == 14, "pwrite does not move");
	check(pread(file, bytes, 7, 4) == 7 && !strcmp(bytes, "TWO thr"), "pread reads it");
	check(lseek(file, 6, SEEK_END) == 20 && write(file, "end", 3) == 3, "a hole is written");
	check(!fsync(file) && !fdatasync(file), "it is synchronised");
	check(!ftruncate(file, 22), "it is cut");
	check(!futimens(file, times), "its times are set");
	close(file);
	show("sub/note");
	contents("sub/note");
	check(open("sub/note", O_WRONLY | O_CREAT | O_EXCL, 0666) < 0 && errno == EEXIST, "it exists already");
	file = open("sub/note", O_WRONLY | O_APPEND);
	check(write(file, "+", 1) == 1 && lseek(file, 0, SEEK_SET) == 0 && write(file, "+", 1) == 1, "appends");
	check(fcntl(file, F_GETFL) & O_APPEND, "and says so");
	check(read(file, bytes, 1) < 0, "but does not read");
	close(file);
	check(close(file) < 0 && errno == EBADF, "a closed descriptor is none");
	contents("sub/note");
}

static void change_names(void)
{
	char target[20] = "";

	check(!symlink("note", "sub/link") && !link("sub/note", "sub/hard"), "links are made");
	check(readlink("sub/link", target, sizeof(target)) == 4 && !strcmp(target, "note"), "and read");
	show("sub/link");
	contents("sub/link");
	check(!rename("sub/hard", "sub/other") && access("sub/hard", F_OK) < 0 && errno == ENOENT, "a name moves");
	check(rmdir("sub") < 0 && errno == ENOTEMPTY, "a directory with entries stays");
	check(mkdir("sub/note", 0777) < 0 && errno == EEXIST, "a file is in the way");
	check(open("sub/note/x", O_RDONLY) < 0 && errno == ENOTDIR, "a file is no directory");
	check(!symlink("loop", "sub/loop") && open("sub/loop", O_RDONLY) < 0 && errno == ELOOP, "a loop ends");
	check(!unlink("sub/loop") && unlink("sub/none") < 0 && errno == ENOENT, "names are removed");
	list("sub");
	if (mkdir("many", 0777))
		fail("make", "many");
	for (int i = 0; i < 300; i++) {
		char name[40];

		snprintf(name, sizeof(name), "many/a-name-of-some-length-%03d", i);
		int file = open(name, O_WRONLY | O_CREAT, 0666);
		if (file < 0)
			fail("create", name);
		close(file);
	}
	list("many");
}

static void use_clocks(void)
{
	struct timespec before, after, wait = { 0, 20000000 };
	unsigned char a[300], b[300];
	struct pollfd out = { .fd = 1, .events = POLLOUT };

	clock_gettime(CLOCK_MONOTONIC, &before);
	check(!nanosleep(&wait, NULL), "sleeps");
	clock_gettime(CLOCK_MONOTONIC, &after);
	long long ns = (after.tv_sec - before.tv_sec) * 1000000000LL + after.tv_nsec - before.tv_nsec;
	check(ns >= 20000000 && ns < 20000000000LL, "for the time that was asked for");
	check(time(NULL) > 1700000000, "it is after 2023");
	check(!clock_getres(CLOCK_REALTIME, &wait) && !wait.tv_sec && wait.tv_nsec > 0, "clocks have a resolution");
	check(poll(&out, 1, 1000) == 1 && out.revents & POLLOUT, "the output can be written");
	check(!sched_yield(), "yields");
	check(!getentropy(a, 200) && !getentropy(b, 200) && memcmp(a, b, 200), "random bytes differ");
}

int main(int argc, char **argv)
{
	char line[80];

	for (int i = 1; i < argc; i++)
		printf("argument \"%s\"\n", argv[i]);
	printf("GREETING=%s, HOME=%s\n", getenv("GREETING"), getenv("HOME") ? "set" : "not set");
	if (!fgets(line, sizeof(line), stdin))
		fail("read", "standard input");
	printf("%s", line);
	check(feof(stdin) || fgetc(stdin) == EOF, "the input ends");
	if (argc < 2)
		return 2;
	list(argv[1]);
	if (chdir(argv[1]))
		fail("enter", argv[1]);
	if (mkdir("sub", 0777)) {
		snprintf(line, sizeof(line), "%s/sub", argv[1]);
		fail("make", line);
	}
	write_files();
	change_names();
	use_clocks();
	/* What stands in the buffer is written when the program exits. */
	printf("exits");
	exit(7);
}
