// SPDX-License-Identifier: MIT OR Apache-2.0
/* flood COUNT PORT: sends so many UDP packets to a port of this machine. Whether they arrive does not matter. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	int socket_ = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to = { .sin_family = AF_INET };
	long n;

	if (argc != 3 || socket_ < 0)
		return 2;
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	to.sin_port = htons(atoi(argv[2]));
	for (n = atol(argv[1]); n; n--)
		sendto(socket_, "x", 1, 0, (struct sockaddr *)&to, sizeof(to));
	return 0;
}
