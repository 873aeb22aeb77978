//! Paths that must not lead out, as data, and while others change the files.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{symlink, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{directory, Guest, DATA, OUT};
use kyozon_typed_wasi::types::Rights;
use kyozon_typed_wasi::{Errno, Function};
use kyozon_typed_wasi_host::Start;

const CASES: &str = include_str!("paths/cases.txt");
const SECRET: &[u8] = b"a secret";

/// Makes the files of the cases in a fresh folder, and gives the program's directory.
fn files(folder: &Path) -> PathBuf {
    let (inside, outside) = (folder.join("inside"), folder.join("outside"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), SECRET).unwrap();
    for line in CASES.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["directory", name] => fs::create_dir(inside.join(name)).unwrap(),
            ["file", name, contents] => fs::write(inside.join(name), contents).unwrap(),
            ["link", name, target] if !line.contains('=') => {
                symlink(target, inside.join(name)).unwrap();
            }
            _ => {}
        }
    }
    inside
}

/// What there is outside: names, contents, inodes and times.
fn outside(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u64, u64, [i64; 2])> {
    let folder = folder.join("outside");
    let mut all = vec![folder.clone()];
    all.extend(fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()));
    let describe = |path: PathBuf| {
        let meta = fs::symlink_metadata(&path).unwrap();
        let times = [meta.mtime(), meta.mtime_nsec()];
        (path.clone(), (fs::read(&path).unwrap_or_default(), meta.ino(), meta.nlink(), times))
    };
    all.into_iter().map(describe).collect()
}

/// Makes one call.
fn call(guest: &mut Guest<'_, '_>, words: &[&str]) -> Result<String, Errno> {
    let has = |word| words[1..].contains(&word);
    let follow = u64::from(has("follow"));
    let options = ["follow", "create", "exclusive", "truncate", "directory", "keep"];
    let paths: Vec<&str> = words[1..]
        .iter()
        .filter(|word| !options.contains(*word))
        .map(|word| if *word == "''" { "" } else { word })
        .collect();
    let [at, length] = guest.text(paths[0]);
    let [at2, length2] = guest.text(paths.get(1).unwrap_or(&""));
    let done = |result: Result<(), Errno>| result.map(|()| String::from("ok"));
    match words[0] {
        "open" => {
            let bits = [("create", 1), ("directory", 2), ("exclusive", 4), ("truncate", 8)];
            let flags = bits.iter().filter(|(word, _)| has(word)).map(|(_, bit)| bit).sum();
            let fd = guest.open(paths[0], follow, flags, Rights::FD_READ)?;
            if flags != 0 {
                return Ok("ok".into());
            }
            Ok(String::from_utf8(guest.read(fd)?).unwrap())
        }
        "stat" => done(guest.call(Function::PathFilestatGet, &[0, follow, at, length, OUT])),
        "times" => {
            let which = if has("keep") { 0 } else { 5 };
            let arguments = [0, follow, at, length, 1, 1, which];
            done(guest.call(Function::PathFilestatSetTimes, &arguments))
        }
        "mkdir" => done(guest.call(Function::PathCreateDirectory, &[0, at, length])),
        "rmdir" => done(guest.call(Function::PathRemoveDirectory, &[0, at, length])),
        "unlink" => done(guest.call(Function::PathUnlinkFile, &[0, at, length])),
        "rename" => done(guest.call(Function::PathRename, &[0, at, length, 0, at2, length2])),
        "link" => done(guest.call(Function::PathLink, &[0, follow, at, length, 0, at2, length2])),
        "symlink" => done(guest.call(Function::PathSymlink, &[at, length, 0, at2, length2])),
        "readlink" => {
            guest.call(Function::PathReadlink, &[0, at, length, DATA, 4096, OUT])?;
            Ok(String::from_utf8(guest.bytes(DATA, guest.u32(OUT))).unwrap())
        }
        "list" => {
            let fd = guest.open(paths[0], 1, 2, Rights::FD_READDIR)?;
            let mut names = list(guest, fd, 0x4000)?;
            names.sort();
            Ok(names.join(" "))
        }
        verb => panic!("cases.txt: no call is named {verb}"),
    }
}

/// Lists a directory with a buffer of some size, as C libraries do.
fn list(guest: &mut Guest<'_, '_>, fd: u64, size: u64) -> Result<Vec<String>, Errno> {
    let (mut names, mut cookie) = (Vec::new(), 0);
    loop {
        guest.call(Function::FdReaddir, &[fd, DATA, size, cookie, OUT])?;
        let used = guest.u32(OUT);
        let mut at = DATA;
        while at + 24 <= DATA + used {
            let length = guest.u32(at + 16);
            if at + 24 + length > DATA + used {
                break;
            }
            cookie = guest.u64(at);
            let name = String::from_utf8(guest.bytes(at + 24, length)).unwrap();
            if name != "." && name != ".." {
                names.push(name);
            }
            at += 24 + length;
        }
        if used < size {
            return Ok(names);
        }
    }
}

#[test]
fn cases() {
    let mut failures = Vec::new();
    let mut count = 0;
    for line in CASES.lines().filter(|line| !line.starts_with('#')) {
        let Some((call_text, expected)) = line.split_once('=') else { continue };
        let folder = tempfile::tempdir().unwrap();
        let inside = files(folder.path());
        let before = outside(folder.path());
        let directories = vec![directory(&inside, "/", Rights::ALL)];
        let start = Start { directories, ..Start::default() };
        let words: Vec<&str> = call_text.split_whitespace().collect();
        let result = start.run(|wasi| call(&mut Guest::new(wasi), &words)).unwrap();
        let result = result.unwrap_or_else(|error| format!("{error:?}").to_lowercase());
        if result != expected.trim() {
            failures.push(format!("{line}: got {result}"));
        }
        if before != outside(folder.path()) {
            failures.push(format!("{line}: something outside changed"));
        }
        count += 1;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(count > 150, "only {count} cases were found");
}

#[test]
fn a_small_buffer_lists_each_entry_once() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..300 {
        fs::write(folder.path().join(format!("file{n:03}")), "").unwrap();
    }
    let directories = vec![directory(folder.path(), "/", Rights::ALL)];
    let start = Start { directories, ..Start::default() };
    start
        .run(|wasi| {
            let guest = &mut Guest::new(wasi);
            for size in [32, 100, 1000, 0x4000] {
                let mut names = list(guest, 0, size).unwrap();
                names.sort();
                let expected: Vec<String> = (0..300).map(|n| format!("file{n:03}")).collect();
                assert_eq!(names, expected, "{size}");
            }
        })
        .unwrap();
}

/// Sets its flag when it is dropped.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Another thread exchanges a directory with a link to the outside as fast as it can, while the program opens, creates
/// and removes below it. Whatever succeeds was inside.
#[test]
fn links_that_come_and_go_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    let outside_folder = folder.path().join("outside");
    for path in [&inside, &inside.join("d"), &outside_folder] {
        fs::create_dir(path).unwrap();
    }
    fs::write(outside_folder.join("f"), SECRET).unwrap();
    fs::write(inside.join("d/f"), "inside").unwrap();
    symlink("../outside", inside.join("l")).unwrap();
    fs::write(inside.join("x"), "inside").unwrap();
    symlink("../outside/f", inside.join("y")).unwrap();
    let before = outside(folder.path());
    let end = AtomicBool::new(false);
    let directories = vec![directory(&inside, "/", Rights::ALL)];
    let start = Start { directories, ..Start::default() };
    let (mut opened, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let at = fs::File::open(&inside).unwrap();
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            let until = Instant::now() + Duration::from_secs(60);
            while !end.load(Ordering::Relaxed) && Instant::now() < until {
                rustix::fs::renameat_with(&at, "d", &at, "l", flags).unwrap();
                rustix::fs::renameat_with(&at, "x", &at, "y", flags).unwrap();
            }
        });
        // The thread ends also if an assertion fails.
        let _ended = End(&end);
        let run = start.run(|wasi| {
            let guest = &mut Guest::new(wasi);
            let start = Instant::now();
            let enough = |opened, refused| opened > 10 && refused > 10;
            // A second, or longer if a busy machine has hardly let the other thread run.
            while start.elapsed() < Duration::from_secs(1)
                || (!enough(opened, refused) && start.elapsed() < Duration::from_secs(30))
            {
                for path in ["d/f", "d/../d/f", "x", "./x"] {
                    match guest.open(path, 1, 0, Rights::FD_READ) {
                        Ok(fd) => {
                            assert_eq!(guest.read(fd).unwrap(), b"inside", "{path}");
                            guest.close(fd);
                            opened += 1;
                        }
                        Err(Errno::Notcapable) => refused += 1,
                        Err(Errno::Loop | Errno::Noent | Errno::Notdir) => {}
                        Err(error) => panic!("{path}: {error:?}"),
                    }
                }
                // Removal and creation in turn: outside, either would be seen.
                let [at, length] = guest.text("d/n");
                let _ = guest.call(Function::PathCreateDirectory, &[0, at, length]);
                let [at, length] = guest.text("d/n");
                let _ = guest.call(Function::PathFilestatSetTimes, &[0, 1, at, length, 1, 1, 5]);
                let [at, length] = guest.text("d/n");
                let _ = guest.call(Function::PathRemoveDirectory, &[0, at, length]);
            }
        });
        run.unwrap();
    });
    assert!(opened > 10 && refused > 10, "opened {opened} times, refused {refused} times");
    assert_eq!(before, outside(folder.path()));
}
