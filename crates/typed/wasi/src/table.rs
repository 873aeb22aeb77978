//! The descriptors of a program.

use crate::types::{Errno, FdFlags, FileType, Rights};

/// What a descriptor stands for.
#[derive(Debug)]
pub struct Entry<T> {
    /// The host's handle.
    pub handle: T,
    /// Its type.
    pub kind: FileType,
    /// Its flags, as the program set them.
    pub flags: FdFlags,
    /// What may be done by this descriptor.
    pub base: Rights,
    /// What may be done by descriptors that are opened or accepted by it.
    pub inheriting: Rights,
    /// For a directory that the program was given: which of [`Program::preopens`](crate::Program::preopens) it is.
    pub preopen: Option<usize>,
}

impl<T> Entry<T> {
    /// A descriptor with every right that its type can have.
    pub fn new(handle: T, kind: FileType) -> Entry<T> {
        let inheriting = match kind {
            FileType::Directory => Rights::ALL,
            FileType::SocketStream | FileType::SocketDgram => Rights::SOCKET,
            _ => Rights::NONE,
        };
        let base = Rights::of(kind);
        Entry { handle, kind, flags: FdFlags(0), base, inheriting, preopen: None }
    }

    /// A directory that the program finds under the n-th of its names. By it and what is below it, the program has
    /// these rights: [`Rights::ALL`] or, for example, [`Rights::READ_ONLY`].
    pub fn preopen(handle: T, n: usize, rights: Rights) -> Entry<T> {
        let entry = Entry::new(handle, FileType::Directory);
        let base = entry.base.and(rights);
        Entry { base, inheriting: rights, preopen: Some(n), ..entry }
    }

    /// Fails with [`Errno::Notcapable`] without these rights.
    pub(crate) fn need(&self, rights: Rights) -> Result<&Self, Errno> {
        if self.base.contains(rights) {
            Ok(self)
        } else {
            Err(Errno::Notcapable)
        }
    }

    pub(crate) fn is_socket(&self) -> bool {
        matches!(self.kind, FileType::SocketDgram | FileType::SocketStream)
    }
}

/// The descriptors: places in memory of the host's.
pub(crate) struct Table<'a, T> {
    slots: &'a mut [Option<Entry<T>>],
}

impl<'a, T> Table<'a, T> {
    pub fn new(slots: &'a mut [Option<Entry<T>>]) -> Table<'a, T> {
        Table { slots }
    }

    fn slot(&mut self, fd: u32) -> Result<&mut Option<Entry<T>>, Errno> {
        self.slots.get_mut(fd as usize).ok_or(Errno::Badf)
    }

    pub fn get(&self, fd: u32) -> Result<&Entry<T>, Errno> {
        self.slots.get(fd as usize).and_then(Option::as_ref).ok_or(Errno::Badf)
    }

    pub fn get_mut(&mut self, fd: u32) -> Result<&mut Entry<T>, Errno> {
        self.slot(fd)?.as_mut().ok_or(Errno::Badf)
    }

    /// A directory with these rights.
    pub fn directory(&self, fd: u32, rights: Rights) -> Result<&Entry<T>, Errno> {
        let entry = self.get(fd)?;
        if entry.kind != FileType::Directory {
            return Err(Errno::Notdir);
        }
        entry.need(rights)
    }

    /// A socket with these rights.
    pub fn socket(&self, fd: u32, rights: Rights) -> Result<&Entry<T>, Errno> {
        let entry = self.get(fd)?;
        if !entry.is_socket() {
            return Err(Errno::Notsock);
        }
        entry.need(rights)
    }

    /// The lowest number that is not in use.
    pub fn vacant(&self) -> Result<u32, Errno> {
        self.slots
            .iter()
            .position(Option::is_none)
            .and_then(|n| u32::try_from(n).ok())
            .ok_or(Errno::Mfile)
    }

    /// Puts an entry at a number, and returns what was there.
    pub fn put(&mut self, fd: u32, entry: Entry<T>) -> Result<Option<Entry<T>>, Errno> {
        Ok(self.slot(fd)?.replace(entry))
    }

    pub fn take(&mut self, fd: u32) -> Result<Entry<T>, Errno> {
        self.slot(fd)?.take().ok_or(Errno::Badf)
    }
}
