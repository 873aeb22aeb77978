use super::*;
use crate::fake::wire::Wire;
use std::io::{Read, Seek};

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

#[test]
fn frames_of_both_directions_are_recorded_without_their_headers() {
    let fd = rustix::fs::memfd_create(c"pcap", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let (mut file, wire) = (File::from(fd), Wire::new().unwrap());
    let pcap = Pcap::new(wire.clone(), file.try_clone().unwrap()).unwrap();
    pcap.send(&[&[1; HEADER][..], &[2; 60]].concat(), &mut 0).unwrap();
    wire.give(&[&[3; HEADER][..], &[4; 100]].concat());
    let mut buffer = [0; 200];
    assert_eq!(pcap.receive(&mut buffer).unwrap(), 112);
    // What does not happen is not recorded.
    assert!(pcap.receive(&mut buffer).is_err());
    wire.state().room = Some(10);
    assert!(pcap.send(&[1; 72], &mut 0).is_err());
    wire.state().closed = true;
    assert_eq!(pcap.receive(&mut buffer).unwrap(), 0);
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 24 + 16 + 60 + 16 + 100);
    assert_eq!((word(&bytes, 0), word(&bytes, 20)), (MAGIC, ETHERNET));
    assert_eq!((word(&bytes, 24 + 8), word(&bytes, 24 + 12)), (60, 60));
    assert!(bytes[40..100] == [2; 60] && bytes[116..] == [4; 100]);
    assert_eq!((pcap.offloads(), pcap.unrecorded()), (wire.offloads(), 0));
}

#[test]
fn a_full_disk_does_not_stop_the_network() {
    let wire = Wire::new().unwrap();
    assert!(Pcap::new(wire.clone(), File::open("/dev/null").unwrap()).is_err());
    let null = File::options().write(true).open("/dev/null").unwrap();
    let pcap = Pcap {
        file: Mutex::new(File::open("/dev/null").unwrap()),
        ..Pcap::new(wire, null).unwrap()
    };
    pcap.send(&[1; 72], &mut 0).unwrap();
    assert_eq!(pcap.unrecorded(), 1);
}
