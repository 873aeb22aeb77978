// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Opens packet sockets in each way in which Linux hands packets to them, and
 * waits: for all devices, for one device and protocol, with a ring, and two that
 * share packets.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int opened(int protocol)
{
	int made = socket(AF_PACKET, SOCK_RAW, htons(protocol));

	if (made < 0) {
		perror("socket");
		exit(1);
	}
	return made;
}

static void set(int socket, int option, const void *value, socklen_t bytes)
{
	if (setsockopt(socket, SOL_PACKET, option, value, bytes)) {
		perror("setsockopt");
		exit(1);
	}
}

int main(void)
{
	struct sockaddr_ll lo = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = if_nametoindex("lo"),
	};
	struct tpacket_req ring = {
		.tp_block_size = 4096, .tp_block_nr = 1, .tp_frame_size = 2048, .tp_frame_nr = 2,
	};
	int group = 7 | PACKET_FANOUT_HASH << 16;

	opened(ETH_P_ALL);
	if (bind(opened(0), (struct sockaddr *)&lo, sizeof lo)) {
		perror("bind");
		return 1;
	}
	set(opened(ETH_P_ARP), PACKET_RX_RING, &ring, sizeof ring);
	set(opened(ETH_P_ALL), PACKET_FANOUT, &group, sizeof group);
	set(opened(ETH_P_ALL), PACKET_FANOUT, &group, sizeof group);
	pause();
}
