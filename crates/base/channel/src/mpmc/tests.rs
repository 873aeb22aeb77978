//! The mpmc ring in raw memory, as programs use it.

use super::*;
use crate::border::{Bytes, Region};
use crate::fuzz::FakeGroup;
use core::sync::atomic::AtomicU64;
use std::boxed::Box;

const SLOTS: usize = 4;
/// Control words, slots, and 24 bytes of data per slot.
const BYTES: usize = 512 + SLOTS * (64 + 24);

#[repr(C, align(4096))]
struct Memory([AtomicU64; BYTES / 8]);

type Raw<'a> = Ring<&'a Control, &'a [Slot], Bytes<'a>>;

impl Memory {
    fn new() -> Box<Self> {
        Box::new(Self([const { AtomicU64::new(0) }; BYTES / 8]))
    }

    #[allow(unsafe_code)]
    fn ring(&self) -> Raw<'_> {
        // SAFETY: this structure outlives the region and is accessed atomically.
        let region = unsafe { Region::new(self as *const Self as *mut u8, size_of::<Self>()) };
        assert_eq!(bytes(SLOTS, 24), Some(BYTES));
        assert!(region.mpmc(0, SLOTS, 4096).is_none() && region.mpmc(64, SLOTS, 8).is_none());
        assert!(
            region.mpmc(0, usize::MAX, 24).is_none() && region.mpmc(usize::MAX, 4, 24).is_none()
        );
        region.mpmc(0, SLOTS, 24).unwrap()
    }
}

#[test]
fn records_arrive_in_order_until_full() {
    let (memory, world) = (Memory::new(), FakeGroup::new());
    let ring = memory.ring();
    let (one, other) = (world.peer(0), world.peer(63));
    let mut buffer = [0; 24];
    for lap in 0..5u8 {
        for number in 0..SLOTS as u8 {
            let len = usize::from(lap * 4 + number);
            assert_eq!(ring.try_send(&[number; 24][..len], &one), Ok(true));
        }
        assert_eq!(ring.try_send(&[9; 24], &other), Ok(false));
        for number in 0..SLOTS as u8 {
            let len = usize::from(lap * 4 + number);
            assert_eq!(ring.try_recv(&mut buffer, &other), Ok(Some(len)));
            assert!(buffer[..len].iter().all(|byte| *byte == number));
        }
        assert_eq!(ring.try_recv(&mut buffer, &one), Ok(None));
    }
    assert_eq!(ring.try_send(&[0; 25], &one), Err(Error::RecordTooLong { limit: 24 }));
    assert_eq!(ring.try_recv(&mut [0; 23], &one), Err(Error::BufferTooShort { needed: 24 }));
    assert_eq!(ring.recv(&mut buffer, &one, Some(1000)), Err(Error::TimedOut));
}

/// A peer that claims a slot and dies.
fn vanish(ring: &Raw<'_>, world: &FakeGroup, side: Side) {
    assert!(ring.claim(side, &world.peer(5), Effort::Quick).is_some());
}

#[test]
fn a_dead_writers_record_is_skipped() {
    let (memory, world) = (Memory::new(), FakeGroup::new());
    let ring = memory.ring();
    let (one, other) = (world.peer(0), world.peer(1));
    let mut buffer = [0; 24];
    vanish(&ring, &world, Side::Write);
    assert_eq!(ring.try_send(b"after", &one), Ok(true));
    assert_eq!(ring.recv(&mut buffer, &other, Some(1000)), Err(Error::TimedOut));
    world.set_dead(1 << 5);
    assert_eq!(ring.recv(&mut buffer, &other, None), Ok(5));
    assert_eq!(&buffer[..5], b"after");
    for _ in 0..SLOTS {
        assert_eq!(ring.try_send(b"again", &one), Ok(true));
    }
    assert_eq!(ring.try_send(b"again", &one), Ok(false));
}

#[test]
fn a_dead_readers_slot_becomes_free() {
    let (memory, world) = (Memory::new(), FakeGroup::new());
    let ring = memory.ring();
    let (one, other) = (world.peer(0), world.peer(1));
    for number in 0..SLOTS as u8 {
        assert_eq!(ring.try_send(&[number], &one), Ok(true));
    }
    vanish(&ring, &world, Side::Read);
    assert_eq!(ring.send(&[7], &one, Some(1000)), Err(Error::TimedOut));
    world.set_dead(1 << 5);
    assert_eq!(ring.send(&[4], &one, None), Ok(()));
    let mut buffer = [0; 24];
    for number in 1..=SLOTS as u8 {
        assert_eq!(ring.try_recv(&mut buffer, &other), Ok(Some(1)));
        assert_eq!(buffer[0], number);
    }
}

#[test]
fn a_peer_mistaken_for_dead_does_no_harm() {
    let (memory, world) = (Memory::new(), FakeGroup::new());
    let ring = memory.ring();
    let (one, ghost) = (world.peer(0), world.peer(5));
    let claim = ring.claim(Side::Write, &ghost, Effort::Quick).unwrap();
    world.set_dead(1 << 5);
    let mut buffer = [0; 24];
    assert_eq!(ring.try_recv(&mut buffer, &one), Ok(None));
    assert_eq!(ring.fill(claim, b"boo", &ghost), Err(Error::Corrupt));
    assert_eq!(ring.try_send(b"real", &one), Ok(true));
    assert_eq!(ring.try_recv(&mut buffer, &one), Ok(Some(4)));
}

#[test]
fn bad_shapes_are_refused() {
    let (memory, control) = (Memory::new(), Control::<AtomicU64>::default());
    let slots: [Slot<AtomicU64>; 4] = Default::default();
    for (count, words) in [(0, 4), (1, 4), (3, 12), (4, 3)] {
        let refused = Ring::new(&control, &slots[..count], &memory.0[..words]);
        assert!(refused.is_none(), "{count} slots over {words} words");
    }
    assert!(Ring::new(&control, &slots[..4], &memory.0[..12]).is_some());
}
