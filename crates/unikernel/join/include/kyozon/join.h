/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Generated from crates/unikernel/join; BLESS=1 cargo test -p kyozon-join --test header writes it anew. */

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
 To read a region.
 */
#define KYOZON_JOIN_READ 1

/*
 To read and write it.
 */
#define KYOZON_JOIN_WRITE 3

/*
 A peer never had the region mapped.
 */
#define KYOZON_JOIN_ABSENT 0

/*
 It has it mapped.
 */
#define KYOZON_JOIN_HERE 1

/*
 It ended by its own will.
 */
#define KYOZON_JOIN_LEFT 2

/*
 It crashed, or was ended.
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
 Somebody died whom the others waited for.
 */
#define KYOZON_JOIN_POISONED -3

/*
 Not made for a peer of the caller's number.
 */
#define KYOZON_JOIN_STRANGER -4

/*
 The other side has closed the ring, and all that it sent was received.
 */
#define KYOZON_JOIN_CLOSED -5

/*
 The other side of the ring is dead, and all that it sent was received.
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
 The buffer is too short for the next record, which stays.
 */
#define KYOZON_JOIN_TOO_SHORT -9

/*
 An argument makes no sense: no such region, not to be written, not inside it, not aligned.
 */
#define KYOZON_JOIN_ARGUMENT -10

/*
 A program in its group.
 */
struct kyozon_join_host;

/*
 One side of a ring between two.
 */
struct kyozon_join_ring;

/*
 A region that a program wants.
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
 A region that it has.
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
 What has become of a peer.
 */
struct kyozon_join_life {
        /*
         `KYOZON_JOIN_ABSENT` to `KYOZON_JOIN_DEAD`.
         */
        uint32_t state;
        /*
         How many peers of this number there were.
         */
        uint32_t generation;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Joins a group and maps `count` of its regions. Null where that cannot be; then `why`, of `why_bytes` bytes, says why
 in a line.

 Callers keep to this:

 `wanted` has `count` elements, `why` room for so many bytes, or is null.
 */
struct kyozon_join_host *kyozon_join(const char *group,
                                     const struct kyozon_join_wanted *wanted,
                                     uintptr_t count,
                                     char *why,
                                     uintptr_t why_bytes);

/*
 Leaves the group: regions are unmapped. Its rings must be freed before.

 Callers keep to this:

 Null, or a host that has not left.
 */
void kyozon_join_leave(struct kyozon_join_host *host);

/*
 Number of this peer in its group.

 Callers keep to this:

 A host that has not left.
 */
uint32_t kyozon_join_number(const struct kyozon_join_host *host);

/*
 Nanoseconds of the group's clock.

 Callers keep to this:

 A host that has not left.
 */
uint64_t kyozon_join_now(const struct kyozon_join_host *host);

/*
 Whether the group is over: nobody says any more who lives.

 Callers keep to this:

 A host that has not left.
 */
bool kyozon_join_is_over(const struct kyozon_join_host *host);

/*
 Sleeps until this peer has its token, or until the deadline. May return early.

 Callers keep to this:

 A host that has not left.
 */
void kyozon_join_park(const struct kyozon_join_host *host, uint64_t until);

/*
 Gives a peer its token. Never waits; a number that is no peer's does nothing.

 Callers keep to this:

 A host that has not left.
 */
void kyozon_join_unpark(const struct kyozon_join_host *host, uint32_t peer);

/*
 Where a region is. 0, or `KYOZON_JOIN_ARGUMENT`.

 Callers keep to this:

 A host that has not left; `to` can be written.
 */
int64_t kyozon_join_region(const struct kyozon_join_host *host,
                           const char *name,
                           struct kyozon_join_place *to);

/*
 Maps a region that a guest has granted this peer meanwhile. 0, or `KYOZON_JOIN_ARGUMENT` where it was not granted, or not
 with these rights.

 Callers keep to this:

 A host that has not left.
 */
int64_t kyozon_join_map(const struct kyozon_join_host *host,
                        const char *name,
                        uint32_t rights);

/*
 What has become of a peer, as a region tells. 0, or `KYOZON_JOIN_ARGUMENT`.

 Callers keep to this:

 A host that has not left; `to` can be written.
 */
int64_t kyozon_join_peer(const struct kyozon_join_host *host,
                         const char *name,
                         uint32_t peer,
                         struct kyozon_join_life *to);

/*
 The writer of the ring at `offset` of a region's data, a multiple of 128; it has `bytes` bytes, a power of two, at
 least 64, and takes 256 more. Null where there is no room for it, or no right.

 Callers keep to this:

 A host that has not left, and does not before this is freed.
 */
struct kyozon_join_ring *kyozon_join_writer(const struct kyozon_join_host *host,
                                            const char *name,
                                            uintptr_t offset,
                                            uintptr_t bytes);

/*
 The reader of a ring, as `kyozon_join_writer`.

 Callers keep to this:

 A host that has not left, and does not before this is freed.
 */
struct kyozon_join_ring *kyozon_join_reader(const struct kyozon_join_host *host,
                                            const char *name,
                                            uintptr_t offset,
                                            uintptr_t bytes);

/*
 Sends a record, and waits for room. 0, or why not.

 Callers keep to this:

 A ring that was not freed; `bytes` bytes at `data` can be read.
 */
int64_t kyozon_join_send(struct kyozon_join_ring *ring,
                         const uint8_t *data,
                         uintptr_t bytes,
                         uint64_t until);

/*
 Waits for a record, and copies it to `to`. Bytes of the record, or why there is none.

 Callers keep to this:

 A ring that was not freed; `room` bytes at `to` can be written.
 */
int64_t kyozon_join_receive(struct kyozon_join_ring *ring,
                            uint8_t *to,
                            uintptr_t room,
                            uint64_t until);

/*
 Closes a side of a ring, and frees it.

 Callers keep to this:

 Null, or a ring that was not freed.
 */
void kyozon_join_close(struct kyozon_join_ring *ring);

/*
 Takes the lock at `offset` of a region's data, a multiple of 8. 0; 1 where it is taken, and somebody died in it; or
 why not.

 Callers keep to this:

 A host that has not left.
 */
int64_t kyozon_join_lock(const struct kyozon_join_host *host,
                         const char *name,
                         uintptr_t offset,
                         uint64_t until);

/*
 Gives the lock back; `poisoned` where what it guards is not in order. 0, or `KYOZON_JOIN_ARGUMENT`.

 Callers keep to this:

 A host that has not left, and has the lock.
 */
int64_t kyozon_join_unlock(const struct kyozon_join_host *host,
                           const char *name,
                           uintptr_t offset,
                           bool poisoned);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* KYOZON_JOIN_H */
