//! Standard output, which is the guests' console, and standard error, which gets reports and messages.
//!
//! Either may be a pipe or a terminal that nobody reads. A thread that writes there must still end when its guest must
//! end, so no call here waits in write(2): it waits in poll(2) for a moment, then asks whether to go on. Nothing is
//! kept for later; text that has no room stays with the caller.

use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::{fstat, open, FileType, Mode, OFlags};
use rustix::io::{write, Errno};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Maximum time between two questions whether to go on.
const SLICE: Duration = Duration::from_millis(50);
/// Maximum time in which a message of the tender waits for a reader.
const PATIENCE: Duration = Duration::from_millis(200);
/// Bytes for which a pipe has room if poll(2) says that it is writable (`PIPE_BUF` of limits.h).
const SMALL: usize = 4096;

/// Where bytes go.
enum Sink {
    /// A write never waits: the descriptor is this process's own and does not block, or is a regular file.
    Prompt(OwnedFd),
    /// Another process may have made the descriptor and share its flags, so it keeps them. A write waits only if a
    /// third process fills the room that poll(2) has just reported.
    Shared(BorrowedFd<'static>),
}

/// An output that threads write to in turns.
pub struct Output {
    sink: Sink,
    /// Whether a thread writes now: texts are not mixed.
    busy: Mutex<bool>,
    free: Condvar,
}

/// A thread's turn.
struct Turn<'a>(&'a Output);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.busy.lock().unwrap_or_else(|e| e.into_inner()) = false;
        self.0.free.notify_one();
    }
}

impl Output {
    /// An output to this descriptor. Pipes and terminals are opened once more, so that only the own descriptor does
    /// not block.
    fn new(fd: BorrowedFd<'static>) -> Self {
        let kind = fstat(fd).map(|about| FileType::from_raw_mode(about.st_mode));
        let own = match kind {
            Ok(FileType::Fifo | FileType::CharacterDevice) => {
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
                open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags, Mode::empty()).ok()
            }
            Ok(FileType::RegularFile) => fd.try_clone_to_owned().ok(),
            _ => None,
        };
        let sink = own.map_or(Sink::Shared(fd), Sink::Prompt);
        Self { sink, busy: Mutex::new(false), free: Condvar::new() }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match &self.sink {
            Sink::Prompt(fd) => fd.as_fd(),
            Sink::Shared(fd) => *fd,
        }
    }

    /// Waits for the thread's turn. `None` if `go_on` returned `false` first.
    fn turn(&self, go_on: &dyn Fn() -> bool) -> Option<Turn<'_>> {
        let mut busy = self.busy.lock().unwrap_or_else(|e| e.into_inner());
        while *busy {
            if !go_on() {
                return None;
            }
            busy = self.free.wait_timeout(busy, SLICE).map_or_else(|e| e.into_inner().0, |r| r.0);
        }
        *busy = true;
        Some(Turn(self))
    }

    /// Waits at most `limit` until there is room.
    fn has_room(&self, limit: Duration) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), PollFlags::OUT)];
        let limit = crate::signals::timespec(limit);
        poll(&mut fds, Some(&limit)).is_ok_and(|ready| ready != 0)
    }

    fn attempt(&self, text: &[u8]) -> Result<usize, Errno> {
        match &self.sink {
            Sink::Prompt(fd) => write(fd, text),
            Sink::Shared(_) if !self.has_room(Duration::ZERO) => Err(Errno::AGAIN),
            Sink::Shared(fd) => write(fd, &text[..text.len().min(SMALL)]),
        }
    }

    /// Writes `text` as long as `go_on` returns `true`, and returns what is left of it. An output that is closed takes
    /// all bytes.
    fn write<'a>(&self, mut text: &'a [u8], go_on: &dyn Fn() -> bool) -> &'a [u8] {
        let Some(_turn) = self.turn(go_on) else { return text };
        while !text.is_empty() {
            match self.attempt(text) {
                Ok(count) => text = &text[count..],
                Err(Errno::AGAIN) if go_on() => {
                    self.has_room(SLICE);
                }
                Err(Errno::AGAIN) => return text,
                Err(Errno::INTR) => {}
                Err(_) => return &[],
            }
        }
        text
    }
}

fn standard_output() -> &'static Output {
    static OUTPUT: OnceLock<Output> = OnceLock::new();
    OUTPUT.get_or_init(|| Output::new(rustix::stdio::stdout()))
}

fn standard_error() -> &'static Output {
    static OUTPUT: OnceLock<Output> = OnceLock::new();
    OUTPUT.get_or_init(|| Output::new(rustix::stdio::stderr()))
}

/// Opens both outputs, before the tender gives up files.
pub fn open_outputs() {
    standard_output();
    standard_error();
}

/// Writes what a guest writes to its console, until `go_on` returns `false`.
pub fn print(text: &[u8], go_on: &dyn Fn() -> bool) {
    standard_output().write(text, go_on);
}

/// Writes a report to standard error until `go_on` returns `false`, and returns what is left of it.
pub fn report<'a>(text: &'a [u8], go_on: &dyn Fn() -> bool) -> &'a [u8] {
    standard_error().write(text, go_on)
}

/// Writes one line to standard error, unless nobody reads it within a fraction of a second.
pub fn message(line: &str) {
    let end = Instant::now() + PATIENCE;
    report(format!("{line}\n").as_bytes(), &|| Instant::now() < end);
}

#[cfg(test)]
mod tests;
