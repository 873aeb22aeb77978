// SPDX-License-Identifier: MIT OR Apache-2.0
/* connections COUNT: makes connections to itself, prints "ready", and ends after its input does. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(80), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int server = socket(AF_INET, SOCK_STREAM, 0), n, at;

	if (argc != 2 || bind(server, (struct sockaddr *)&here, sizeof(here)) || listen(server, 4096))
		return 2;
	for (n = atoi(argv[1]); n > 0; n--) {
		at = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(at, (struct sockaddr *)&here, sizeof(here))) {
			perror("connect");
			return 2;
		}
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
