//! Reading and writing files, in the shape of IOzone: a new file is written, written again, read, and read again, in
//! records. Nothing waits for the disk, but what does not fit into memory gets there. At last files are written again
//! and synchronized.

use crate::cli::Kernel;
use crate::fs::failure::failed;
use anyhow::{anyhow, Result};
use kyozon_devices::block::{Block, BlockDevice};
use kyozon_devices::disk::FileDisk;
use liblinux::calls::{Calls, Fd};
use liblinux::host::Host;
use liblinux::{Config, Instance};
use std::path::Path;
use std::time::Instant;

/// Bytes of a record.
const RECORD: usize = 16 << 10;
/// Sizes of files in KiB, and how often each is measured: the median counts.
const SIZES: [(u64, usize); 5] =
    [(64, 25), (1 << 10, 15), (16 << 10, 7), (128 << 10, 3), (512 << 10, 3)];
/// The last of them.
const LARGEST: (u64, usize) = SIZES[SIZES.len() - 1];
/// What is measured, in this order.
const OPERATIONS: [&str; 4] = ["write", "re-write", "read", "re-read"];
/// Maximum number of times that a file is written and synchronized.
const SYNCS: usize = 5;
/// How a new file is opened.
const NEW: i32 = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR;
/// Memory of the library's kernel: the largest file fits, as it does on the host.
const MEMORY: usize = 2 << 30;

/// Prints the microseconds of a record, for each size and operation.
pub fn run(linux: &Path, kernel: Kernel, place: &Path) -> Result<()> {
    if kernel == Kernel::Native {
        return sizes(&Host, place);
    }
    let disk =
        FileDisk::open(place, true).map_err(|error| anyhow!("{}: {error}", place.display()))?;
    let device = BlockDevice::threaded(Block::new(Box::new(disk), false, "files").extended())?;
    let (instance, thread) =
        Instance::in_process(Config::new(linux).memory(MEMORY).device(device))?;
    let mount = Path::new("/mnt");
    thread.mkdir(mount, 0o755).map_err(failed("make", mount))?;
    thread.mount("/dev/vda", mount, "ext4", 0, "").map_err(failed("mount", mount))?;
    sizes(&thread, mount)?;
    thread.unmount(mount).map_err(failed("unmount", mount))?;
    Ok(instance.halt(thread)?)
}

fn sizes(calls: &dyn Calls, folder: &Path) -> Result<()> {
    let path = folder.join("kyozon-bench");
    for (kib, rounds) in SIZES {
        let mut times = [const { Vec::new() }; OPERATIONS.len()];
        for _ in 0..rounds {
            for (times, us) in times.iter_mut().zip(operations(calls, &path, kib)?) {
                times.push(us);
            }
        }
        if (kib, rounds) == LARGEST {
            // The library uses most of its memory for the first time then, and the host provides it.
            println!("{kib} first-write {:.3}", times[0][0]);
        }
        for (name, times) in OPERATIONS.into_iter().zip(&mut times) {
            println!("{kib} {name} {:.3}", median(times));
        }
    }
    // After the others: what the disk does afterwards would disturb them.
    for (kib, rounds) in SIZES {
        let mut times = Vec::new();
        for _ in 0..rounds.min(SYNCS) {
            pass(calls, &path, kib, NEW, true, false)?;
            times.push(pass(calls, &path, kib, libc::O_RDWR, true, true)?);
            remove(calls, &path)?;
        }
        println!("{kib} re-write+fsync {:.3}", median(&mut times));
    }
    Ok(())
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Microseconds of a record, for each operation on a new file.
fn operations(calls: &dyn Calls, path: &Path, kib: u64) -> Result<[f64; OPERATIONS.len()]> {
    let times = [
        pass(calls, path, kib, NEW, true, false)?,
        pass(calls, path, kib, libc::O_RDWR, true, false)?,
        pass(calls, path, kib, libc::O_RDONLY, false, false)?,
        pass(calls, path, kib, libc::O_RDONLY, false, false)?,
    ];
    remove(calls, path)?;
    Ok(times)
}

fn remove(calls: &dyn Calls, path: &Path) -> Result<()> {
    let name = crate::fs::walk::c_string(path.as_os_str())?;
    calls.unlink_at(liblinux::calls::CWD, &name, 0).map_err(failed("remove", path))
}

/// Writes or reads a whole file, opened as `how` says. Returns the microseconds of a record.
fn pass(
    calls: &dyn Calls,
    path: &Path,
    kib: u64,
    how: i32,
    write: bool,
    sync: bool,
) -> Result<f64> {
    let records = kib * 1024 / RECORD as u64;
    let mut buffer = vec![0x5a; RECORD];
    let file: Fd = calls.open(path, how, 0o600).map_err(failed("open", path))?;
    let start = Instant::now();
    for _ in 0..records {
        let done = if write { calls.write(file, &buffer) } else { calls.read(file, &mut buffer) };
        let bytes = done.map_err(failed(if write { "write" } else { "read" }, path))?;
        if bytes != RECORD {
            return Err(anyhow!("{}: {bytes} bytes instead of {RECORD}", path.display()));
        }
    }
    if sync {
        calls.fsync(file).map_err(failed("synchronize", path))?;
    }
    let time = start.elapsed();
    calls.close(file).map_err(failed("close", path))?;
    Ok(time.as_nanos() as f64 / 1000.0 / records as f64)
}
