//! The kernel as what executes a compiled program.
//!
//! The kernel does by itself what functions of WASI do often, on the files that this process names. It makes the other
//! calls known, and this process answers them as it does for a program that it runs itself. Of a call that the kernel
//! made and that failed, it tells the program the error.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use anyhow::{anyhow, Error, Result};
use kyozon_abi::typed::{
    TYPED_CALLED, TYPED_DIVIDED, TYPED_FAULTED, TYPED_HANDLES, TYPED_MAY_PREAD, TYPED_MAY_PWRITE,
    TYPED_MAY_READ, TYPED_MAY_SEEK, TYPED_MAY_STATUS, TYPED_MAY_TELL, TYPED_MAY_WRITE,
    TYPED_MISALIGNED, TYPED_OUTSIDE, TYPED_RESERVED, TYPED_RETURNED, TYPED_WASI,
};
use kyozon_typed_runner::{
    is_due, timed, Calls, Command, Ended, Engine, Memory, Outcome, Space, Start, PAGE,
};
use kyozon_typed_wasi::types::{self, FileType, Rights};
use kyozon_typed_wasi::{Entry, Function, Host, Wasi};
use kyozon_typed_wasi_host::Process;
use rustix::io::Errno;

use super::kernel;

/// The program's first descriptors.
#[derive(Clone, Copy)]
struct Files {
    handles: [i32; TYPED_HANDLES],
    operations: [u32; TYPED_HANDLES],
}

impl Files {
    const NONE: Files = Files { handles: [-1; TYPED_HANDLES], operations: [0; TYPED_HANDLES] };

    fn of<H: Host<Handle = OwnedFd>>(wasi: &Wasi<'_, H>) -> Files {
        let mut files = Files::NONE;
        for (n, (handle, operations)) in
            (0..).zip(files.handles.iter_mut().zip(&mut files.operations))
        {
            let Some(entry) = wasi.descriptor(n) else { continue };
            *operations = operations_of(entry);
            if *operations != 0 {
                *handle = entry.handle.as_raw_fd();
            }
        }
        files
    }
}

/// What the kernel may do by a descriptor: what WASI's rules allow at any time.
fn operations_of<T>(entry: &Entry<T>) -> u32 {
    let has = |right| entry.base.contains(right);
    let socket = matches!(entry.kind, FileType::SocketDgram | FileType::SocketStream);
    let directory = entry.kind == FileType::Directory;
    let seekable = !socket && !directory && entry.kind != FileType::Unknown;
    let (reads, writes) = (has(Rights::FD_READ) && !directory, has(Rights::FD_WRITE));
    let seeks = seekable && has(Rights::FD_SEEK);
    [
        (TYPED_MAY_READ, reads),
        (TYPED_MAY_WRITE, writes && !directory),
        (TYPED_MAY_PREAD, reads && seeks),
        (TYPED_MAY_PWRITE, writes && seeks),
        (TYPED_MAY_SEEK, seeks),
        (TYPED_MAY_TELL, seeks || seekable && has(Rights::FD_TELL)),
        (TYPED_MAY_STATUS, has(Rights::FD_FILESTAT_GET) && !socket),
    ]
    .into_iter()
    .filter_map(|(operation, may)| may.then_some(operation))
    .sum()
}

/// What a run leaves for its engine, and the engine for the run.
struct Shared {
    files: Cell<Files>,
    /// Why the kernel did not run the program.
    error: RefCell<Option<Error>>,
}

struct Kernel<'a> {
    device: &'a File,
    /// For each import, the number of the function that it means.
    imports: Vec<u32>,
    shared: &'a Shared,
}

impl Kernel<'_> {
    /// The number of an import by what the kernel says is called.
    fn import(&self, called: u32) -> u32 {
        let own = (called >= TYPED_WASI).then(|| self.imports.iter().position(|&n| n == called));
        own.flatten().map_or(called, |n| n as u32)
    }

    fn run(
        &self,
        space: &mut Space,
        memories: &mut [Memory],
        number: u32,
        calls: &mut Calls<'_>,
    ) -> Result<Outcome> {
        let mut request = kernel::RUN;
        request.arguments[0] = number.into();
        loop {
            let files = self.shared.files.get();
            (request.handles, request.operations) = (files.handles, files.operations);
            if let Some(memory) = memories.first() {
                request.memory = space.host().region + memory.distance;
                request.memory_bytes = u64::from(memory.initial) * PAGE;
            }
            match kernel::enter(self.device, &mut request) {
                Ok(()) => {}
                Err(Errno::INTR) if is_due() => return Ok(Outcome::TimeOut),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(kernel::refusal(error, &request.message)),
            }
            if request.outcome != TYPED_CALLED {
                break;
            }
            let answer = match failed(request.result) {
                Some(error) => Some(error as u64),
                None => calls(space, memories, self.import(request.offset), &request.arguments),
            };
            match answer {
                _ if is_due() => return Ok(Outcome::TimeOut),
                Some(result) => request.result = result,
                None => return Ok(Outcome::Left),
            }
        }
        Ok(match request.outcome {
            TYPED_RETURNED => Outcome::Returned(request.result),
            TYPED_FAULTED => Outcome::Fault(request.offset),
            TYPED_DIVIDED => Outcome::Division(request.offset),
            TYPED_MISALIGNED => Outcome::Alignment(request.offset),
            _ => Outcome::Trap(request.offset),
        })
    }
}

/// The error of a call that the kernel made.
fn failed(result: u64) -> Option<types::Errno> {
    let number = (result as i64).checked_neg().and_then(|n| i32::try_from(n).ok());
    (result != 0).then(|| types::Errno::from_linux(number.unwrap_or_default()))
}

impl Engine for Kernel<'_> {
    fn enter(
        &mut self,
        space: &mut Space,
        memories: &mut [Memory],
        number: u32,
        limit: Duration,
        calls: &mut Calls<'_>,
    ) -> Outcome {
        let outcome = timed(limit, || self.run(space, memories, number, calls));
        outcome.map_err(Error::from).flatten().unwrap_or_else(|error| {
            *self.shared.error.borrow_mut() = Some(error);
            Outcome::Left
        })
    }
}

/// Lets the kernel check a compiled program and run it.
pub(super) fn run(device: &File, file: &[u8], start: Start, limit: Duration) -> Result<Ended> {
    let shared = Shared { files: Cell::new(Files::NONE), error: RefCell::new(None) };
    let command = Command::load_on(file, TYPED_RESERVED, |functions| {
        let number = |function: &Option<Function>| {
            function.map_or(TYPED_OUTSIDE, |function| TYPED_WASI + function as u32)
        };
        let imports: Vec<u32> = functions.iter().map(number).collect();
        kernel::load(device, file, Some(&imports)).map_err(io::Error::other)?;
        Ok(Kernel { device, imports, shared: &shared })
    });
    let command = command.map_err(|message| anyhow!(message))?;
    let ended = start.run_on(
        Process::ending(is_due),
        |handle| handle,
        |wasi| command.run_watched(wasi, limit, |wasi| shared.files.set(Files::of(wasi))),
    )?;
    match shared.error.take() {
        Some(error) => Err(error),
        None => Ok(ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kyozon_abi::typed::*;

    #[test]
    fn the_kernel_and_wasi_number_functions_alike() {
        for (number, name) in [
            (TYPED_WASI_CLOCK_TIME_GET, "clock_time_get"),
            (TYPED_WASI_FD_FILESTAT_GET, "fd_filestat_get"),
            (TYPED_WASI_FD_PREAD, "fd_pread"),
            (TYPED_WASI_FD_PWRITE, "fd_pwrite"),
            (TYPED_WASI_FD_READ, "fd_read"),
            (TYPED_WASI_FD_SEEK, "fd_seek"),
            (TYPED_WASI_FD_TELL, "fd_tell"),
            (TYPED_WASI_FD_WRITE, "fd_write"),
        ] {
            let function = Function::from_number((number - TYPED_WASI) as usize).unwrap();
            assert_eq!(function.signature().name, name);
        }
    }

    fn operations(kind: FileType, base: Rights) -> u32 {
        operations_of(&Entry { base, ..Entry::new((), kind) })
    }

    #[test]
    fn the_kernel_may_do_what_rights_and_type_allow() {
        let all = |kind| operations(kind, Rights::ALL);
        assert_eq!(all(FileType::RegularFile), 127);
        assert_eq!(all(FileType::Directory), TYPED_MAY_STATUS);
        assert_eq!(all(FileType::SocketStream), TYPED_MAY_READ | TYPED_MAY_WRITE);
        assert_eq!(all(FileType::Unknown), TYPED_MAY_READ | TYPED_MAY_WRITE | TYPED_MAY_STATUS);
        assert_eq!(operations(FileType::RegularFile, Rights::NONE), 0);
        let read_only = Rights::READ_ONLY;
        let expected =
            TYPED_MAY_READ | TYPED_MAY_PREAD | TYPED_MAY_SEEK | TYPED_MAY_TELL | TYPED_MAY_STATUS;
        assert_eq!(operations(FileType::RegularFile, read_only), expected);
        assert_eq!(operations(FileType::RegularFile, Rights::FD_TELL), TYPED_MAY_TELL);
        assert_eq!(operations(FileType::RegularFile, Rights::FD_WRITE), TYPED_MAY_WRITE);
    }
}
