//! The time of system calls, by the same code on every kernel.

pub mod files;

use crate::cli::Kernel;
use crate::fs::failure::failed;
use anyhow::{anyhow, Result};
use liblinux::calls::{Calls, Fd};
use liblinux::host::Host;
use liblinux::{Config, Errno, Instance};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long one system call is repeated.
const TIME: Duration = Duration::from_millis(60);
/// Calls between two looks at the clock.
const BATCH: u32 = 500;

/// A raw system call: number and arguments.
type Raw<'a> = &'a dyn Fn(i64, [u64; 6]) -> i64;

/// Prints the nanoseconds of each call on a kernel.
pub fn syscalls(linux: &Path, kernel: Kernel, folder: &Path) -> Result<()> {
    match kernel {
        Kernel::Native => {
            // SAFETY: `rows` passes addresses of live memory with their sizes.
            let raw = |number, [a, b, c, d, e, f]: [u64; 6]| unsafe {
                libc::syscall(number, a, b, c, d, e, f)
            };
            rows(&Host, &raw, folder)
        }
        Kernel::Direct => {
            let (instance, thread) = Instance::in_process(Config::new(linux))?;
            // SAFETY: the same.
            let raw = |number, arguments| unsafe { thread.syscall(number, arguments) };
            rows(&thread, &raw, Path::new("/"))?;
            Ok(instance.halt(thread)?)
        }
    }
}

/// The median of batches, in nanoseconds a call.
fn time(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut batches = Vec::new();
    while start.elapsed() < TIME {
        let before = Instant::now();
        (0..BATCH).for_each(|_| call());
        batches.push(before.elapsed().as_nanos() as f64 / f64::from(BATCH));
    }
    batches.sort_by(f64::total_cmp);
    batches[batches.len() / 2]
}

fn rows(calls: &dyn Calls, raw: Raw<'_>, folder: &Path) -> Result<()> {
    let path = folder.join("kyozon-bench");
    let name = crate::fs::walk::c_string(path.as_os_str())?;
    let file =
        calls.open(&path, libc::O_CREAT | libc::O_RDWR, 0o600).map_err(failed("make", &path))?;
    calls.write_all(file, &[1; 4096]).map_err(failed("write", &path))?;
    let fd = file.0 as u64;
    let mut byte = [0u8];
    let mut stat = [0u64; 32];
    let (byte_address, stat_address) = (byte.as_mut_ptr() as u64, stat.as_mut_ptr() as u64);
    let print = |name: &str, ns: f64| println!("{name} {ns:.2}");
    print(
        "getpid",
        time(|| {
            raw(libc::SYS_getpid, [0; 6]);
        }),
    );
    print(
        "read",
        time(|| {
            raw(libc::SYS_pread64, [fd, byte_address, 1, 0, 0, 0]);
        }),
    );
    print(
        "write",
        time(|| {
            raw(libc::SYS_pwrite64, [fd, byte_address, 1, 0, 0, 0]);
        }),
    );
    print(
        "fstat",
        time(|| {
            raw(libc::SYS_fstat, [fd, stat_address, 0, 0, 0, 0]);
        }),
    );
    let open = |raw: Raw<'_>| {
        let fd = raw(libc::SYS_open, [name.as_ptr() as u64, libc::O_RDONLY as u64, 0, 0, 0, 0]);
        raw(libc::SYS_close, [fd as u64, 0, 0, 0, 0, 0])
    };
    if open(raw) != 0 {
        return Err(anyhow!("cannot open {}", path.display()));
    }
    print(
        "open-close",
        time(|| {
            open(raw);
        }),
    );
    let mut ends = [0i32; 2];
    if raw(libc::SYS_pipe2, [ends.as_mut_ptr() as u64, 0, 0, 0, 0, 0]) != 0 {
        return Err(anyhow!("cannot make a pipe"));
    }
    let [read, write] = ends.map(|end| end as u64);
    print(
        "pipe",
        time(|| {
            raw(libc::SYS_write, [write, byte_address, 1, 0, 0, 0]);
            raw(libc::SYS_read, [read, byte_address, 1, 0, 0, 0]);
        }),
    );
    let close = |fd| calls.close(fd).map_err(failed("close", &path));
    [file, Fd(ends[0]), Fd(ends[1])].into_iter().try_for_each(close)?;
    calls.unlink_at(liblinux::calls::CWD, &name, 0).map_err(failed("remove", &path))
}

/// Prints the CPU time of a boot, in nanoseconds.
pub fn boot(linux: &Path) -> Result<()> {
    let before = cpu_time()?;
    let (instance, thread) = Instance::in_process(Config::new(linux))?;
    let booted = cpu_time()?;
    instance.halt(thread)?;
    println!("{}", (booted - before).as_nanos());
    Ok(())
}

/// CPU time of this process, of all its threads.
fn cpu_time() -> Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid.
    if unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) } != 0 {
        let error = std::io::Error::last_os_error();
        return Err(anyhow!(
            "{}",
            crate::fs::failure::explain(Errno(error.raw_os_error().unwrap_or(libc::EIO)))
        ));
    }
    Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}
