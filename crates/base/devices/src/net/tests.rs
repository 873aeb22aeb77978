use super::*;
use crate::fake::{Guest, FREE, SIZE};
use crate::ring::State;

fn setting() -> (Guest, Ring, Net) {
    let (guest, mut ring) = (Guest::default(), Ring::default());
    ring.start(&guest.memory, guest.place()).unwrap();
    (guest, ring, Net::new([2, 0, 0, 0, 0, 1], 1500))
}

fn taken(pieces: &[(u64, u32, bool)]) -> (Vec<Vec<u8>>, State) {
    let (mut guest, mut ring, net) = setting();
    let numbers: Vec<u8> = (0..=255).cycle().take(4000).collect();
    guest.poke(FREE, &numbers);
    guest.ask(pieces);
    let mut frames = Vec::new();
    net.take(&mut ring, &guest.memory, |frame| frames.push(frame.to_vec()));
    (frames, ring.state())
}

#[test]
fn frames_arrive_without_their_header() {
    let (frames, state) = taken(&[(FREE, 12, false), (FREE + 12, 60, false)]);
    assert_eq!((frames, state), (vec![(12..72).collect::<Vec<u8>>()], State::Running));
    let (frames, _) = taken(&[(FREE, 12 + 1514, false)]);
    assert_eq!(frames[0].len(), 1514);
    // Frames that are too long or too short are dropped.
    for bytes in [12 + 1515, 12 + 13, 12] {
        assert_eq!(taken(&[(FREE, bytes, false)]), (vec![], State::Running), "{bytes}");
    }
    assert_eq!(taken(&[(FREE, 11, false)]).1, State::Ended(Bad::Short));
    assert_eq!(taken(&[(FREE, 80, false), (FREE, 1, true)]).1, State::Ended(Bad::Kind));
}

#[test]
fn frames_need_room_in_the_guest() {
    let (mut guest, mut ring, net) = setting();
    let frame: Vec<u8> = (1..=100).collect();
    assert_eq!(net.give(&mut ring, &guest.memory, &frame), Given::NoRoom);
    guest.ask(&[(FREE, 12, true), (FREE + 12, 2000, true)]);
    assert_eq!(net.give(&mut ring, &guest.memory, &frame), Given::Taken { wake: true });
    assert_eq!(guest.answer(), Some((0, 112)));
    assert_eq!(guest.peek(FREE), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    assert_eq!(guest.peek::<100>(FREE + 12), *frame);
    // Too little room: the memory returns with 0 bytes written.
    guest.ask(&[(FREE, 111, true)]);
    assert_eq!(net.give(&mut ring, &guest.memory, &frame), Given::Lost { wake: true });
    assert_eq!(guest.answer(), Some((2, 0)));
    assert_eq!(net.give(&mut ring, &guest.memory, &[0; 1515]), Given::Lost { wake: false });
    // Memory that the device may not write.
    guest.ask(&[(FREE, 2000, false)]);
    assert_eq!(net.give(&mut ring, &guest.memory, &frame), Given::Lost { wake: true });
    assert_eq!(ring.state(), State::Ended(Bad::Kind));
    assert_eq!(net.give(&mut ring, &guest.memory, &frame), Given::Lost { wake: false });
}

#[test]
fn a_queue_holds_one_frame_per_entry() {
    let (mut guest, mut ring, net) = setting();
    for round in 0..100 {
        for _ in 0..SIZE {
            guest.ask(&[(FREE, 1600, true)]);
        }
        for _ in 0..SIZE {
            // In every third round the guest does not wait for frames.
            let waits = round % 3 != 0;
            if !waits {
                guest.wake_at(u16::MAX);
            }
            let given = net.give(&mut ring, &guest.memory, &[round; 64]);
            assert_eq!(given, Given::Taken { wake: waits });
            assert_eq!(guest.answer().unwrap().1, 76);
        }
        assert_eq!(net.give(&mut ring, &guest.memory, &[0; 64]), Given::NoRoom);
    }
}

#[test]
fn the_configuration_states_address_and_mtu() {
    let net = Net::new([2, 0, 0, 0, 0, 1], 9000);
    assert_eq!(net.config(), [2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 40, 35]);
    assert_eq!((net.max_frame(), Net::new([0; 6], 1).max_frame()), (9014, 82));
}
