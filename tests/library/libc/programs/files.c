/* Files, folders, mappings, pipes and sockets, in the folder that is the argument. With another one, mappings are
 * private, as library Linux has them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "check.h"

int main(int argc, char **argv)
{
	CHECK(argc >= 2 && !chdir(argv[1]));
	CHECK(!mkdir("folder", 0700) && mkdir("folder", 0700) == -1 && errno == EEXIST);

	FILE *file = fopen("folder/file", "w");
	CHECK(file);
	for (int i = 0; i < 10000; i++) CHECK(fprintf(file, "%06d\n", i) == 7);
	CHECK(!fclose(file));
	struct stat status;
	CHECK(!stat("folder/file", &status) && status.st_size == 70000 && S_ISREG(status.st_mode));
	CHECK(!fopen("folder/none", "r") && errno == ENOENT);

	int fd = open("folder/file", O_RDWR);
	char line[8] = "";
	CHECK(fd >= 0 && pread(fd, line, 7, 7 * 1234) == 7 && !strcmp(line, "001234\n"));
	int private = argc > 2;
	char *map = mmap(NULL, 70000, PROT_READ | PROT_WRITE, private ? MAP_PRIVATE : MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && !memcmp(map + 7 * 9999, "009999\n", 7));
	map[0] = 'x';
	CHECK(!munmap(map, 70000) && pread(fd, line, 7, 0) == 7 && line[0] == (private ? '0' : 'x'));
	CHECK(!ftruncate(fd, 10) && lseek(fd, 0, SEEK_END) == 10 && !close(fd) && close(fd) == -1 && errno == EBADF);

	DIR *folder = opendir("folder");
	int entries = 0;
	CHECK(folder);
	for (struct dirent *entry; (entry = readdir(folder));) entries += entry->d_name[0] != '.';
	CHECK(entries == 1 && !closedir(folder));
	CHECK(!rename("folder/file", "file") && !rmdir("folder") && !unlink("file") && unlink("file") == -1);

	int ends[2];
	CHECK(!pipe(ends) && write(ends[1], "ab", 2) == 2);
	struct pollfd poll_in = {.fd = ends[0], .events = POLLIN};
	CHECK(poll(&poll_in, 1, 0) == 1 && poll_in.revents == POLLIN && read(ends[0], line, 7) == 2);
	CHECK(poll(&poll_in, 1, 1) == 0 && !close(ends[1]) && read(ends[0], line, 7) == 0 && !close(ends[0]));
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends) && send(ends[0], "cd", 2, 0) == 2);
	CHECK(recv(ends[1], line, 7, 0) == 2 && line[1] == 'd');
	return 0;
}
