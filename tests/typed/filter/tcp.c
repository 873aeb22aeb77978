// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * tcp send ADDRESS PORT MIB: sends bytes that follow from their places.
 * tcp receive PORT: prints how many came, and whether they are right.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE	(1 << 20)

static unsigned char piece[PIECE];

static unsigned char byte_at(long place)
{
	return place ^ place >> 8 ^ place >> 16;
}

static int send_all(int at, const struct sockaddr_in *to, long mib)
{
	long place = 0, n, sent;

	if (connect(at, (const struct sockaddr *)to, sizeof(*to)))
		return 1;
	while (mib--) {
		for (n = 0; n < PIECE; n++)
			piece[n] = byte_at(place + n);
		for (n = 0; n < PIECE; n += sent) {
			sent = write(at, piece + n, PIECE - n);
			if (sent <= 0)
				return 1;
		}
		place += PIECE;
	}
	return 0;
}

static int receive_all(int at, const struct sockaddr_in *here)
{
	long place = 0, n, got;
	int right = 1, one;

	if (bind(at, (const struct sockaddr *)here, sizeof(*here)) || listen(at, 1))
		return 2;
	one = accept(at, NULL, NULL);
	while ((got = read(one, piece, PIECE)) > 0) {
		for (n = 0; n < got; n++)
			right &= piece[n] == byte_at(place + n);
		place += got;
	}
	printf("%ld %s\n", place, right ? "right" : "wrong");
	return 0;
}

int main(int argc, char **argv)
{
	int at = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	struct sockaddr_in name = { .sin_family = AF_INET };

	if (at < 0 || argc < 3)
		return 2;
	setsockopt(at, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	name.sin_port = htons(atoi(argv[argc > 4 ? 3 : 2]));
	if (argc <= 4)
		return receive_all(at, &name);
	inet_pton(AF_INET, argv[2], &name.sin_addr);
	return send_all(at, &name, atol(argv[4]));
}
