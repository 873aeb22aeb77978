/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * program GROUP CASE: a host program in a group with guests that run the cases of
 * crates/lab/unikernel-test/src/meet.rs.
 */
#include "kyozon/join.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The offsets in meet.rs. */
enum { THERE = 0, BACK = 8192, RING = 4096, LOCK = 65536 };

static struct kyozon_join_host *host;

static void check(int holds, const char *what, int64_t found)
{
	if (!holds) {
		fprintf(stderr, "%s: %lld\n", what, (long long)found);
		exit(1);
	}
}

static uint64_t deadline(void)
{
	return kyozon_join_now(host) + 20000000000;
}

static void leave(void)
{
	kyozon_join_leave(host);
	puts("left");
	exit(0);
}

/* Sends `count` records, or any number of them if 0, and checks that each comes back. */
static void ask(unsigned count)
{
	struct kyozon_join_ring *there = kyozon_join_writer(host, "board", THERE, RING);
	struct kyozon_join_ring *back = kyozon_join_reader(host, "board", BACK, RING);
	unsigned char sent[2000], got[2048];
	int64_t bytes;

	check(there && back, "a ring", 0);
	check(kyozon_join_receive(there, got, sizeof(got), 0) == KYOZON_JOIN_ARGUMENT, "receiving from a writer", 0);
	for (unsigned i = 0; !count || i < count; i++) {
		size_t len = i * 7 % sizeof(sent);

		memset(sent, i, sizeof(sent));
		bytes = kyozon_join_send(there, sent, len, deadline());
		if (bytes == KYOZON_JOIN_PEER_DIED) {
			puts("the other side died");
			leave();
		}
		check(bytes == 0, "send", bytes);
		bytes = kyozon_join_receive(back, got, sizeof(got), deadline());
		if (bytes == KYOZON_JOIN_PEER_DIED) {
			puts("the other side died");
			leave();
		}
		check(bytes == (int64_t)len && !memcmp(sent, got, len), "receive", bytes);
		if (i == 100) {
			puts("going");
			fflush(stdout);
		}
	}
	kyozon_join_close(there);
	bytes = kyozon_join_receive(back, got, sizeof(got), deadline());
	check(bytes == KYOZON_JOIN_CLOSED || bytes == KYOZON_JOIN_PEER_DIED, "the end", bytes);
	kyozon_join_close(back);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	struct kyozon_join_wanted board = { "board", strcmp(what, "read") ? KYOZON_JOIN_WRITE : KYOZON_JOIN_READ };
	struct kyozon_join_place place;
	struct kyozon_join_life life;
	char reason[200];

	host = kyozon_join(argv[1], &board, strcmp(what, "nothing") != 0, reason, sizeof(reason));
	if (!host) {
		fprintf(stderr, "%s\n", reason);
		return 1;
	}
	if (!strcmp(what, "nothing"))
		goto done;
	check(kyozon_join_region(host, "board", &place) == 0 && place.bytes == (1 << 20) - 4096, "board", 0);
	check(kyozon_join_region(host, "other", &place) == KYOZON_JOIN_ARGUMENT, "no board", 0);
	check(kyozon_join_peer(host, "board", kyozon_join_number(host), &life) == 0 &&
		      life.state == KYOZON_JOIN_HERE,
	      "this peer", life.state);
	if (!strcmp(what, "ask")) {
		ask(2000);
	} else if (!strcmp(what, "ask-on")) {
		ask(0);
	} else if (!strcmp(what, "read")) {
		check(!kyozon_join_writer(host, "board", 0, RING), "a ring without the right to write", 0);
		check(kyozon_join_lock(host, "board", LOCK, 0) == KYOZON_JOIN_ARGUMENT, "a lock without the right to write", 0);
	} else if (!strcmp(what, "write")) {
		*(volatile uint64_t *)place.data = 42;
	} else if (!strcmp(what, "lock")) {
		int64_t got = kyozon_join_lock(host, "board", LOCK, deadline());

		check(got == 0, "lock", got);
		check(kyozon_join_lock(host, "board", LOCK, deadline()) == KYOZON_JOIN_DEADLOCK, "the same lock again", 0);
		puts("locked");
		fflush(stdout);
		for (;;)
			pause();
	} else if (!strcmp(what, "see-end")) {
		/* Peer 0 is present, then it is gone. */
		do {
			kyozon_join_peer(host, "board", 0, &life);
			if (life.state == KYOZON_JOIN_HERE)
				kyozon_join_park(host, deadline());
		} while (life.state == KYOZON_JOIN_HERE);
		printf("%s, %s\n", life.state == KYOZON_JOIN_DEAD ? "dead" : "left",
		       kyozon_join_is_over(host) ? "over" : "goes on");
	} else if (!strcmp(what, "borrow")) {
		/* Writes to the region that the guest lends, until the guest revokes it. */
		check(kyozon_join_map(host, "board", KYOZON_JOIN_WRITE) == KYOZON_JOIN_ARGUMENT, "the same region twice", 0);
		while (kyozon_join_map(host, "x", KYOZON_JOIN_WRITE) != 0)
			kyozon_join_park(host, kyozon_join_now(host) + 1000000);
		check(kyozon_join_region(host, "x", &place) == 0, "x", 0);
		for (;;)
			__atomic_fetch_add((uint64_t *)place.data, 1, __ATOMIC_SEQ_CST);
	} else if (!strcmp(what, "stay")) {
		for (;;)
			pause();
	}
done:
	leave();
}
