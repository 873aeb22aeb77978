/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Generated from crates/unikernel/join; to update it, run BLESS=1 cargo test -p kyozon-join --test header. */

#ifndef KYOZON_JOIN_H
#define KYOZON_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 A deadline that never comes.
 */
#define KYOZON_JOIN_NO_DEADLINE 18446744073709551615ull

/*
 The right to read a region.
 */
#define KYOZON_JOIN_READ 1

/*
 The right to read and write a region.
 */
#define KYOZON_JOIN_WRITE 3

/*
 The peer never had the region mapped.
 */
#define KYOZON_JOIN_ABSENT 0

/*
 The peer has the region mapped.
 */
#define KYOZON_JOIN_HERE 1

/*
 The peer left the group.
 */
#define KYOZON_JOIN_LEFT 2

/*
 The peer crashed, or was ended.
 */
#define KYOZON_JOIN_DEAD 3

/*
 The deadline has passed.
 */
#define KYOZON_JOIN_TIMED_OUT -1

/*
 The caller holds the lock already.
 */
#define KYOZON_JOIN_DEADLOCK -2

/*
 A peer that the others waited for has died.
 */
#define KYOZON_JOIN_POISONED -3

/*
 The object was not made for a peer with the caller's number.
 */
#define KYOZON_JOIN_STRANGER -4

/*
 The other side has closed the ring, and everything that it sent was received.
 */
#define KYOZON_JOIN_CLOSED -5

/*
 The other side of the ring is dead, and everything that it sent was received.
 */
#define KYOZON_JOIN_PEER_DIED -6

/*
 A peer did not keep the protocol.
 */
#define KYOZON_JOIN_CORRUPT -7

/*
 The record is longer than half of the ring.
 */
#define KYOZON_JOIN_TOO_LONG -8

/*
 The buffer is too short for the next record, which stays in the ring.
 */
#define KYOZON_JOIN_TOO_SHORT -9

/*
 An argument is invalid: there is no such region or no right to write to it, or the offset is outside the region or
 not aligned.
 */
#define KYOZON_JOIN_ARGUMENT -10

/*
 A program in its group.
 */
struct kyozon_join_host;

/*
 One side of a ring between two peers.
 */
struct kyozon_join_ring;

/*
 A region that a program wants to map.
 */
struct kyozon_join_wanted {
        /*
         Its name.
         */
        const char *name;
        /*
         `KYOZON_JOIN_READ` or `KYOZON_JOIN_WRITE`.
         */
        uint32_t rights;
};

/*
 A region that a program has mapped.
 */
struct kyozon_join_place {
        /*
         First byte of the data, at the same address in every peer.
         */
        uint8_t *data;
        /*
         Bytes of data.
         */
        uint64_t bytes;
        /*
         `KYOZON_JOIN_READ` or `KYOZON_JOIN_WRITE`.
         */
        uint32_t rights;
};

/*
 The state of a peer.
 */
struct kyozon_join_life {
        /*
         `KYOZON_JOIN_ABSENT` to `KYOZON_JOIN_DEAD`.
         */
        uint32_t state;
        /*
         How many peers had this number, up to now.
         */
        uint32_t generation;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Joins a group and maps `count` of its regions. Returns null if that fails, and writes one line with the reason to
 `why`, at most `why_bytes` bytes with the zero byte.

 The caller must pass:

 `wanted` has `count` elements; `why` has room for `why_bytes` bytes, or is null.
 */
struct kyozon_join_host *kyozon_join(const char *group,
                                     const struct kyozon_join_wanted *wanted,
                                     uintptr_t count,
                                     char *why,
                                     uintptr_t why_bytes);

/*
 Leaves the group, and unmaps its regions. Its rings must be closed before.

 The caller must pass:

 Null, or a host that has not left.
 */
void kyozon_join_leave(struct kyozon_join_host *host);

/*
 The number of this peer in its group.

 The caller must pass:

 A host that has not left.
 */
uint32_t kyozon_join_number(const struct kyozon_join_host *host);

/*
 The group's clock, in nanoseconds.

 The caller must pass:

 A host that has not left.
 */
uint64_t kyozon_join_now(const struct kyozon_join_host *host);

/*
 Whether the group is over: its keeper is gone, and with it the state of all peers.

 The caller must pass:

 A host that has not left.
 */
bool kyozon_join_is_over(const struct kyozon_join_host *host);

/*
 Sleeps until this peer has its token, or until the deadline `until`. May return early.

 The caller must pass:

 A host that has not left.
 */
void kyozon_join_park(const struct kyozon_join_host *host, uint64_t until);

/*
 Gives a peer its token. Never waits; does nothing if there is no peer with this number.

 The caller must pass:

 A host that has not left.
 */
void kyozon_join_unpark(const struct kyozon_join_host *host, uint32_t peer);

/*
 Writes where a region is mapped to `to`. Returns 0, or `KYOZON_JOIN_ARGUMENT`.

 The caller must pass:

 A host that has not left; `to` can be written.
 */
int64_t kyozon_join_region(const struct kyozon_join_host *host,
                           const char *name,
                           struct kyozon_join_place *to);

/*
 Maps a region that a guest has granted to this peer since it joined. Returns 0, or `KYOZON_JOIN_ARGUMENT` if the region
 was not granted, or not with these rights.

 The caller must pass:

 A host that has not left.
 */
int64_t kyozon_join_map(const struct kyozon_join_host *host,
                        const char *name,
                        uint32_t rights);

/*
 Writes the state of a peer, as the header of a region shows it, to `to`. Returns 0, or `KYOZON_JOIN_ARGUMENT`.

 The caller must pass:

 A host that has not left; `to` can be written.
 */
int64_t kyozon_join_peer(const struct kyozon_join_host *host,
                         const char *name,
                         uint32_t peer,
                         struct kyozon_join_life *to);

/*
 Attaches as the writer of the ring at `offset` of a region's data, a multiple of 128. The ring has `bytes` bytes of
 data, a power of two, at least 64, and a header of 256 bytes. Returns null if it does not fit into the region, or if
 the region is read-only.

 The caller must pass:

 A host that has not left, and does not leave before the ring is closed.
 */
struct kyozon_join_ring *kyozon_join_writer(const struct kyozon_join_host *host,
                                            const char *name,
                                            uintptr_t offset,
                                            uintptr_t bytes);

/*
 Attaches as the reader of a ring; arguments and result are those of `kyozon_join_writer`.

 The caller must pass:

 A host that has not left, and does not leave before the ring is closed.
 */
struct kyozon_join_ring *kyozon_join_reader(const struct kyozon_join_host *host,
                                            const char *name,
                                            uintptr_t offset,
                                            uintptr_t bytes);

/*
 Sends a record; waits for room until the deadline `until`. Returns 0, or an error.

 The caller must pass:

 A ring that was not closed; `bytes` bytes at `data` can be read.
 */
int64_t kyozon_join_send(struct kyozon_join_ring *ring,
                         const uint8_t *data,
                         uintptr_t bytes,
                         uint64_t until);

/*
 Waits for a record until the deadline `until`, and copies it to `to`. Returns the record's bytes, or an error.

 The caller must pass:

 A ring that was not closed; `room` bytes at `to` can be written.
 */
int64_t kyozon_join_receive(struct kyozon_join_ring *ring,
                            uint8_t *to,
                            uintptr_t room,
                            uint64_t until);

/*
 Closes one side of a ring, and frees it.

 The caller must pass:

 Null, or a ring that was not closed.
 */
void kyozon_join_close(struct kyozon_join_ring *ring);

/*
 Takes the lock at `offset` of a region's data, a multiple of 8. Returns 0; 1 if the lock is taken, but a peer died
 while it held it; or an error.

 The caller must pass:

 A host that has not left.
 */
int64_t kyozon_join_lock(const struct kyozon_join_host *host,
                         const char *name,
                         uintptr_t offset,
                         uint64_t until);

/*
 Releases the lock; `poisoned` says that the data that it guards is inconsistent. Returns 0, or `KYOZON_JOIN_ARGUMENT`.

 The caller must pass:

 A host that has not left, and holds the lock.
 */
int64_t kyozon_join_unlock(const struct kyozon_join_host *host,
                           const char *name,
                           uintptr_t offset,
                           bool poisoned);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* KYOZON_JOIN_H */
