use super::*;
use crate::fake::wire::Wire;
use crate::fake::{Guest, FREE, SIZE};
use crate::net::deliver;
use crate::ring::Bad;
use vm_memory::GuestMemoryMmap;

struct Setting {
    guest: Guest,
    ring: Ring,
    wire: Wire,
    private: Vec<u8>,
}

fn setting(buffers: &[(u64, u32, bool)]) -> Setting {
    let (mut guest, mut ring, wire) = (Guest::default(), Ring::default(), Wire::new().unwrap());
    ring.start(&guest.memory, guest.place()).unwrap();
    for buffer in buffers {
        guest.ask(&[*buffer]);
    }
    wire.state().direct = true;
    Setting { guest, ring, wire, private: vec![0; MAX_PACKET] }
}

fn frame(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i % 251) as u8).collect()
}

impl Setting {
    fn parts(&mut self) -> (&mut Ring, &GuestMemoryMmap, &Wire, &mut [u8; HEADER], &mut [u8]) {
        let (header, rest) = self.private.split_first_chunk_mut().unwrap();
        (&mut self.ring, &self.guest.memory, &self.wire, header, rest)
    }

    fn receive(&mut self, frame: &[u8]) -> Option<Received> {
        self.wire.give(&[&[5; HEADER][..], frame].concat());
        let (ring, memory, wire, header, rest) = self.parts();
        receive(ring, memory, wire, header, rest).map(Result::unwrap)
    }

    fn give(&mut self, received: &Received) -> Delivered {
        let (ring, memory, _, header, rest) = self.parts();
        received.give(ring, memory, header, rest)
    }

    fn answers(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.guest.answer()).map(|(_, bytes)| bytes).collect()
    }
}

#[test]
fn a_frame_goes_to_the_guests_buffers_and_its_header_does_not() {
    let mut s = setting(&[(FREE, 40, true), (FREE + 100, 50, true), (FREE + 200, 50, true)]);
    let frame = frame(60);
    let received = s.receive(&frame).unwrap();
    assert_eq!((received.frame, s.private[..HEADER] == [5; HEADER]), (60, true));
    assert_eq!((s.answers(), s.guest.peek::<HEADER>(FREE)), (vec![], [0; HEADER]));
    assert_eq!(s.guest.peek::<28>(FREE + 12)[..], frame[..28]);
    assert_eq!(s.give(&received), Delivered::Taken);
    assert_eq!(s.answers(), [40, 32]);
    assert_eq!(s.guest.peek::<HEADER>(FREE), [5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 2, 0]);
    assert_eq!(s.guest.peek::<32>(FREE + 100)[..], frame[28..]);
    // The next frame gets the buffer that is left.
    let received = s.receive(&frame[..20]).unwrap();
    assert_eq!(s.give(&received), Delivered::Taken);
    assert_eq!((s.answers(), s.guest.peek::<20>(FREE + 212)[..] == frame[..20]), (vec![32], true));
    assert_eq!(s.wire.state().given_directly, 2);
}

#[test]
fn a_frame_without_room_is_made_private_and_given_later() {
    for more in [1, 2] {
        let mut s = setting(&[(FREE, 40, true), (FREE + 100, 50, true)]);
        let frame = frame(150);
        let received = s.receive(&frame).unwrap();
        for i in 0..more {
            s.guest.ask(&[(FREE + 200 + 100 * i, 50, true)]);
        }
        // 78 bytes lie in the guest's buffers; 72 more need two buffers.
        if more == 2 {
            assert_eq!(s.give(&received), Delivered::Taken);
            assert_eq!(s.answers(), [40, 50, 50, 22]);
            assert_eq!(s.guest.peek::<22>(FREE + 300)[..], frame[128..]);
            continue;
        }
        assert_eq!((s.give(&received), s.answers()), (Delivered::NoRoom, vec![]));
        let (ring, memory, _, header, rest) = s.parts();
        received.take_back(ring, memory, rest);
        assert_eq!(rest[..150], frame);
        assert_eq!(deliver(ring, memory, header, &rest[..150], true), Delivered::NoRoom);
        s.guest.ask(&[(FREE + 300, 50, true)]);
        let (ring, memory, _, header, rest) = s.parts();
        assert_eq!(deliver(ring, memory, header, &rest[..150], true), Delivered::Taken);
        assert_eq!(s.answers(), [40, 50, 50, 22]);
    }
}

#[test]
fn entries_of_a_stopped_queue_are_forgotten() {
    let mut s = setting(&[(FREE, 40, true), (FREE + 100, 500, true)]);
    let received = s.receive(&frame(60)).unwrap();
    s.ring.stop();
    assert_eq!(s.give(&received), Delivered::NoRoom);
    let guest = Guest::with_memory(s.guest.memory.clone());
    for at in [crate::fake::AVAILABLE, crate::fake::USED] {
        guest.poke(at, &[0; 0x100]);
    }
    s.guest = guest;
    s.ring.start(&s.guest.memory, s.guest.place()).unwrap();
    assert_eq!((s.give(&received), s.answers()), (Delivered::NoRoom, vec![]));
    assert!(s.receive(&frame(60)).is_none(), "the guest has no buffers");
}

#[test]
fn bad_buffers_are_left_to_the_usual_way() {
    for (first, second, bad) in [
        ((FREE, 40, false), (FREE, 40, true), Bad::Kind),
        ((FREE, 40, true), (FREE, 400, false), Bad::Kind),
        ((FREE, 11, true), (FREE, 400, true), Bad::Short),
    ] {
        let mut s = setting(&[first, second]);
        assert!(s.receive(&frame(60)).is_none());
        assert_eq!((s.ring.state(), s.wire.state().to_device.len()), (State::Running, 1));
        let (ring, memory, _, header, _) = s.parts();
        assert_eq!(deliver(ring, memory, header, &frame(60), true), Delivered::Ended);
        assert_eq!((s.ring.state(), s.answers()), (State::Ended(bad), vec![]));
    }
    let mut s = setting(&[(FREE, 40, true), (8, 400, true)]);
    assert!(s.receive(&frame(60)).is_none());
    assert_eq!(s.ring.state(), State::Ended(Bad::Address));
}

#[test]
fn a_queue_of_small_buffers_takes_frames_for_ever() {
    let mut s = setting(&[]);
    for round in 0..200 {
        for i in 0..u64::from(SIZE) {
            s.guest.ask(&[(FREE + 100 * i, 20, true)]);
        }
        let frame = frame(8 * 20 - HEADER - round % 3);
        let received = s.receive(&frame).unwrap();
        assert_eq!((s.give(&received), s.answers().len()), (Delivered::Taken, 8));
    }
}
