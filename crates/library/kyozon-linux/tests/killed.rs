//! A kernel whose process is killed in the middle of writes: what was synchronized is there after the journal has been
//! replayed, and the host's own checker finds nothing wrong.

mod common;

use common::{image, linux, program, tool};
use kyozon_devices::disk::FileDisk;
use liblinux::calls::{Calls, Fd, Result};
use liblinux::confined::{Client, Config, COMMAND};
use liblinux::{Confined, Instance};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MOUNT: &str = "/mnt";
/// Numbers of synchronized files after which the process is killed.
const KILLS: [usize; 3] = [2, 15, 50];
/// Files that change all the time and are never synchronized.
const BUSY: usize = 20;

/// The contents of a file, different for each.
fn content(number: usize) -> Vec<u8> {
    (0..number * 4099 % 60_000 + 1).map(|i| (i.wrapping_mul(7) + i / 4096 + number) as u8).collect()
}

fn boot(disk: &Path, kind: &str) -> (Confined, Client) {
    let config = Config::new(linux()).program([program().into_os_string(), COMMAND.into()]);
    let disk = FileDisk::open(disk, true).expect("open the image");
    let (kernel, client) =
        Instance::confined(config.disk(disk, true)).unwrap_or_else(|e| panic!("{e}"));
    client.mkdir(Path::new(MOUNT), 0o755).expect("mkdir");
    client.mount("/dev/vda", Path::new(MOUNT), kind, 0, "").expect("mount");
    (kernel, client)
}

fn write_file(client: &Client, path: &str, bytes: &[u8], sync: bool) -> Result<()> {
    let how = libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY;
    let file = client.open(Path::new(path), how, 0o644)?;
    client.write_all(file, bytes)?;
    if sync {
        client.fsync(file)?;
    }
    client.close(file)
}

/// Writes files until a call fails. `synced` counts those that are synchronized, with their names.
fn write_files(client: &Client, folder: Fd, synced: &AtomicUsize) -> Result<()> {
    for number in 0.. {
        let busy = format!("{MOUNT}/busy{}", number % BUSY);
        write_file(client, &busy, &vec![number as u8; 200_000], false)?;
        if number % 3 == 2 {
            client.unlink_at(
                liblinux::calls::CWD,
                &std::ffi::CString::new(busy).expect("text"),
                0,
            )?;
        }
        write_file(client, &format!("{MOUNT}/{number}"), &content(number), true)?;
        client.fsync(folder)?;
        synced.store(number + 1, Ordering::Release);
    }
    Ok(())
}

fn read_file(client: &Client, path: &str) -> Vec<u8> {
    let file =
        client.open(Path::new(path), libc::O_RDONLY, 0).unwrap_or_else(|e| panic!("{path}: {e:?}"));
    let mut bytes = vec![0; 60_001];
    let mut have = 0;
    loop {
        match client.read(file, &mut bytes[have..]).expect("read") {
            0 => break,
            more => have += more,
        }
    }
    client.close(file).expect("close");
    bytes.truncate(have);
    bytes
}

fn killed(kind: &str, megabytes: u64, make: (&str, &[&str]), check: (&str, &[&str])) {
    let temporary = tempfile::tempdir().expect("a folder");
    let disk = temporary.path().join("disk");
    for kill in KILLS {
        image(&disk, megabytes, make);
        let (kernel, client) = boot(&disk, kind);
        let folder = client.open(Path::new(MOUNT), libc::O_RDONLY, 0).expect("open");
        let (pid, synced) = (kernel.pid(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while synced.load(Ordering::Acquire) < kill {
                    std::thread::sleep(Duration::from_micros(100));
                }
                // SAFETY: the child of this process, which is not reaped before `kernel` is dropped.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            });
            write_files(&client, folder, &synced).expect_err("the process was killed");
        });
        let why = kernel.failure().expect("a reason");
        assert!(why.contains("killed by signal 9"), "{why}");
        drop((client, kernel));

        // Mounting replays the journal.
        let (kernel, client) = boot(&disk, kind);
        let synced = synced.into_inner();
        assert!(synced >= kill);
        for number in 0..synced {
            let there = read_file(&client, &format!("{MOUNT}/{number}"));
            assert!(there == content(number), "{kind}: file {number} of {synced}");
        }
        client.unmount(Path::new(MOUNT)).expect("unmount");
        kernel.halt(client).expect("halt");
        tool(check.0, check.1, &disk);
    }
}

#[test]
fn ext4() {
    killed("ext4", 128, ("mkfs.ext4", &["-q", "-F"]), ("e2fsck", &["-fn"]));
}

#[test]
fn xfs() {
    killed("xfs", 512, ("mkfs.xfs", &["-q", "-f"]), ("xfs_repair", &["-n"]));
}

#[test]
fn btrfs() {
    killed("btrfs", 256, ("mkfs.btrfs", &["-q", "-f"]), ("btrfs", &["check", "-q"]));
}
