use super::*;
use crate::fake::{Guest, FREE, SIZE};

fn setting() -> (Guest, Ring) {
    let (guest, mut ring) = (Guest::default(), Ring::default());
    ring.start(&guest.memory, guest.place()).unwrap();
    (guest, ring)
}

fn give(guest: &Guest, ring: &mut Ring, frame: &[u8], mergeable: bool) -> Delivered {
    deliver(ring, &guest.memory, &mut [0; HEADER], frame, mergeable)
}

#[test]
fn a_frame_fills_several_buffers_in_order() {
    let (mut guest, mut ring) = setting();
    let frame: Vec<u8> = (0..100).collect();
    for _ in 0..50 {
        for (at, bytes) in [(0, 20), (100, 50), (200, 50), (300, 50)] {
            guest.ask(&[(FREE + at, bytes, true)]);
        }
        assert_eq!(give(&guest, &mut ring, &frame, true), Delivered::Taken);
        let lengths: Vec<u32> =
            std::iter::from_fn(|| guest.answer()).map(|(_, bytes)| bytes).collect();
        assert_eq!(lengths, [20, 50, 42]);
        assert_eq!(guest.peek::<12>(FREE), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0]);
        assert_eq!(guest.peek::<8>(FREE + 12)[..], frame[..8]);
        assert_eq!(guest.peek::<50>(FREE + 100)[..], frame[8..58]);
        assert_eq!(guest.peek::<42>(FREE + 200)[..], frame[58..]);
        // The buffer that is left is the next frame's.
        assert_eq!(give(&guest, &mut ring, &frame[..38], true), Delivered::Taken);
        assert_eq!(guest.answer().unwrap().1, 50);
    }
}

#[test]
fn a_frame_waits_until_all_its_buffers_are_there() {
    let (mut guest, mut ring) = setting();
    for _ in 0..3 {
        guest.ask(&[(FREE, 40, true)]);
        assert_eq!(give(&guest, &mut ring, &[7; 120], true), Delivered::NoRoom);
        assert_eq!(guest.answer(), None);
    }
    guest.ask(&[(FREE, 40, true)]);
    assert_eq!(give(&guest, &mut ring, &[7; 120], true), Delivered::Taken);
    assert_eq!(std::iter::from_fn(|| guest.answer()).count(), 4);
}

#[test]
fn a_frame_that_never_fits_is_lost() {
    let (mut guest, mut ring) = setting();
    for _ in 0..SIZE {
        guest.ask(&[(FREE, 13, true)]);
    }
    assert_eq!(give(&guest, &mut ring, &[7; 13 * 8 - 11], true), Delivered::Short);
    assert_eq!((guest.answer(), ring.state()), (None, State::Running));
    assert_eq!(give(&guest, &mut ring, &[7; 13 * 8 - 12], true), Delivered::Taken);
    // Without merging, the buffer is returned.
    let (mut guest, mut ring) = setting();
    guest.ask(&[(FREE, 50, true)]);
    assert_eq!(give(&guest, &mut ring, &[7; 39], false), Delivered::Short);
    assert_eq!(guest.answer(), Some((0, 0)));
    assert_eq!(give(&guest, &mut ring, &[7; 39], false), Delivered::NoRoom);
}

#[test]
fn a_bad_buffer_ends_the_queue() {
    for (pieces, bad) in [
        (&[(FREE, 100, false)][..], Bad::Kind),
        (&[(FREE, 100, false), (FREE, 2000, true)][..], Bad::Kind),
        (&[(0, 2000, true)][..], Bad::Address),
    ] {
        let (mut guest, mut ring) = setting();
        guest.ask(pieces);
        assert_eq!(give(&guest, &mut ring, &[7; 60], true), Delivered::Ended);
        assert_eq!((ring.state(), guest.answer()), (State::Ended(bad), None));
        assert_eq!(give(&guest, &mut ring, &[7; 60], true), Delivered::Ended);
    }
    // The second of a frame's buffers is bad: the first one is not used. So is a first one without room for a header.
    for (first, second, bad) in
        [(40, (FREE, 100, false), Bad::Kind), (11, (FREE, 100, true), Bad::Short)]
    {
        let (mut guest, mut ring) = setting();
        guest.ask(&[(FREE + 200, first, true)]);
        guest.ask(&[second]);
        assert_eq!(give(&guest, &mut ring, &[7; 60], true), Delivered::Ended);
        assert_eq!((ring.state(), guest.answer()), (State::Ended(bad), None));
    }
}
