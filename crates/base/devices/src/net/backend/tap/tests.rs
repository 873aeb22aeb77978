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

/// The sum of RFC 1071 of words in memory order.
fn sum(parts: &[&[u8]]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = parts.iter().flat_map(|part| part.chunks(2)).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

/// Needs root, `/dev/net/tun` and iproute2; prints a skip otherwise.
#[test]
fn a_program_gets_a_datagram_of_many_fragments() {
    // SAFETY: the call concerns this thread alone, which ends with the test.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return println!("skipped: no network namespace: {}", Error::last_os_error());
    }
    let name = "kyd0";
    let tap = match Tap::open(name) {
        Ok(tap) => tap,
        Err(error) => return println!("skipped: {error}"),
    };
    let address = [2, 0, 0, 0, 0, 1];
    for arguments in [
        &["address", "add", "192.0.2.1/24", "dev", name][..],
        &["link", "set", name, "address", "02:00:00:00:00:01", "up"],
    ] {
        if !Command::new("ip").args(arguments).status().is_ok_and(|status| status.success()) {
            return println!("skipped: ip {} fails", arguments.join(" "));
        }
    }
    let socket = std::net::UdpSocket::bind("192.0.2.1:0").unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    let port = socket.local_addr().unwrap().port().to_be_bytes();
    let addresses = [192, 0, 2, 2, 192, 0, 2, 1];
    let datagram = |data: &[u8], right: bool| {
        let length = (8 + data.len() as u16).to_be_bytes();
        let mut udp = vec![0x30, 0x39, port[0], port[1], length[0], length[1], 0, 0];
        udp.extend(data);
        let complete = sum(&[&addresses, &[0, 17], &length, &udp]) ^ u16::from(!right);
        udp[6..8].copy_from_slice(&complete.to_be_bytes());
        let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0];
        ip[2..4].copy_from_slice(&(20 + udp.len() as u16).to_be_bytes());
        ip.extend(addresses);
        let complete = sum(&[&ip]).to_be_bytes();
        ip[10..12].copy_from_slice(&complete);
        let mut header = [0; HEADER];
        (header[1], header[2]) = (VIRTIO_NET_HDR_GSO_UDP as u8, 42);
        header[4..6].copy_from_slice(&1480_u16.to_le_bytes());
        [&header[..], &address, &[2; 6], &[8, 0], &ip, &udp].concat()
    };
    assert!(tap.takes_datagrams());
    let mut got = vec![0; 1 << 16];
    // The receiver checks the sum.
    tap.send(&datagram(&[1; 2952], false), &mut 0).unwrap();
    for bytes in [1473, 2952, 65507] {
        let data: Vec<u8> = (0..=250).cycle().take(bytes).collect();
        tap.send(&datagram(&data, true), &mut 0).unwrap();
        assert_eq!(socket.recv(&mut got).unwrap(), bytes);
        assert!(got[..bytes] == data, "{bytes}");
    }
}
