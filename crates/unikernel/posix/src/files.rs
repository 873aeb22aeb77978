//! Descriptors: the standard streams, files in memory, pipes, counters of events, and the devices that programs expect.

use crate::errno::*;
use crate::tree::{About, Number, Tree, ROOT, S_IFDIR, S_IFMT, S_IFREG};
use crate::{futex, memory, signals, with, Answer};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use kyozon_channel::border::Mutex;
use kyozon_unikernel::{clock, console, system};

/// Maximum number of descriptors.
pub const MAX_DESCRIPTORS: usize = 1024;
/// For a descriptor: a path begins in the working directory.
pub const AT_FDCWD: i32 = -100;
const AT_REMOVEDIR: u64 = 0x200;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
/// The last name's link is not followed.
pub const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_EMPTY_PATH: u64 = 0x1000;
const O_ACCESS: u32 = 3;
const O_WRONLY: u32 = 1;
const O_CREAT: u32 = 0o100;
const O_EXCL: u32 = 0o200;
const O_TRUNC: u32 = 0o1000;
const O_APPEND: u32 = 0o2000;
const O_NONBLOCK: u32 = 0o4000;
const O_DIRECTORY: u32 = 0o200_000;
const O_NOFOLLOW: u32 = 0o400_000;
const O_CLOEXEC: u32 = 0o2_000_000;
const S_IFCHR: u32 = 0o020_000;
const S_IFIFO: u32 = 0o010_000;
const S_IFSOCK: u32 = 0o140_000;
const PIPE_BYTES: usize = 65_536;
/// A write of so many bytes to a pipe is not mixed with others (`PIPE_BUF`).
const PIPE_WHOLE: usize = 4096;
const EFD_SEMAPHORE: u64 = 1;
const RENAME_NOREPLACE: u64 = 1;
/// Memory for the host's structures that must be at hand before a change of the tree.
const ROOM: usize = 64 << 10;

type Result<T> = core::result::Result<T, Answer>;

/// What a description is of.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Object {
    Input,
    Output,
    Error,
    Null,
    Zero,
    Random,
    File(Number),
    ReadEnd(usize),
    WriteEnd(usize),
    /// One of two connected sockets: the pipe that it reads, and the one that it writes.
    Socket(usize, usize),
    Events {
        count: u64,
        one_by_one: bool,
    },
}

/// An open description, which several descriptors can have.
#[derive(Debug)]
struct Description {
    object: Object,
    flags: u32,
    position: u64,
    descriptors: u32,
}

#[derive(Debug, Default)]
struct Pipe {
    bytes: VecDeque<u8>,
    readers: u32,
    writers: u32,
}

/// All of the program's.
#[derive(Debug)]
struct Files {
    tree: Tree,
    directory: Number,
    mask: u32,
    /// The description of each descriptor, and whether it is closed by `exec`.
    descriptors: Vec<Option<(usize, bool)>>,
    descriptions: Vec<Option<Description>>,
    pipes: Vec<Option<Pipe>>,
}

static FILES: Mutex<Files> = Mutex::new(Files {
    tree: Tree::empty(),
    directory: ROOT,
    mask: 0o022,
    descriptors: Vec::new(),
    descriptions: Vec::new(),
    pipes: Vec::new(),
});

/// Changes with each change of a pipe or of a counter: who waits for one waits for this word.
static CHANGES: AtomicU32 = AtomicU32::new(0);

fn changed() {
    CHANGES.fetch_add(1, Ordering::SeqCst);
    futex::wake_all(&CHANGES);
}

/// Opens the standard streams, and makes the root directory.
pub fn set_up() {
    with(&FILES, |files| {
        files.tree.set_up();
        for object in [Object::Input, Object::Output, Object::Error] {
            let _ = files.open(object, if object == Object::Input { 0 } else { O_WRONLY }, 0);
        }
    });
}

fn answer(result: Result<Answer>) -> Answer {
    result.unwrap_or_else(|error| error)
}

fn done(result: Result<()>) -> Answer {
    answer(result.map(|()| 0))
}

/// Carries out what may change the tree. Without memory for it, nothing happens.
fn change(work: impl FnOnce(&mut Files) -> Result<Answer>) -> Answer {
    if !memory::make_room(ROOM) {
        return ENOSPC;
    }
    answer(with(&FILES, work))
}

/// Attempts something until it need not wait.
fn wait(
    nonblocking: bool,
    mut attempt: impl FnMut(&mut Files) -> Result<Option<Answer>>,
) -> Answer {
    loop {
        let seen = CHANGES.load(Ordering::SeqCst);
        match with(&FILES, &mut attempt) {
            Ok(Some(answer)) => return answer,
            Err(error) => return error,
            Ok(None) if nonblocking => return EAGAIN,
            Ok(None) => {}
        }
        let answer = futex::wait_for_change(&CHANGES, seen, None);
        if answer == EINTR || answer == RESTART {
            return answer;
        }
    }
}

impl Files {
    fn description(&self, descriptor: i32) -> Result<usize> {
        let at = usize::try_from(descriptor).map_err(|_| EBADF)?;
        self.descriptors.get(at).copied().flatten().map(|(n, _)| n).ok_or(EBADF)
    }

    fn get(&mut self, descriptor: i32) -> Result<&mut Description> {
        let number = self.description(descriptor)?;
        self.descriptions[number].as_mut().ok_or(EBADF)
    }

    /// A new descriptor of a description, at `least` or above.
    fn add(&mut self, description: usize, least: usize, closes: bool) -> Result<Answer> {
        let free = (least..MAX_DESCRIPTORS)
            .find(|&at| self.descriptors.get(at).copied().flatten().is_none())
            .ok_or(EMFILE)?;
        if self.descriptors.len() <= free {
            self.descriptors.resize(free + 1, None);
        }
        self.descriptors[free] = Some((description, closes));
        if let Some(description) = &mut self.descriptions[description] {
            description.descriptors += 1;
        }
        Ok(free as Answer)
    }

    fn open(&mut self, object: Object, flags: u32, least: usize) -> Result<Answer> {
        let closes = flags & O_CLOEXEC != 0;
        let flags = flags & (O_ACCESS | O_APPEND | O_NONBLOCK);
        let description = Description { object, flags, position: 0, descriptors: 0 };
        let number = match self.descriptions.iter().position(Option::is_none) {
            Some(free) => {
                self.descriptions[free] = Some(description);
                free
            }
            None => {
                self.descriptions.push(Some(description));
                self.descriptions.len() - 1
            }
        };
        let added = self.add(number, least, closes);
        if added.is_err() {
            self.end(number);
        }
        added
    }

    /// Opens two objects, or none.
    fn open_both(&mut self, both: [(Object, u32); 2]) -> Result<[i32; 2]> {
        let first = self.open(both[0].0, both[0].1, 0);
        let second = self.open(both[1].0, both[1].1, 0);
        match (first, second) {
            (Ok(first), Ok(second)) => Ok([first as i32, second as i32]),
            (Ok(first), Err(error)) => {
                let _ = self.close(first as i32);
                Err(error)
            }
            (Err(error), _) => Err(error),
        }
    }

    fn close(&mut self, descriptor: i32) -> Result<()> {
        let number = self.description(descriptor)?;
        self.descriptors[descriptor as usize] = None;
        if let Some(description) = &mut self.descriptions[number] {
            description.descriptors -= 1;
            if description.descriptors == 0 {
                self.end(number);
            }
        }
        Ok(())
    }

    /// The end of a description.
    fn end(&mut self, number: usize) {
        let Some(description) = self.descriptions[number].take() else { return };
        match description.object {
            Object::File(node) => self.tree.close(node),
            Object::ReadEnd(pipe) => self.leave(pipe, 1, 0),
            Object::WriteEnd(pipe) => self.leave(pipe, 0, 1),
            Object::Socket(reads, writes) => {
                self.leave(reads, 1, 0);
                self.leave(writes, 0, 1);
            }
            _ => {}
        }
    }

    /// A pipe has fewer ends.
    fn leave(&mut self, pipe: usize, readers: u32, writers: u32) {
        if let Some(ends) = &mut self.pipes[pipe] {
            ends.readers -= readers;
            ends.writers -= writers;
            if ends.readers + ends.writers == 0 {
                self.pipes[pipe] = None;
            }
        }
        changed();
    }

    /// A pipe with one reader and one writer.
    fn make_pipe(&mut self) -> Result<usize> {
        let mut bytes = VecDeque::new();
        bytes.try_reserve_exact(PIPE_BYTES).map_err(|_| ENFILE)?;
        let pipe = Pipe { bytes, readers: 1, writers: 1 };
        Ok(match self.pipes.iter().position(Option::is_none) {
            Some(free) => {
                self.pipes[free] = Some(pipe);
                free
            }
            None => {
                self.pipes.push(Some(pipe));
                self.pipes.len() - 1
            }
        })
    }

    fn pipe(&self, number: usize) -> Result<&Pipe> {
        self.pipes.get(number).and_then(Option::as_ref).ok_or(EBADF)
    }

    /// The directory from which a path begins.
    fn from(&mut self, descriptor: i32, path: &[u8]) -> Result<Number> {
        if descriptor == AT_FDCWD || path.first() == Some(&b'/') {
            return Ok(self.directory);
        }
        match self.get(descriptor)?.object {
            Object::File(node) => Ok(node),
            _ => Err(ENOTDIR),
        }
    }

    fn file(&mut self, descriptor: i32) -> Result<Number> {
        match self.get(descriptor)?.object {
            Object::File(node) => Ok(node),
            _ => Err(EINVAL),
        }
    }

    fn about(&mut self, descriptor: i32) -> Result<About> {
        let mode = match self.get(descriptor)?.object {
            Object::File(node) => return self.tree.about(node),
            Object::ReadEnd(_) | Object::WriteEnd(_) => S_IFIFO | 0o600,
            Object::Socket(..) => S_IFSOCK | 0o777,
            Object::Events { .. } => 0o600,
            _ => S_IFCHR | 0o620,
        };
        Ok(About { number: 0, mode, links: 1, bytes: 0 })
    }

    /// Whether a descriptor can be read and written without waiting, and whether its other side is gone.
    fn ready(&mut self, descriptor: i32) -> Result<(bool, bool, bool)> {
        Ok(match self.get(descriptor)?.object {
            Object::ReadEnd(pipe) => {
                let pipe = self.pipe(pipe)?;
                (!pipe.bytes.is_empty(), false, pipe.writers == 0)
            }
            Object::WriteEnd(pipe) => {
                let pipe = self.pipe(pipe)?;
                (false, pipe.bytes.len() + PIPE_WHOLE <= PIPE_BYTES, pipe.readers == 0)
            }
            Object::Socket(reads, writes) => {
                let (reads, writes) = (self.pipe(reads)?, self.pipe(writes)?);
                let gone = reads.writers == 0;
                let room = writes.bytes.len() + PIPE_WHOLE <= PIPE_BYTES;
                (!reads.bytes.is_empty() || gone, room, gone)
            }
            Object::Events { count, .. } => (count != 0, count < u64::MAX - 1, false),
            Object::Output | Object::Error => (false, true, false),
            Object::Input => (true, false, false),
            _ => (true, true, false),
        })
    }
}

/// A piece of the program's memory to read into.
///
/// # Safety
///
/// It is writable.
unsafe fn target(address: u64, bytes: u64) -> &'static mut [u8] {
    if bytes == 0 {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts_mut(address as *mut u8, bytes as usize) }
}

/// A piece of the program's memory to write from.
///
/// # Safety
///
/// It is readable.
unsafe fn source(address: u64, bytes: u64) -> &'static [u8] {
    if bytes == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(address as *const u8, bytes as usize) }
}

/// `read`, or `pread64` with a position.
///
/// # Safety
///
/// The memory is writable.
pub unsafe fn read(descriptor: i32, to: u64, bytes: u64, at: Option<u64>) -> Answer {
    // SAFETY: the caller's promise.
    let to = unsafe { target(to, bytes) };
    let nonblocking = match with(&FILES, |files| files.get(descriptor).map(|d| d.flags)) {
        Ok(flags) if flags & O_ACCESS == O_WRONLY => return EBADF,
        Ok(flags) => flags & O_NONBLOCK != 0,
        Err(error) => return error,
    };
    wait(nonblocking, |files| {
        let description = files.get(descriptor)?;
        let position = at.unwrap_or(description.position);
        let got = match description.object {
            Object::Input | Object::Null => 0,
            Object::Zero => {
                to.fill(0);
                to.len()
            }
            Object::Random => system::random(to).map(|()| to.len()).map_err(|_| EIO)?,
            Object::Output | Object::Error | Object::WriteEnd(_) => return Err(EBADF),
            Object::File(node) => {
                let all = files.tree.bytes(node)?;
                let from =
                    all.get(usize::try_from(position).unwrap_or(usize::MAX)..).unwrap_or(&[]);
                let count = from.len().min(to.len());
                to[..count].copy_from_slice(&from[..count]);
                if at.is_none() {
                    files.get(descriptor)?.position += count as u64;
                }
                count
            }
            _ if at.is_some() => return Err(ESPIPE),
            Object::ReadEnd(pipe) | Object::Socket(pipe, _) => {
                let pipe = files.pipes[pipe].as_mut().ok_or(EBADF)?;
                if pipe.bytes.is_empty() && pipe.writers > 0 && !to.is_empty() {
                    return Ok(None);
                }
                let count = pipe.bytes.len().min(to.len());
                to.iter_mut().zip(pipe.bytes.drain(..count)).for_each(|(to, byte)| *to = byte);
                changed();
                count
            }
            Object::Events { .. } if to.len() < 8 => return Err(EINVAL),
            Object::Events { count: 0, .. } => return Ok(None),
            Object::Events { count, one_by_one } => {
                let taken = if one_by_one { 1 } else { count };
                description.object = Object::Events { count: count - taken, one_by_one };
                to[..8].copy_from_slice(&taken.to_le_bytes());
                changed();
                8
            }
        };
        Ok(Some(got as Answer))
    })
}

/// `write`, or `pwrite64` with a position.
///
/// # Safety
///
/// The memory is readable.
pub unsafe fn write(descriptor: i32, from: u64, bytes: u64, at: Option<u64>) -> Answer {
    // SAFETY: the caller's promise.
    let from = unsafe { source(from, bytes) };
    let (object, flags) =
        match with(&FILES, |files| files.get(descriptor).map(|d| (d.object, d.flags))) {
            Ok(found) => found,
            Err(error) => return error,
        };
    // The console may wait for its reader, so nothing is locked.
    match object {
        Object::Output => console::write(from),
        Object::Error => console::write_error(from),
        Object::Null | Object::Zero | Object::Random => {}
        Object::Input | Object::ReadEnd(_) => return EBADF,
        _ if flags & O_ACCESS == 0 => return EBADF,
        Object::File(_) => return write_file(descriptor, from, at),
        Object::WriteEnd(_) | Object::Socket(..) | Object::Events { .. } if at.is_some() => {
            return ESPIPE;
        }
        Object::Events { .. } => return count_events(descriptor, from, flags),
        Object::WriteEnd(pipe) | Object::Socket(_, pipe) => {
            return write_pipe(pipe, from, flags & O_NONBLOCK != 0)
        }
    }
    bytes as Answer
}

fn write_file(descriptor: i32, from: &[u8], at: Option<u64>) -> Answer {
    let attempt = || {
        with(&FILES, |files| {
            let node = files.file(descriptor)?;
            let size = files.tree.about(node)?.bytes;
            let description = files.get(descriptor)?;
            let appends = description.flags & O_APPEND != 0;
            let position = if appends { size } else { at.unwrap_or(description.position) };
            files.tree.write(node, position, from)?;
            if at.is_none() {
                files.get(descriptor)?.position = position + from.len() as u64;
            }
            Ok(from.len() as Answer)
        })
    };
    // A file that grows may have to move, to a place twice as large.
    match attempt() {
        Err(ENOSPC) if make_room_to_grow(descriptor, from.len()) => answer(attempt()),
        result => answer(result),
    }
}

fn make_room_to_grow(descriptor: i32, more: usize) -> bool {
    let size =
        with(&FILES, |files| files.about(descriptor)).map_or(0, |about| about.bytes as usize);
    memory::make_room(2 * (size + more)) || memory::make_room(size + more)
}

fn count_events(descriptor: i32, from: &[u8], flags: u32) -> Answer {
    let Some(more) = from.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)) else {
        return EINVAL;
    };
    if more == u64::MAX {
        return EINVAL;
    }
    wait(flags & O_NONBLOCK != 0, |files| {
        let Object::Events { count, .. } = &mut files.get(descriptor)?.object else {
            return Err(EBADF);
        };
        match count.checked_add(more).filter(|all| *all < u64::MAX) {
            Some(all) => *count = all,
            None => return Ok(None),
        }
        changed();
        Ok(Some(8))
    })
}

fn write_pipe(pipe: usize, from: &[u8], nonblocking: bool) -> Answer {
    let mut written = 0;
    let answer = wait(nonblocking, |files| {
        let pipe = files.pipes.get_mut(pipe).and_then(Option::as_mut).ok_or(EBADF)?;
        if pipe.readers == 0 {
            signals::send_to_thread(crate::threads::own_id(), 13);
            return Err(EPIPE);
        }
        let left = &from[written..];
        let room = PIPE_BYTES - pipe.bytes.len();
        let whole = from.len() <= PIPE_WHOLE;
        if room == 0 && !left.is_empty() || whole && room < from.len() {
            return Ok(None);
        }
        let count = room.min(left.len());
        pipe.bytes.extend(&left[..count]);
        written += count;
        changed();
        Ok((written == from.len()).then_some(written as Answer))
    });
    // What is written is written, whatever came then.
    if answer < 0 && written > 0 {
        return written as Answer;
    }
    answer
}

/// `readv` and `writev`: `one` is called for each piece, until one is not whole.
///
/// # Safety
///
/// The pieces are valid for `one`.
pub unsafe fn each(pieces: u64, count: u64, one: impl Fn(u64, u64) -> Answer) -> Answer {
    if count > 1024 {
        return EINVAL;
    }
    let mut all = 0;
    for n in 0..count as usize {
        // SAFETY: the caller's promise.
        let [base, bytes] = unsafe { (pieces as *const [u64; 2]).add(n).read_unaligned() };
        if bytes == 0 {
            continue;
        }
        let moved = one(base, bytes);
        if moved < 0 {
            return if all > 0 { all } else { moved };
        }
        all += moved;
        if (moved as u64) < bytes {
            break;
        }
    }
    all
}

/// `openat`.
pub fn open(from: i32, path: &[u8], flags: u32, mode: u32) -> Answer {
    change(|files| {
        let device = match path {
            b"/dev/null" => Some(Object::Null),
            b"/dev/zero" => Some(Object::Zero),
            b"/dev/random" | b"/dev/urandom" => Some(Object::Random),
            _ => None,
        };
        if let Some(device) = device {
            return files.open(device, flags, 0);
        }
        let start = files.from(from, path)?;
        let create = (flags & O_CREAT != 0).then_some(mode & !files.mask);
        let (exclusive, follow) = (flags & O_EXCL != 0, flags & O_NOFOLLOW == 0);
        let node = files.tree.open(start, path, create, exclusive, follow)?;
        let is_directory = files.tree.about(node)?.mode & S_IFMT == S_IFDIR;
        let refused = match (is_directory, flags & O_DIRECTORY != 0) {
            (false, true) => Some(ENOTDIR),
            (true, _) if flags & O_ACCESS != 0 || create.is_some() => Some(EISDIR),
            _ => None,
        };
        let opened = match refused {
            Some(error) => Err(error),
            None => files.open(Object::File(node), flags, 0),
        };
        match opened {
            // `end` has closed the file if there was no descriptor.
            Err(EMFILE) => Err(EMFILE),
            Err(error) => {
                files.tree.close(node);
                Err(error)
            }
            Ok(descriptor) => {
                if flags & O_TRUNC != 0 && flags & O_ACCESS != 0 {
                    files.tree.set_size(node, 0)?;
                }
                Ok(descriptor)
            }
        }
    })
}

/// `close`.
pub fn close(descriptor: i32) -> Answer {
    done(with(&FILES, |files| files.close(descriptor)))
}

/// `lseek`.
pub fn seek(descriptor: i32, offset: i64, whence: u64) -> Answer {
    answer(with(&FILES, |files| {
        let Object::File(node) = files.get(descriptor)?.object else { return Err(ESPIPE) };
        let size = files.tree.about(node)?.bytes as i64;
        let description = files.get(descriptor)?;
        let base = match whence {
            0 => 0,
            1 => description.position as i64,
            2 => size,
            _ => return Err(EINVAL),
        };
        let to = base.checked_add(offset).filter(|to| *to >= 0).ok_or(EINVAL)?;
        description.position = to as u64;
        Ok(to)
    }))
}

/// Writes a `struct stat`.
///
/// # Safety
///
/// The address is that of one.
unsafe fn put_about(about: About, to: u64) {
    let mut words = [0_u64; 18];
    words[0] = 1;
    words[1] = about.number as u64 + 1;
    words[2] = about.links.into();
    words[3] = about.mode.into();
    words[6] = about.bytes;
    words[7] = 4096;
    words[8] = about.bytes.div_ceil(512);
    // SAFETY: the caller's promise.
    unsafe { (to as *mut [u64; 18]).write_unaligned(words) };
}

/// `newfstatat`, and its relatives.
///
/// # Safety
///
/// The address is that of a `struct stat`.
pub unsafe fn stat(from: i32, path: &[u8], to: u64, flags: u64) -> Answer {
    let found = with(&FILES, |files| {
        if path.is_empty() && flags & AT_EMPTY_PATH != 0 {
            return match from {
                AT_FDCWD => files.tree.about(files.directory),
                descriptor => files.about(descriptor),
            };
        }
        if matches!(path, b"/dev/null" | b"/dev/zero" | b"/dev/random" | b"/dev/urandom") {
            return Ok(About { number: 0, mode: S_IFCHR | 0o666, links: 1, bytes: 0 });
        }
        let start = files.from(from, path)?;
        let node = files.tree.find(start, path, flags & AT_SYMLINK_NOFOLLOW == 0)?;
        files.tree.about(node)
    });
    match found {
        Ok(about) => {
            // SAFETY: the caller's promise.
            unsafe { put_about(about, to) };
            0
        }
        Err(error) => error,
    }
}

/// `fstat`.
///
/// # Safety
///
/// The address is that of a `struct stat`.
pub unsafe fn stat_descriptor(descriptor: i32, to: u64) -> Answer {
    // SAFETY: the caller's promise.
    unsafe { stat(descriptor, b"", to, AT_EMPTY_PATH) }
}

/// `faccessat`: whether it is there.
pub fn access(from: i32, path: &[u8]) -> Answer {
    done(with(&FILES, |files| {
        let start = files.from(from, path)?;
        files.tree.find(start, path, true).map(drop)
    }))
}

/// `mkdirat`.
pub fn make_directory(from: i32, path: &[u8], mode: u32) -> Answer {
    change(|files| {
        let start = files.from(from, path)?;
        let mode = mode & !files.mask;
        files.tree.make_directory(start, path, mode).map(|()| 0)
    })
}

/// `unlinkat`.
pub fn remove(from: i32, path: &[u8], flags: u64) -> Answer {
    done(with(&FILES, |files| {
        let start = files.from(from, path)?;
        files.tree.remove(start, path, flags & AT_REMOVEDIR != 0)
    }))
}

/// `rmdir`.
pub fn remove_directory(path: &[u8]) -> Answer {
    remove(AT_FDCWD, path, AT_REMOVEDIR)
}

/// `renameat2`.
pub fn rename(old: (i32, &[u8]), new: (i32, &[u8]), flags: u64) -> Answer {
    if flags & !RENAME_NOREPLACE != 0 {
        return EINVAL;
    }
    change(|files| {
        let [from, to] = [files.from(old.0, old.1)?, files.from(new.0, new.1)?];
        files.tree.rename((from, old.1), (to, new.1), flags != 0).map(|()| 0)
    })
}

/// `linkat`.
pub fn link(old: (i32, &[u8]), new: (i32, &[u8]), flags: u64) -> Answer {
    change(|files| {
        let [from, to] = [files.from(old.0, old.1)?, files.from(new.0, new.1)?];
        files.tree.link((from, old.1), (to, new.1), flags & AT_SYMLINK_FOLLOW != 0).map(|()| 0)
    })
}

/// `symlinkat`.
pub fn make_link(to: &[u8], from: i32, path: &[u8]) -> Answer {
    change(|files| {
        let start = files.from(from, path)?;
        files.tree.make_link(to, start, path).map(|()| 0)
    })
}

/// `readlinkat`.
///
/// # Safety
///
/// The memory is writable.
pub unsafe fn read_link(from: i32, path: &[u8], to: u64, bytes: u64) -> Answer {
    // SAFETY: the caller's promise.
    let to = unsafe { target(to, bytes) };
    answer(with(&FILES, |files| {
        let start = files.from(from, path)?;
        let found = files.tree.read_link(start, path)?;
        let count = found.len().min(to.len());
        to[..count].copy_from_slice(&found[..count]);
        Ok(count as Answer)
    }))
}

/// `getdents64`.
///
/// # Safety
///
/// The memory is writable.
pub unsafe fn entries(descriptor: i32, to: u64, bytes: u64) -> Answer {
    const HEAD: usize = 19;
    const DIRECTORY: u8 = 4;
    const FILE: u8 = 8;
    const LINK: u8 = 10;
    // SAFETY: the caller's promise.
    let to = unsafe { target(to, bytes) };
    answer(with(&FILES, |files| {
        let node = files
            .file(descriptor)
            .map_err(|error| if error == EINVAL { ENOTDIR } else { error })?;
        let mut at = files.get(descriptor)?.position as usize;
        let mut used = 0;
        while let Some((name, about)) = files.tree.entry(node, at)? {
            let size = (HEAD + name.len() + 1).next_multiple_of(8);
            let Some(place) = to.get_mut(used..used + size) else {
                if used == 0 {
                    return Err(EINVAL);
                }
                break;
            };
            at += 1;
            place.fill(0);
            place[..8].copy_from_slice(&(about.number as u64 + 1).to_le_bytes());
            place[8..16].copy_from_slice(&(at as u64).to_le_bytes());
            place[16..18].copy_from_slice(&(size as u16).to_le_bytes());
            place[18] = match about.mode & S_IFMT {
                S_IFDIR => DIRECTORY,
                S_IFREG => FILE,
                _ => LINK,
            };
            place[HEAD..HEAD + name.len()].copy_from_slice(name);
            used += size;
        }
        files.get(descriptor)?.position = at as u64;
        Ok(used as Answer)
    }))
}

/// `getcwd`.
///
/// # Safety
///
/// The memory is writable.
pub unsafe fn working_directory(to: u64, bytes: u64) -> Answer {
    // SAFETY: the caller's promise.
    let to = unsafe { target(to, bytes) };
    answer(with(&FILES, |files| {
        let path = files.tree.path(files.directory)?;
        let place = to.get_mut(..=path.len()).ok_or(ERANGE)?;
        place[..path.len()].copy_from_slice(&path);
        place[path.len()] = 0;
        Ok(path.len() as Answer + 1)
    }))
}

/// `chdir`.
pub fn change_directory(path: &[u8]) -> Answer {
    done(with(&FILES, |files| {
        let node = files.tree.find(files.directory, path, true)?;
        files.tree.path(node)?;
        files.directory = node;
        Ok(())
    }))
}

/// `ftruncate`.
pub fn set_size(descriptor: i32, bytes: u64) -> Answer {
    let attempt = || {
        with(&FILES, |files| {
            if files.get(descriptor)?.flags & O_ACCESS == 0 {
                return Err(EINVAL);
            }
            let node = files.file(descriptor)?;
            files.tree.set_size(node, bytes)
        })
    };
    match attempt() {
        Err(ENOSPC) if usize::try_from(bytes).is_ok_and(memory::make_room) => done(attempt()),
        result => done(result),
    }
}

/// `truncate`.
pub fn set_size_of(path: &[u8], bytes: u64) -> Answer {
    let descriptor = open(AT_FDCWD, path, O_WRONLY, 0);
    if descriptor < 0 {
        return descriptor;
    }
    let answer = set_size(descriptor as i32, bytes);
    close(descriptor as i32);
    answer
}

/// `fchmodat` and `fchmod`.
pub fn set_mode(from: i32, path: &[u8], mode: u32) -> Answer {
    done(with(&FILES, |files| {
        let node = if path.is_empty() {
            files.file(from)?
        } else {
            let start = files.from(from, path)?;
            files.tree.find(start, path, true)?
        };
        files.tree.set_mode(node, mode)
    }))
}

/// `umask`.
pub fn set_mask(mask: u32) -> Answer {
    with(&FILES, |files| core::mem::replace(&mut files.mask, mask & 0o777)).into()
}

/// `fcntl`.
pub fn control(descriptor: i32, command: u64, argument: u64) -> Answer {
    const F_DUPFD: u64 = 0;
    const F_GETFD: u64 = 1;
    const F_SETFD: u64 = 2;
    const F_GETFL: u64 = 3;
    const F_SETFL: u64 = 4;
    const F_DUPFD_CLOEXEC: u64 = 1030;
    change(|files| {
        let number = files.description(descriptor)?;
        match command {
            F_DUPFD | F_DUPFD_CLOEXEC => {
                let least = usize::try_from(argument).map_err(|_| EINVAL)?;
                files.add(number, least, command == F_DUPFD_CLOEXEC)
            }
            F_GETFD => Ok(files.descriptors[descriptor as usize].is_some_and(|d| d.1).into()),
            F_SETFD => {
                files.descriptors[descriptor as usize] = Some((number, argument & 1 != 0));
                Ok(0)
            }
            F_GETFL => Ok(files.get(descriptor)?.flags.into()),
            F_SETFL => {
                let changes = O_APPEND | O_NONBLOCK;
                let flags = &mut files.get(descriptor)?.flags;
                *flags = *flags & !changes | argument as u32 & changes;
                Ok(0)
            }
            _ => Err(EINVAL),
        }
    })
}

/// `dup3`, and `dup2` if `same` may be the same.
pub fn duplicate(old: i32, new: i32, flags: u64, same: bool) -> Answer {
    change(|files| {
        let number = files.description(old)?;
        if old == new {
            return if same { Ok(new.into()) } else { Err(EINVAL) };
        }
        let at = usize::try_from(new).ok().filter(|at| *at < MAX_DESCRIPTORS).ok_or(EBADF)?;
        let _ = files.close(new);
        files.add(number, at, flags as u32 & O_CLOEXEC != 0)
    })
}

/// `pipe2`.
///
/// # Safety
///
/// The address is that of two words.
pub unsafe fn pipe(to: u64, flags: u64) -> Answer {
    let mut ends = [0_i32; 2];
    let answer = change(|files| {
        let number = files.make_pipe()?;
        let flags = flags as u32 & (O_CLOEXEC | O_NONBLOCK);
        let both = [(Object::ReadEnd(number), flags), (Object::WriteEnd(number), flags | O_WRONLY)];
        ends = files.open_both(both)?;
        Ok(0)
    });
    if answer == 0 {
        // SAFETY: the caller's promise.
        unsafe { (to as *mut [i32; 2]).write_unaligned(ends) };
    }
    answer
}

/// `socketpair`, of streams in this family.
///
/// # Safety
///
/// The address is that of two words.
pub unsafe fn socket_pair(domain: u64, kind: u64, to: u64) -> Answer {
    const AF_UNIX: u64 = 1;
    const STREAM: u64 = 1;
    let flags = kind as u32 & (O_CLOEXEC | O_NONBLOCK) | 2;
    if domain != AF_UNIX || kind & 0xf != STREAM {
        return EAFNOSUPPORT;
    }
    let mut ends = [0_i32; 2];
    let answer = change(|files| {
        let one = files.make_pipe()?;
        let other = match files.make_pipe() {
            Ok(other) => other,
            Err(error) => {
                files.pipes[one] = None;
                return Err(error);
            }
        };
        let both = [Object::Socket(one, other), Object::Socket(other, one)];
        ends = files.open_both(both.map(|end| (end, flags)))?;
        Ok(0)
    });
    if answer == 0 {
        // SAFETY: the caller's promise.
        unsafe { (to as *mut [i32; 2]).write_unaligned(ends) };
    }
    answer
}

/// Whether a descriptor is a socket.
pub fn is_socket(descriptor: i32) -> bool {
    let object = with(&FILES, |files| files.get(descriptor).map(|d| d.object));
    matches!(object, Ok(Object::Socket(..)))
}

/// `eventfd2`.
pub fn event_counter(count: u32, flags: u64) -> Answer {
    let one_by_one = flags & EFD_SEMAPHORE != 0;
    let object = Object::Events { count: count.into(), one_by_one };
    change(|files| files.open(object, flags as u32 & (O_CLOEXEC | O_NONBLOCK) | 2, 0))
}

/// `poll`.
///
/// # Safety
///
/// The descriptors are `count` of `struct pollfd`.
pub unsafe fn poll(descriptors: u64, count: u64, deadline: Option<u64>) -> Answer {
    const IN: u16 = 1;
    const OUT: u16 = 4;
    const ERR: u16 = 8;
    const HUP: u16 = 16;
    const NVAL: u16 = 32;
    if count > MAX_DESCRIPTORS as u64 {
        return EINVAL;
    }
    loop {
        let seen = CHANGES.load(Ordering::SeqCst);
        let ready = with(&FILES, |files| {
            let mut ready = 0;
            for n in 0..count as usize {
                // SAFETY: the caller's promise.
                unsafe {
                    let at = (descriptors as *mut [u16; 4]).add(n);
                    let [low, high, wanted, _] = at.read_unaligned();
                    let descriptor = i32::from(low) | i32::from(high) << 16;
                    let found = match files.ready(descriptor) {
                        _ if descriptor < 0 => 0,
                        Err(_) => NVAL,
                        Ok((reads, writes, gone)) => {
                            let end = if writes { ERR } else { HUP };
                            (if reads { IN } else { 0 } | if writes { OUT } else { 0 }) & wanted
                                | if gone { end } else { 0 }
                        }
                    };
                    at.write_unaligned([low, high, wanted, found]);
                    ready += Answer::from(found != 0);
                }
            }
            ready
        });
        if ready > 0 {
            return ready;
        }
        if deadline.is_some_and(|end| clock::now() >= end) {
            return 0;
        }
        match futex::wait_for_change(&CHANGES, seen, deadline) {
            EINTR | RESTART => return EINTR,
            ETIMEDOUT => return 0,
            _ => {}
        }
    }
}

/// The answer of `ioctl`: nothing is a terminal.
pub fn io_control(descriptor: i32) -> Answer {
    match with(&FILES, |files| files.description(descriptor)) {
        Ok(_) => ENOTTY,
        Err(error) => error,
    }
}

/// The bytes of a file from a position on, for a mapping.
pub fn copy(descriptor: i32, at: u64, to: &mut [u8]) -> Answer {
    answer(with(&FILES, |files| {
        let node = files.file(descriptor).map_err(|_| ENODEV)?;
        let all = files.tree.bytes(node).map_err(|_| ENODEV)?;
        let from = all.get(usize::try_from(at).unwrap_or(usize::MAX)..).unwrap_or(&[]);
        let count = from.len().min(to.len());
        to[..count].copy_from_slice(&from[..count]);
        Ok(0)
    }))
}
