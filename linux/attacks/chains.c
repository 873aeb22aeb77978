// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers code of this module where Linux calls modules: packets, keys,
 * events, programs. Each hook only looks on. With a listed module, they are
 * what many modules do; with a hidden one, they are backdoors.
 */
#include <linux/binfmts.h>
#include <linux/if_ether.h>
#include <linux/input.h>
#include <linux/kdebug.h>
#include <linux/keyboard.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/notifier.h>
#include <linux/panic_notifier.h>
#include <linux/rcupdate.h>
#include <linux/reboot.h>
#include <linux/skbuff.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "attacks.h"

/* hook-netfilter: IPv4 packets before routing, as a magic packet is received. */
static unsigned int accept(void *unused, struct sk_buff *packet,
			   const struct nf_hook_state *state)
{
	attack_called(&hook_netfilter);
	return NF_ACCEPT;
}

static const struct nf_hook_ops before_routing = {
	.hook = accept,
	.pf = NFPROTO_IPV4,
	.hooknum = NF_INET_PRE_ROUTING,
	.priority = NF_IP_PRI_FIRST,
};

static int netfilter_begin(struct attack *attack, char *argument)
{
	int error = nf_register_net_hook(&init_net, &before_routing);

	if (!error)
		attack_mark(attack, "IPv4 pre-routing");
	return error;
}

static void netfilter_undo(struct attack *attack)
{
	nf_unregister_net_hook(&init_net, &before_routing);
}

struct attack hook_netfilter = {
	.name = "hook-netfilter",
	.begin = netfilter_begin,
	.undo = netfilter_undo,
	.present = attack_stays,
};

/* hook-packet: all packets of all devices. */
static int look_at_packet(struct sk_buff *packet, struct net_device *device,
			  struct packet_type *type, struct net_device *original)
{
	attack_called(&hook_packet);
	kfree_skb(packet);
	return 0;
}

static struct packet_type all_packets = {
	.type = htons(ETH_P_ALL),
	.func = look_at_packet,
};

static int packet_begin(struct attack *attack, char *argument)
{
	dev_add_pack(&all_packets);
	attack_mark(attack, "ETH_P_ALL");
	return 0;
}

static void packet_undo(struct attack *attack)
{
	dev_remove_pack(&all_packets);
}

struct attack hook_packet = {
	.name = "hook-packet",
	.begin = packet_begin,
	.undo = packet_undo,
	.present = attack_stays,
};

/* hook-keyboard: every key. */
static int look_at_key(struct notifier_block *block, unsigned long event, void *data)
{
	attack_called(&hook_keyboard);
	return NOTIFY_DONE;
}

static struct notifier_block keys = { .notifier_call = look_at_key };

static int keyboard_begin(struct attack *attack, char *argument)
{
	int error = register_keyboard_notifier(&keys);

	if (!error)
		attack_mark(attack, "keyboard");
	return error;
}

static void keyboard_undo(struct attack *attack)
{
	unregister_keyboard_notifier(&keys);
}

struct attack hook_keyboard = {
	.name = "hook-keyboard",
	.begin = keyboard_begin,
	.undo = keyboard_undo,
	.present = attack_stays,
};

/* hook-input: the function of the keyboard's handler that gets every event. */
static struct input_handler *keyboard;
static void (*event_before)(struct input_handle *handle, unsigned int type, unsigned int code,
			    int value);

static void look_at_input(struct input_handle *handle, unsigned int type, unsigned int code,
			  int value)
{
	attack_called(&hook_input);
	event_before(handle, type, code, value);
}

static int input_begin(struct attack *attack, char *argument)
{
	keyboard = (struct input_handler *)symbol("kbd_handler");
	if (!keyboard)
		return -ENOENT;
	event_before = keyboard->event;
	WRITE_ONCE(keyboard->event, look_at_input);
	attack_mark(attack, keyboard->name);
	return 0;
}

static bool input_present(struct attack *attack)
{
	return READ_ONCE(keyboard->event) == look_at_input;
}

static void input_undo(struct attack *attack)
{
	if (input_present(attack))
		WRITE_ONCE(keyboard->event, event_before);
	synchronize_rcu();
}

struct attack hook_input = {
	.name = "hook-input",
	.begin = input_begin,
	.undo = input_undo,
	.present = input_present,
};

/* hook-notifier CHAIN: modules that come and go, the machine's end, and others. */
static int panic_register(struct notifier_block *block)
{
	return atomic_notifier_chain_register(&panic_notifier_list, block);
}

static int panic_unregister(struct notifier_block *block)
{
	return atomic_notifier_chain_unregister(&panic_notifier_list, block);
}

static const struct chain {
	const char *name;
	int (*add)(struct notifier_block *block);
	int (*remove)(struct notifier_block *block);
} chains[] = {
	{ "module", register_module_notifier, unregister_module_notifier },
	{ "reboot", register_reboot_notifier, unregister_reboot_notifier },
	{ "netdev", register_netdevice_notifier, unregister_netdevice_notifier },
	{ "die", register_die_notifier, unregister_die_notifier },
	{ "panic", panic_register, panic_unregister },
};

static int look_at_event(struct notifier_block *block, unsigned long event, void *data)
{
	attack_called(&hook_notifier);
	return NOTIFY_DONE;
}

static struct notifier_block events = { .notifier_call = look_at_event };
static const struct chain *hooked;

static int notifier_begin(struct attack *attack, char *argument)
{
	int error = -EINVAL;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(chains); i++)
		if (!strcmp(chains[i].name, argument)) {
			hooked = &chains[i];
			error = hooked->add(&events);
		}
	if (!error)
		attack_mark(attack, hooked->name);
	return error;
}

static void notifier_undo(struct attack *attack)
{
	hooked->remove(&events);
}

struct attack hook_notifier = {
	.name = "hook-notifier",
	.begin = notifier_begin,
	.undo = notifier_undo,
	.present = attack_stays,
};

/* hook-format: asked first about every program that begins. */
static int no_format(struct linux_binprm *program)
{
	attack_called(&hook_format);
	return -ENOEXEC;
}

static struct linux_binfmt format = {
	.module = THIS_MODULE,
	.load_binary = no_format,
};

static int format_begin(struct attack *attack, char *argument)
{
	insert_binfmt(&format);
	attack_mark(attack, "binary format");
	return 0;
}

static void format_undo(struct attack *attack)
{
	unregister_binfmt(&format);
}

struct attack hook_format = {
	.name = "hook-format",
	.begin = format_begin,
	.undo = format_undo,
	.present = attack_stays,
};
