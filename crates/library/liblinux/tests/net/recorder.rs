//! A record of a wire.

use super::{two, Two};
use crate::ping::ping;
use kyozon_devices::net::backend::{pair, Pcap};
use std::fs::File;

/// The frames of a record (pcap-savefile(5), nanoseconds, little-endian).
fn frames(file: &[u8]) -> Vec<&[u8]> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("4 bytes"));
    assert_eq!((word(0), word(20)), (0xa1b2_3c4d, 1), "magic number and link type");
    let mut frames = Vec::new();
    let mut at = 24;
    while at < file.len() {
        let (kept, length) = (word(at + 8) as usize, word(at + 12) as usize);
        assert_eq!(kept, length);
        frames.push(&file[at + 16..at + 16 + kept]);
        at += 16 + kept;
    }
    frames
}

#[test]
fn a_record_has_every_frame() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("record.pcap");
    let (a, b) = pair().expect("a pair");
    let recorded = Pcap::new(a, File::create(&path).expect("a file")).expect("a recorder");
    let two: Two = two(1500, (recorded, b));
    for _ in 0..10 {
        ping(&two.a.1, "10.0.0.2".parse().expect("an address"), 100).expect("an echo");
    }
    let counts = two.port.counts();
    two.halt();
    let file = std::fs::read(&path).expect("the record");
    let frames = frames(&file);
    assert!(frames.len() as u64 >= counts.sent + counts.received);
    // EtherType IPv4, protocol ICMP, type.
    let icmp = |kind: u8| {
        let ours = |frame: &&&[u8]| {
            frame.len() > 34 && frame[12..14] == [8, 0] && frame[23] == 1 && frame[34] == kind
        };
        frames.iter().filter(ours).count()
    };
    assert_eq!((icmp(8), icmp(0)), (10, 10));
}
