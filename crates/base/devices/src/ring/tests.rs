use super::*;
use crate::fake::{Guest, AVAILABLE, BASE, BYTES, DESCRIPTORS, FREE, SIZE, USED};
use virtio_bindings::virtio_ring::{VRING_DESC_F_INDIRECT, VRING_DESC_F_NEXT, VRING_DESC_F_WRITE};

const NEXT: u16 = VRING_DESC_F_NEXT as u16;
const WRITE: u16 = VRING_DESC_F_WRITE as u16;
const INDIRECT: u16 = VRING_DESC_F_INDIRECT as u16;

fn started() -> (Guest, Ring) {
    let (guest, mut ring) = (Guest::default(), Ring::default());
    ring.start(&guest.memory, guest.place()).unwrap();
    (guest, ring)
}

#[test]
fn entries_are_served_and_returned() {
    let (mut guest, mut ring) = started();
    for round in 0..1000_u32 {
        guest.poke(FREE, &round.to_le_bytes());
        let head = guest.ask(&[(FREE, 2, false), (FREE + 2, 2, false), (FREE + 8, 4, true)]);
        let served = ring.serve(&guest.memory, |memory, chain| {
            let mut word = [0; 4];
            assert_eq!((chain.to_read(), chain.to_write()), (4, 4));
            chain.read(memory, &mut word)?;
            chain.write(memory, &(u32::from_le_bytes(word) * 3).to_le_bytes())?;
            assert_eq!((chain.to_read(), chain.to_write()), (0, 0));
            Ok(4)
        });
        assert_eq!(served, Served { count: 1, wake: true, more: false });
        assert_eq!(guest.answer(), Some((u32::from(head), 4)));
        assert_eq!(u32::from_le_bytes(guest.peek(FREE + 8)), round * 3);
    }
    assert_eq!(guest.answer(), None);
}

/// The state of a queue after a chain of these descriptors.
fn ending(descriptors: &[(u64, u32, u16, u16)], head: u16) -> State {
    let (mut guest, mut ring) = started();
    for (index, (address, bytes, flags, next)) in descriptors.iter().enumerate() {
        guest.describe(index as u16, *address, *bytes, *flags, *next);
    }
    guest.offer(head);
    ring.serve(&guest.memory, |_, _| Ok(0));
    ring.state()
}

#[test]
fn every_bad_descriptor_ends_the_queue() {
    let end = BASE + BYTES as u64;
    type Case<'a> = (&'a [(u64, u32, u16, u16)], u16, Bad);
    let cases: [Case<'_>; 13] = [
        // Addresses: before, after, across the end, across 2^64.
        (&[(BASE - 1, 1, 0, 0)], 0, Bad::Address),
        (&[(end, 1, 0, 0)], 0, Bad::Address),
        (&[(end - 4, 5, WRITE, 0)], 0, Bad::Address),
        (&[(u64::MAX, 2, 0, 0)], 0, Bad::Address),
        (&[(FREE, u32::MAX, 0, 0)], 0, Bad::Address),
        // Next: itself, a cycle, outside the table.
        (&[(FREE, 1, NEXT, 0)], 0, Bad::Descriptor),
        (&[(FREE, 1, NEXT, 1), (FREE, 1, NEXT, 0)], 1, Bad::Descriptor),
        (&[(FREE, 1, NEXT, SIZE)], 0, Bad::Descriptor),
        (&[], SIZE, Bad::Descriptor),
        (&[], u16::MAX, Bad::Descriptor),
        // Order: memory to write before memory to read.
        (&[(FREE, 1, WRITE | NEXT, 1), (FREE, 1, 0, 0)], 0, Bad::Order),
        // Indirect tables: of an impossible length, and outside memory.
        (&[(FREE, 17, INDIRECT, 0)], 0, Bad::Descriptor),
        (&[(end, 32, INDIRECT, 0)], 0, Bad::Descriptor),
    ];
    for (descriptors, head, bad) in cases {
        assert_eq!(ending(descriptors, head), State::Ended(bad), "{descriptors:x?} from {head}");
    }
    assert_eq!(ending(&[(FREE, 1, 0, 0)], 0), State::Running);
    // A piece of 0 bytes may have any address: nothing is accessed.
    assert_eq!(ending(&[(0, 0, 0, 0)], 0), State::Running);
}

#[test]
fn an_indirect_table_is_one_chain() {
    // The table consists of descriptors 1 and 2.
    let two = [(DESCRIPTORS + 16, 32, INDIRECT, 0), (FREE, 4, NEXT, 1), (FREE, 4, WRITE, 0)];
    assert_eq!(ending(&two, 0), State::Running);
    // A table in a table, and a table with more entries than the queue.
    let inner = [(DESCRIPTORS + 16, 32, INDIRECT, 0), (DESCRIPTORS, 32, INDIRECT, 0)];
    assert_eq!(ending(&inner, 0), State::Ended(Bad::Descriptor));
    let (mut guest, mut ring) = started();
    guest.describe(0, FREE, 16 * 200, INDIRECT, 0);
    for i in 0..200_u64 {
        guest.poke(FREE + i * 16, &0_u64.to_le_bytes());
        let words = [0, u32::from(NEXT) | (i as u32 + 1) << 16].map(u32::to_le_bytes).concat();
        guest.poke(FREE + i * 16 + 8, &words);
    }
    guest.offer(0);
    ring.serve(&guest.memory, |_, _| Ok(0));
    assert_eq!(ring.state(), State::Ended(Bad::Descriptor));
}

#[test]
fn an_index_that_jumps_ends_the_queue() {
    for jump in [u16::from(SIZE as u8) + 1, 0x7fff, u16::MAX] {
        let (guest, mut ring) = started();
        guest.poke(AVAILABLE + 2, &jump.to_le_bytes());
        let served = ring.serve(&guest.memory, |_, _| Ok(0));
        assert_eq!(ring.state(), State::Ended(Bad::Index), "{jump}");
        assert!(served.wake && !served.more);
    }
}

#[test]
fn an_ended_queue_is_not_touched() {
    let (mut guest, mut ring) = started();
    guest.ask(&[(0, 1, false)]);
    ring.serve(&guest.memory, |_, _| panic!("a bad address"));
    let before: [u8; 256] = guest.peek(USED);
    guest.ask(&[(FREE, 1, false)]);
    let served = ring.serve(&guest.memory, |_, _| panic!("a queue that ended"));
    assert_eq!((served, ring.next(&guest.memory).is_none()), (Served::default(), true));
    assert!(!ring.wants_wake(&guest.memory) && !ring.listen(&guest.memory));
    assert_eq!(guest.peek::<256>(USED), before);
    // Once started again, it works again.
    let mut guest = Guest::default();
    ring.start(&guest.memory, guest.place()).unwrap();
    guest.ask(&[(FREE, 1, false)]);
    assert_eq!(ring.serve(&guest.memory, |_, _| Ok(0)).count, 1);
    ring.stop();
    guest.ask(&[(FREE, 1, false)]);
    assert_eq!(ring.serve(&guest.memory, |_, _| Ok(0)).count, 0);
}

#[test]
fn a_bad_size_or_address_does_not_start() {
    let guest = Guest::default();
    let good = guest.place();
    let end = BASE + BYTES as u64;
    for (place, why) in [
        (guest.place(), None),
        (Place { size: 0, ..good }, Some(Refused::Size)),
        (Place { size: 3, ..good }, Some(Refused::Size)),
        (Place { size: MAX_SIZE * 2, ..good }, Some(Refused::Size)),
        (Place { descriptors: good.descriptors + 8, ..good }, Some(Refused::Address)),
        (Place { available: good.available + 1, ..good }, Some(Refused::Address)),
        (Place { used: good.used + 2, ..good }, Some(Refused::Address)),
        (Place { descriptors: 0, ..good }, Some(Refused::Address)),
        (Place { available: end - 16, ..good }, Some(Refused::Address)),
        (Place { used: u64::MAX - 3, ..good }, Some(Refused::Address)),
        (Place { size: MAX_SIZE, descriptors: end - 4096 + 16, ..good }, Some(Refused::Address)),
    ] {
        let mut ring = Ring::default();
        assert_eq!(ring.start(&guest.memory, place).err(), why, "{place:x?}");
        assert_eq!(ring.state() == State::Running, why.is_none());
    }
    let mut ring = Ring::default();
    ring.start(&guest.memory, good).unwrap();
    assert_eq!(ring.start(&guest.memory, good), Err(Refused::Running));
}

#[test]
fn no_side_is_notified_without_need() {
    let (mut guest, mut ring) = started();
    assert!(guest.is_asked_to_ring());
    // The queue is empty.
    assert_eq!(ring.serve(&guest.memory, |_, _| Ok(0)), Served::default());
    assert!(guest.is_asked_to_ring());
    // Past the end of 16-bit indices, three entries at a time. The guest waits for the second of them, or for none.
    for round in 0..40_000_u16 {
        let waits = round % 2 == 0;
        let before = round.wrapping_mul(3);
        guest.wake_at(before.wrapping_add(if waits { 1 } else { u16::MAX }));
        for entry in 0..3 {
            guest.ask(&[(FREE, 1, false)]);
            assert!(!guest.is_asked_to_ring());
            let (head, chain) = ring.next(&guest.memory).unwrap();
            assert!(!guest.is_asked_to_ring(), "it has not seen yet that this was the last");
            ring.put(&guest.memory, head, chain, 0);
            assert_eq!(ring.wants_wake(&guest.memory), waits && entry == 1, "{before} {entry}");
            assert!(!ring.wants_wake(&guest.memory), "once is enough");
        }
        assert_eq!(ring.serve(&guest.memory, |_, _| Ok(0)), Served::default());
        assert!(guest.is_asked_to_ring());
    }
}

#[test]
fn a_late_listener_learns_of_the_entry() {
    let (mut guest, mut ring) = started();
    assert!(!ring.listen(&guest.memory));
    guest.ask(&[(FREE, 1, false)]);
    assert!(ring.listen(&guest.memory));
}

#[test]
fn a_busy_guest_does_not_occupy_the_device() {
    let (mut guest, mut ring) = started();
    guest.describe(0, FREE, 1, 0, 0);
    guest.offer(0);
    let mut other = Guest::with_memory(guest.memory.clone());
    other.offer(0);
    let served = ring.serve(&guest.memory, |_, _| {
        other.offer(0);
        Ok(0)
    });
    assert_eq!(served, Served { count: usize::from(SIZE), wake: true, more: true });
}

#[test]
fn a_guest_rings_for_several_entries() {
    let (mut guest, mut ring) = started();
    for _ in 0..1000 {
        assert!(!ring.listen_for(&guest.memory, 3));
        for last in [false, false, true] {
            let before = guest.is_asked_to_ring();
            guest.ask(&[(FREE, 4, false)]);
            assert_eq!(before, last);
        }
        assert!(ring.listen_for(&guest.memory, 3), "they are there");
        assert!(!ring.listen_for(&guest.memory, 4));
        // An entry that was not served is the next one again, unread.
        let (head, mut chain) = ring.next(&guest.memory).unwrap();
        chain.skip_reads(1);
        assert_eq!(chain.to_read(), 3);
        chain.rewind();
        ring.unget(head, chain);
        assert_eq!(
            ring.serve(&guest.memory, |_, chain| {
                assert_eq!(chain.to_read(), 4);
                Ok(0)
            })
            .count,
            3
        );
    }
}
