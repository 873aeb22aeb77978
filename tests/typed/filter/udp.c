// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * udp send ADDRESS PORT COUNT [OTHER-PORT]: sends numbered packets, with pauses, so that a queue of 1,024 suffices.
 * Before each one it sends another to the other port, if there is one.
 * udp flood ADDRESS PORT COUNT: the same without pauses.
 * udp receive PORT: prints how many came until none has for a second, and whether they came in order, none twice.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int send_all(int at, const char *address, int port, long count, int other, int pauses)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	unsigned int number;

	inet_pton(AF_INET, address, &to.sin_addr);
	for (number = 0; number < count; number++) {
		if (other) {
			to.sin_port = htons(other);
			sendto(at, "other", 5, 0, (struct sockaddr *)&to, sizeof(to));
		}
		if (pauses && number % 32 == 31)
			poll(NULL, 0, 2);
		to.sin_port = htons(port);
		while (sendto(at, &number, sizeof(number), 0, (struct sockaddr *)&to, sizeof(to)) < 0)
			poll(NULL, 0, 1);
	}
	return 0;
}

static int receive_all(int at, int port)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct pollfd wait = { .fd = at, .events = POLLIN };
	int room = 64 << 20, first = 30000;
	long count = 0, last = -1;
	unsigned int number;
	int in_order = 1;

	setsockopt(at, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	if (bind(at, (struct sockaddr *)&here, sizeof(here)))
		return 2;
	for (; poll(&wait, 1, count ? 1000 : first) > 0; count++) {
		if (recv(at, &number, sizeof(number), 0) != sizeof(number) || (long)number <= last)
			in_order = 0;
		last = number;
	}
	printf("%ld %s\n", count, in_order ? "in order" : "out of order");
	return 0;
}

int main(int argc, char **argv)
{
	int at = socket(AF_INET, SOCK_DGRAM, 0);

	if (at < 0 || argc < 3)
		return 2;
	if (argc < 5)
		return receive_all(at, atoi(argv[2]));
	return send_all(at, argv[2], atoi(argv[3]), atol(argv[4]), argc > 5 ? atoi(argv[5]) : 0,
			!strcmp(argv[1], "send"));
}
