use super::*;
use crate::fake::{Guest, FREE};
use crate::ring::Ring;
use std::fs;
use std::os::unix::fs::symlink;

/// Kinds of requests, `enum fuse_opcode`.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const READLINK: u32 = 5;
const OPEN: u32 = 14;
const START: u32 = 26;
/// The number of the folder itself.
const ROOT: u64 = 1;
/// Where the guest's replies are.
const ANSWER: u64 = FREE + 0x2000;

struct Setting {
    guest: Guest,
    ring: Ring,
    directory: Directory,
}

impl Setting {
    fn new(path: &Path) -> Self {
        let guest = Guest::default();
        let mut ring = Ring::default();
        ring.start(&guest.memory, guest.place()).unwrap();
        let mut setting =
            Self { guest, ring, directory: Directory::new(path, Duration::ZERO).unwrap() };
        setting.directory.own_mask();
        // Version 7.31, 64 KiB to read ahead, no flags.
        let start = [7_u32, 31, 1 << 16, 0].map(u32::to_le_bytes).concat();
        assert_eq!(setting.ask(START, 0, &start).unwrap().0, 0);
        setting
    }

    /// Sends raw bytes, with room for a reply. Returns the bytes of the reply; `None` if the queue ended.
    fn send(&mut self, bytes: &[u8], room: u32) -> Option<u32> {
        self.guest.poke(FREE, bytes);
        self.guest.ask(&[(FREE, bytes.len() as u32, false), (ANSWER, room, true)]);
        let Self { guest, ring, directory } = self;
        ring.serve(&guest.memory, |memory, chain| directory.serve(memory, chain));
        guest.answer().map(|(_, bytes)| bytes)
    }

    /// Sends a request about a file. Returns the reply's error number and the beginning of its data.
    fn ask(&mut self, kind: u32, file: u64, data: &[u8]) -> Option<(i32, [u8; 64])> {
        const NUMBER: u64 = 77;
        let length = (REQUEST + data.len()) as u32;
        let mut bytes = [length.to_le_bytes(), kind.to_le_bytes()].concat();
        bytes.extend([NUMBER, file, 0].map(u64::to_le_bytes).concat());
        bytes.resize(REQUEST, 0);
        bytes.extend(data);
        self.guest.poke(ANSWER, &[0; 4096]);
        let reply = self.send(&bytes, 4096)?;
        assert!(reply >= REPLY as u32, "{reply}");
        assert_eq!(u32::from_le_bytes(self.guest.peek(ANSWER)), reply);
        assert_eq!(u64::from_le_bytes(self.guest.peek(ANSWER + 8)), NUMBER);
        let error = -i32::from_le_bytes(self.guest.peek(ANSWER + 4));
        Some((error, self.guest.peek(ANSWER + REPLY as u64)))
    }

    /// Looks a name up in a folder: the file's number, or an error.
    fn find(&mut self, folder: u64, name: &[u8]) -> std::result::Result<u64, i32> {
        let (error, data) = self.ask(LOOKUP, folder, name).expect("a reply");
        match error {
            0 => Ok(u64::from_le_bytes(data[..8].try_into().expect("8 bytes"))),
            error => Err(error),
        }
    }
}

/// A folder with `inside/shared/file`, and `inside/secret` beside the shared folder.
fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("shared");
    fs::create_dir_all(shared.join("sub")).unwrap();
    fs::write(shared.join("file"), "content").unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    symlink("../secret", shared.join("link")).unwrap();
    (folder, shared)
}

#[test]
fn files_are_found_and_absent_ones_are_not() {
    let (_folder, shared) = folder();
    let mut setting = Setting::new(&shared);
    let file = setting.find(ROOT, b"file\0").unwrap();
    assert_ne!(file, ROOT);
    assert_eq!(setting.find(ROOT, b"file\0"), Ok(file));
    assert_eq!(setting.find(ROOT, b"none\0"), Err(libc::ENOENT));
    assert_eq!(setting.find(4711, b"file\0"), Err(libc::EBADF));
}

#[test]
fn no_name_leads_out_of_the_folder() {
    let (_folder, shared) = folder();
    let mut setting = Setting::new(&shared);
    assert_eq!(setting.find(ROOT, b"..\0"), Ok(ROOT));
    let sub = setting.find(ROOT, b"sub\0").unwrap();
    assert_eq!(setting.find(sub, b"..\0"), Ok(ROOT));
    for name in [&b"../secret\0"[..], b"sub/../../secret\0", b"/etc/passwd\0", b"link/\0"] {
        let error = setting.find(ROOT, name).unwrap_err();
        assert!(matches!(error, libc::EINVAL | libc::ENOENT), "{error}");
    }
    // A link is a file of its own: it is read, and not followed.
    let link = setting.find(ROOT, b"link\0").unwrap();
    let (error, text) = setting.ask(READLINK, link, &[]).unwrap();
    assert_eq!((error, &text[..9]), (0, &b"../secret"[..]));
    let (error, _) = setting.ask(OPEN, link, &[0; 8]).unwrap();
    assert_ne!(error, 0);
}

#[test]
fn messages_that_are_none_are_refused() {
    let (_folder, shared) = folder();
    let mut setting = Setting::new(&shared);
    // An unknown kind, a name without end, data that is too short.
    for (kind, data) in [(9999, &b""[..]), (LOOKUP, b"file"), (OPEN, b"xy"), (LOOKUP, b"")] {
        let (error, _) = setting.ask(kind, ROOT, data).unwrap();
        assert_ne!(error, 0, "{kind}");
    }
    // A reply that does not fit into its room is not written at all.
    let request = |kind: u32, data: &[u8]| {
        let length = (REQUEST + data.len()) as u32;
        let mut bytes = [length.to_le_bytes(), kind.to_le_bytes()].concat();
        bytes.extend([5, ROOT, 0, 0].map(u64::to_le_bytes).concat());
        bytes.extend(data);
        bytes
    };
    assert_eq!(setting.send(&request(LOOKUP, b"file\0"), 8), Some(0));
    assert_eq!(setting.send(&request(FORGET, &[0; 8]), 0), Some(0));
    assert_eq!(setting.find(ROOT, b"file\0").map(|_| ()), Ok(()));
    // A message without a header ends the queue.
    assert_eq!(setting.send(&[1; REQUEST - 1], 100), None);
}

#[test]
fn what_is_no_folder_is_refused() {
    let (folder, shared) = folder();
    let error = |path: &Path| Directory::new(path, Duration::ZERO).err().map(|e| e.kind());
    assert_eq!(error(&shared.join("none")), Some(ErrorKind::NotFound));
    assert_eq!(error(&folder.path().join("secret")), Some(ErrorKind::NotADirectory));
    for tag in ["", "a name that is longer than thirty-six bytes"] {
        let error = DirectoryDevice::new(&shared, tag).err().map(|e| e.kind());
        assert_eq!(error, Some(ErrorKind::InvalidInput));
    }
}

#[test]
fn the_mask_of_other_threads_stays() {
    let (_folder, shared) = folder();
    let before = umask(Mode::from_raw_mode(0o27));
    std::thread::spawn(move || drop(Setting::new(&shared))).join().unwrap();
    assert_eq!(umask(before), Mode::from_raw_mode(0o27));
}
