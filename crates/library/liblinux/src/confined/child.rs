//! The child process, which runs the kernel.
//!
//! The order matters. Everything that needs files, memory with code, or new threads comes first; then the process gives
//! up system calls; only then does the kernel run. It reads partition tables, which may be hostile, when it boots.

use super::area::Area;
use super::process::{PANICKED, REFUSED};
use super::slot::{Argument, Kind, Request, ARGUMENTS};
use super::spec::{Disk, Spec};
use super::{filter, surrender};
use crate::calls::{Arg, Calls};
use crate::instance::Prepared;
use crate::{Config, Halted, Instance, Thread};
use kyozon_devices::block::{Block, BlockDevice, Errors};
use kyozon_devices::disk::{Image, Qcow2Disk};
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::panic;
use std::sync::{Arc, Barrier, Mutex, OnceLock};

/// Bytes of addresses beside the kernel's memory: the program, its heap, stacks.
const MORE_MEMORY: u64 = 1 << 30;
/// Bytes of addresses for each qcow2 image: up to 160 tables of 2 MiB, the L1 table, and a heap of the thread.
const QCOW2_MEMORY: u64 = 768 << 20;
/// Bytes of a thread's stack. Kernel code has stacks of its own.
const STACK_BYTES: usize = 256 << 10;

type Result<T> = std::result::Result<T, String>;

/// What the threads share.
struct Server {
    area: Arc<Area>,
    instance: OnceLock<Instance>,
    errors: Vec<Arc<Errors>>,
    /// With their disks' numbers.
    qcow2: Vec<(usize, Qcow2Disk)>,
}

/// Runs the kernel that the words of the command line describe, and exits.
pub fn run(words: &[String]) -> ! {
    let status = match Spec::parse(words) {
        Some(spec) => start(&spec),
        None => REFUSED,
    };
    exit(status)
}

fn exit(status: i32) -> ! {
    // SAFETY: ends the process. Nothing is buffered.
    unsafe { libc::_exit(status) }
}

fn start(spec: &Spec) -> i32 {
    // SAFETY: the parent passes the descriptor to this process, which has no other owner for it.
    let file = unsafe { OwnedFd::from_raw_fd(spec.area) };
    let Ok(area) = Area::open(file, spec.slots) else { return REFUSED };
    let area = Arc::new(area);
    let lock = Arc::new(Mutex::new(()));
    let log = {
        let area = area.clone();
        move |text: &[u8]| {
            let _one = lock.lock().unwrap_or_else(|e| e.into_inner());
            area.log(text);
        }
    };
    let last = log.clone();
    panic::set_hook(Box::new(move |info| {
        last(format!("\n{info}").replace('\n', " ").as_bytes());
        exit(101)
    }));
    let refused = log.clone();
    match prepare(spec, area, log) {
        Ok((server, prepared)) => match open(&server) {
            Ok(()) => serve_boot(&server, prepared),
            Err(why) => {
                refused(format!("\n{why}\n").as_bytes());
                REFUSED
            }
        },
        Err(why) => {
            refused(format!("\n{why}\n").as_bytes());
            REFUSED
        }
    }
}

fn inherited(fd: RawFd) -> File {
    // SAFETY: the parent passes the descriptor to this process, which has no other owner for it.
    unsafe { File::from_raw_fd(fd) }
}

fn prepare(
    spec: &Spec,
    area: Arc<Area>,
    log: impl Fn(&[u8]) + Send + Sync + 'static,
) -> Result<(Arc<Server>, Prepared)> {
    surrender::privileges(spec.parent).map_err(|e| format!("cannot give up privileges: {e}"))?;
    surrender::standard_files();
    let mut config = Config::new(&spec.path)
        .file(inherited(spec.image))
        .memory(spec.memory_bytes)
        .option(&spec.options)
        .log(log);
    let (mut errors, mut qcow2) = (Vec::new(), Vec::new());
    let mut largest = 0;
    for (number, disk) in spec.disks.iter().enumerate() {
        let Disk { fd, write, limits, qcow2: is_qcow2 } = *disk;
        let image = Image::inherited(inherited(fd), write, limits, is_qcow2);
        let image = image.map_err(|e| e.to_string())?;
        if write {
            largest = image.largest().max(largest);
        }
        let opened = image.disk(write).map_err(|e| e.to_string())?;
        qcow2.extend(opened.qcow2.map(|disk| (number, disk)));
        let block =
            Block::new(opened.disk, !write, &format!("disk{number}")).extended().ends_at_error();
        let device = BlockDevice::inline(block);
        errors.push(device.errors());
        config = config.device(device);
    }
    let prepared = Prepared::new(config).map_err(|e| e.to_string())?;
    let more = MORE_MEMORY + QCOW2_MEMORY * qcow2.len() as u64;
    let server = Arc::new(Server { area, instance: OnceLock::new(), errors, qcow2 });
    threads(&server)?;
    // The kernel never writes behind the end of a disk. A qcow2 image grows up to its disk's size and its tables'.
    let memory = spec.memory_bytes as u64 + server.area.bytes() as u64 + more;
    let largest = largest.checked_next_multiple_of(1 << 20).unwrap_or(u64::MAX);
    surrender::resources(memory, largest)
        .map_err(|e| format!("cannot set resource limits: {e}"))?;
    filter::install(&spec.disks)
        .map_err(|e| format!("cannot install a system-call filter: {e}"))?;
    if let Some([number, a, b, c, d, e, f]) = spec.probe {
        // SAFETY: tests pass calls that the filter refuses, or that change nothing.
        unsafe { libc::syscall(number as i64, a, b, c, d, e, f) };
    }
    Ok((server, prepared))
}

/// Starts the threads of all slots but the first, and waits until they need nothing more from the system.
fn threads(server: &Arc<Server>) -> Result<()> {
    let slots = server.area.slots();
    let started = Arc::new(Barrier::new(slots));
    for slot in 1..slots {
        let (server, started) = (server.clone(), started.clone());
        std::thread::Builder::new()
            .name(format!("slot{slot}"))
            .stack_size(STACK_BYTES)
            .spawn(move || {
                started.wait();
                serve(&server, slot, None, 0)
            })
            .map_err(|e| format!("cannot start a thread: {e}"))?;
    }
    started.wait();
    Ok(())
}

/// Reads the tables of qcow2 images, which may be hostile: only now.
fn open(server: &Server) -> Result<()> {
    each(server, Qcow2Disk::check)
}

/// Writes back the tables of qcow2 images: not every file system flushes its disk when it is unmounted.
fn write_back(server: &Server) -> Result<()> {
    each(server, Qcow2Disk::write_back)
}

/// The parent knows the names of disks by their numbers.
fn each(server: &Server, act: impl Fn(&Qcow2Disk) -> std::io::Result<()>) -> Result<()> {
    let mut disks = server.qcow2.iter();
    disks.try_for_each(|(number, disk)| act(disk).map_err(|e| format!("disk{number}: {e}")))
}

/// Waits for the request to boot, and serves the first slot.
fn serve_boot(server: &Server, prepared: Prepared) -> i32 {
    let (number, _) = server.area.slot(0).next(0);
    match prepared.boot() {
        Ok((instance, thread)) => {
            server.instance.get_or_init(|| instance);
            server.area.slot(0).answer(number, 0);
            serve(server, 0, Some(thread), number)
        }
        Err(crate::Error::Panicked) => PANICKED,
        Err(error) => {
            server.area.log(format!("\n{error}\n").as_bytes());
            REFUSED
        }
    }
}

/// Serves a slot for ever.
fn serve(server: &Server, slot: usize, mut thread: Option<Thread>, mut last: u32) -> ! {
    loop {
        let (number, request) = server.area.slot(slot).next(last);
        last = number;
        let result = match request {
            Some(request) => perform(server, slot, &mut thread, &request),
            None => -i64::from(libc::EINVAL),
        };
        server.area.slot(slot).answer(number, result);
    }
}

fn perform(server: &Server, slot: usize, thread: &mut Option<Thread>, request: &Request) -> i64 {
    let Some(instance) = server.instance.get() else { return -i64::from(libc::EAGAIN) };
    match request.kind {
        Kind::Boot => -i64::from(libc::EALREADY),
        Kind::Attach => match instance.attach() {
            Ok(attached) => {
                *thread = Some(attached);
                0
            }
            Err(_) => -i64::from(libc::EAGAIN),
        },
        Kind::Detach => {
            *thread = None;
            0
        }
        Kind::Call => {
            let Some(thread) = thread else { return -i64::from(libc::ESRCH) };
            let result = call(server, slot, thread, request);
            if result == -i64::from(libc::ESHUTDOWN) && instance.halted() == Halted::Panicked {
                exit(PANICKED);
            }
            result
        }
        Kind::DiskError => {
            let failure = server.errors.get(request.number as usize).and_then(|e| e.last());
            let text = failure.map(|failure| failure.to_string()).unwrap_or_default();
            if server.area.put(slot, 0, text.as_bytes()) {
                text.len() as i64
            } else {
                0
            }
        }
        Kind::Halt => {
            let Some(thread) = thread.take() else { return -i64::from(libc::ESRCH) };
            exit(match instance.clone().halt(thread) {
                Ok(()) => match write_back(server) {
                    Ok(()) => 0,
                    Err(why) => {
                        server.area.log(format!("\n{why}\n").as_bytes());
                        REFUSED
                    }
                },
                Err(crate::Error::Panicked) => PANICKED,
                Err(error) => {
                    server.area.log(format!("\n{error}\n").as_bytes());
                    REFUSED
                }
            })
        }
    }
}

fn call(server: &Server, slot: usize, thread: &Thread, request: &Request) -> i64 {
    let mut arguments: [Arg<'_>; ARGUMENTS] = [const { Arg::Number(0) }; ARGUMENTS];
    for (argument, shared) in arguments.iter_mut().zip(request.arguments) {
        let (offset, bytes, zero) = match shared {
            Argument::Number(number) => {
                *argument = Arg::Number(number);
                continue;
            }
            Argument::Bytes(offset, bytes) => (offset, bytes, false),
            Argument::Zeroed(offset, bytes) => (offset, bytes, true),
        };
        let Some(address) = server.area.data(slot, offset, bytes) else {
            return -i64::from(libc::EFAULT);
        };
        if zero {
            // SAFETY: the range is in the slot's data, which only this thread and its client use.
            unsafe { address.write_bytes(0, bytes) };
        }
        *argument = Arg::Number(address as u64);
    }
    match thread.call(request.number as i64, &mut arguments) {
        Ok(result) => result as i64,
        Err(errno) => -i64::from(errno.0),
    }
}
