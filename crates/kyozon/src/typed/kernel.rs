//! The module that hosts typed code, by its `/dev/kyozon-typed`.

use super::{filter, packets};
use crate::machine::message;
use anyhow::{anyhow, Context, Result};
use kyozon_abi::device::Image;
use kyozon_abi::typed::{
    TypedCheck, TypedContents, TypedLoad, TypedRun, IOCTL_TYPED_CHECK, IOCTL_TYPED_LOAD,
    IOCTL_TYPED_RUN, TYPED_DIVIDED, TYPED_EXITED, TYPED_FAULTED, TYPED_HANDLES,
    TYPED_MESSAGE_BYTES, TYPED_MISALIGNED, TYPED_REGION, TYPED_RESERVED, TYPED_RETURNED,
    TYPED_VERSION,
};
use rustix::io::Errno;
use rustix::ioctl::{ioctl, Updater};
use rustix::mm::{mmap_anonymous, mprotect, MapFlags, MprotectFlags, ProtFlags};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};

/// The module's device.
pub(super) const DEVICE: &str = "/dev/kyozon-typed";

/// Opens the device.
pub(super) fn device() -> Result<File> {
    OpenOptions::new().read(true).write(true).open(DEVICE).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            anyhow!("{DEVICE} does not exist: insert the module with modprobe kyozon-typed")
        }
        ErrorKind::PermissionDenied => {
            anyhow!("{DEVICE}: permission denied: run as root, or as a user who may open it")
        }
        _ => anyhow::Error::new(error).context(DEVICE),
    })
}

/// Lets the kernel check a program.
#[allow(unsafe_code)]
pub(super) fn check(device: &File, file: &[u8]) -> Result<TypedContents> {
    let mut request = request_about(file);
    // SAFETY: the opcode encodes the size of `TypedCheck`, and the kernel writes no more than that. The file lives
    // across this call, which only reads it.
    let outcome = unsafe {
        ioctl(device, Updater::<{ IOCTL_TYPED_CHECK as _ }, TypedCheck>::new(&mut request))
    };
    outcome.map_err(|error| refusal(error, &request.message))?;
    Ok(request.contents)
}

/// Lets the kernel check a program and load it. `imports` says which functions its imports mean, if these have not the
/// functions' own numbers.
#[allow(unsafe_code)]
pub(super) fn load(device: &File, file: &[u8], imports: Option<&[u32]>) -> Result<()> {
    let mut request = TypedLoad {
        check: request_about(file),
        imports: imports.map_or(0, |imports| imports.as_ptr() as u64),
        import_count: imports.map_or(0, |imports| imports.len() as u64),
    };
    // SAFETY: the opcode encodes the size of `TypedLoad`, and the kernel writes no more than that. File and imports
    // live across this call, which only reads them.
    let outcome = unsafe {
        ioctl(device, Updater::<{ IOCTL_TYPED_LOAD as _ }, TypedLoad>::new(&mut request))
    };
    outcome.map_err(|error| refusal(error, &request.check.message))
}

fn request_about(file: &[u8]) -> TypedCheck {
    TypedCheck {
        version: TYPED_VERSION,
        flags: 0,
        file: Image { address: file.as_ptr() as u64, bytes: file.len() as u64 },
        contents: TypedContents::default(),
        message: [0; TYPED_MESSAGE_BYTES],
    }
}

pub(super) fn refusal(error: Errno, line: &[u8]) -> anyhow::Error {
    match message(line) {
        Some(line) => anyhow!("{line}"),
        None if error == Errno::NOTTY => {
            anyhow!(
                "{DEVICE} has another interface: install module and command from the same release"
            )
        }
        None => anyhow!("the module refuses: {error}"),
    }
}

/// How a program ended.
pub(super) enum Ended {
    /// It returned from its entry or ended itself, with this number.
    Exit(u64),
    /// Why, and where in its text.
    Trap(&'static str, u32),
}

/// A request to run a program that has no files and no memory.
pub(super) const RUN: TypedRun = TypedRun {
    version: TYPED_VERSION,
    flags: 0,
    arguments: [0; 6],
    handles: [-1; TYPED_HANDLES],
    operations: [0; TYPED_HANDLES],
    memory: 0,
    memory_bytes: 0,
    result: 0,
    outcome: 0,
    offset: 0,
    message: [0; TYPED_MESSAGE_BYTES],
};

/// Lets the kernel run the program of a device, or continue it: the number of the error says why it did not.
#[allow(unsafe_code)]
pub(super) fn enter(device: &File, request: &mut TypedRun) -> Result<(), Errno> {
    // SAFETY: the opcode encodes the size of `TypedRun`, and the kernel writes no more than that. The program writes in
    // its region only, of which this process keeps no references meanwhile.
    unsafe { ioctl(device, Updater::<{ IOCTL_TYPED_RUN as _ }, TypedRun>::new(request)) }
}

/// What a program in assembly has beside its code.
pub(super) struct Assembly {
    /// Bytes of memory at the start of its region.
    pub(super) memory: usize,
    /// The packets that it gets.
    pub(super) packets: Packets,
}

/// The packets that a program gets.
pub(super) enum Packets {
    /// None.
    None,
    /// Those that a socket receives, its handle 3.
    Of(OwnedFd),
    /// Those that an interface receives, which it passes or drops.
    Filtered(filter::Options),
}

/// Lets the kernel check a program and run it. Its handles 0 to 2 are this process's standard input, output and error.
/// If it gets packets and returns, it runs again when there are more.
pub(super) fn run(device: &File, file: &[u8], assembly: &Assembly) -> Result<Ended> {
    load(device, file, None)?;
    map_region(assembly.memory)?;
    if let Packets::Filtered(options) = &assembly.packets {
        filter::start(device, options)?;
    }
    loop {
        let request = run_once(device, assembly)?;
        match (request.outcome, &assembly.packets) {
            (TYPED_RETURNED, Packets::Of(socket)) => packets::wait(socket)?,
            (TYPED_RETURNED, Packets::Filtered(options)) => filter::wait(device, options)?,
            (TYPED_RETURNED | TYPED_EXITED, _) => return Ok(Ended::Exit(request.result)),
            (outcome, _) => return Ok(Ended::Trap(why(outcome), request.offset)),
        }
    }
}

fn run_once(device: &File, assembly: &Assembly) -> Result<TypedRun> {
    let mut request = RUN;
    request.handles[..3].copy_from_slice(&[0, 1, 2]);
    if let Packets::Of(socket) = &assembly.packets {
        request.handles[3] = socket.as_raw_fd();
    }
    loop {
        match enter(device, &mut request) {
            Ok(()) => return Ok(request),
            // Signals were handled on the way here. The program goes on where it was.
            Err(Errno::INTR) => {}
            Err(error) => return Err(refusal(error, &request.message)),
        }
    }
}

fn why(outcome: u32) -> &'static str {
    match outcome {
        TYPED_FAULTED => "an access of the region where there is no memory",
        TYPED_DIVIDED => "a division without a result",
        TYPED_MISALIGNED => "a vector operand that is not aligned",
        _ => "ud2",
    }
}

/// Reserves the region; its first bytes become memory of zeros. It lasts as long as this process.
#[allow(unsafe_code)]
fn map_region(memory: usize) -> Result<()> {
    let start = TYPED_REGION as *mut core::ffi::c_void;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
    // SAFETY: a new mapping, which replaces none.
    let region =
        unsafe { mmap_anonymous(start, TYPED_RESERVED as usize, ProtFlags::empty(), flags) };
    let region = region.with_context(|| {
        format!("cannot reserve {} GiB of addresses from {TYPED_REGION:#x}", TYPED_RESERVED >> 30)
    })?;
    // SAFETY: the mapping is this function's own.
    unsafe { mprotect(region, memory, MprotectFlags::READ | MprotectFlags::WRITE) }
        .context("cannot get memory for the region")
}
