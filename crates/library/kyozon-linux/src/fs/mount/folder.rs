//! Reading folders.

use super::attributes::{attributes, kind, unknown};
use super::handles::Open;
use super::names::valid;
use super::server::{Server, TTL};
use super::worker::Worker;
use fuser::{FileType, Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use liblinux::calls::inodes::{Inodes, Positioned};
use liblinux::calls::{Calls, Fd, Result, MAX_ENTRIES_BYTES};
use liblinux::Errno;
use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Bytes of entries that are read at a time.
const BUFFER: usize = 32 << 10;

/// Where reading a folder has arrived. Empty at the start.
#[derive(Default)]
pub struct Stream {
    /// The offset of the first entry in `ahead`, or of the descriptor.
    at: u64,
    /// Entries that were read and not yet passed on.
    ahead: VecDeque<Positioned>,
    /// Bytes read since the start, to end a folder without an end.
    read: usize,
}

impl Stream {
    /// Moves to where the host wants to go on reading.
    fn seek(&mut self, calls: &dyn Calls, fd: Fd, offset: u64) -> Result<()> {
        // The start is read again even if nothing was passed on: new names may be there.
        if offset != self.at || offset == 0 {
            self.ahead.clear();
            let offset = i64::try_from(offset).map_err(|_| Errno(libc::EINVAL))?;
            calls.seek(fd, offset, libc::SEEK_SET)?;
            self.at = offset as u64;
        }
        if offset == 0 {
            self.read = 0;
        }
        Ok(())
    }

    /// The next entry. None at the end.
    fn next(&mut self, calls: &dyn Calls, fd: Fd) -> Result<Option<Positioned>> {
        if self.ahead.is_empty() {
            self.ahead = calls.some_entries(fd, &mut [0; BUFFER])?.into();
            let bytes = self.ahead.iter().map(|some| some.entry.name.to_bytes().len() + 24);
            self.read += bytes.sum::<usize>();
            if self.read > MAX_ENTRIES_BYTES {
                return Err(Errno(libc::EIO));
            }
        }
        let Some(next) = self.ahead.pop_front() else { return Ok(None) };
        let name = next.entry.name.to_bytes();
        if name.is_empty() || name.contains(&b'/') {
            return Err(Errno(libc::EIO));
        }
        Ok(Some(next))
    }

    /// Takes an entry back that did not fit.
    fn put_back(&mut self, entry: Positioned) {
        self.ahead.push_front(entry);
    }
}

fn kind_of(entry: &Positioned) -> Option<FileType> {
    kind(u32::from(entry.entry.kind) << 12)
}

/// Passes entries to `add` until that says that one did not fit. An error counts only if nothing was passed on.
fn read(
    worker: &Worker,
    open: &Open,
    offset: u64,
    mut add: impl FnMut(&Positioned) -> Result<bool>,
) -> Result<()> {
    let calls = &*worker.calls;
    let mut stream = open.stream.lock().unwrap_or_else(|e| e.into_inner());
    stream.seek(calls, open.fd(), offset)?;
    let mut passed = false;
    loop {
        let entry = match stream.next(calls, open.fd()) {
            Ok(Some(entry)) => entry,
            Ok(None) => return Ok(()),
            Err(_) if passed => return Ok(()),
            Err(error) => return Err(error),
        };
        if add(&entry)? {
            stream.put_back(entry);
            return Ok(());
        }
        stream.at = entry.next;
        passed = true;
    }
}

impl Server {
    /// Names and types.
    pub fn list(
        &self,
        worker: &Worker,
        file: u64,
        offset: u64,
        reply: &mut ReplyDirectory,
    ) -> Result<()> {
        let open = self.handles.get(file)?;
        read(worker, &open, offset, |some| {
            let name = &some.entry.name;
            let kind = kind_of(some).or_else(|| {
                let status = worker.calls.stat_at(open.fd(), name, libc::AT_SYMLINK_NOFOLLOW);
                kind(status.ok()?.st_mode)
            });
            let kind = kind.unwrap_or(FileType::RegularFile);
            let name = OsStr::from_bytes(name.to_bytes());
            Ok(reply.add(INodeNo(some.entry.inode), some.next, kind, name))
        })
    }

    /// Names with everything that a lookup of each would give.
    pub fn list_all(
        &self,
        worker: &Worker,
        file: u64,
        offset: u64,
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<()> {
        let open = self.handles.get(file)?;
        read(worker, &open, offset, |some| {
            let name = &some.entry.name;
            let text = OsStr::from_bytes(name.to_bytes());
            let add = |reply: &mut ReplyDirectoryPlus, ttl: &Duration, attr, generation| {
                let full =
                    reply.add(INodeNo(0), some.next, text, ttl, &attr, Generation(generation));
                Ok(full)
            };
            // The host takes no node from these two.
            if !valid(name.to_bytes()) {
                let attr = unknown(some.entry.inode, FileType::Directory);
                return add(reply, &Duration::ZERO, attr, 0);
            }
            let found = self.find(worker, open.fd(), name).and_then(|(node, status)| {
                let attr = attributes(node.id, &status);
                attr.map(|attr| (node.clone(), attr)).inspect_err(|_| self.nodes.forget(node.id, 1))
            });
            match found {
                Ok((node, attr)) => {
                    let full = add(reply, &TTL, attr, node.generation)?;
                    if full {
                        self.nodes.forget(node.id, 1);
                    }
                    Ok(full)
                }
                // It was removed a moment ago.
                Err(Errno(libc::ENOENT)) => Ok(false),
                // The name is there; whoever asks for more gets the error.
                Err(_) => {
                    let kind = kind_of(some).unwrap_or(FileType::RegularFile);
                    let attr = unknown(self.nodes.nobody(), kind);
                    add(reply, &Duration::ZERO, attr, 0)
                }
            }
        })
    }
}
