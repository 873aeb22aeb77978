use super::super::MAX_PACKET;
use super::*;
use std::io::ErrorKind;

#[test]
fn packets_stay_apart_up_to_the_largest() {
    let (a, b) = pair().unwrap();
    let mut buffer = vec![0; MAX_PACKET];
    assert_eq!(b.receive(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    for bytes in [1, 26, 1530, MAX_PACKET] {
        a.send(&vec![bytes as u8; bytes], &mut 0).unwrap();
    }
    for bytes in [1, 26, 1530, MAX_PACKET] {
        assert_eq!(b.receive(&mut buffer).unwrap(), bytes);
        assert!(buffer[..bytes].iter().all(|byte| *byte == bytes as u8));
    }
    // A packet that is too long is skipped.
    a.send(&vec![1; MAX_PACKET + 1], &mut 0).unwrap();
    a.send(&[2; 100], &mut 0).unwrap();
    assert_eq!((b.receive(&mut buffer).unwrap(), buffer[0]), (100, 2));
}

#[test]
fn a_full_or_closed_socket_is_an_error_but_no_signal() {
    let (a, b) = pair().unwrap();
    let full = (0..10_000).find_map(|_| a.send(&[0; 1000], &mut 0).err()).unwrap();
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    drop(b);
    let gone = a.send(&[0; 1000], &mut 0).unwrap_err().kind();
    assert!(matches!(gone, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset));
    let (a, b) = pair().unwrap();
    drop(b.into_fd());
    assert_eq!(a.receive(&mut [0; 100]).unwrap(), 0);
}
