/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* files DIR: writes, appends, reads, renames, lists and removes below DIR; prints what it sees. */
int main(int argc, char **argv)
{
	char line[64], path[256], other[256];

	if (argc != 2)
		return 2;
	snprintf(path, sizeof(path), "%s/note", argv[1]);
	snprintf(other, sizeof(other), "%s/sub/note", argv[1]);
	FILE *file = fopen(path, "w");
	if (!file)
		return printf("%s: %s\n", path, strerror(errno)), 1;
	fprintf(file, "one\n");
	fclose(file);
	file = fopen(path, "a");
	fprintf(file, "two %.3f\n", 2.5);
	fclose(file);
	snprintf(line, sizeof(line), "%s/sub", argv[1]);
	if (mkdir(line, 0777) || rename(path, other))
		return printf("%s\n", strerror(errno)), 1;
	file = fopen(other, "r");
	while (fgets(line, sizeof(line), file))
		printf("%s", line);
	fclose(file);
	struct stat status;
	printf("%d %lld\n", stat(other, &status), (long long)status.st_size);
	snprintf(line, sizeof(line), "%s/sub", argv[1]);
	DIR *directory = opendir(line);
	for (struct dirent *entry; (entry = readdir(directory));)
		if (entry->d_name[0] != '.')
			printf("%s\n", entry->d_name);
	closedir(directory);
	printf("%d", unlink(other));
	printf(" %d\n", rmdir(line));
	printf("%s\n", fopen("/etc/passwd", "r") ? "escaped" : strerror(errno));
	return 0;
}
