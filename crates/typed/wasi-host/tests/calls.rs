//! Clocks, files, polling, sockets and limits of a process.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

use common::{directory, Guest, DATA, OUT};
use kyozon_typed_wasi::types::Rights;
use kyozon_typed_wasi::{Errno, Function};
use kyozon_typed_wasi_host::Start;

/// Runs a test on a program that has these descriptors.
fn with(sockets: Vec<OwnedFd>, test: impl FnOnce(&mut Guest<'_, '_>)) {
    let start = Start { sockets, ..Start::default() };
    start.run(|wasi| test(&mut Guest::new(wasi))).unwrap();
}

/// One subscription: type, descriptor or clock, timeout.
fn subscription(kind: u8, number: u32, timeout: u64) -> Vec<u8> {
    let mut bytes = vec![0; 48];
    bytes[0] = kind + 1;
    bytes[8] = kind;
    bytes[16..20].copy_from_slice(&number.to_le_bytes());
    if kind == 0 {
        bytes[24..32].copy_from_slice(&timeout.to_le_bytes());
    }
    bytes
}

/// Userdata, error, bytes and flags of the events.
fn poll(guest: &mut Guest<'_, '_>, subscriptions: &[Vec<u8>]) -> Vec<(u64, u8, u64, u8)> {
    let at = guest.put(&subscriptions.concat());
    let count = subscriptions.len() as u64;
    guest.call(Function::PollOneoff, &[at, DATA, count, OUT]).unwrap();
    (0..guest.u32(OUT))
        .map(|n| {
            let event = guest.bytes(DATA + 32 * n, 32);
            (guest.u64(DATA + 32 * n), event[8], guest.u64(DATA + 32 * n + 16), event[24])
        })
        .collect()
}

#[test]
fn clocks_agree_with_the_process() {
    with(Vec::new(), |guest| {
        for clock in 0..4 {
            guest.call(Function::ClockResGet, &[clock, OUT]).unwrap();
            assert!((1..=10_000_000).contains(&guest.u64(OUT)), "{clock}");
        }
        let before = UNIX_EPOCH.elapsed().unwrap();
        guest.call(Function::ClockTimeGet, &[0, 0, OUT]).unwrap();
        let now = Duration::from_nanos(guest.u64(OUT));
        assert!(before <= now && now <= UNIX_EPOCH.elapsed().unwrap());
        guest.call(Function::ClockTimeGet, &[1, 0, OUT]).unwrap();
        let first = guest.u64(OUT);
        let start = Instant::now();
        assert_eq!(poll(guest, &[subscription(0, 1, 20_000_000)]), [(1, 0, 0, 0)]);
        assert!(start.elapsed() >= Duration::from_millis(20));
        guest.call(Function::ClockTimeGet, &[1, 0, OUT]).unwrap();
        assert!(guest.u64(OUT) - first >= 20_000_000);
        guest.call(Function::SchedYield, &[]).unwrap();
    });
}

#[test]
fn random_bytes_differ() {
    with(Vec::new(), |guest| {
        guest.call(Function::RandomGet, &[DATA, 600]).unwrap();
        let bytes = guest.bytes(DATA, 600);
        guest.call(Function::RandomGet, &[DATA, 600]).unwrap();
        assert_ne!(bytes, guest.bytes(DATA, 600));
        assert!(bytes[568..].iter().any(|&byte| byte != 0), "the last part was not filled");
    });
}

#[test]
fn a_file_lives_through_all_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let directories = vec![directory(folder.path(), "/", Rights::ALL)];
    let path = folder.path().join("file");
    let start = Start { directories, ..Start::default() };
    let run = start.run(|wasi| {
        let guest = &mut Guest::new(wasi);
        let fd = guest.open("file", 0, 1, Rights::ALL).unwrap();
        assert_eq!(guest.write(fd, b"hello world"), Ok(11));
        let [one, two] = [[DATA, 3], [DATA + 100, 100]];
        let [at, count] = guest.buffers(&[one, two]);
        guest.call(Function::FdPread, &[fd, at, count, 4, OUT]).unwrap();
        assert_eq!(guest.u32(OUT), 7);
        assert_eq!(
            (guest.bytes(DATA, 3), guest.bytes(DATA + 100, 4)),
            (b"o w".into(), b"orld".into())
        );
        let text = guest.text("HE");
        let [at, count] = guest.buffers(&[text]);
        guest.call(Function::FdPwrite, &[fd, at, count, 0, OUT]).unwrap();
        guest.call(Function::FdTell, &[fd, OUT]).unwrap();
        assert_eq!(guest.u64(OUT), 11);
        guest.call(Function::FdSeek, &[fd, -5i64 as u64, 2, OUT]).unwrap();
        assert_eq!(guest.read(fd).unwrap(), b"world");
        assert_eq!(guest.call(Function::FdSeek, &[fd, -1i64 as u64, 0, OUT]), Err(Errno::Inval));
        guest.call(Function::FdAdvise, &[fd, 0, 0, 1]).unwrap();
        guest.call(Function::FdAllocate, &[fd, 0, 20]).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 20);
        guest.call(Function::FdFilestatSetSize, &[fd, 5]).unwrap();
        guest.call(Function::FdDatasync, &[fd]).unwrap();
        guest.call(Function::FdSync, &[fd]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"HEllo");
        let times = [fd, 1_000_000_007, 2_000_000_009, 5];
        guest.call(Function::FdFilestatSetTimes, &times).unwrap();
        guest.call(Function::FdFilestatGet, &[fd, OUT]).unwrap();
        let meta = fs::metadata(&path).unwrap();
        let status: Vec<u64> = (0..8).map(|n| guest.u64(OUT + 8 * n)).collect();
        let changed = meta.ctime() as u64 * 1_000_000_000 + meta.ctime_nsec() as u64;
        let expected = [meta.dev(), meta.ino(), 4, 1, 5, 1_000_000_007, 2_000_000_009, changed];
        assert_eq!(status, expected);
        assert_eq!((meta.atime(), meta.atime_nsec(), meta.mtime()), (1, 7, 2));
        guest.call(Function::FdFdstatSetFlags, &[fd, 1]).unwrap();
        guest.call(Function::FdSeek, &[fd, 0, 0, OUT]).unwrap();
        assert_eq!(guest.write(fd, b"!"), Ok(1));
        assert_eq!(fs::read(&path).unwrap(), b"HEllo!");
        // Both files are always ready.
        let events = poll(guest, &[subscription(1, fd as u32, 0), subscription(2, fd as u32, 0)]);
        assert_eq!(events, [(2, 0, 0, 0), (3, 0, 1, 0)]);
        guest.close(fd);
    });
    run.unwrap();
}

#[test]
fn a_directory_that_is_read_only_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "contents").unwrap();
    let directories = vec![directory(folder.path(), "/", Rights::READ_ONLY)];
    let start = Start { directories, ..Start::default() };
    let run = start.run(|wasi| {
        let guest = &mut Guest::new(wasi);
        let fd = guest.open("file", 0, 0, Rights::READ_ONLY).unwrap();
        assert_eq!(guest.read(fd).unwrap(), b"contents");
        assert_eq!(guest.write(fd, b"x"), Err(Errno::Notcapable));
        for (flags, rights) in [(0, Rights::FD_WRITE), (1, Rights::FD_READ), (8, Rights::FD_READ)] {
            assert_eq!(guest.open("file", 0, flags, rights), Err(Errno::Notcapable));
        }
    });
    run.unwrap();
}

#[test]
fn standard_descriptors_have_the_rights_of_their_mode() {
    let (read, write) = std::io::pipe().unwrap();
    let null = fs::File::open("/dev/null").unwrap();
    let standard = vec![read.into(), write.into(), null.into()];
    let start = Start { standard, ..Start::default() };
    let run = start.run(|wasi| {
        let guest = &mut Guest::new(wasi);
        assert_eq!(guest.write(0, b"x"), Err(Errno::Notcapable));
        assert_eq!(guest.read(1), Err(Errno::Notcapable));
        assert_eq!(guest.write(1, b"pipe"), Ok(4));
        assert_eq!(poll(guest, &[subscription(1, 0, 0)]), [(2, 0, 4, 0)]);
        assert_eq!(guest.read(0).unwrap(), b"pipe");
        let events = poll(guest, &[subscription(1, 0, 0), subscription(0, 1, 1_000_000)]);
        assert_eq!(events, [(1, 0, 0, 0)], "an empty pipe is not ready");
        guest.close(1);
        assert_eq!(poll(guest, &[subscription(1, 0, 0)]), [(2, 0, 0, 1)]);
        assert_eq!(guest.read(0).unwrap(), b"");
        assert_eq!(guest.read(2).unwrap(), b"");
        assert_eq!(guest.call(Function::FdSeek, &[0, 0, 0, OUT]), Err(Errno::Spipe));
    });
    run.unwrap();
}

#[test]
fn a_listening_socket_accepts_and_both_sides_talk() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    with(vec![listener.into()], |guest| {
        let waits = subscription(0, 1, 1_000_000);
        assert_eq!(poll(guest, &[subscription(1, 0, 0), waits]), [(1, 0, 0, 0)]);
        let mut peer = TcpStream::connect(address).unwrap();
        assert_eq!(poll(guest, &[subscription(1, 0, 0)]).len(), 1);
        guest.call(Function::SockAccept, &[0, 4, OUT]).unwrap();
        let fd = guest.u32(OUT);
        let [at, count] = guest.buffers(&[[DATA, 4], [DATA + 4, 100]]);
        let receive = [fd, at, count, 0, OUT, OUT + 4];
        assert_eq!(guest.call(Function::SockRecv, &receive), Err(Errno::Again));
        peer.write_all(b"to the program").unwrap();
        assert_eq!(poll(guest, &[subscription(1, fd as u32, 0)]), [(2, 0, 14, 0)]);
        for flags in [1, 0] {
            let [at, count] = guest.buffers(&[[DATA, 4], [DATA + 4, 100]]);
            guest.call(Function::SockRecv, &[fd, at, count, flags, OUT, OUT + 4]).unwrap();
            assert_eq!(guest.bytes(DATA, guest.u32(OUT)), b"to the program");
        }
        let text = guest.text("from it");
        let [at, count] = guest.buffers(&[text]);
        guest.call(Function::SockSend, &[fd, at, count, 0, OUT]).unwrap();
        assert_eq!(guest.u32(OUT), 7);
        guest.call(Function::SockShutdown, &[fd, 2]).unwrap();
        let mut received = String::new();
        peer.read_to_string(&mut received).unwrap();
        assert_eq!(received, "from it");
        let text = guest.text("more");
        let [at, count] = guest.buffers(&[text]);
        let send = [fd, at, count, 0, OUT];
        assert_eq!(guest.call(Function::SockSend, &send), Err(Errno::Pipe));
        peer.shutdown(Shutdown::Both).unwrap();
        assert_eq!(poll(guest, &[subscription(1, fd as u32, 0)]), [(2, 0, 0, 1)]);
    });
}

#[test]
fn a_datagram_that_is_too_long_is_cut_off() {
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    with(vec![theirs.into()], |guest| {
        ours.send(b"datagram").unwrap();
        let [at, count] = guest.buffers(&[[DATA, 4]]);
        guest.call(Function::SockRecv, &[0, at, count, 0, OUT, OUT + 4]).unwrap();
        assert_eq!((guest.u32(OUT), guest.bytes(OUT + 4, 2)), (4, vec![1, 0]));
        guest.call(Function::FdFdstatGet, &[0, DATA]).unwrap();
        assert_eq!(guest.bytes(DATA, 1), [5]);
    });
}

#[test]
fn a_program_does_not_raise_signals_in_its_host() {
    // The host would end by the first and stop by the second.
    with(Vec::new(), |guest| {
        let mut all = [0; kyozon_typed_wasi::PARAMETERS];
        all[0] = 9;
        assert_eq!(guest.exit(Function::ProcRaise, &all), Some(137));
        assert_eq!(guest.call(Function::ProcRaise, &[18]), Err(Errno::Notsup));
    });
}

extern "C" fn handle(_signal: libc::c_int) {}

#[test]
fn a_signal_to_the_process_does_not_end_a_wait() {
    // SAFETY: the handler does nothing. No other test uses this signal.
    unsafe { libc::signal(libc::SIGUSR2, handle as *const () as usize) };
    // SAFETY: always sound.
    let thread = unsafe { libc::pthread_self() };
    let (start, wait) = (Instant::now(), Duration::from_millis(200));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while start.elapsed() < wait / 2 {
                // SAFETY: the thread waits for the end of the scope.
                unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
                std::thread::sleep(wait / 20);
            }
        });
        with(Vec::new(), |guest| {
            let events = poll(guest, &[subscription(0, 1, wait.as_nanos() as u64)]);
            assert_eq!(events, [(1, 0, 0, 0)]);
        });
        assert!(start.elapsed() >= wait);
    });
}

#[test]
fn standard_descriptors_are_shared_so_their_flags_stay() {
    let folder = tempfile::tempdir().unwrap();
    let [log, input] = ["log", "input"].map(|name| folder.path().join(name));
    fs::write(&log, "old\n").unwrap();
    fs::write(&input, "input").unwrap();
    let standard = vec![
        fs::File::open(&input).unwrap().into(),
        fs::File::options().append(true).open(&log).unwrap().into(),
        fs::File::open(folder.path()).unwrap().into(),
    ];
    let before = fs::metadata(&input).unwrap().modified().unwrap();
    let start = Start { standard, ..Start::default() };
    let run = start.run(|wasi| {
        let guest = &mut Guest::new(wasi);
        for fd in 0..3 {
            for flags in [0, 4] {
                let call = guest.call(Function::FdFdstatSetFlags, &[fd, flags]);
                assert_eq!(call, Err(Errno::Notcapable));
            }
        }
        let times = [0, 0, 0, 5];
        assert_eq!(guest.call(Function::FdFilestatSetTimes, &times), Err(Errno::Notcapable));
        // What appends does nothing else.
        assert_eq!(guest.call(Function::FdFilestatSetSize, &[1, 0]), Err(Errno::Notcapable));
        assert_eq!(guest.call(Function::FdAllocate, &[1, 0, 9]), Err(Errno::Notcapable));
        guest.call(Function::FdSeek, &[1, 0, 0, OUT]).unwrap();
        assert_eq!(guest.write(1, b"new"), Ok(3));
        // A directory without a name gives access to nothing.
        let [at, length] = guest.text("made");
        let arguments = [2, 0, at, length, 1, 0, 0, 0, OUT];
        assert_eq!(guest.call(Function::PathOpen, &arguments), Err(Errno::Notcapable));
        let list = [2, DATA, 100, 0, OUT];
        assert_eq!(guest.call(Function::FdReaddir, &list), Err(Errno::Notcapable));
        guest.call(Function::FdFilestatGet, &[2, OUT]).unwrap();
    });
    run.unwrap();
    assert_eq!(fs::read_to_string(&log).unwrap(), "old\nnew");
    assert_eq!(fs::metadata(&input).unwrap().modified().unwrap(), before);
}

#[test]
fn a_directory_must_be_one() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let directories = vec![directory(file.path(), "/", Rights::ALL)];
    let error = Start { directories, ..Start::default() }.run(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("\"/\" is not a directory: "), "{error}");
}

#[test]
fn named_pipes_are_opened_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let directories = vec![directory(folder.path(), "/", Rights::ALL)];
    let start = Start { directories, ..Start::default() };
    let run = start.run(|wasi| {
        let guest = &mut Guest::new(wasi);
        assert_eq!(guest.open("pipe", 0, 0, Rights::FD_WRITE), Err(Errno::Nxio));
        let reader = guest.open("pipe", 0, 0, Rights::STREAM.without(Rights::FD_WRITE)).unwrap();
        assert_eq!(guest.read(reader).unwrap(), b"", "nobody writes");
        let writer = guest.open("pipe", 0, 0, Rights::FD_WRITE).unwrap();
        assert_eq!(guest.write(writer, b"through"), Ok(7));
        assert_eq!(guest.read(reader).unwrap(), b"through");
        // Only opening did not wait.
        guest.call(Function::FdFdstatGet, &[reader, DATA]).unwrap();
        assert_eq!(guest.bytes(DATA + 2, 2), [0, 0]);
        let late = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            let mut writer = fs::File::options().write(true).open(path).unwrap();
            writer.write_all(b"late").unwrap();
        });
        assert_eq!(guest.read(reader).unwrap(), b"late");
        late.join().unwrap();
    });
    run.unwrap();
}

/// The variable by which this test's program knows that its limit of open files is low.
const LIMITED: &str = "KYOZON_TEST_LIMITED";

#[test]
fn a_program_leaves_descriptors_to_its_host() {
    if std::env::var_os(LIMITED).is_none() {
        let mut child = Command::new("sh");
        child.args(["-c", "ulimit -n 256; exec \"$0\" \"$@\""]);
        child.arg(std::env::current_exe().unwrap());
        let name = "a_program_leaves_descriptors_to_its_host";
        let output = child.args(["--exact", name]).env(LIMITED, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let directories = vec![directory(folder.path(), "/", Rights::ALL)];
    let start = Start { directories, ..Start::default() };
    let run = start.run(|wasi| {
        let guest = &mut Guest::new(wasi);
        for fd in 1..64 {
            assert_eq!(guest.open("file", 0, 0, Rights::FD_READ), Ok(fd));
        }
        assert_eq!(guest.open("file", 0, 0, Rights::FD_READ), Err(Errno::Mfile));
        let host: Vec<_> = (0..100).map(|_| fs::File::open("/dev/null")).collect();
        assert!(host.iter().all(Result::is_ok), "the host ran out of descriptors");
    });
    run.unwrap();
    let standard = (0..65).map(|_| fs::File::open("/dev/null").unwrap().into()).collect();
    let error = Start { standard, ..Start::default() }.run(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("65 descriptors: at most 64"), "{error}");
}
