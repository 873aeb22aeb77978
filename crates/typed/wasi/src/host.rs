//! What a host does: primitive operations on handles. It needs to know nothing of descriptors, rights or paths.

use crate::memory::{Buffer, Memory};
use crate::types::{Advice, Clock, Errno, FdFlags, FileType, ReceiveFlags, ShutdownFlags, Whence};

/// The attributes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The device that the file is on.
    pub device: u64,
    /// Its serial number there.
    pub inode: u64,
    /// Its type.
    pub kind: FileType,
    /// The number of its hard links.
    pub links: u64,
    /// Bytes; of a symbolic link, the length of its target.
    pub size: u64,
    /// Last access, in nanoseconds since 1970.
    pub accessed: u64,
    /// Last modification, likewise.
    pub modified: u64,
    /// Last change of attributes, likewise.
    pub changed: u64,
}

/// What becomes of a time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// It stays.
    Keep,
    /// It is set to now.
    Now,
    /// It is set to these nanoseconds since 1970.
    At(u64),
}

/// How to open a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Open {
    /// It will be read. If neither this nor `write` is set, the host opens for reading.
    pub read: bool,
    /// It will be written.
    pub write: bool,
    /// Create a regular file if the name does not exist.
    pub create: bool,
    /// With `create`: fail with [`Errno::Exist`] if the name exists.
    pub exclusive: bool,
    /// Truncate a regular file to no bytes.
    pub truncate: bool,
    /// Fail with [`Errno::Notdir`] if it is not a directory.
    pub directory: bool,
    /// The flags of the new handle.
    pub flags: FdFlags,
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryEntry<'a> {
    /// Where the next entry is: the host's own number, never 0.
    pub next: u64,
    /// The serial number of the file.
    pub inode: u64,
    /// Its type.
    pub kind: FileType,
    /// Its name.
    pub name: &'a [u8],
}

/// A direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the program.
    Read,
    /// From the program.
    Write,
}

/// A handle that would not make a call wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Bytes that can be read or written; at least 1 if the host does not know, 0 at the end.
    pub bytes: u64,
    /// The peer has closed.
    pub hangup: bool,
}

/// A host. Errors are those of the interface; [`Errno::from_linux`] translates Linux's.
///
/// # Names
///
/// Functions that take a directory and a name look up that one name. A name has no slash and no zero byte, is not
/// empty and never `..`. It is `.`, which means the directory itself, only where a function says so. **No function
/// follows a symbolic link.** The interface resolves paths by calling them component by component, so a program cannot
/// leave the directories that it was given, whatever others do to them meanwhile.
pub trait Host {
    /// An open file, directory, socket or pipe. Dropping it closes it.
    type Handle;
    /// The program's memory, as the host reaches it.
    type Memory: Memory + ?Sized;

    // Directories

    /// Opens a directory only to look up names in it.
    ///
    /// # Errors
    ///
    /// [`Errno::Notdir`] or [`Errno::Loop`] for a symbolic link.
    fn open_directory(&mut self, at: &Self::Handle, name: &[u8]) -> Result<Self::Handle, Errno>;

    /// Opens a file or directory, and waits for nobody. The name may be `.`.
    ///
    /// # Errors
    ///
    /// [`Errno::Loop`] or [`Errno::Notdir`] for a symbolic link; [`Errno::Nxio`] for a named pipe that would be written
    /// and that nobody reads.
    fn open(&mut self, at: &Self::Handle, name: &[u8], how: Open) -> Result<Self::Handle, Errno>;

    /// The attributes of what a name means: a symbolic link's own. The name may be `.`.
    fn status_at(&mut self, at: &Self::Handle, name: &[u8]) -> Result<Status, Errno>;

    /// Sets the times of access and modification. The name may be `.`.
    fn set_times_at(
        &mut self,
        at: &Self::Handle,
        name: &[u8],
        accessed: Time,
        modified: Time,
    ) -> Result<(), Errno>;

    /// Copies the target of a symbolic link, cut off at the buffer's end. Returns the number of bytes copied.
    ///
    /// # Errors
    ///
    /// [`Errno::Inval`] if the name is not a symbolic link.
    fn read_link(
        &mut self,
        at: &Self::Handle,
        name: &[u8],
        into: &mut [u8],
    ) -> Result<usize, Errno>;

    /// Creates a directory.
    fn create_directory(&mut self, at: &Self::Handle, name: &[u8]) -> Result<(), Errno>;

    /// Creates a symbolic link.
    fn create_symlink(
        &mut self,
        target: &[u8],
        at: &Self::Handle,
        name: &[u8],
    ) -> Result<(), Errno>;

    /// Creates a hard link, also to a symbolic link.
    fn create_link(
        &mut self,
        from: &Self::Handle,
        old: &[u8],
        to: &Self::Handle,
        new: &[u8],
    ) -> Result<(), Errno>;

    /// Renames, and replaces what the new name means.
    fn rename(
        &mut self,
        from: &Self::Handle,
        old: &[u8],
        to: &Self::Handle,
        new: &[u8],
    ) -> Result<(), Errno>;

    /// Removes what is not a directory.
    ///
    /// # Errors
    ///
    /// [`Errno::Isdir`] for a directory.
    fn remove_file(&mut self, at: &Self::Handle, name: &[u8]) -> Result<(), Errno>;

    /// Removes an empty directory.
    fn remove_directory(&mut self, at: &Self::Handle, name: &[u8]) -> Result<(), Errno>;

    /// Lists a directory from a cookie on (0: from its start; else a [`DirectoryEntry::next`]) until `each` returns
    /// false or all was listed, `.` and `..` included.
    fn read_directory(
        &mut self,
        directory: &Self::Handle,
        cookie: u64,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<(), Errno>;

    // Open files

    /// Reads into the buffers, in their order: at the offset of the handle, which moves, or at `offset`. Returns the
    /// number of bytes.
    fn read(
        &mut self,
        handle: &Self::Handle,
        memory: &mut Self::Memory,
        buffers: &[Buffer],
        offset: Option<u64>,
    ) -> Result<u32, Errno>;

    /// Writes what is in the buffers, likewise.
    fn write(
        &mut self,
        handle: &Self::Handle,
        memory: &mut Self::Memory,
        buffers: &[Buffer],
        offset: Option<u64>,
    ) -> Result<u32, Errno>;

    /// Moves the offset, and returns the new one.
    fn seek(&mut self, handle: &Self::Handle, distance: i64, whence: Whence) -> Result<u64, Errno>;

    /// Waits until data, and attributes unless `data_only`, are on the device.
    fn sync(&mut self, handle: &Self::Handle, data_only: bool) -> Result<(), Errno>;

    /// Takes advice on a range of the file. 0 bytes: to its end.
    fn advise(
        &mut self,
        handle: &Self::Handle,
        offset: u64,
        bytes: u64,
        advice: Advice,
    ) -> Result<(), Errno>;

    /// Allocates space for a range of the file, and extends it if the range ends beyond it.
    fn allocate(&mut self, handle: &Self::Handle, offset: u64, bytes: u64) -> Result<(), Errno>;

    /// Sets the size.
    fn set_size(&mut self, handle: &Self::Handle, size: u64) -> Result<(), Errno>;

    /// The attributes.
    fn status(&mut self, handle: &Self::Handle) -> Result<Status, Errno>;

    /// Sets the times of access and modification.
    fn set_times(
        &mut self,
        handle: &Self::Handle,
        accessed: Time,
        modified: Time,
    ) -> Result<(), Errno>;

    /// Sets [`FdFlags::APPEND`] and [`FdFlags::NONBLOCK`] as given; the others do not change.
    fn set_flags(&mut self, handle: &Self::Handle, flags: FdFlags) -> Result<(), Errno>;

    /// Closes, and reports an error that dropping the handle would hide.
    fn close(&mut self, handle: Self::Handle) -> Result<(), Errno>;

    // Sockets

    /// Accepts a connection. Of the flags, only [`FdFlags::NONBLOCK`] can be set.
    fn accept(&mut self, handle: &Self::Handle, flags: FdFlags) -> Result<Self::Handle, Errno>;

    /// Receives. Returns the number of bytes, and whether a message was cut off.
    fn receive(
        &mut self,
        handle: &Self::Handle,
        memory: &mut Self::Memory,
        buffers: &[Buffer],
        flags: ReceiveFlags,
    ) -> Result<(u32, bool), Errno>;

    /// Sends. Returns the number of bytes. Never raises a signal.
    fn send(
        &mut self,
        handle: &Self::Handle,
        memory: &mut Self::Memory,
        buffers: &[Buffer],
    ) -> Result<u32, Errno>;

    /// Closes directions of a connection: at least one.
    fn shutdown(&mut self, handle: &Self::Handle, how: ShutdownFlags) -> Result<(), Errno>;

    // Waiting

    /// Whether a call would not wait, without waiting.
    fn ready(
        &mut self,
        handle: &Self::Handle,
        direction: Direction,
    ) -> Result<Option<Ready>, Errno>;

    /// Waits until one of the handles may be ready, or so many nanoseconds have passed, if given. It may return early.
    ///
    /// # Errors
    ///
    /// [`Errno::Intr`] if the program is to end, or for another reason has to run.
    fn wait(
        &mut self,
        handles: &mut dyn Iterator<Item = (&Self::Handle, Direction)>,
        timeout: Option<u64>,
    ) -> Result<(), Errno>;

    // The process

    /// The resolution of a clock in nanoseconds, not 0.
    fn clock_resolution(&mut self, clock: Clock) -> Result<u64, Errno>;

    /// The time of a clock in nanoseconds.
    fn clock_time(&mut self, clock: Clock) -> Result<u64, Errno>;

    /// Fills with random bytes fit for keys.
    fn random(&mut self, into: &mut [u8]) -> Result<(), Errno>;

    /// Lets others run.
    fn yield_now(&mut self) -> Result<(), Errno>;
}
