# SPDX-License-Identifier: MIT OR Apache-2.0
# Functions of the steps. One end of a pair of interfaces, wire, is this guest's and gets filtered; the other one is in
# a network namespace of its own, the peer's.

make_pair() {
	unshare -n sleep 10000 >/dev/null 2>&1 &
	echo $! >/tmp/peer
	until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do usleep 20000; done
	echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
	peer sh -c "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6"
	make_wire
}

make_wire() {
	ip link add wire type veth
	address=$(cat /sys/class/net/veth0/address)
	ip link set veth0 netns "$(cat /tmp/peer)"
	ip addr add 10.0.0.1/24 dev wire
	ip link set wire up
	peer ip addr add 10.0.0.2/24 dev veth0
	peer ip link set veth0 up
	# Nobody asks for addresses, so that the numbers of packets are known.
	arp -s 10.0.0.2 "$address"
	peer arp -s 10.0.0.1 "$(cat /sys/class/net/wire/address)"
}

# On one CPU: a busy Linux receives what was sent on two in any order.
peer() {
	taskset 1 nsenter -t "$(cat /tmp/peer)" -n "$@"
}

# Starts a program as a filter; its number is in $filter.
start() {
	program=$1
	shift
	kyozon typed run --kernel --filter wire "$@" "/m/typed/programs/$program.typed" &
	filter=$!
	until grep -q packets-passed /proc/$filter/fdinfo/* 2>/dev/null; do usleep 20000; done
}

# Packets of the filter, by the name of their count.
count() {
	awk -v name="packets-$1:" '$1 == name { print $2 }' /proc/$filter/fdinfo/*
}

# Receives numbered packets at a port, and prints how many came.
receive() {
	udp receive "$1" >"/tmp/$1" &
	echo $! >"/tmp/$1.pid"
	until awk '{ print $2 }' /proc/net/udp | grep -q ":$(printf %04X "$1")"; do usleep 20000; done
}

received() {
	while kill -0 "$(cat "/tmp/$1.pid")" 2>/dev/null; do usleep 100000; done
	cat "/tmp/$1"
}
