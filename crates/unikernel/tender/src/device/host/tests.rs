use super::*;
use std::sync::mpsc;
use std::time::Duration;

fn pair() -> (Host, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (Host::new(File::from(OwnedFd::from(ours)), true).unwrap(), theirs)
}

#[test]
fn frames_are_reassembled_from_any_pieces() {
    let (host, mut other) = pair();
    let stop = EventFd::new(0).unwrap();
    std::thread::scope(|scope| {
        let (sender, frames) = mpsc::channel();
        let (host, stop) = (&host, &stop);
        scope.spawn(move || host.work(stop, |frame| sender.send(frame.to_vec()).unwrap()));
        let stream = [&[0, 0, 0, 3][..], b"abc", &[0, 0, 0, 0], &[0, 0, 0, 2], b"de"].concat();
        for byte in stream {
            other.write_all(&[byte]).unwrap();
        }
        let next = || frames.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!([next(), next(), next()], [&b"abc"[..], b"", b"de"]);
        stop.write(1).unwrap();
    });
}

#[test]
fn an_invalid_length_or_a_close_ends_the_port() {
    let (host, mut other) = pair();
    let stop = EventFd::new(0).unwrap();
    other.write_all(&[0xff, 0, 0, 0, 1]).unwrap();
    host.work(&stop, |_| panic!("no frame"));
    // The other end closes.
    let (host, other) = pair();
    drop(other);
    host.work(&stop, |_| panic!("no frame"));
    host.send(b"nobody");
}

#[test]
fn a_slow_reader_loses_complete_frames_only() {
    let (host, mut other) = pair();
    let frame = |number: u32| [&number.to_le_bytes()[..], &[7; 9000]].concat();
    for number in 0..1000 {
        host.send(&frame(number));
    }
    let stop = EventFd::new(0).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| host.work(&stop, |_| ()));
        let mut last = None;
        let mut count = 0;
        other.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let mut length = [0; 4];
        while other.read_exact(&mut length).is_ok() {
            assert_eq!(u32::from_be_bytes(length), 9004);
            let mut got = vec![0; 9004];
            other.read_exact(&mut got).unwrap();
            let number = u32::from_le_bytes(got[..4].try_into().unwrap());
            assert!(got == frame(number) && last < Some(number));
            last = Some(number);
            count += 1;
        }
        assert!((1..1000).contains(&count), "{count}");
        stop.write(1).unwrap();
    });
}

#[test]
fn random_streams_never_break_an_invariant() {
    let mut state = 0x5eed_0021_u64;
    for _ in 0..2000 {
        let input: Vec<u8> = (0..200)
            .map(|_| {
                state ^= state >> 12;
                state ^= state << 25;
                state ^= state >> 27;
                let byte = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8;
                // Bytes of lengths are mostly zero.
                if byte < 200 {
                    0
                } else {
                    byte % 16
                }
            })
            .collect();
        fuzz(&input);
    }
}

#[test]
fn a_missing_port_is_an_error() {
    let error = |option| format!("{:#}", Host::open(&option).err().unwrap());
    let nowhere = HostOption::Socket("/nowhere/socket".into());
    assert!(error(nowhere).contains("cannot connect to /nowhere/socket"));
    assert!(
        error(HostOption::Tap("a/b".into())).contains("is not a valid name of a network device")
    );
    assert!(
        error(HostOption::Tap("x".repeat(16))).contains("is not a valid name of a network device")
    );
}
