//! Images with damaged metadata. A command ends in time, by itself, with at most one line about the reason, and nothing
//! on the host changes but the image that it writes to and the folder that it copies to. Linux itself may panic, crash
//! or hang.
//!
//! `KYOZON_MUTATIONS` is the number of images of each file system (20 if it is not set), `KYOZON_SEED` the first seed.
//! A failure names the seed of its image, and keeps the image in the folder `KYOZON_KEEP`, if that is set. With
//! `KYOZON_SHOW`, each line is shown.
//!
//! With the folder `KYOZON_TOTALS`, these are pieces of a longer run: each file system has a file there with what was
//! done, and goes on behind its last seed until it has a multiple of `KYOZON_MUTATIONS` images, or for
//! `KYOZON_SECONDS`. Failures are recorded, and do not end the run. Several runs at once share the files.

mod common;
#[path = "hostile/totals.rs"]
mod totals;

use common::{finish, fs, image};
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use totals::Totals;

/// Maximum duration of one command: several calls that take as long as they may.
const LIMIT: Duration = Duration::from_secs(60);
/// Used blocks with a super block: the boot region of exFAT has three, super blocks of other file systems one.
const FIRST_BLOCKS: usize = 3;
/// Seconds of one call of the kernel.
const CALL_LIMIT: &str = "10";

/// A generator of numbers (xorshift64*).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Offsets of blocks of 4 KiB that are not holes and not zeros: metadata and little else, because files are small.
fn used_blocks(file: &File) -> Vec<u64> {
    let end = file.metadata().expect("the image").len();
    let mut blocks = Vec::new();
    let mut block = [0; 4096];
    let mut at = 0;
    while at < end {
        // SAFETY: moves only the file's position.
        let data = unsafe { libc::lseek(file.as_raw_fd(), at as i64, libc::SEEK_DATA) };
        if data < 0 {
            break;
        }
        at = data as u64 / 4096 * 4096;
        if file.read_exact_at(&mut block, at).is_ok() && block != [0; 4096] {
            blocks.push(at);
        }
        at += 4096;
    }
    blocks
}

/// Damages an image: some mutations, each at a place in the first MiB or in any used block. Half of the images keep
/// their first blocks, without which nothing mounts.
fn mutate(path: &Path, seed: u64, btrfs: bool) -> io::Result<()> {
    let random = &mut Random::new(seed);
    let file = File::options().read(true).write(true).open(path)?;
    let mut blocks = used_blocks(&file);
    if seed.is_multiple_of(2) {
        blocks.drain(..FIRST_BLOCKS);
    }
    let first = blocks.iter().take_while(|&&block| block < 1 << 20).count() as u64;
    let pick = |random: &mut Random| {
        let among = if random.below(4) == 0 { first } else { blocks.len() as u64 };
        blocks[random.below(among) as usize]
    };
    let mut touched = Vec::new();
    for _ in 0..1 + random.below(4) {
        let at = pick(random);
        let mut block = [0; 4096];
        file.read_exact_at(&mut block, at)?;
        match random.below(4) {
            0 => {
                for _ in 0..1 + random.below(16) {
                    block[random.below(4096) as usize] ^= 1 << random.below(8);
                }
            }
            1 => block.fill(0),
            2 => {
                let other = pick(random);
                let mut swapped = [0; 4096];
                file.read_exact_at(&mut swapped, other)?;
                file.write_all_at(&block, other)?;
                block = swapped;
                touched.push(other);
            }
            _ => {
                let start = 512 * random.below(8) as usize;
                for byte in &mut block[start..start + 512] {
                    *byte = random.next() as u8;
                }
            }
        }
        file.write_all_at(&block, at)?;
        touched.push(at);
    }
    if btrfs {
        touched.iter().try_for_each(|at| seal(&file, *at))?;
    }
    Ok(())
}

/// CRC-32C, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 0 { 0 } else { 0x82f6_3b78 }
        })
    })
}

/// Corrects the checksum of the btrfs node or super block that a changed block is in: what is behind it is reached.
fn seal(file: &File, at: u64) -> io::Result<()> {
    const NODE: u64 = 16 << 10;
    let (start, bytes) = if at == 64 << 10 { (at, 4096) } else { (at / NODE * NODE, NODE) };
    let mut node = vec![0; bytes as usize];
    file.read_exact_at(&mut node, start)?;
    file.write_all_at(&checksum(&node[32..]).to_le_bytes(), start)
}

#[test]
fn checksum_of_a_known_text() {
    assert_eq!(checksum(b"123456789"), 0xe306_9283);
}

/// What can be seen of a folder's files, apart from those in `except`.
fn state(folder: &Path, except: &[&str]) -> BTreeMap<PathBuf, (u64, u32, i64, i64)> {
    let entries = folder.read_dir().expect("a folder").map(|entry| entry.expect("an entry"));
    entries
        .filter(|entry| !except.iter().any(|name| entry.file_name() == *name))
        .map(|entry| {
            let data = entry.metadata().expect("its status");
            (entry.path(), (data.len(), data.mode(), data.mtime(), data.mtime_nsec()))
        })
        .collect()
}

/// Runs a command. Returns its status.
fn run(folder: &Path, arguments: &[&str]) -> Result<i32, String> {
    let start = Instant::now();
    let mut command = fs(folder, &[&["--limit", CALL_LIMIT], arguments].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    // A damaged size must not fill the disk; the program gets an error instead of a signal.
    // SAFETY: system calls only, between fork and exec.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            let limit = libc::rlimit { rlim_cur: 512 << 20, rlim_max: 512 << 20 };
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            Ok(())
        })
    };
    let child = command.spawn().expect("the program");
    let Some(out) = finish(child, LIMIT) else {
        return Err(format!("{arguments:?} took longer than {LIMIT:?}"));
    };
    let error = String::from_utf8_lossy(&out.stderr);
    let lines: Vec<&str> = error.lines().filter(|line| !line.contains(": warning: ")).collect();
    match out.status.code() {
        Some(0) if lines.is_empty() => Ok(0),
        Some(1) if lines.len() == 1 && lines[0].starts_with("kyozon: ") => {
            if std::env::var_os("KYOZON_SHOW").is_some() {
                eprintln!("{arguments:?}: {} ({:?})", lines[0], start.elapsed());
            }
            Ok(1)
        }
        _ => Err(format!("{arguments:?}: {}: {error}", out.status)),
    }
}

/// Reads and changes one damaged image in every way.
fn attack(folder: &Path, host: &Path) -> Result<bool, String> {
    let before = state(host, &[]);
    let inside = state(folder, &["image", "out"]);
    std::fs::create_dir(folder.join("out")).expect("a folder");
    let original = used_hash(&folder.join("image"));
    let mut worked = run(folder, &["find", "image:/"])? == 0;
    worked &= run(folder, &["cat", "image:/tree/a/large", "image:/tree/b/small"])? == 0;
    worked &= run(folder, &["cp", "-r", "image:/", "out"])? == 0;
    if used_hash(&folder.join("image")) != original {
        return Err("reading changed the image".into());
    }
    worked &= run(folder, &["mkdir", "-p", "image:/new/folder"])? == 0;
    run(folder, &["cp", "-r", "tree", "image:/new/"])?;
    run(folder, &["rm", "-r", "image:/tree"])?;
    if state(host, &[]) != before || state(folder, &["image", "out"]) != inside {
        return Err("a file of the host changed".into());
    }
    Ok(worked)
}

/// A checksum of an image's used blocks.
fn used_hash(path: &Path) -> u64 {
    let file = File::open(path).expect("the image");
    let mut hash = DefaultHasher::new();
    let mut block = [0; 4096];
    for at in used_blocks(&file) {
        file.read_exact_at(&mut block, at).expect("a block");
        hash.write(&block);
        hash.write_u64(at);
    }
    hash.finish()
}

/// Small files in several folders.
fn tree(root: &Path) {
    for name in ["a", "b", "c/d/e"] {
        std::fs::create_dir_all(root.join(name)).expect("a folder");
    }
    std::fs::write(root.join("a/large"), vec![0x5a; 1 << 20]).expect("a file");
    for i in 0..100 {
        std::fs::write(root.join(format!("c/d/file-with-a-long-name-{i}")), "x").expect("a file");
    }
    std::fs::write(root.join("b/small"), "small\n").expect("a file");
}

fn attacks(name: &str, make: (&str, &[&str]), megabytes: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let host = folder.path().join("host");
    let work = folder.path().join("work");
    for folder in [&host, &work] {
        std::fs::create_dir(folder).expect("a folder");
    }
    std::fs::write(host.join("canary"), "untouched").expect("a file");
    tree(&work.join("tree"));
    let base = folder.path().join("base");
    image(&base, megabytes, make);
    let filled = fs(&work, &["cp", "-r", "tree", "../base:/"]).status().expect("the program");
    assert!(filled.success(), "the image cannot be filled");
    let path = work.join("image");
    let copy = |seed| {
        let mut copy = Command::new("cp");
        copy.args(["--sparse=always", "--reflink=auto"]).arg(&base).arg(&path);
        assert!(copy.status().expect("cp").success());
        mutate(&path, seed, make.0 == "mkfs.btrfs").expect("a mutation");
    };
    let mut totals = Totals::open(name, variable("KYOZON_SEED", 1));
    let count = variable("KYOZON_MUTATIONS", 20);
    // Another run may count images meanwhile.
    let goal = (totals.images() / count + 1) * count;
    let (start, seconds) = (Instant::now(), variable("KYOZON_SECONDS", u64::MAX));
    let mut failures = Vec::new();
    loop {
        let seed = totals.take_seed();
        copy(seed);
        let ended = attack(&work, &host);
        if let Err(why) = &ended {
            if let Some(keep) = std::env::var_os("KYOZON_KEEP") {
                copy(seed);
                std::fs::copy(&path, Path::new(&keep).join(format!("{name}-{seed}")))
                    .expect("a copy");
            }
            failures.push(format!("{name} seed {seed}: {why}"));
        }
        totals.add(seed, ended.as_ref().is_ok_and(|all| *all), ended.is_err());
        let _ = std::fs::remove_dir_all(work.join("out"));
        let done = totals.images() >= goal || start.elapsed().as_secs() >= seconds;
        if done || (!totals.is_kept() && !failures.is_empty()) {
            break;
        }
    }
    println!("{name}: {totals}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn ext4() {
    attacks("ext4", ("mkfs.ext4", &["-q"]), 64);
}

/// Without checksums, damage reaches more code.
#[test]
fn ext4_without_checksums() {
    attacks("ext4_without_checksums", ("mkfs.ext4", &["-q", "-O", "^metadata_csum,^64bit"]), 64);
}

#[test]
fn xfs() {
    attacks("xfs", ("mkfs.xfs", &["-q"]), 300);
}

#[test]
fn xfs_without_checksums() {
    attacks("xfs_without_checksums", ("mkfs.xfs", &["-q", "-m", "crc=0"]), 300);
}

/// Without copies of its nodes, and with their checksums corrected.
#[test]
fn btrfs() {
    attacks("btrfs", ("mkfs.btrfs", &["-q", "-m", "single"]), 128);
}

#[test]
fn vfat() {
    attacks("vfat", ("mkfs.vfat", &["-F", "32"]), 64);
}

#[test]
fn exfat() {
    attacks("exfat", ("mkfs.exfat", &[]), 64);
}
