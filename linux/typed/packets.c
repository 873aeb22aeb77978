// SPDX-License-Identifier: GPL-2.0-only
/*
 * Views of packets: a program reads a received packet where it lies. It gets it
 * from a packet socket, which Linux gave a process that may see packets, and
 * which filters may be attached to.
 *
 * As the checker demands, a packet stays until the program ends. Until then it
 * counts for the socket as if it had not been received, so the socket's limit of
 * memory is that of the packets that a program has.
 */
#include <linux/fs.h>
#include <linux/net.h>
#include <linux/skbuff.h>
#include <linux/socket.h>
#include <linux/uio.h>
#include <net/sock.h>

#include "context.h"

/*
 * Asks security modules, as a receive of nothing does that leaves the packet
 * where it is. Fails for a socket with options that put more into a packet. An
 * error, which a receive would take, is left for the process.
 */
static bool can_receive(struct socket *socket)
{
	struct msghdr message = {};
	int flags = MSG_PEEK | MSG_DONTWAIT;

	if (READ_ONCE(socket->sk->sk_err))
		return false;
	iov_iter_kvec(&message.msg_iter, READ, NULL, 0, 0);
	return sock_recvmsg(socket, &message, flags) >= 0;
}

struct typed_view typed_packet_view(u64 handle, struct typed_context *context)
{
	const struct typed_view nothing = {};
	struct file *file = typed_file(context, handle);
	struct socket *socket = file ? sock_from_file(file) : NULL;
	struct sk_buff *packet;
	int error;

	if (!socket || socket->sk->sk_family != PF_PACKET || !can_receive(socket))
		return nothing;
	packet = skb_recv_datagram(socket->sk, MSG_DONTWAIT, &error);
	if (!packet)
		return nothing;
	/* One that was looked at by two at a time does not count for the socket. */
	if (!packet->sk)
		skb_set_owner_r(packet, socket->sk);
	sock_hold(packet->sk);
	__skb_queue_tail(&context->packets, packet);
	return (struct typed_view) {
		.address = (unsigned long)packet->data,
		.bytes = skb_headlen(packet),
	};
}

void typed_packets_give(struct typed_context *context)
{
	struct sk_buff *packet;
	struct sock *sock;

	while ((packet = __skb_dequeue(&context->packets))) {
		sock = packet->sk;
		consume_skb(packet);
		sock_put(sock);
	}
}
