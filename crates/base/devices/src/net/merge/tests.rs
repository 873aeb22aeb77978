use super::*;

const ALL: Offloads = Offloads { checksum: true, tcp4: true, tcp6: true, ecn: true, udp: true };

/// A frame and the header before it, with a partial checksum as Linux makes it.
struct Packet {
    header: [u8; HEADER],
    frame: Vec<u8>,
}

impl Packet {
    fn tcp(v6: bool, place: u32, data: &[u8]) -> Self {
        let mut inner = [0; 32];
        inner[..4].copy_from_slice(&[0x30, 0x39, 0, 80]);
        inner[4..8].copy_from_slice(&place.to_be_bytes());
        (inner[12], inner[13]) = (0x80, ACK);
        Self::new(v6, libc::IPPROTO_TCP as u8, &inner, 16, data)
    }

    fn udp(v6: bool, data: &[u8]) -> Self {
        let mut inner = [0x30, 0x39, 0, 53, 0, 0, 0, 0];
        set_half(&mut inner, 4, 8 + data.len() as u16);
        Self::new(v6, libc::IPPROTO_UDP as u8, &inner, 6, data)
    }

    fn new(v6: bool, protocol: u8, inner: &[u8], field: usize, data: &[u8]) -> Self {
        let mut frame = vec![7; ETHERNET];
        let length = (inner.len() + data.len()) as u16;
        if v6 {
            frame[12..].copy_from_slice(&[0x86, 0xdd]);
            frame.extend([0x60, 0, 0, 0, 0, 0, protocol, 64]);
            frame.extend([1; 32]);
            set_half(&mut frame, IPV6_LENGTH, length);
        } else {
            frame[12..].copy_from_slice(&[8, 0]);
            frame.extend([0x45, 0, 0, 0, 5, 6, 0x40, 0, 64, protocol, 0, 0]);
            frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
            set_half(&mut frame, IPV4_LENGTH, 20 + length);
        }
        let outer = frame.len();
        frame.extend(inner);
        frame.extend(data);
        let mut header = [0; HEADER];
        (header[0], header[6], header[8]) = (1, outer as u8, field as u8);
        Self { header, frame }
    }

    fn headers(&self) -> Option<Headers> {
        self.headers_with(ALL)
    }

    fn headers_with(&self, offloads: Offloads) -> Option<Headers> {
        let start = &self.frame[..self.frame.len().min(MAX_HEADERS)];
        Headers::new(&self.header, start, self.frame.len(), offloads)
    }

    fn with(mut self, at: usize, value: u8) -> Self {
        self.frame[at] = value;
        self
    }
}

#[test]
fn data_that_follow_each_other_are_one_packet() {
    for (v6, outer) in [(false, 34), (true, 54)] {
        // The end of the numbers of a stream is in the second packet.
        let place = u32::MAX - 1500;
        let mut all = Packet::tcp(v6, place, &[1; 1000]).headers().unwrap();
        assert!(
            all.append(&Packet::tcp(v6, place.wrapping_add(1000), &[2; 1000]).headers().unwrap())
        );
        let last = Packet::tcp(v6, place.wrapping_add(2000), &[3; 10]);
        assert!(all.append(&last.with(outer + 13, ACK | PUSH).headers().unwrap()));
        // Nothing can follow a short segment.
        assert!(
            !all.append(&Packet::tcp(v6, place.wrapping_add(2010), &[4; 10]).headers().unwrap())
        );
        let (header, frame) = all.finish();
        let kind = if v6 { VIRTIO_NET_HDR_GSO_TCPV6 } else { VIRTIO_NET_HDR_GSO_TCPV4 };
        let length = outer as u8 + 32;
        let size = 1000_u16.to_le_bytes();
        assert_eq!(
            header,
            [1, kind as u8, length, 0, size[0], size[1], outer as u8, 0, 16, 0, 0, 0]
        );
        // A stack that makes one packet of these data has the same headers.
        let data = [&[1; 1000][..], &[2; 1000], &[3; 10]].concat();
        let whole = Packet::tcp(v6, place, &data).with(outer + 13, ACK | PUSH);
        let mut whole = whole.headers().unwrap();
        assert_eq!(frame, whole.finish().1);
        assert_eq!(&frame[outer + 4..outer + 8], &place.to_be_bytes());
        if !v6 {
            assert_eq!(sum(0, &frame[ETHERNET..outer]), 0xffff, "the sum of IP's header");
        }
        // The pseudo-header: addresses, protocol, length.
        let addresses = if v6 { ETHERNET + 8..outer } else { ETHERNET + 12..outer };
        assert_eq!(half(frame, outer + 16), sum(6 + 32 + 2010, &frame[addresses]));
    }
}

#[test]
fn datagrams_of_equal_size_are_one_packet() {
    for (v6, outer) in [(false, 34), (true, 54)] {
        let mut all = Packet::udp(v6, &[1; 100]).headers().unwrap();
        for _ in 1..MAX_DATAGRAMS {
            assert!(all.append(&Packet::udp(v6, &[2; 100]).headers().unwrap()));
        }
        assert!(!all.append(&Packet::udp(v6, &[2; 100]).headers().unwrap()), "too many");
        let (header, frame) = all.finish();
        assert_eq!(u32::from(header[1]), VIRTIO_NET_HDR_GSO_UDP_L4);
        assert_eq!((header[4], header[6], header[8]), (100, outer as u8, 6));
        assert_eq!(usize::from(half(frame, outer + 4)), 8 + 100 * MAX_DATAGRAMS);
    }
}

#[test]
fn a_packet_has_at_most_64_kib() {
    let mut all = Packet::tcp(false, 0, &[0; 1400]).headers().unwrap();
    let mut at = 1400;
    while all.append(&Packet::tcp(false, at, &[0; 1400]).headers().unwrap()) {
        at += 1400;
    }
    assert_eq!(all.data, (65535 - 52) / 1400 * 1400);
}

#[test]
fn packets_that_differ_stay_apart() {
    let first = || Packet::tcp(false, 0, &[1; 100]).headers().unwrap();
    let next = || Packet::tcp(false, 100, &[1; 100]);
    assert!(first().append(&next().headers().unwrap()));
    // Addresses, type of service, ports, acknowledged place, window, options.
    for at in [0, 6, 15, 26, 30, 34, 36, 42, 48, 55, 65] {
        assert!(!first().append(&next().with(at, 99).headers().unwrap()), "{at}");
    }
    for place in [0, 99, 101, 200] {
        assert!(!first().append(&Packet::tcp(false, place, &[1; 100]).headers().unwrap()));
    }
    assert!(
        !first().append(&Packet::tcp(false, 100, &[1; 101]).headers().unwrap()),
        "a longer segment"
    );
    assert!(!first().append(&Packet::udp(false, &[1; 100]).headers().unwrap()));
    assert!(!first().append(&Packet::tcp(true, 100, &[1; 100]).headers().unwrap()));
}

#[test]
fn packets_that_mean_more_than_data_stay_as_they_are() {
    let tcp = || Packet::tcp(false, 0, &[1; 100]);
    assert!(tcp().headers().is_some());
    for flags in [0, ACK | 1, ACK | 2, ACK | 4, ACK | 0x20, ACK | 0x40, ACK | 0x80] {
        assert!(tcp().with(47, flags).headers().is_none(), "{flags:#x}");
    }
    // A fragment, one that may be divided into fragments, options of IP, another protocol, a wrong length.
    for (at, value) in [(20, 0x60), (20, 0), (21, 1), (14, 0x46), (23, 1), (17, 0), (46, 0x40)] {
        assert!(tcp().with(at, value).headers().is_none(), "{at} {value:#x}");
    }
    assert!(Packet::udp(false, &[1; 100]).with(39, 7).headers().is_none(), "UDP's length");
    assert!(Packet::tcp(false, 0, &[]).headers().is_none(), "no data");
    let off = Offloads { tcp4: false, udp: false, ..ALL };
    assert!(
        tcp().headers_with(off).is_none() && Packet::udp(false, &[1]).headers_with(off).is_none()
    );
    for (at, value) in [(0, 0), (1, 4), (1, 5), (6, 33), (8, 6)] {
        let mut packet = tcp();
        packet.header[at] = value;
        assert!(packet.headers().is_none(), "{at} {value}");
    }
    // Whatever the bytes are, and wherever they end.
    for end in 0..tcp().frame.len() {
        let frame = &tcp().frame[..end];
        assert!(Headers::new(&tcp().header, &frame[..end.min(MAX_HEADERS)], end, ALL).is_none());
    }
}

#[test]
fn divided_packets_are_joined() {
    let divided = |place, data: usize| {
        let mut packet = Packet::tcp(false, place, &vec![1; data]);
        (packet.header[1], packet.header[4]) = (1, 200);
        packet.headers().unwrap()
    };
    let mut all = divided(0, 2000);
    assert!(all.append(&divided(2000, 500)) && !all.append(&divided(2500, 200)));
    assert_eq!((all.data, all.finish().0[4]), (2500, 200));
}

/// The fragments of a datagram with these data, each with at most `most` bytes.
fn fragments(data: &[u8], most: usize) -> Vec<Vec<u8>> {
    let mut whole = vec![0x30, 0x39, 0, 53, 0, 0, 1, 2];
    set_half(&mut whole, 4, 8 + data.len() as u16);
    whole.extend(data);
    let pieces = whole.chunks(most).enumerate();
    let fragment = |(at, piece): (usize, &[u8])| {
        let mut frame = Packet::new(false, libc::IPPROTO_UDP as u8, &[], 0, piece).frame;
        let more = usize::from((at + 1) * most < whole.len()) << 13;
        set_half(&mut frame, IPV4_FRAGMENT, (more | (at * most / 8)) as u16);
        set_half(&mut frame, IPV4_SUM, 0);
        let complete = !sum(0, &frame[ETHERNET..ETHERNET + 20]);
        set_half(&mut frame, IPV4_SUM, complete);
        frame
    };
    pieces.map(fragment).collect()
}

fn fragment(frame: &[u8]) -> Option<Headers> {
    Headers::of_fragment(&[0; HEADER], &frame[..frame.len().min(MAX_HEADERS)], frame.len())
}

/// Joins fragments as far as that goes. Returns how many were joined.
fn joined(frames: &[Vec<u8>]) -> (Headers, usize) {
    let mut all = fragment(&frames[0]).unwrap();
    let rest = frames[1..].iter();
    let count = rest.take_while(|frame| fragment(frame).is_some_and(|next| all.append(&next)));
    let count = 1 + count.count();
    (all, count)
}

#[test]
fn all_fragments_of_a_datagram_are_one_packet() {
    for (bytes, most) in [(65507, 1480), (1473, 1480), (2953, 1480), (2952, 1480), (100, 8)] {
        let data: Vec<u8> = (0..=250).cycle().take(bytes).collect();
        let frames = fragments(&data, most);
        let (mut all, count) = joined(&frames);
        assert_eq!((count, all.is_whole()), (frames.len(), true), "{bytes}");
        let (header, frame) = all.finish();
        let size = (most as u16).to_le_bytes();
        assert_eq!(header, [0, 3, 42, 0, size[0], size[1], 0, 0, 0, 0, 0, 0]);
        // As a datagram that was never divided.
        let whole = fragments(&data, 1 << 16);
        assert_eq!(frame, &whole[0][..34], "{bytes}");
    }
}

#[test]
fn fragments_of_which_one_is_missing_are_no_packet() {
    let frames = fragments(&[5; 5000], 1480);
    for missing in 0..frames.len() {
        let mut some = frames.clone();
        some.remove(missing);
        let (all, count) = joined(&some);
        let before = if missing == 0 { 1 } else { missing };
        assert_eq!((count, all.is_whole()), (before, false), "{missing}");
    }
    let twice = [&frames[..2], &frames[1..]].concat();
    assert!(joined(&twice).1 == 2 && !joined(&twice).0.is_whole());
    // Nothing follows the last.
    let two = [frames.clone(), frames.clone()].concat();
    assert!(joined(&two).1 == frames.len() && joined(&two).0.is_whole());
    // UDP's header states another length.
    let mut long = frames.clone();
    set_half(&mut long[0], 38, 5009);
    assert!(!joined(&long).0.is_whole());
    // Fragments of several sizes.
    let mixed = [&frames[..1], &fragments(&[5; 5000], 1472)[1..]].concat();
    assert_eq!(joined(&mixed).1, 1);
}

#[test]
fn fragments_that_differ_stay_apart() {
    let frames = fragments(&[5; 5000], 1480);
    // Addresses, type of service, number, time to live.
    for at in [0, 6, 15, 18, 19, 22, 26, 30] {
        let mut other = frames.clone();
        other[1][at] ^= 0x11;
        assert_eq!(joined(&other).1, 1, "{at}");
    }
}

#[test]
fn what_is_no_fragment_of_a_datagram_stays_as_it_is() {
    let frames = fragments(&[5; 5000], 1480);
    let changed = |which: usize, at: usize, value: u8| {
        let mut frame = frames[which].clone();
        frame[at] = value;
        fragment(&frame)
    };
    assert!(changed(0, 22, 9).is_some());
    // No fragment, one that may not be divided, a reserved bit, options, another protocol, a wrong length, IPv6.
    for (at, value) in [(20, 0), (20, 0x60), (20, 0xa0), (14, 0x46), (23, 6), (17, 0), (12, 0x86)] {
        assert!(changed(0, at, value).is_none(), "{at} {value:#x}");
    }
    let mut free = frames[0].clone();
    set_half(&mut free, 40, 0);
    assert!(fragment(&free).is_none(), "no checksum");
    // One that is not the last and whose bytes are no multiple of 8.
    let mut odd = frames[1].clone();
    odd.pop();
    set_half(&mut odd, IPV4_LENGTH, 20 + 1479);
    assert!(fragment(&odd).is_none());
    let mut header = [0; HEADER];
    header[0] = 1;
    assert!(Headers::of_fragment(&header, &frames[0][..MAX_HEADERS], frames[0].len()).is_none());
    // Whatever the bytes are, and wherever they end.
    for end in 0..frames[0].len() {
        assert!(fragment(&frames[0][..end]).is_none());
    }
    // More than a datagram can have.
    let mut all = fragment(&frames[0]).unwrap();
    for at in 1..46 {
        let mut next = frames[1].clone();
        set_half(&mut next, IPV4_FRAGMENT, 0x2000 | (at * 1480 / 8) as u16);
        assert_eq!(all.append(&fragment(&next).unwrap()), at < 44, "{at}");
    }
    assert!(!all.is_whole());
}
