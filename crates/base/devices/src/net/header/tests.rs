use super::*;

const ALL: Offloads = Offloads { checksum: true, tcp4: true, tcp6: true, ecn: true, udp: true };
const NONE: Offloads =
    Offloads { checksum: false, tcp4: false, tcp6: false, ecn: false, udp: false };

const PARTIAL: u8 = 1;
const VALID: u8 = 2;

/// A header: flags, kind, segment size, start and offset of the checksum.
fn header(flags: u8, kind: u8, segment: u16, start: u16, offset: u16) -> [u8; HEADER] {
    let halves = [54, segment, start, offset, 0x7777].map(u16::to_le_bytes).concat();
    [&[flags, kind][..], &halves].concat().try_into().unwrap()
}

fn passes(header: [u8; HEADER], bytes: usize, offloads: Offloads, sent: bool) -> bool {
    check(&mut header.clone(), &mut vec![0; bytes], offloads, 1518, sent).is_ok()
}

#[test]
fn only_agreed_offloads_pass() {
    let offloads = [
        (1, Offloads { tcp4: false, ..ALL }),
        (4, Offloads { tcp6: false, ..ALL }),
        (5, Offloads { udp: false, ..ALL }),
        (0x81, Offloads { ecn: false, ..ALL }),
        (0x84, Offloads { ecn: false, ..ALL }),
    ];
    for (kind, without) in offloads {
        let header = header(PARTIAL, kind, 1448, 34, 16);
        for sent in [false, true] {
            assert!(passes(header, 60_000, ALL, sent), "{kind:#x}");
            assert!(!passes(header, 60_000, without, sent), "{kind:#x}");
            assert!(!passes(header, 60_000, NONE, sent), "{kind:#x}");
        }
    }
    // Kinds that do not exist or are not offered; marks without a kind or with UDP; segments of 0 bytes.
    for (kind, segment) in
        [(2, 1), (3, 1), (6, 1), (0x7f, 1), (0x80, 1), (0x85, 1), (0xff, 1), (1, 0)]
    {
        assert!(!passes(header(PARTIAL, kind, segment, 34, 16), 1000, ALL, true), "{kind:#x}");
    }
    // Without a division, the length is limited.
    assert!(passes(header(0, 0, 0, 0, 0), 1518, NONE, true));
    assert!(!passes(header(0, 0, 0, 0, 0), 1519, ALL, true));
}

#[test]
fn a_checksum_lies_in_the_frame() {
    for (start, offset, bytes, fits) in [
        (34, 16, 60, true),
        (34, 24, 60, true),
        (34, 25, 60, false),
        (60, 0, 60, false),
        (u16::MAX, u16::MAX, 60, false),
        (0, u16::MAX, 1518, false),
    ] {
        let header = header(PARTIAL, 0, 0, start, offset);
        for offloads in [ALL, NONE] {
            assert_eq!(passes(header, bytes, offloads, false), fits, "{start} {offset}");
        }
        assert_eq!(passes(header, bytes, ALL, true), fits);
        assert!(!passes(header, bytes, NONE, true), "the guest did not accept checksums");
    }
}

#[test]
fn flags_that_are_not_for_the_receiver_are_cleared() {
    for (flags, offloads, sent, want) in [
        (VALID, ALL, false, VALID),
        (VALID, NONE, false, 0),
        (VALID, ALL, true, 0),
        (0xfc, ALL, false, 0),
        (0xff, ALL, false, PARTIAL | VALID),
        (0xff, ALL, true, PARTIAL),
    ] {
        let mut header = header(flags, 0, 0, 34, 16);
        check(&mut header, &mut [0; 60], offloads, 1518, sent).unwrap();
        assert_eq!((header[0], &header[10..]), (want, &[0, 0][..]), "{flags:#x}");
    }
}

#[test]
fn a_receiver_without_checksums_gets_a_complete_one() {
    // The example of RFC 1071, section 3: the sum of these words is ddf2.
    let mut frame =
        [&[9; 20][..], &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7, 0, 0]].concat();
    let mut partial = header(PARTIAL, 0, 0, 20, 8);
    check(&mut partial, &mut frame, NONE, 1518, false).unwrap();
    assert_eq!(frame[28..], (!0xddf2_u16).to_be_bytes());
    assert_eq!(partial, [0, 0, 54, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    // An odd number of bytes, the part of a pseudo-header, and a sum of 0.
    for (bytes, want) in [(vec![1, 2, 3, 0, 0], 0xfbfd_u16), (vec![0, 0, 0, 0xff, 0xff], 0xffff)] {
        let mut frame = bytes.clone();
        check(&mut header(PARTIAL, 0, 0, 0, 3), &mut frame, NONE, 1518, false).unwrap();
        assert_eq!(frame[3..], want.to_be_bytes(), "{bytes:?}");
    }
}

#[test]
fn offloads_need_the_checksum() {
    let all = Offloads::from_guest(FROM_GUEST);
    assert_eq!((all, Offloads::to_guest(TO_GUEST)), (ALL, ALL));
    assert!(all.large() && !NONE.large());
    let without = |offloads: Offloads| !offloads.large() && !offloads.checksum;
    assert!(without(Offloads::from_guest(FROM_GUEST & !(1 << VIRTIO_NET_F_CSUM))));
    assert!(without(Offloads::to_guest(TO_GUEST & !(1 << VIRTIO_NET_F_GUEST_CSUM))));
    assert_eq!((Offloads::from_guest(TO_GUEST), Offloads::to_guest(FROM_GUEST)), (NONE, NONE));
}
