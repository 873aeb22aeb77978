// SPDX-License-Identifier: MIT OR Apache-2.0
/* waiter: waits for packets with an epoll instance that has the device before it has a filter. */
#include "../typed.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

int main(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(7), .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct epoll_event event = { .events = EPOLLIN };
	int device = typed_device(), waiter = epoll_create1(0), at = socket(AF_INET, SOCK_DGRAM, 0);

	if (epoll_ctl(waiter, EPOLL_CTL_ADD, device, &event))
		return 2;
	typed_filter(device);
	printf("%d events\n", epoll_wait(waiter, &event, 1, 100));
	if (sendto(at, "packet", 6, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		return 2;
	printf("%d events\n", epoll_wait(waiter, &event, 1, 5000));
	return 0;
}
