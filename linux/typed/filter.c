// SPDX-License-Identifier: GPL-2.0-only
/*
 * Filters: a program decides which packets that an interface receives go on to
 * Linux's stack.
 *
 * Packets are received in soft interrupts, a program runs in a process. So the
 * interface's handler takes each packet away and queues it, the program gets
 * views of some of them, and those that it does not drop are received again
 * when it ends. Until then they lie where the driver or the sender put them, as
 * the checker demands of a view; and no one changes what the program has read.
 *
 * A queued packet does not refer to its interface, which may be gone when the
 * packet comes out of the queue. What else it refers to, such as its route or
 * its connection, lasts as long as the namespace, which a filter keeps as a
 * socket does.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/memcontrol.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/percpu.h>
#include <linux/poll.h>
#include <linux/rtnetlink.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <linux/wait.h>
#include <net/dst.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "context.h"

/* What a queue holds at most, */
#define QUEUE_PACKETS	1024
#define QUEUE_BYTES	(4 << 20)
/* and a program, which has views of these. */
#define BATCH	64
/* Queues that the end of a filter passes while packets come. */
#define LAST_QUEUES	16

struct typed_filter {
	/* NULL if the interface has gone; changes with the RTNL held */
	struct net_device __rcu *device;
	struct net *net;
	bool passes_when_full;
	wait_queue_head_t *waiters;

	/* These four have the queue's lock, */
	struct sk_buff_head queue;
	size_t bytes;
	unsigned int room;
	bool ended;

	/* and packets are counted without it. */
	atomic64_t passed, dropped, full, lost;
};

/* In a packet that a program has: what it said. */
struct verdict {
	u32 number;
};

static struct verdict *verdict_on(struct sk_buff *packet)
{
	static_assert(sizeof(struct verdict) <= sizeof(packet->cb));
	return (struct verdict *)packet->cb;
}

/* The packet that this CPU passes, and past which filter. */
struct passing {
	struct typed_filter *filter;
	struct sk_buff *packet;
};

static DEFINE_PER_CPU(struct passing, passing);

static void lose(struct typed_filter *filter, struct sk_buff *packet)
{
	atomic64_inc(&filter->lost);
	kfree_skb(packet);
}

/*
 * Taps, traffic control and netfilter's ingress have seen the packet, which came
 * to the handler behind them. So has XDP, which leaves redirected packets alone.
 */
static void mark_as_seen(struct sk_buff *packet)
{
#if defined(CONFIG_NET_CLS_ACT) || defined(CONFIG_NET_XGRESS)
	packet->tc_skip_classify = 1;
#endif
	packet->redirected = 1;
}

/* The group that memory is charged to if it is nobody's in particular. */
static struct mem_cgroup *root_group(void)
{
	struct mem_cgroup *group = NULL;
#ifdef CONFIG_MEMCG
	struct mem_cgroup *next;

	rcu_read_lock();
	for (next = mem_cgroup_from_task(current); next; next = parent_mem_cgroup(next))
		group = next;
	rcu_read_unlock();
#endif
	return group;
}

/*
 * Lets an interface receive a packet again. Not with netif_receive_skb(), which
 * may leave that to another CPU, whose handler would not recognize the packet.
 * What Linux allocates, such as new connections, is not the process's memory.
 */
static void pass(struct typed_filter *filter, struct sk_buff *packet)
{
	struct net_device *device;
	struct mem_cgroup *group;

	local_bh_disable();
	rcu_read_lock();
	device = rcu_dereference(filter->device);
	if (device && netif_running(device)) {
		atomic64_inc(&filter->passed);
		packet->dev = device;
		mark_as_seen(packet);
		this_cpu_write(passing.filter, filter);
		this_cpu_write(passing.packet, packet);
		group = set_active_memcg(root_group());
		netif_receive_skb_core(packet);
		set_active_memcg(group);
		/* The packet may have gone another way than to the handler. */
		this_cpu_write(passing.packet, NULL);
	} else {
		lose(filter, packet);
	}
	rcu_read_unlock();
	local_bh_enable();
	cond_resched();
}

/* Whether pass() brings this packet. */
static bool is_passing(const struct typed_filter *filter, struct sk_buff *packet)
{
	if (this_cpu_read(passing.packet) != packet ||
	    this_cpu_read(passing.filter) != filter)
		return false;
	this_cpu_write(passing.packet, NULL);
	skb_reset_redirect(packet);
	return true;
}

/*
 * A packet outlives the section of RCU in which it was received, so what it
 * refers to has to as well. It keeps neither its sender's memory busy nor pages
 * that the sender may write to.
 */
static bool can_wait(struct sk_buff *packet)
{
	/* A socket that was chosen before, as by BPF in traffic control. */
	if (!skb_sk_is_prefetched(packet) || !sk_is_refcounted(packet->sk))
		skb_orphan(packet);
	skb_dst_force(packet);
	return !skb_orphan_frags_rx(packet, GFP_ATOMIC);
}

static rx_handler_result_t when_full(struct typed_filter *filter,
				     struct net_device *device, struct sk_buff *packet)
{
	atomic64_inc(&filter->full);
	if (filter->passes_when_full)
		return RX_HANDLER_PASS;
	dev_core_stats_rx_dropped_inc(device);
	kfree_skb(packet);
	return RX_HANDLER_CONSUMED;
}

static rx_handler_result_t queue(struct typed_filter *filter, struct sk_buff *packet)
{
	struct net_device *device = packet->dev;
	bool full = false, ended;

	spin_lock(&filter->queue.lock);
	ended = filter->ended;
	if (!ended) {
		full = skb_queue_len(&filter->queue) >= filter->room ||
		       filter->bytes + packet->truesize > QUEUE_BYTES;
		if (!full) {
			packet->dev = NULL;
			filter->bytes += packet->truesize;
			__skb_queue_tail(&filter->queue, packet);
		}
	}
	spin_unlock(&filter->queue.lock);
	if (ended)
		return RX_HANDLER_PASS;
	if (full)
		return when_full(filter, device, packet);
	if (wq_has_sleeper(filter->waiters))
		wake_up_interruptible_poll(filter->waiters, EPOLLIN | EPOLLRDNORM);
	return RX_HANDLER_CONSUMED;
}

/* The handler of an interface's packets, in a section of RCU. */
static rx_handler_result_t receive(struct sk_buff **place)
{
	struct sk_buff *packet = *place;
	struct typed_filter *filter = rcu_dereference(packet->dev->rx_handler_data);

	/* What this machine sends to itself by multicast was not received. */
	if (is_passing(filter, packet) || packet->pkt_type == PACKET_LOOPBACK)
		return RX_HANDLER_PASS;
	packet = skb_share_check(packet, GFP_ATOMIC);
	if (!packet) {
		atomic64_inc(&filter->lost);
		return RX_HANDLER_CONSUMED;
	}
	*place = packet;
	if (!can_wait(packet)) {
		lose(filter, packet);
		return RX_HANDLER_CONSUMED;
	}
	return queue(filter, packet);
}

static struct sk_buff *take(struct typed_filter *filter)
{
	struct sk_buff *packet;

	spin_lock_bh(&filter->queue.lock);
	packet = __skb_dequeue(&filter->queue);
	if (packet)
		filter->bytes -= packet->truesize;
	spin_unlock_bh(&filter->queue.lock);
	return packet;
}

static void take_all(struct typed_filter *filter, struct sk_buff_head *packets)
{
	skb_queue_splice_tail_init(&filter->queue, packets);
	filter->bytes = 0;
}

/* Bytes of a packet's header of the link, which lie before the others. */
static unsigned int link_bytes(const struct sk_buff *packet)
{
	if (!skb_mac_header_was_set(packet))
		return 0;
	return max_t(int, packet->data - skb_mac_header(packet), 0);
}

/*
 * Brings bytes from the start of a packet into one piece. What was merged of
 * several packets has the headers there, and is not to be divided elsewhere.
 * Fragments that were merely put together can be.
 */
static bool bring_together(struct sk_buff *packet, u64 bytes)
{
	unsigned int link = link_bytes(packet);

	bytes = min_t(u64, bytes, link + packet->len);
	if (skb_has_frag_list(packet) && skb_is_gso(packet))
		return true;
	return bytes <= link || pskb_may_pull(packet, bytes - link);
}

struct typed_view typed_filter_view(u64 bytes, struct typed_context *context)
{
	const struct typed_view nothing = {};
	struct typed_filter *filter = context->filter;
	struct sk_buff *packet;
	unsigned int link;

	if (!filter || skb_queue_len(&context->filtered) >= BATCH)
		return nothing;
	packet = take(filter);
	if (!packet)
		return nothing;
	if (!bring_together(packet, bytes)) {
		lose(filter, packet);
		return nothing;
	}
	verdict_on(packet)->number = KYOZON_TYPED_PASS;
	__skb_queue_tail(&context->filtered, packet);
	link = link_bytes(packet);
	return (struct typed_view) {
		.address = (unsigned long)packet->data - link,
		.bytes = link + skb_headlen(packet),
	};
}

long typed_verdict(u64 number, struct typed_context *context)
{
	struct sk_buff *packet = skb_peek_tail(&context->filtered);

	if (!packet)
		return -ENOENT;
	if (number != KYOZON_TYPED_DROP && number != KYOZON_TYPED_PASS)
		return -EINVAL;
	verdict_on(packet)->number = number;
	return 0;
}

void typed_filtered_give(struct typed_context *context)
{
	struct typed_filter *filter = context->filter;
	struct sk_buff *packet;

	while ((packet = __skb_dequeue(&context->filtered))) {
		if (verdict_on(packet)->number == KYOZON_TYPED_DROP) {
			atomic64_inc(&filter->dropped);
			kfree_skb(packet);
		} else {
			pass(filter, packet);
		}
	}
}

/*
 * Takes the handler from the interface. Then neither handlers nor pass() use the
 * interface any more: unregistering waits for sections of RCU.
 */
static void leave(struct typed_filter *filter, struct net_device *device)
{
	RCU_INIT_POINTER(filter->device, NULL);
	netdev_rx_handler_unregister(device);
	dev_put(device);
}

static void lose_queue(struct typed_filter *filter)
{
	struct sk_buff_head packets;
	struct sk_buff *packet;

	__skb_queue_head_init(&packets);
	spin_lock_bh(&filter->queue.lock);
	take_all(filter, &packets);
	spin_unlock_bh(&filter->queue.lock);
	while ((packet = __skb_dequeue(&packets)))
		lose(filter, packet);
}

/*
 * Takes what is queued at the end. If that is nothing, the handler has passed
 * all that came before, and passes what comes: false.
 */
static bool take_last(struct typed_filter *filter, struct sk_buff_head *packets, bool close)
{
	spin_lock_bh(&filter->queue.lock);
	if (close)
		filter->room = 0;
	filter->ended = skb_queue_empty(&filter->queue);
	take_all(filter, packets);
	spin_unlock_bh(&filter->queue.lock);
	return !skb_queue_empty(packets);
}

/*
 * Packets that come meanwhile are queued, so that they stay in order. If they
 * come faster than they are passed, the queue counts as full in the end.
 */
void typed_filter_end(struct typed_filter *filter)
{
	struct sk_buff_head packets;
	struct net_device *device;
	struct sk_buff *packet;
	unsigned int n;

	if (!filter)
		return;
	__skb_queue_head_init(&packets);
	for (n = 0; take_last(filter, &packets, n >= LAST_QUEUES); n++)
		while ((packet = __skb_dequeue(&packets)))
			pass(filter, packet);
	rtnl_lock();
	device = rtnl_dereference(filter->device);
	if (device)
		leave(filter, device);
	rtnl_unlock();
	put_net(filter->net);
	kfree(filter);
}

static int enter_device(struct typed_filter *filter, struct net_device *device)
{
	int error;

	error = netdev_rx_handler_register(device, receive, filter);
	if (error)
		return error;
	dev_hold(device);
	rcu_assign_pointer(filter->device, device);
	return 0;
}

static int explain(int error, char *message)
{
	switch (error) {
	case -ENODEV:
		return typed_err(message, error, "there is no such network interface");
	case -EBUSY:
		return typed_err(message, error,
				 "the interface has a handler of packets already: it belongs to a bridge, a bond or the like, or has another filter");
	}
	return typed_err(message, error, "the interface allows no handler of packets");
}

int typed_filter_start(struct typed_filter **to, wait_queue_head_t *waiters,
		       const struct kyozon_typed_filter *request, char *message)
{
	struct net *net = current->nsproxy->net_ns;
	struct typed_filter *filter;
	struct net_device *device;
	int error;

	if (!ns_capable(net->user_ns, CAP_NET_ADMIN) || !ns_capable(net->user_ns, CAP_NET_RAW))
		return typed_err(message, -EPERM,
				 "to filter packets needs root, or the capabilities CAP_NET_ADMIN and CAP_NET_RAW");
	filter = kzalloc(sizeof(*filter), GFP_KERNEL_ACCOUNT);
	if (!filter)
		return -ENOMEM;
	filter->passes_when_full = request->flags & KYOZON_TYPED_FULL_PASSES;
	filter->room = QUEUE_PACKETS;
	skb_queue_head_init(&filter->queue);
	filter->waiters = waiters;
	rtnl_lock();
	device = __dev_get_by_index(net, request->interface);
	error = device ? enter_device(filter, device) : -ENODEV;
	rtnl_unlock();
	if (error) {
		kfree(filter);
		return explain(error, message);
	}
	filter->net = get_net(net);
	/* For typed_poll(), which takes no lock. */
	smp_store_release(to, filter);
	return 0;
}

__poll_t typed_filter_events(struct typed_filter *filter)
{
	__poll_t events = 0;

	if (!skb_queue_empty_lockless(&filter->queue))
		events |= EPOLLIN | EPOLLRDNORM;
	if (!rcu_access_pointer(filter->device))
		events |= EPOLLHUP;
	return events;
}

void typed_filter_show(struct typed_filter *filter, struct seq_file *to)
{
	seq_printf(to, "packets-passed:\t%lld\n", atomic64_read(&filter->passed));
	seq_printf(to, "packets-dropped:\t%lld\n", atomic64_read(&filter->dropped));
	seq_printf(to, "packets-when-full:\t%lld\n", atomic64_read(&filter->full));
	seq_printf(to, "packets-lost:\t%lld\n", atomic64_read(&filter->lost));
}

/* An interface goes down, or away: also to another namespace. */
static int happened(struct notifier_block *block, unsigned long what, void *data)
{
	struct net_device *device = netdev_notifier_info_to_dev(data);
	struct typed_filter *filter;

	if (rtnl_dereference(device->rx_handler) != receive)
		return NOTIFY_DONE;
	filter = rtnl_dereference(device->rx_handler_data);
	switch (what) {
	case NETDEV_DOWN:
		lose_queue(filter);
		break;
	case NETDEV_UNREGISTER:
		leave(filter, device);
		lose_queue(filter);
		wake_up_interruptible_poll(filter->waiters, EPOLLHUP);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block interfaces = { .notifier_call = happened };

int typed_filter_init(void)
{
	return register_netdevice_notifier(&interfaces);
}

void typed_filter_exit(void)
{
	unregister_netdevice_notifier(&interfaces);
}
