/* terminal KEY COMMAND...: runs COMMAND in a terminal of 110 by 30, types KEY after three seconds, and prints what was
 * drawn, with a line feed for each control sequence. The status is the command's. */
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct winsize size = { .ws_row = 30, .ws_col = 110 };
	int terminal, status, in_sequence = 0, typed = 0;
	time_t start = time(NULL);
	pid_t child;

	if (argc < 3)
		return 2;
	child = forkpty(&terminal, NULL, NULL, &size);
	if (child < 0)
		return 2;
	if (child == 0) {
		setenv("TERM", "xterm", 1);
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	alarm(60);
	for (;;) {
		struct pollfd poller = { .fd = terminal, .events = POLLIN };
		char bytes[4096];
		ssize_t count;

		if (!typed && time(NULL) - start >= 3) {
			typed = 1;
			if (write(terminal, argv[1], 1) != 1)
				return 2;
		}
		if (poll(&poller, 1, 100) == 0)
			continue;
		count = read(terminal, bytes, sizeof(bytes));
		if (count <= 0)
			break;
		for (ssize_t at = 0; at < count; at++) {
			char byte = bytes[at];

			if (byte == '\033') {
				in_sequence = 1;
				putchar('\n');
			} else if (!in_sequence) {
				putchar(byte);
			} else if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')) {
				in_sequence = 0;
			}
		}
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
