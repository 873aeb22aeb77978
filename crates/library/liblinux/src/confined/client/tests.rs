use super::super::area::Area;
use super::super::process::{Child, Kill};
use super::*;
use crate::calls::{Fd, CWD};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A client whose server is a thread of the test: `answer` gets each request. The child is a program that only waits.
fn client(answer: impl Fn(&Area, &Request) -> Option<i64> + Send + 'static) -> Client {
    let (area, _file) = Area::create(1).expect("memory");
    let area = Arc::new(area);
    let mut command = Command::new("sleep");
    command.arg("1000");
    let child = Child::start(command, area.clone()).expect("sleep");
    let server = area.clone();
    std::thread::spawn(move || {
        let mut last = 0;
        loop {
            let (number, request) = server.slot(0).next(last);
            last = number;
            let request = request.expect("a request");
            if request.kind == Kind::Detach {
                return server.slot(0).answer(number, 0);
            }
            if let Some(result) = answer(&server, &request) {
                server.slot(0).answer(number, result);
            }
        }
    });
    let limit = Duration::from_millis(300);
    let shared = Shared { area, child, limit, free: Mutex::default(), _disks: Vec::new() };
    Client::new(Arc::new(shared), 0)
}

/// Whether the child was killed for this reason.
fn killed(client: &Client, reason: Kill) -> bool {
    client.shared.child.wait(Duration::from_secs(5))
        && client.shared.child.end().is_some_and(|(kill, _)| kill == Some(reason))
}

#[test]
fn bytes_reach_the_server_and_come_back() {
    let client = client(|area, request| {
        let (Argument::Bytes(offset, bytes), Argument::Number(length)) =
            (request.arguments[1], request.arguments[2])
        else {
            return Some(-libc::EINVAL as i64);
        };
        assert_eq!(bytes as u64, length);
        if request.number == libc::SYS_write as u64 {
            let mut got = vec![0; bytes];
            assert!(area.get(0, offset, &mut got) && got == b"hello");
            return Some(5);
        }
        assert!(area.put(0, offset, b"abc"));
        Some(3)
    });
    assert_eq!(client.write(Fd(4), b"hello"), Ok(5));
    let mut buffer = *b"------";
    assert_eq!(client.read(Fd(4), &mut buffer), Ok(3));
    assert_eq!(&buffer, b"abc---");
}

#[test]
fn counts_beyond_the_buffer_end_the_child() {
    for result in [101, i64::from(i32::MAX), i64::MAX, i64::MIN, -4096] {
        let reader = client(move |_, _| Some(result));
        let mut buffer = [7; 100];
        assert_eq!(reader.read(Fd(4), &mut buffer), Err(Errno(libc::EIO)), "{result}");
        assert_eq!(buffer, [7; 100]);
        assert!(killed(&reader, Kill::Nonsense));
    }
    for writer in [client(|_, _| Some(6)), client(|_, _| Some(0))] {
        assert_eq!(writer.write_all(Fd(4), b"hello"), Err(Errno(libc::EIO)));
    }
    let listing = client(|_, _| Some(1 << 20));
    assert_eq!(listing.entries(Fd(4)), Err(Errno(libc::EIO)));
    let link = client(|_, _| Some(1 << 20));
    assert_eq!(link.read_link_at(CWD, c"link"), Err(Errno(libc::EIO)));
    let attribute = client(|_, _| Some(1 << 20));
    assert_eq!(attribute.attributes(Fd(4)), Err(Errno(libc::EIO)));
}

#[test]
fn broken_entries_are_an_error_and_no_panic() {
    for length in [0u16, 1, 19, 20, 24, 25, u16::MAX] {
        let rounds = std::sync::atomic::AtomicU32::new(0);
        let listing = client(move |area, _| {
            if rounds.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 3 {
                return Some(0);
            }
            let mut entries = vec![b'x'; 100];
            entries[16..18].copy_from_slice(&length.to_le_bytes());
            assert!(area.put(0, 0, &entries));
            Some(100)
        });
        assert!(matches!(listing.entries(Fd(4)), Ok(_) | Err(Errno(libc::EIO))), "{length}");
    }
}

#[test]
fn a_silent_child_is_ended_in_time() {
    let silent = client(|_, _| None);
    let start = Instant::now();
    assert_eq!(silent.close(Fd(4)), Err(Errno(libc::EIO)));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(killed(&silent, Kill::Silent(Duration::from_millis(300))));
    assert_eq!(silent.close(Fd(4)), Err(Errno(libc::EIO)));
}

#[test]
fn a_child_that_dies_ends_the_wait() {
    let client = client(|_, _| None);
    // SAFETY: the child of this test.
    unsafe { libc::kill(client.shared.child.pid(), libc::SIGKILL) };
    let start = Instant::now();
    assert_eq!(client.close(Fd(4)), Err(Errno(libc::EIO)));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(client.shared.child.wait(Duration::from_secs(5)));
    let (kill, status) = client.shared.child.end().expect("ended");
    assert!(super::super::process::explain(kill, status, "").contains("signal 9"), "{kill:?}");
}

#[test]
fn transfers_that_do_not_fit_become_shorter_and_other_calls_fail() {
    let large = vec![1; DATA_BYTES + 5];
    let client = client(|_, request| match request.arguments[2] {
        Argument::Number(length) => Some(length as i64),
        _ => Some(0),
    });
    assert_eq!(client.write(Fd(4), &large), Ok(DATA_BYTES));
    assert_eq!(client.pread(Fd(4), &mut large.clone(), 0), Ok(DATA_BYTES));
    assert_eq!(client.set_attribute(Fd(4), c"user.x", &large), Err(Errno(libc::E2BIG)));
    assert_eq!(client.call(0, &mut [const { Arg::Number(0) }; 7]), Err(Errno(libc::EINVAL)));
}

#[test]
fn structures_are_zero_where_the_kernel_wrote_nothing() {
    let client = client(|area, request| {
        let Some(Argument::Zeroed(offset, bytes)) = request.arguments.get(2) else {
            return Some(-libc::EINVAL as i64);
        };
        assert_eq!(*bytes, size_of::<libc::stat>());
        assert!(area.put(0, *offset, &vec![0; *bytes]) && area.put(0, *offset, &[9]));
        Some(0)
    });
    let stat = client.stat(std::path::Path::new("/file")).expect("an answer");
    assert_eq!((stat.st_dev, stat.st_size), (9, 0));
}
