use super::*;
use std::process::Command;

#[test]
fn names_that_are_not_names_are_refused() {
    for name in ["", "a/b", "tap%d", "a b", "sixteen-letters-", "\u{e4}"] {
        assert_eq!(Tap::open(name).unwrap_err().kind(), ErrorKind::InvalidInput, "{name:?}");
    }
    assert!(Tap::new(File::open("/dev/null").unwrap().into()).is_err());
}

/// Needs root, `/dev/net/tun` and iproute2; prints a skip otherwise.
#[test]
fn a_tap_device_takes_and_gives_packets_with_headers() {
    let name = format!("kyz{}", std::process::id());
    let tap = match Tap::open(&name) {
        Ok(tap) => tap,
        Err(error) => return println!("skipped: {error}"),
    };
    let tcp = 1 << VIRTIO_NET_F_CSUM | 1 << VIRTIO_NET_F_HOST_TSO4 | 1 << VIRTIO_NET_F_GUEST_TSO6;
    assert_eq!(tap.offloads() & tcp, tcp);
    tap.accept(tap.offloads()).unwrap();
    let packet = [&[0; HEADER][..], &[0xff; 12], &[0x88, 0xb5], &[0; 46]].concat();
    // The interface is down.
    assert!(tap.send(&packet, &mut 0).is_err());
    let up = Command::new("ip").args(["link", "set", &name, "up"]).status();
    if !up.is_ok_and(|status| status.success()) {
        return println!("skipped: ip link set up fails");
    }
    tap.send(&packet, &mut 0).unwrap();
    // Shorter than a header.
    assert!(tap.send(&packet[..HEADER - 1], &mut 0).is_err());
    let received = std::fs::read_to_string(format!("/sys/class/net/{name}/statistics/rx_packets"));
    assert!(received.unwrap().trim().parse::<u64>().unwrap() >= 1);
    let mut buffer = vec![0; crate::net::backend::MAX_PACKET];
    loop {
        // What the host sends by itself, such as the discovery of neighbours.
        match tap.receive(&mut buffer) {
            Ok(bytes) => assert!(bytes >= HEADER + crate::net::ETHERNET),
            Err(error) => break assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
}
