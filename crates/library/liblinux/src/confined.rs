//! A kernel in a process of its own, which has given up everything that the kernel does not need. A defect of Linux
//! that a hostile file-system image reaches stays there: it can change the image, waste the child's memory and time,
//! and give wrong answers.
//!
//! | module | contents |
//! |---|---|
//! | [`child`] | the child: prepares, gives up, boots, serves |
//! | `surrender`, `filter` | what it gives up: privileges, resources, system calls |
//! | `config`, `spec`, `command` | what the parent wants of it: as the caller says it, and on its command line |
//! | `area`, `slot`, `futex` | requests and answers in shared memory |
//! | `client` | the parent's threads, which check the answers |
//! | `process`, `text` | the child's start, death and last words |
//!
//! Invariants:
//!
//! 1. The kernel runs no instruction that an image can influence before the filter is installed.
//! 2. The child has the descriptors of its disks, its image's and the shared memory's, and can use only the disks'.
//! 3. Nothing that the child writes makes the parent panic, wait without end, or access memory that the caller did not
//!    pass.
//! 4. The child never outlives the parent. The parent reaps it.

mod area;
pub mod child;
mod client;
mod command;
mod config;
mod filter;
mod futex;
mod process;
mod slot;
mod spec;
mod surrender;
mod text;

pub use client::Client;
pub use config::{Config, COMMAND};

use crate::{calls, Errno, Error};
use area::Area;
use kyozon_devices::disk::Image;
use process::{Child, Kill};
use slot::{Kind, Request};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What the threads of a confined kernel share.
pub(crate) struct Shared {
    area: Arc<Area>,
    child: Child,
    limit: Duration,
    /// Slots without a client.
    free: Mutex<Vec<usize>>,
    /// Locks files, as long as the child has them.
    _disks: Vec<(Image, bool)>,
}

impl Shared {
    fn free(&self) -> MutexGuard<'_, Vec<usize>> {
        self.free.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Performs a request. EIO if the child has ended, or does not answer.
    fn request(&self, slot: usize, request: &Request) -> calls::Result<u64> {
        if !self.child.alive() {
            return Err(Errno(libc::EIO));
        }
        let words = self.area.slot(slot);
        let number = words.submit(request);
        match words.wait(number, self.limit, || self.child.alive()) {
            Some(result @ -4095..0) => Err(Errno(-result as i32)),
            Some(result) => Ok(result as u64),
            None => {
                // Nothing happens to a child that has ended.
                self.child.kill(Kill::Silent(self.limit));
                Err(Errno(libc::EIO))
            }
        }
    }

    /// Ends a child whose answer was impossible.
    fn distrust(&self) -> Errno {
        self.child.kill(Kill::Nonsense);
        Errno(libc::EIO)
    }

    fn release(&self, slot: usize) {
        // A child that has ended has no tasks.
        let _ = self.request(slot, &Request::plain(Kind::Detach, 0));
        self.free().push(slot);
    }

    fn last_words(&self) -> String {
        text::last_words(&self.area.read_log())
    }
}

/// The error of a host that refuses shared memory.
fn explained(error: std::io::Error) -> Error {
    if error.raw_os_error() == Some(libc::EFBIG) {
        let text = "the limit on the size of files (ulimit -f) also holds for Linux's memory: raise it to 8 MiB or more";
        return Error::Config(text.into());
    }
    Error::Host(error)
}

/// A running kernel in a process of its own. The process is killed when this value and all clients are dropped.
#[derive(Clone)]
pub struct Confined(Arc<Shared>);

impl Confined {
    pub(crate) fn start(config: Config) -> Result<(Self, Client), Error> {
        let (area, area_file) = Area::create(config.threads).map_err(explained)?;
        let area = Arc::new(area);
        let image =
            File::open(&config.image).map_err(|error| Error::File(config.image.clone(), error))?;
        let command = command::command(&config, &area_file, &image)?;
        let program = PathBuf::from(command.get_program());
        let child = Child::start(command, area.clone()).map_err(|e| Error::File(program, e))?;
        let shared = Arc::new(Shared {
            area,
            child,
            limit: config.limit,
            free: Mutex::new((1..config.threads).rev().collect()),
            _disks: config.disks,
        });
        let kernel = Self(shared.clone());
        match shared.request(0, &Request::plain(Kind::Boot, 0)) {
            Ok(0) => Ok((kernel, Client::new(shared, 0))),
            Ok(_) => Err(kernel.error(shared.distrust())),
            Err(errno) => Err(kernel.error(errno)),
        }
    }

    /// The error of a failed request.
    fn error(&self, errno: Errno) -> Error {
        // The child that was killed a moment ago ends soon.
        if errno.0 == libc::EIO {
            self.0.child.wait(Duration::from_secs(5));
        }
        self.failure().map_or(Error::Kernel(errno), Error::Ended)
    }

    /// Attaches the calling thread, which gets a task.
    pub fn attach(&self) -> Result<Client, Error> {
        let Some(slot) = self.0.free().pop() else {
            let most = self.0.area.slots();
            return Err(Error::Config(format!("the confined kernel has {most} threads already")));
        };
        let client = Client::new(self.0.clone(), slot);
        match self.0.request(slot, &Request::plain(Kind::Attach, 0)) {
            Ok(_) => Ok(client),
            Err(errno) => Err(self.error(errno)),
        }
    }

    /// Writes everything back and halts. Clients of other threads get EIO.
    pub fn halt(self, client: Client) -> Result<(), Error> {
        // The child exits instead of answering.
        let halted = client.halt();
        if !self.0.child.wait(Duration::from_secs(5)) {
            self.0.distrust();
            self.0.child.wait(Duration::from_secs(5));
        }
        match self.failure() {
            None if !self.0.child.alive() => Ok(()),
            _ => Err(self.error(halted.err().unwrap_or(Errno(libc::EIO)))),
        }
    }

    /// Why the kernel's process has ended, unless it runs or halted.
    pub fn failure(&self) -> Option<String> {
        match self.0.child.end()? {
            (None, status) if status.success() => None,
            (kill, status) => Some(process::explain(kill, status, &self.0.last_words())),
        }
    }

    /// Waits until the kernel's process has ended, or for `limit`. Returns whether it has.
    pub fn wait(&self, limit: Duration) -> bool {
        self.0.child.wait(limit)
    }

    /// The last line of the kernel's log, without control characters.
    pub fn last_words(&self) -> String {
        self.0.last_words()
    }

    /// The end of the kernel's log. Anything can be in it.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.0.area.read_log()).into_owned()
    }

    /// The process id of the child.
    pub fn pid(&self) -> i32 {
        self.0.child.pid()
    }
}
