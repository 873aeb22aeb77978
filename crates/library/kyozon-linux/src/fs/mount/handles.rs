//! Open files and folders, by the numbers that the host has for them.

use super::closing::{Closing, Held};
use super::folder::Stream;
use liblinux::calls::{Fd, Result};
use liblinux::Errno;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// An open file or folder.
pub struct Open {
    /// Its descriptor.
    pub held: Arc<Held>,
    /// Where reading a folder has arrived.
    pub stream: Mutex<Stream>,
}

impl Open {
    /// Its descriptor's number.
    pub fn fd(&self) -> Fd {
        self.held.fd
    }
}

#[derive(Default)]
struct Table {
    open: HashMap<u64, Arc<Open>>,
    last: u64,
}

/// All of them.
pub struct Handles {
    closing: Arc<Closing>,
    table: Mutex<Table>,
}

impl Handles {
    /// None yet.
    pub fn new(closing: Arc<Closing>) -> Self {
        Self { closing, table: Mutex::default() }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Keeps a file or folder that was just opened. Returns its number.
    pub fn add(&self, fd: Fd) -> u64 {
        let open = Open { held: self.closing.hold(fd), stream: Mutex::default() };
        let mut table = self.table();
        table.last += 1;
        let number = table.last;
        table.open.insert(number, Arc::new(open));
        number
    }

    /// The file or folder that the host means.
    pub fn get(&self, number: u64) -> Result<Arc<Open>> {
        self.table().open.get(&number).cloned().ok_or(Errno(libc::EBADF))
    }

    /// Closes one.
    pub fn remove(&self, number: u64) {
        let removed = self.table().open.remove(&number);
        drop(removed);
    }

    /// Closes all.
    pub fn clear(&self) {
        self.table().open.clear();
    }
}
