//! Random operations on a mounted image, compared with a model: names, hard links, links, open files without a name,
//! contents. The image is unmounted and mounted again from time to time, and checked at the end.
//!
//! Needs root and FUSE. `KYOZON_SECONDS` sets how long each test runs (8), `KYOZON_SEED` repeats one.

mod common;

use common::{finish, fs, image, tool};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self as host, File};
use std::io::{ErrorKind, Result};
use std::os::unix::fs::{symlink, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Maximum size of a file.
const SIZE: usize = 200 << 10;
/// Files, folders and links at a time.
const NAMES: usize = 60;

/// Xorshift: any seed but 0 has a long period.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// What a name means. Contents are found by number: a file may have several names, or none.
#[derive(Clone, PartialEq, Debug)]
enum Named {
    Folder,
    File(usize),
    Link(String),
}

struct Model {
    root: PathBuf,
    names: BTreeMap<PathBuf, Named>,
    contents: Vec<Vec<u8>>,
    open: Vec<(File, usize)>,
    random: Random,
    links: bool,
    done: usize,
}

impl Model {
    fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path)
    }

    /// A path that may exist or not, in a folder that exists.
    fn path(&mut self) -> PathBuf {
        let folders: Vec<PathBuf> = self.of(|named| *named == Named::Folder);
        let folder = match self.random.below(folders.len() + 1) {
            0 => PathBuf::new(),
            number => folders[number - 1].clone(),
        };
        folder.join(format!("name-{}", self.random.below(12)))
    }

    fn of(&self, is: impl Fn(&Named) -> bool) -> Vec<PathBuf> {
        self.names.iter().filter(|(_, named)| is(named)).map(|(path, _)| path.clone()).collect()
    }

    fn pick(&mut self, is: impl Fn(&Named) -> bool) -> Option<PathBuf> {
        let all = self.of(is);
        (!all.is_empty()).then(|| all[self.random.below(all.len())].clone())
    }

    fn file(&mut self) -> Option<(PathBuf, usize)> {
        let path = self.pick(|named| matches!(named, Named::File(_)))?;
        match self.names[&path] {
            Named::File(number) => Some((path, number)),
            _ => None,
        }
    }

    fn empty(&self, folder: &Path) -> bool {
        !self.names.keys().any(|path| path.parent() == Some(folder))
    }

    /// The host's answer must be the expected one.
    fn same<T>(&self, what: &str, got: Result<T>, want: std::result::Result<(), ErrorKind>) {
        let got = got.map(drop).map_err(|error| match error.kind() {
            // rename(2) has both for a folder that is not empty, and xfs takes the other one.
            ErrorKind::AlreadyExists if want == Err(ErrorKind::DirectoryNotEmpty) => {
                ErrorKind::DirectoryNotEmpty
            }
            kind => kind,
        });
        assert_eq!(got, want, "operation {}: {what}", self.done);
    }

    fn step(&mut self) {
        self.done += 1;
        match self.random.below(20) {
            0..=2 => self.create(),
            3 => self.make_folder(),
            4..=5 => self.remove(),
            6..=8 => self.rename(),
            9 if self.links => self.link(),
            10 if self.links => self.symbolic(),
            11 => self.open(),
            12..=13 => self.through_open(),
            14..=16 => self.write(),
            17 => self.list(),
            _ => self.read(),
        }
    }

    fn create(&mut self) {
        let path = self.path();
        let want =
            if self.names.contains_key(&path) { Err(ErrorKind::AlreadyExists) } else { Ok(()) };
        if want.is_ok() && self.names.len() >= NAMES {
            return;
        }
        let made = File::options().write(true).create_new(true).open(self.at(&path));
        self.same(&format!("create {path:?}"), made, want);
        if want.is_ok() {
            self.contents.push(Vec::new());
            self.names.insert(path, Named::File(self.contents.len() - 1));
        }
    }

    fn make_folder(&mut self) {
        let path = self.path();
        let want =
            if self.names.contains_key(&path) { Err(ErrorKind::AlreadyExists) } else { Ok(()) };
        if want.is_ok() && self.names.len() >= NAMES {
            return;
        }
        self.same(&format!("mkdir {path:?}"), host::create_dir(self.at(&path)), want);
        if want.is_ok() {
            self.names.insert(path, Named::Folder);
        }
    }

    fn remove(&mut self) {
        let path = self.path();
        let at = self.at(&path);
        match self.names.get(&path) {
            Some(Named::Folder) => {
                let empty = self.empty(&path);
                let want = if empty { Ok(()) } else { Err(ErrorKind::DirectoryNotEmpty) };
                self.same(&format!("rmdir {path:?}"), host::remove_dir(at), want);
                if !empty {
                    return;
                }
            }
            Some(_) => self.same(&format!("unlink {path:?}"), host::remove_file(at), Ok(())),
            None => {
                self.same("unlink nothing", host::remove_file(at), Err(ErrorKind::NotFound));
            }
        }
        self.names.remove(&path);
    }

    fn rename(&mut self) {
        let (old, new) = (self.path(), self.path());
        if new.starts_with(&old) || old.starts_with(&new) {
            return;
        }
        let (from, to) = (self.names.get(&old), self.names.get(&new));
        let want = match (from, to) {
            (None, _) => Err(ErrorKind::NotFound),
            (Some(Named::Folder), Some(Named::Folder)) if !self.empty(&new) => {
                Err(ErrorKind::DirectoryNotEmpty)
            }
            (Some(Named::Folder), Some(Named::File(_) | Named::Link(_))) => {
                Err(ErrorKind::NotADirectory)
            }
            (Some(Named::File(_) | Named::Link(_)), Some(Named::Folder)) => {
                Err(ErrorKind::IsADirectory)
            }
            _ => Ok(()),
        };
        // Two names of one file stay as they are.
        let nothing = matches!((from, to), (Some(Named::File(a)), Some(Named::File(b))) if a == b);
        let renamed = host::rename(self.at(&old), self.at(&new));
        self.same(&format!("rename {old:?} {new:?}"), renamed, want);
        if want.is_err() || nothing {
            return;
        }
        let moved: Vec<PathBuf> =
            self.names.keys().filter(|path| path.starts_with(&old)).cloned().collect();
        self.names.remove(&new);
        for path in moved {
            let named = self.names.remove(&path).expect("it is there");
            let rest = path.strip_prefix(&old).expect("its start");
            let path = if rest.as_os_str().is_empty() { new.clone() } else { new.join(rest) };
            self.names.insert(path, named);
        }
    }

    fn link(&mut self) {
        let (Some((old, number)), new) = (self.file(), self.path()) else { return };
        let want =
            if self.names.contains_key(&new) { Err(ErrorKind::AlreadyExists) } else { Ok(()) };
        if want.is_ok() && self.names.len() >= NAMES {
            return;
        }
        let linked = host::hard_link(self.at(&old), self.at(&new));
        self.same(&format!("link {old:?} {new:?}"), linked, want);
        if want.is_ok() {
            self.names.insert(new, Named::File(number));
        }
    }

    fn symbolic(&mut self) {
        let path = self.path();
        let target = format!("to/{}", self.random.next());
        let want =
            if self.names.contains_key(&path) { Err(ErrorKind::AlreadyExists) } else { Ok(()) };
        if want.is_ok() && self.names.len() >= NAMES {
            return;
        }
        self.same(&format!("symlink {path:?}"), symlink(&target, self.at(&path)), want);
        if want.is_ok() {
            self.names.insert(path, Named::Link(target));
        }
    }

    fn open(&mut self) {
        if self.open.len() > 8 {
            let number = self.random.below(self.open.len());
            self.open.swap_remove(number);
        }
        let Some((path, number)) = self.file() else { return };
        let file = File::options().read(true).write(true).open(self.at(&path)).expect("open");
        self.open.push((file, number));
    }

    /// A file that is open, whatever its names are by now.
    fn through_open(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let which = self.random.below(self.open.len());
        let number = self.open[which].1;
        let file = self.open[which].0.try_clone().expect("a descriptor");
        self.change(&file, number);
        let names = self.of(|named| *named == Named::File(number)).len();
        let status = file.metadata().expect("its status");
        assert_eq!(status.len(), self.contents[number].len() as u64, "operation {}", self.done);
        if self.links {
            assert_eq!(status.nlink(), names as u64, "operation {}", self.done);
        }
        let mut all = vec![0; SIZE + 1];
        let bytes = read_all(&file, &mut all);
        assert!(all[..bytes] == self.contents[number], "operation {}: an open file", self.done);
    }

    fn write(&mut self) {
        let Some((path, number)) = self.file() else { return };
        let file = File::options().write(true).open(self.at(&path)).expect("open");
        self.change(&file, number);
    }

    fn change(&mut self, file: &File, number: usize) {
        let at = self.random.below(SIZE);
        let bytes = self.random.below(16 << 10).min(SIZE - at);
        let content = &mut self.contents[number];
        if self.random.below(5) == 0 {
            file.set_len(at as u64).expect("truncate");
            content.resize(at, 0);
            return;
        }
        let fill = self.random.next() as u8;
        let data: Vec<u8> = (0..bytes).map(|i| fill.wrapping_add(i as u8)).collect();
        file.write_all_at(&data, at as u64).expect("write");
        if bytes > 0 {
            content.resize(content.len().max(at + bytes), 0);
            content[at..at + bytes].copy_from_slice(&data);
        }
        if self.random.below(20) == 0 {
            file.sync_all().expect("fsync");
        }
    }

    fn read(&mut self) {
        let Some((path, number)) = self.file() else { return };
        let got = host::read(self.at(&path)).expect("read");
        assert!(got == self.contents[number], "operation {}: read {path:?}", self.done);
    }

    fn list(&mut self) {
        let folder = self.pick(|named| *named == Named::Folder).unwrap_or_default();
        let got: BTreeSet<_> = host::read_dir(self.at(&folder))
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .filter(|name| name != "lost+found")
            .collect();
        let want: BTreeSet<_> = self
            .names
            .keys()
            .filter(|path| path.parent() == Some(&folder))
            .map(|path| path.file_name().expect("a name").to_owned())
            .collect();
        assert_eq!(got, want, "operation {}: {folder:?}", self.done);
    }

    /// Everything that has a name.
    fn check(&self) {
        let mut inodes = BTreeMap::new();
        for (path, named) in &self.names {
            let at = self.at(path);
            let status = host::symlink_metadata(&at).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            match named {
                Named::Folder => assert!(status.is_dir(), "{path:?}"),
                Named::Link(target) => {
                    assert_eq!(host::read_link(&at).expect("a link"), Path::new(target));
                }
                Named::File(number) => {
                    assert!(host::read(&at).expect("read") == self.contents[*number], "{path:?}");
                    let inode = inodes.entry(number).or_insert(status.ino());
                    assert_eq!(*inode, status.ino(), "{path:?}: other names have another inode");
                }
            }
        }
    }
}

fn read_all(file: &File, buffer: &mut [u8]) -> usize {
    let mut have = 0;
    while let bytes @ 1.. = file.read_at(&mut buffer[have..], have as u64).expect("read") {
        have += bytes;
    }
    have
}

/// A mounted image. It is unmounted when dropped, whatever happened.
struct Mounted(Option<Child>, PathBuf);

impl Mounted {
    fn new(folder: &Path) -> Self {
        let mount = fs(folder, &["mount", "-f", "image", "mnt"]).stderr(Stdio::piped()).spawn();
        let point = folder.join("mnt");
        let mut mount = mount.expect("the program");
        let device = |path: &Path| host::metadata(path).expect("a folder").dev();
        while device(&point) == device(folder) {
            assert!(mount.try_wait().expect("a child").is_none(), "it does not mount");
            std::thread::sleep(Duration::from_millis(2));
        }
        Self(Some(mount), point)
    }

    fn end(mut self) {
        unmount(&self.1);
        let ended =
            finish(self.0.take().expect("a child"), Duration::from_secs(30)).expect("an end");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success() && said.is_empty(), "{}: {said}", ended.status);
    }
}

fn unmount(point: &Path) {
    let status = std::process::Command::new("fusermount3").arg("-u").arg(point).status();
    assert!(status.expect("fusermount3").success(), "cannot unmount");
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Some(mount) = &mut self.0 {
            let _ = std::process::Command::new("fusermount3").arg("-uz").arg(&self.1).status();
            let _ = mount.wait();
        }
    }
}

fn exercise(megabytes: u64, make: (&str, &[&str]), check: (&str, &[&str]), links: bool) {
    let now = || std::time::UNIX_EPOCH.elapsed().expect("a clock").as_nanos() as u64;
    let seed =
        std::env::var("KYOZON_SEED").map_or_else(|_| now(), |text| text.parse().expect("a number"));
    println!("KYOZON_SEED={seed}");
    let seconds = std::env::var("KYOZON_SECONDS").map_or(8, |text| text.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("image");
    image(&path, megabytes, make);
    host::create_dir(folder.path().join("mnt")).expect("a folder");
    let mut model = Model {
        root: folder.path().join("mnt"),
        names: BTreeMap::new(),
        contents: Vec::new(),
        open: Vec::new(),
        random: Random(seed | 1),
        links,
        done: 0,
    };
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(seconds) {
        let mounted = Mounted::new(folder.path());
        model.check();
        (0..1500).for_each(|_| model.step());
        model.check();
        model.open.clear();
        mounted.end();
        tool(check.0, check.1, &path);
    }
    println!("{}: {} operations, {} names", make.0, model.done, model.names.len());
}

#[test]
fn ext4() {
    exercise(64, ("mkfs.ext4", &["-q"]), ("e2fsck", &["-fn"]), true);
}

#[test]
fn xfs() {
    exercise(300, ("mkfs.xfs", &["-q"]), ("xfs_repair", &["-n"]), true);
}

#[test]
fn btrfs() {
    exercise(128, ("mkfs.btrfs", &["-q"]), ("btrfs", &["check", "-q"]), true);
}

#[test]
fn vfat() {
    exercise(64, ("mkfs.vfat", &["-F", "32"]), ("fsck.vfat", &["-n"]), false);
}
