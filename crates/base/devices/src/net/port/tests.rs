use super::*;
use crate::fake::wire::Wire;
use crate::fake::{Guest, FREE, SIZE};
use crate::net::TRANSMIT;
use vm_memory::GuestMemoryMmap;

const ALL: u64 = u64::MAX;
const NO_OFFLOADS: u64 = !OFFLOADS;

struct Setting {
    wire: Wire,
    port: Port,
    link: Link<GuestMemoryMmap>,
    /// The guest's queues.
    receive: Guest,
    transmit: Guest,
}

fn setting(features: u64) -> Setting {
    let (guest, wire) = (Guest::default(), Wire::new().unwrap());
    let port = Port::new([2, 0, 0, 0, 0, 1], 1500, Box::new(wire.clone()));
    let link = Link::new(guest.memory.clone(), 2, Box::new(|| {}));
    let transmit = guest.queue(1);
    assert!(link.start_queue(RECEIVE, guest.place(), true));
    assert!(link.start_queue(TRANSMIT, transmit.place(), true));
    link.start();
    port.accept(features & port.features()).unwrap();
    Setting { wire, port, link, receive: guest, transmit }
}

impl Setting {
    /// The guest offers a packet with this header and a frame of `bytes` bytes.
    fn offer(&mut self, header: &[u8], bytes: u32) {
        self.transmit.poke(FREE, header);
        self.transmit.ask(&[(FREE, header.len() as u32, false), (FREE + 0x100, bytes, false)]);
    }

    fn send(&mut self, header: &[u8], bytes: u32) -> Counts {
        let before = self.port.counts();
        self.offer(header, bytes);
        self.port.transmit(&self.link, false);
        let now = self.port.counts();
        Counts {
            sent: now.sent - before.sent,
            refused: now.refused - before.refused,
            lost_out: now.lost_out - before.lost_out,
            ..Counts::default()
        }
    }

    fn buffer(&mut self) {
        self.receive.ask(&[(FREE + 0x4000, 2000, true)]);
    }
}

const SENT: Counts = Counts { sent: 1, received: 0, refused: 0, lost_out: 0, lost_in: 0 };
const REFUSED: Counts = Counts { sent: 0, refused: 1, ..SENT };
const LOST: Counts = Counts { sent: 0, lost_out: 1, ..SENT };

/// A header whose frame is divided into segments of TCP over IPv4.
const DIVIDED: [u8; 12] = [1, 1, 54, 0, 200, 5, 34, 0, 16, 0, 0, 0];

#[test]
fn packets_keep_their_headers() {
    let mut s = setting(ALL);
    s.transmit.poke(FREE + 0x100, &[5; 9000]);
    assert_eq!(s.send(&DIVIDED, 9000), SENT);
    let packet = s.wire.state().from_device.pop().unwrap();
    assert_eq!((&packet[..12], packet[12..] == [5; 9000]), (&DIVIDED[..], true));
    assert!(s.transmit.answer().is_some());
    s.buffer();
    s.wire.give(&[&DIVIDED[..], &[6; 100]].concat());
    assert_eq!(s.port.receive(&s.link), Wait::Backend);
    assert_eq!(s.receive.answer().unwrap().1, 112);
    // The number of buffers is the device's.
    assert_eq!(s.receive.peek::<12>(FREE + 0x4000), [1, 1, 54, 0, 200, 5, 34, 0, 16, 0, 1, 0]);
    assert_eq!(s.port.counts(), Counts { received: 1, ..SENT });
}

#[test]
fn large_frames_are_taken_from_the_guests_memory() {
    let mut s = setting(ALL);
    s.wire.state().direct = true;
    let frame: Vec<u8> = (0..9000).map(|i| (i % 251) as u8).collect();
    s.transmit.poke(FREE + 0x100, &frame);
    assert_eq!(s.send(&DIVIDED, 9000), SENT);
    assert_eq!(s.send(&[0; 12], 100), SENT);
    assert_eq!(s.wire.state().taken_directly, 1);
    // What does not fit now waits as a copy: the guest may use its memory again.
    s.wire.state().room = Some(0);
    assert_eq!(s.send(&DIVIDED, 9000), Counts { sent: 0, ..SENT });
    s.transmit.poke(FREE + 0x100, &[0; 9000]);
    s.wire.state().room = None;
    s.port.transmit(&s.link, false);
    let packet = [&DIVIDED[..], &frame].concat();
    let sent = std::mem::take(&mut s.wire.state().from_device);
    assert!(sent.len() == 3 && sent[0] == packet && sent[1].len() == 112 && sent[2] == packet);
    assert_eq!(s.wire.state().taken_directly, 1);
    // A header that breaks a rule, and a wire whose other end is gone.
    assert_eq!(s.send(&[0; 12], 9000), REFUSED);
    s.wire.state().closed = true;
    assert_eq!(s.send(&DIVIDED, 9000), LOST);
}

#[test]
fn packets_that_break_a_rule_are_refused() {
    for (header, bytes, features, want) in [
        ([0; 12], 1518, NO_OFFLOADS, SENT),
        ([0; 12], 1519, ALL, REFUSED),
        ([0; 12], 13, ALL, REFUSED),
        ([0; 12], 14, ALL, SENT),
        (DIVIDED, 9000, NO_OFFLOADS, REFUSED),
        (DIVIDED, 100, NO_OFFLOADS, REFUSED),
        ([1, 0, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0], 100, NO_OFFLOADS, REFUSED),
        ([1, 0, 0, 0, 0, 0, 200, 0, 16, 0, 0, 0], 100, ALL, REFUSED),
        ([0xff; 12], 100, ALL, REFUSED),
    ] {
        let mut s = setting(features);
        assert_eq!(s.send(&header, bytes), want, "{header:?} {bytes}");
        assert!(s.transmit.answer().is_some(), "the guest gets its memory back");
        // The queue runs.
        assert_eq!(s.send(&[0; 12], 100), SENT);
    }
    // More than any packet has: the whole memory of the guest three times.
    let mut s = setting(ALL);
    let all = (crate::fake::BASE, crate::fake::BYTES as u32, false);
    s.transmit.ask(&[all, all, all]);
    s.port.transmit(&s.link, false);
    assert_eq!(s.port.counts(), REFUSED);
}

#[test]
fn an_incomplete_packet_ends_the_queue() {
    for pieces in [&[(FREE, 11, false)][..], &[(FREE, 100, false), (FREE, 100, true)]] {
        let mut s = setting(ALL);
        s.transmit.ask(pieces);
        s.port.transmit(&s.link, false);
        assert!(s.link.serve(TRANSMIT, |_, _| ((), false)).is_none());
        assert!(s.link.serve(RECEIVE, |_, _| ((), false)).is_some());
    }
}

#[test]
fn a_backend_that_takes_nothing_holds_the_guests_packets() {
    let mut s = setting(ALL);
    s.wire.state().room = Some(0);
    for _ in 0..3 {
        s.offer(&[0; 12], 100);
        s.port.transmit(&s.link, false);
        assert!(s.port.is_blocked());
    }
    // One packet is held, and the others wait in the queue.
    assert!(s.transmit.answer().is_some() && s.transmit.answer().is_none());
    s.wire.state().room = None;
    s.port.transmit(&s.link, false);
    assert!(!s.port.is_blocked());
    assert_eq!((s.port.counts().sent, s.wire.state().from_device.len()), (3, 3));
    // Packets that wait for too long are lost.
    s.wire.state().room = Some(0);
    for _ in 0..3 {
        s.offer(&[0; 12], 100);
        s.port.transmit(&s.link, false);
    }
    s.port.transmit(&s.link, true);
    assert_eq!((s.port.is_blocked(), s.port.counts().lost_out), (false, 3));
    assert_eq!(s.send(&[0; 12], 100), Counts { sent: 0, ..SENT });
}

#[test]
fn a_packet_of_which_the_backend_has_a_part_is_completed() {
    let mut s = setting(ALL);
    s.wire.state().room = Some(50);
    s.offer(&[0; 12], 100);
    s.offer(&[0; 12], 60);
    s.port.transmit(&s.link, false);
    s.port.transmit(&s.link, true);
    // The other one is lost, but not this one, not even by a reset.
    s.port.reset();
    assert_eq!((s.port.counts().lost_out, s.port.is_blocked()), (1, true));
    s.wire.state().room = None;
    s.port.transmit(&s.link, false);
    assert_eq!(s.wire.state().from_device.iter().map(Vec::len).collect::<Vec<_>>(), [112]);
    assert!(!s.port.is_blocked());
}

#[test]
fn frames_wait_until_the_guest_has_buffers() {
    let mut s = setting(ALL);
    for byte in 0..3 {
        s.wire.give(&[&[0; 12][..], &[byte; 60]].concat());
    }
    for byte in 0..3 {
        assert_eq!(s.port.receive(&s.link), Wait::Guest);
        assert!(s.receive.is_asked_to_ring());
        s.buffer();
        assert_eq!(s.port.receive(&s.link), if byte < 2 { Wait::Guest } else { Wait::Backend });
        assert_eq!(s.receive.answer().unwrap().1, 72);
        assert_eq!(s.receive.peek(FREE + 0x4000 + 12), [byte; 60]);
    }
    assert_eq!(s.port.counts(), Counts { received: 3, sent: 0, ..SENT });
    // A reset forgets the frame that is held.
    s.wire.give(&[7; 72]);
    s.port.receive(&s.link);
    s.port.reset();
    s.buffer();
    assert_eq!((s.port.receive(&s.link), s.receive.answer()), (Wait::Backend, None));
}

#[test]
fn frames_that_the_guest_cannot_take_are_lost() {
    let mut s = setting(NO_OFFLOADS);
    for packet in [
        // Offloads that the guest did not accept, a frame that is too long or too short, no header.
        [&DIVIDED[..], &[0; 100]].concat(),
        [&[0; 12][..], &[0; 1519]].concat(),
        vec![0; 12 + 13],
        vec![0; 11],
    ] {
        s.buffer();
        s.wire.give(&packet);
        assert_eq!(s.port.receive(&s.link), Wait::Backend);
        assert_eq!(s.receive.answer(), None);
    }
    assert_eq!(s.port.counts().lost_in, 4);
    // Without merging a buffer is used for one frame.
    let mut s = setting(ALL & !(1 << VIRTIO_NET_F_MRG_RXBUF));
    s.receive.ask(&[(FREE, 50, true)]);
    s.wire.give(&[0; 72]);
    assert_eq!((s.port.receive(&s.link), s.receive.answer()), (Wait::Backend, Some((0, 0))));
    assert_eq!(s.port.counts().lost_in, 1);
}

#[test]
fn without_a_link_all_packets_are_lost() {
    let mut s = setting(ALL);
    assert!(s.port.set_up(false) && !s.port.set_up(false));
    assert_eq!((s.port.config()[6], s.send(&[0; 12], 100)), (0, LOST));
    s.buffer();
    s.wire.give(&[0; 72]);
    assert_eq!((s.port.receive(&s.link), s.receive.answer()), (Wait::Backend, None));
    assert!(s.port.set_up(true));
    assert_eq!((s.port.config()[6], s.send(&[0; 12], 100)), (1, SENT));
    // The other end is gone.
    s.wire.state().closed = true;
    assert_eq!((s.port.receive(&s.link), s.send(&[0; 12], 100)), (Wait::Closed, LOST));
}

#[test]
fn a_call_ends_although_there_is_always_more() {
    let mut s = setting(ALL);
    // Frames without end for a queue whose buffers are not used up.
    for _ in 0..SIZE {
        s.buffer();
    }
    s.port.set_up(false);
    for _ in 0..1000 {
        s.wire.give(&[0; 72]);
    }
    assert_eq!(s.port.receive(&s.link), Wait::Nothing);
    assert_eq!(s.port.counts().lost_in, BATCH as u64);
}

#[test]
fn a_device_that_does_not_run_takes_no_packets() {
    let mut s = setting(ALL);
    s.link.stop();
    s.wire.give(&[0; 72]);
    assert_eq!(s.port.receive(&s.link), Wait::Guest);
    assert_eq!(s.wire.state().asked, 0);
    assert_eq!(s.send(&[0; 12], 100), Counts { sent: 0, ..SENT });
}

#[test]
fn large_packets_are_received_without_a_copy_until_they_are_small() {
    let mut s = setting(ALL);
    s.wire.state().direct = true;
    let mut give = |bytes: usize| {
        let buffers = 1 + bytes / 1989;
        for i in 0..buffers as u64 {
            s.receive.ask(&[(FREE + 0x4000 + 0x800 * i, 2000, true)]);
        }
        let before = s.wire.state().given_directly;
        let frame: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
        s.wire.give(&[&DIVIDED[..], &frame].concat());
        assert_eq!(s.port.receive(&s.link), Wait::Backend);
        let answers: Vec<_> = std::iter::from_fn(|| s.receive.answer()).collect();
        let written: u32 = answers.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!((written as usize, answers.len()), (HEADER + bytes, buffers));
        s.wire.state().given_directly - before
    };
    // The first one says that others will be large.
    assert_eq!([3000, 3000, 100, 3000].map(&mut give), [0, 1, 1, 1]);
    for _ in 0..SMALL {
        assert_eq!(give(100), 1);
    }
    assert_eq!([100, 3000, 3000].map(&mut give), [0, 0, 1]);
}

#[test]
fn headers_that_ask_for_too_much_use_no_buffers() {
    let mut s = setting(ALL);
    s.wire.state().direct = true;
    s.receive.ask(&[(FREE + 0x4000, 4000, true)]);
    s.wire.give(&[&DIVIDED[..], &[1; 3000]].concat());
    assert_eq!(s.port.receive(&s.link), Wait::Backend);
    assert!(s.receive.answer().is_some());
    s.receive.ask(&[(FREE + 0x4000, 4000, true)]);
    // An unknown kind, a checksum outside the frame, a frame that is too long to be undivided, one that is too short.
    let refused: [(&[u8], usize); 4] =
        [(&[0, 2], 3000), (&[1, 1, 54, 0, 200, 5, 255, 255], 3000), (&[], 3000), (&[], 13)];
    for (header, bytes) in refused {
        let mut packet = vec![0; HEADER + bytes];
        packet[..header.len()].copy_from_slice(header);
        let before = s.port.counts().lost_in;
        s.wire.give(&packet);
        assert_eq!(s.port.receive(&s.link), Wait::Backend);
        assert_eq!((s.receive.answer(), s.port.counts().lost_in), (None, before + 1));
    }
    assert_eq!(s.wire.state().given_directly, 4);
    s.wire.give(&[&[0; HEADER][..], &[9; 100]].concat());
    assert_eq!(s.port.receive(&s.link), Wait::Backend);
    assert_eq!(s.receive.answer().unwrap().1, 112);
    assert_eq!(s.receive.peek::<12>(FREE + 0x4000), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
}

#[test]
fn packets_that_come_one_by_one_need_one_call_each() {
    let mut s = setting(ALL);
    let packet = [&[0; HEADER][..], &[9; 100]].concat();
    for _ in 0..32 {
        s.buffer();
        s.wire.give(&packet);
        assert!(matches!(s.port.receive_soon(&s.link), Wait::Nothing | Wait::Backend));
        assert_eq!(s.receive.answer().unwrap().1, 112);
    }
    let asked = s.wire.state().asked;
    assert!((32..=32 + 32 / LOOK + 2).contains(&asked), "{asked} calls");
    // Packets that do not: all of them, after some calls.
    (0..SIZE).for_each(|_| s.buffer());
    (0..SIZE).for_each(|_| s.wire.give(&packet));
    for _ in 0..LOOK {
        s.port.receive_soon(&s.link);
    }
    assert_eq!(std::iter::from_fn(|| s.receive.answer()).count(), usize::from(SIZE));
}

/// A packet of TCP over IPv4 with its header, whose data begin at `place`.
fn segment(place: u32, data: &[u8]) -> Vec<u8> {
    let mut packet = vec![1, 0, 0, 0, 0, 0, 34, 0, 16, 0, 0, 0];
    packet.extend([7; 12]);
    packet.extend([8, 0, 0x45, 0, 0, (40 + data.len()) as u8, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2, 1, 1, 2, 2]);
    packet.extend(place.to_be_bytes());
    packet.extend([0, 0, 0, 0, 0x50, 0x10, 1, 1, 0, 0, 0, 0]);
    [&packet[..], data].concat()
}

impl Setting {
    /// The guest offers these packets, at most three.
    fn offer_segments(&mut self, packets: &[Vec<u8>]) {
        for (at, packet) in (FREE..).step_by(0x1000).zip(packets) {
            self.transmit.poke(at, packet);
            self.transmit.ask(&[(at, packet.len() as u32, false)]);
        }
    }
}

#[test]
fn packets_that_wait_are_passed_on_as_one() {
    let mut s = setting(ALL);
    let two = [segment(0, &[1; 100]), segment(100, &[2; 100])];
    // One by one, while the guest makes pauses.
    s.offer_segments(&two);
    assert!(!s.port.transmit(&s.link, false));
    assert_eq!(std::mem::take(&mut s.wire.state().from_device), two);
    // Many without a pause.
    let began = (0..16).filter(|_| {
        s.offer_segments(&two);
        s.port.transmit(&s.link, false)
    });
    assert_eq!((began.count(), s.port.is_holding()), (1, true));
    s.wire.state().from_device.clear();
    for direct in [false, true] {
        s.wire.state().direct = direct;
        s.offer_segments(&two);
        let before = s.port.counts();
        assert!(!s.port.pause(&s.link));
        assert_eq!(s.port.counts().sent, before.sent + 2);
        let packets = std::mem::take(&mut s.wire.state().from_device);
        let (header, data) = packets[0].split_at(12 + 54);
        assert_eq!((packets.len(), &header[..6]), (1, &[1, 1, 54, 0, 100, 0][..]));
        assert_eq!(data, [[1; 100], [2; 100]].concat());
    }
    // Others keep their order, and a backend that is full gets the packet later.
    let last = [segment(300, &[3; 100]), segment(500, &[4; 100])];
    s.offer_segments(&last);
    s.wire.state().room = Some(0);
    s.port.transmit(&s.link, false);
    assert!(s.port.is_blocked() && s.wire.state().from_device.is_empty());
    s.wire.state().room = None;
    s.port.transmit(&s.link, false);
    assert_eq!(std::mem::take(&mut s.wire.state().from_device), last);
    assert_eq!((s.port.counts().lost_out, s.port.counts().refused), (0, 0));
}

#[test]
fn what_waits_for_no_ring_is_passed_on_by_a_tick() {
    let mut s = setting(ALL);
    for _ in 0..32 {
        s.offer_segments(&[segment(0, &[1; 100])]);
        s.port.transmit(&s.link, false);
    }
    assert!(s.port.is_holding() && !s.port.tick(&s.link), "the guest was not quiet");
    s.wire.state().from_device.clear();
    s.offer_segments(&[segment(0, &[1; 100])]);
    assert!(s.port.tick(&s.link));
    assert_eq!(s.wire.state().from_device.len(), 1);
    while s.port.is_holding() {
        s.port.tick(&s.link);
    }
    assert!(s.transmit.is_asked_to_ring());
}

/// A fragment of a datagram of 216 bytes, with its header. Each but the last has 96 bytes.
fn fragment(at: usize) -> Vec<u8> {
    let (more, data) = if at < 2 { (0x20, 96) } else { (0, 24) };
    let mut packet = vec![0; 12];
    packet.extend([7; 12]);
    packet.extend([8, 0, 0x45, 0, 0, 20 + data, 5, 5, more, at as u8 * 12, 64, 17, 0, 0]);
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(vec![at as u8; data as usize]);
    if at == 0 {
        packet[12 + 34..][..8].copy_from_slice(&[1, 1, 2, 2, 0, 216, 9, 9]);
    }
    packet
}

/// A guest that makes no pauses, so that packets wait.
fn busy(datagrams: bool) -> Setting {
    let mut s = setting(ALL);
    s.wire.state().datagrams = datagrams;
    for _ in 0..32 {
        s.offer_segments(&[segment(0, &[1; 100])]);
        s.port.transmit(&s.link, false);
    }
    assert!(s.port.is_holding());
    s.wire.state().from_device.clear();
    s
}

#[test]
fn a_datagram_in_fragments_is_passed_on_as_one() {
    for direct in [false, true] {
        let mut s = busy(true);
        s.wire.state().direct = direct;
        let before = s.port.counts();
        s.offer_segments(&[fragment(0), fragment(1), fragment(2)]);
        s.port.pause(&s.link);
        assert_eq!(s.port.counts().sent, before.sent + 3);
        let packets = std::mem::take(&mut s.wire.state().from_device);
        let (header, data) = packets[0].split_at(12 + 34);
        assert_eq!((packets.len(), &header[..6]), (1, &[0, 3, 42, 0, 96, 0][..]));
        assert_eq!(&header[12 + 16..12 + 22], [0, 236, 5, 5, 0, 0]);
        assert_eq!(data, [&fragment(0)[46..], &fragment(1)[46..], &fragment(2)[46..]].concat());
    }
    // The rest comes after a ring.
    let mut s = busy(true);
    s.offer_segments(&[fragment(0), fragment(1)]);
    s.port.transmit(&s.link, false);
    assert!(s.wire.state().from_device.is_empty());
    for (at, packet) in [(FREE + 0x2000, fragment(2)), (FREE + 0x3000, fragment(0))] {
        s.transmit.poke(at, &packet);
        s.transmit.ask(&[(at, packet.len() as u32, false)]);
    }
    s.port.transmit(&s.link, false);
    assert_eq!(s.wire.state().from_device.len(), 1);
    // It never comes.
    while s.port.is_holding() {
        s.port.tick(&s.link);
    }
    assert_eq!(s.wire.state().from_device[1..], [fragment(0)]);
    // For a backend that cannot divide it.
    let mut s = busy(false);
    let all = [fragment(0), fragment(1), fragment(2)];
    s.offer_segments(&all);
    s.port.pause(&s.link);
    assert_eq!(s.wire.state().from_device, all);
}

#[test]
fn packets_after_a_group_count_as_one() {
    let mut s = busy(false);
    s.offer_segments(&[segment(0, &[1; 100]), segment(100, &[2; 100])]);
    let before = s.port.counts().sent;
    s.port.pause(&s.link);
    assert_eq!(s.port.counts().sent, before + 2);
    while s.port.is_holding() {
        s.port.tick(&s.link);
    }
    for count in 3..6 {
        s.offer_segments(&[segment(0, &[1; 100])]);
        s.port.transmit(&s.link, false);
        assert_eq!(s.port.counts().sent, before + count);
    }
}

#[test]
fn fragments_that_are_not_all_there_keep_their_order() {
    let (f, tcp) = (fragment, segment(0, &[9; 20]));
    let orders =
        [vec![f(0), f(1)], vec![f(1), f(2)], vec![f(0), f(1), tcp.clone()], vec![f(0), f(2), f(1)]];
    for order in orders {
        let mut s = busy(true);
        s.offer_segments(&order);
        s.port.pause(&s.link);
        assert_eq!(s.wire.state().from_device, order);
        assert_eq!(s.port.counts().lost_out, 0);
        assert_eq!(std::iter::from_fn(|| s.transmit.answer()).count(), 32 + order.len());
        // Also if the backend is full between them.
        let mut s = busy(true);
        s.offer_segments(&order);
        s.wire.state().room = Some(order[0].len());
        s.port.pause(&s.link);
        assert!(s.port.is_blocked());
        s.wire.state().room = None;
        s.port.pause(&s.link);
        assert_eq!(s.wire.state().from_device, order);
    }
}

#[test]
fn a_part_of_a_datagram_waits_only_while_packets_may() {
    let mut s = busy(true);
    // As large as packets for which the guest rings one by one.
    assert!(!s.port.pace.passed_on(31, 64 << 20, 0));
    s.offer_segments(&[fragment(0), fragment(1)]);
    s.port.transmit(&s.link, false);
    assert!(!s.port.is_holding());
    assert_eq!(s.wire.state().from_device, [fragment(0), fragment(1)]);
}
