//! Outputs to pipes and sockets that nobody reads.

use super::*;
use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
use rustix::pipe::pipe;
use std::io::Read;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An output to this descriptor, which stays open.
fn output(fd: OwnedFd) -> Output {
    let fd: &'static OwnedFd = Box::leak(Box::new(fd));
    Output::new(fd.as_fd())
}

/// A condition that holds for `turns` questions.
fn times(turns: usize) -> impl Fn() -> bool {
    let asked = AtomicUsize::new(0);
    move || asked.fetch_add(1, Ordering::Relaxed) < turns
}

#[test]
fn nobody_waits_in_write() {
    let (reader, writer) = pipe().unwrap();
    let (peer, socket) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::empty(), None).unwrap();
    for full in [output(writer), output(socket)] {
        let text = vec![b'x'; 1 << 20];
        let left = full.write(&text, &times(2)).len();
        assert!(left > 0 && left < text.len(), "{left}");
        let again = full.write(b"more", &times(1)).len();
        assert!(again == 4 || matches!(full.sink, Sink::Shared(_)));
        // Another thread that has its turn does not keep this one from ending.
        let _turn = full.turn(&|| true).unwrap();
        assert_eq!(full.write(b"more", &times(2)), b"more");
    }
    drop((reader, peer));
}

#[test]
fn a_reader_gets_each_byte_once() {
    let (reader, writer) = pipe().unwrap();
    let output = output(writer);
    let text: Vec<u8> = (0..1_000_000_u32).map(|i| (i % 251) as u8).collect();
    let mut got = vec![0; text.len()];
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(output.write(&text, &|| true).is_empty()));
        std::fs::File::from(reader).read_exact(&mut got).unwrap();
    });
    assert!(got == text);
}

#[test]
fn the_flags_of_the_shared_descriptor_stay() {
    let (_reader, writer) = pipe().unwrap();
    // SAFETY: the descriptor is leaked, so it stays open.
    let fd = unsafe { BorrowedFd::borrow_raw(std::os::fd::IntoRawFd::into_raw_fd(writer)) };
    let output = Output::new(fd);
    assert!(matches!(output.sink, Sink::Prompt(_)));
    assert!(!rustix::fs::fcntl_getfl(fd).unwrap().contains(OFlags::NONBLOCK));
    // SAFETY: nothing uses the descriptor any more.
    drop(unsafe { OwnedFd::from_raw_fd(fd.as_raw_fd()) });
}

#[test]
fn a_closed_output_takes_all() {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    assert!(output(writer).write(b"x", &|| panic!("it waits")).is_empty());
}
