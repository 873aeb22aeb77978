//! Runs unmodified Linux programs in this process. Their files below mount points and their Internet sockets are the
//! library's; memory, threads, signals, processes and everything else are the host's.
//!
//! | module | contents |
//! |---|---|
//! | [`elf`], [`start`], [`program`] | a program's files in memory, its first stack, its heap |
//! | [`gate`], [`state`] | between program and our code: registers, stacks, TLS |
//! | [`area`] | where files and heap go |
//! | [`trap`], [`patch`] | how a system call gets to the gate: SIGSYS at first, then a jump |
//! | [`seam`] | how it gets to the dispatcher from a program of Kyozon's C library: by a call |
//! | [`calls`] | the dispatcher: which calls are the library's |
//! | [`descriptors`], [`reserve`], [`paths`] | which descriptors and paths are the library's |
//! | [`bridge`] | waits for both kernels at once |
//! | [`threads`], [`process`], [`vfork`], [`beside`] | clone, fork, exit; a second program |
//! | [`execve`] | the next program |
//! | [`signals`], [`interrupt`] | handlers run in the program, and end waiting calls |
//! | [`direction`] | which thread gets a signal for the process |
//! | [`library`], [`host`] | calls of the two kernels |
//! | [`credentials`] | the rights that threads have in the library |
//!
//! Invariants:
//!
//! 1. Our code never runs with the program's FS base, apart from signal handlers and [`calls::direct`], which use no
//!    TLS.
//! 2. A descriptor has one number, the host's. See [`descriptors`].
//! 3. Whatever is not routed to the library is executed by the host as if this crate were not there.
//! 4. Our code and the library use no vector register but xmm0 to xmm15, which the gate saves: neither wider ones nor
//!    mask registers. The C library's functions that would are replaced by those of `kyozon-library-strings`.
//!
//! The program is as trusted as this process: it shares its memory, and nothing here confines it.
//!
//! Limits:
//!
//! - Programs that use the GS base, change FS by `wrfsbase` to nothing, or check their own code, do not run.
//! - A shared mapping of a library file that is open for writing fails with ENODEV; other mappings are copies.
//! - A signal mask of ppoll, pselect or sigsuspend must not contain SIGSYS.
//! - Library descriptors cannot be sent over local sockets, nor be members of a nested epoll descriptor.
//!
//! Licence: GPL-2.0-only, as the kernel that it loads.

pub mod area;
pub mod beside;
pub mod bridge;
pub mod calls;
pub mod credentials;
pub mod descriptors;
pub mod direction;
pub mod elf;
pub mod execve;
pub mod gate;
pub mod host;
pub mod interrupt;
pub mod library;
pub mod network;
pub mod patch;
pub mod paths;
pub mod process;
pub mod program;
pub mod reserve;
pub mod seam;
pub mod signals;
pub mod start;
pub mod state;
pub mod threads;
pub mod trap;
pub mod vfork;

use anyhow::{ensure, Context, Result};
pub use calls::Owned;
use kyozon_devices::block::{Block, BlockDevice};
use kyozon_devices::disk::Image;
use liblinux::calls::Calls;
use liblinux::{Config, Instance, Thread};
use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The status if the program cannot start, as env(1) and others have it.
pub const CANNOT_START: i32 = 125;

/// A file system image and where programs see it.
#[derive(Clone, Debug)]
pub struct Mount {
    /// The image's file. File systems in memory (tmpfs) have none.
    pub image: PathBuf,
    /// An absolute path.
    pub point: PathBuf,
    /// Its type.
    pub kind: String,
    /// The image must not change.
    pub read_only: bool,
}

impl Mount {
    /// Whether the file system has no image.
    fn in_memory(&self) -> bool {
        ["tmpfs", "ramfs"].contains(&self.kind.as_str())
    }
}

/// What to run, and in which surroundings.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kernel image.
    pub kernel: PathBuf,
    /// Bytes of the library's memory.
    pub memory: usize,
    /// File system images.
    pub mounts: Vec<Mount>,
    /// Rewrite system calls that have raised SIGSYS.
    pub rewrite: bool,
    /// Print the library's log.
    pub verbose: bool,
    /// A command that runs in the same process, and ends with the first. The first starts when it listens.
    pub beside: Option<Vec<OsString>>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The program's file, if it is not the command's first word.
    pub executable: Option<PathBuf>,
    /// The working directory, if it is below a mount point.
    pub directory: Option<PathBuf>,
    /// Calls that move to the library, besides those of its files and sockets.
    pub owned: Owned,
    /// No library: paths below mount points fail.
    pub guard: bool,
}

/// Runs a program in this process. Returns only if it cannot start.
pub fn run(options: Options) -> Result<std::convert::Infallible> {
    kyozon_library_strings::link();
    // SAFETY: only looks the value up.
    let fsgsbase = unsafe { libc::getauxval(libc::AT_HWCAP2) } & 2 != 0;
    ensure!(
        fsgsbase,
        "this processor or kernel has no FSGSBASE instructions: Linux 5.9 or later is needed"
    );
    // Threads of ours must not get the program's signals.
    let mask = host::set_mask(!host::NEVER_BLOCKED);
    let limit = descriptors::limit();
    ensure!(
        limit >= descriptors::LEAST_LIMIT,
        "the limit of open files is {limit}: set it to {} or more by ulimit -n",
        descriptors::LEAST_LIMIT
    );
    let low = descriptors::occupy_low();
    execve::remember(&options)?;
    credentials::start();
    if options.guard {
        library::leave();
        paths::set_mounts(options.mounts.iter().map(point).collect());
    } else {
        let thread = boot(&options)?;
        network::raise_loopback(&thread).context("the library's loopback")?;
        mount(&thread, &options.mounts)?;
        if let Some(directory) = &options.directory {
            let path = CString::new(directory.as_os_str().as_bytes())?;
            let result = library::call(libc::SYS_chdir, &[path.as_ptr() as u64]);
            ensure!(result == 0, failed(directory, liblinux::Errno(-result as i32)));
        }
        // The library's tasks share one.
        let mask = host::call(libc::SYS_umask, &[0]) as u64;
        host::call(libc::SYS_umask, &[mask]);
        library::call(libc::SYS_umask, &[mask]);
        calls::limit_files()
            .map_err(|error| std::io::Error::from_raw_os_error(-error as i32))
            .context("the limit of file sizes")?;
        drop(thread);
        interrupt::start().context("cannot start a thread")?;
    }
    let directory = options.directory.map(|path| path.into_os_string().into_vec());
    // Of the program's directory on the host, an image at the root knows nothing.
    let root = paths::mounted(b"/").then(|| b"/".to_vec());
    paths::set_cwd(directory.or(root));
    if options.rewrite {
        patch::enable().context("/proc/self/mem")?;
    }
    signals::install();
    calls::route(options.owned);
    let state = start::program(&options.command, options.executable.as_deref())?;
    let beside = options.beside.as_deref().map(|command| start::program(command, None));
    let beside = beside.transpose()?;
    descriptors::release_low(low);
    kyozon_standard::close_again();
    if let Some(beside) = beside {
        threads::run_beside(beside, mask).context("cannot start a thread")?;
        beside::wait();
    }
    start::name(options.executable.as_deref().unwrap_or(Path::new(&options.command[0])));
    ensure!(threads::prepare(&state), "no syscall user dispatch: Linux 5.11 or later is needed");
    threads::run_first(Box::leak(state), mask)
}

fn boot(options: &Options) -> Result<Thread> {
    let mut config = Config::new(&options.kernel).memory(options.memory).around(library::AROUND);
    if options.verbose {
        config = config.log(|text| eprint!("{}", String::from_utf8_lossy(text)));
    }
    let mut qcow2 = Vec::new();
    for mount in options.mounts.iter().filter(|mount| !mount.in_memory()) {
        let write = !mount.read_only;
        let disk = Image::open(&mount.image, write).and_then(|image| image.disk(write));
        let disk = disk.with_context(|| mount.image.display().to_string())?;
        if let Some(disk) = disk.qcow2 {
            disk.check().with_context(|| mount.image.display().to_string())?;
            qcow2.push((mount.image.clone(), disk));
        }
        let block = Block::new(disk.disk, mount.read_only, "exec").extended().ends_at_error();
        config = config.device(BlockDevice::inline(block));
    }
    process::set_qcow2(qcow2);
    let (instance, thread) = Instance::in_process(config)?;
    let limit =
        libc::rlimit { rlim_cur: descriptors::MAX as u64, rlim_max: descriptors::MAX as u64 };
    // SAFETY: the structure is valid.
    unsafe {
        let limit = &raw const limit as u64;
        thread.syscall(libc::SYS_prlimit64, [0, u64::from(libc::RLIMIT_NOFILE), limit, 0, 0, 0]);
    }
    library::set(instance);
    Ok(thread)
}

fn failed(path: &Path, error: liblinux::Errno) -> anyhow::Error {
    let error = std::io::Error::from_raw_os_error(error.0);
    anyhow::anyhow!("{}: {error}", path.display())
}

fn point(mount: &Mount) -> Vec<u8> {
    paths::normalize(mount.point.as_os_str().as_bytes())
}

/// Where an image is mounted that becomes the root of the library.
const ROOT: &str = "/root-image";

fn mount(thread: &Thread, mounts: &[Mount]) -> Result<()> {
    let mut disks = (b'a'..=b'z').map(|letter| format!("/dev/vd{}", char::from(letter)));
    let mut places = Vec::new();
    for mount in mounts {
        let disk = if mount.in_memory() { Some("none".into()) } else { disks.next() };
        places.push((point(mount), disk.context("too many images")?, mount));
    }
    // The root, then what is mounted in it.
    places.sort_by_key(|(point, _, _)| point != b"/");
    let has_root = places.first().is_some_and(|(point, _, _)| point == b"/");
    let top = if has_root { ROOT } else { "" };
    for (point, disk, mount) in &places {
        let path = format!("{top}{}", std::str::from_utf8(point).context("a mount point")?);
        let mut folder = PathBuf::new();
        for part in Path::new(&path) {
            folder.push(part);
            // Some exist.
            let _ = thread.mkdir(&folder, 0o755);
        }
        let flags = if mount.read_only { libc::MS_RDONLY } else { 0 };
        let mounted = thread.mount(disk, Path::new(&path), &mount.kind, flags, "");
        mounted.map_err(|error| match error.0 {
            libc::EACCES if !mount.read_only => anyhow::anyhow!(
                "{}: {} can only be read: mount it with ro behind another colon",
                mount.image.display(),
                mount.kind
            ),
            _ => failed(&mount.image, error).context(format!("as {}", mount.kind)),
        })?;
    }
    if has_root {
        let root = CString::new(ROOT)?;
        for (number, path) in [(libc::SYS_chroot, root.as_c_str()), (libc::SYS_chdir, c"/")] {
            let result = library::call(number, &[path.as_ptr() as u64]);
            ensure!(result == 0, failed(Path::new(ROOT), liblinux::Errno(-result as i32)));
        }
    }
    let points: Vec<_> = places.into_iter().map(|(point, _, _)| point).collect();
    let names = points.iter().rev().map(|point| CString::new(point.clone()));
    process::set_mounted(names.collect::<Result<_, _>>()?);
    paths::set_mounts(points);
    Ok(())
}
