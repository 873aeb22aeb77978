//! Calls on paths.

use crate::descriptor::{times, write_status, STATUS};
use crate::host::{Host, Open};
use crate::memory::{check, write_u32, Memory};
use crate::table::Entry;
use crate::types::{Errno, FdFlags, FileType, LookupFlags, OpenFlags, Rights};
use crate::walk::{Follow, Last, Place};
use crate::wasi::Wasi;

/// A path argument: descriptor, address, length.
type Argument = (u32, u32, u32);

/// Rights that mean that a file will be read.
const READ: Rights = Rights::FD_READ.or(Rights::FD_READDIR);
/// Rights that mean that a file will be written.
const WRITE: Rights = Rights::FD_WRITE.or(Rights::FD_ALLOCATE).or(Rights::FD_FILESTAT_SET_SIZE);

fn lookup(flags: u32) -> Result<Follow, Errno> {
    let flags = LookupFlags::from_number(flags.into()).ok_or(Errno::Inval)?;
    Ok(match flags.contains(LookupFlags::SYMLINK_FOLLOW) {
        true => Follow::Always,
        false => Follow::BeforeSlash,
    })
}

/// Fails with [`Errno::Notdir`] if slashes follow what is not a directory, also a link to one.
fn directory_before_slash<H: Host>(
    host: &mut H,
    place: &Place<'_, H::Handle>,
) -> Result<(), Errno> {
    if place.slash {
        let status = host.status_at(place.directory, place.last.or_dot())?;
        if status.kind != FileType::Directory {
            return Err(Errno::Notdir);
        }
    }
    Ok(())
}

/// Fails if slashes follow the name of what is to be created and is not a directory.
fn no_slash<H: Host>(host: &mut H, place: &Place<'_, H::Handle>) -> Result<(), Errno> {
    if place.slash {
        host.status_at(place.directory, place.last.or_dot())?;
        return Err(Errno::Exist);
    }
    Ok(())
}

/// Resolves a path of a call, in the first room or in one that is named.
macro_rules! resolve {
    ($wasi:ident, $argument:expr, $rights:expr, $follow:expr, $memory:ident) => {
        resolve!(
            $wasi,
            (&mut $wasi.walks[0], &mut $wasi.scratch.paths[0]),
            $argument,
            $rights,
            $follow,
            $memory
        )
    };
    ($wasi:ident, $room:expr, $argument:expr, $rights:expr, $follow:expr, $memory:ident) => {{
        let (fd, at, bytes) = $argument;
        let directory = $wasi.table.directory(fd, $rights)?;
        let (walk, path) = $room;
        path.load($memory, at, bytes)?;
        walk.resolve(&mut $wasi.host, &directory.handle, path, $follow)?
    }};
}

impl<H: Host> Wasi<'_, H> {
    pub(crate) fn path_create_directory(
        &mut self,
        fd: u32,
        at: u32,
        bytes: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let right = Rights::PATH_CREATE_DIRECTORY;
        let place = resolve!(self, (fd, at, bytes), right, Follow::Never, memory);
        let name = place.last.or(Errno::Exist, Errno::Exist)?;
        self.host.create_directory(place.directory, name)
    }

    pub(crate) fn path_filestat_get(
        &mut self,
        fd: u32,
        flags: u32,
        at: u32,
        bytes: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let follow = lookup(flags)?;
        check(memory, result, 1, STATUS)?;
        let right = Rights::PATH_FILESTAT_GET;
        let place = resolve!(self, (fd, at, bytes), right, follow, memory);
        let status = self.host.status_at(place.directory, place.last.or_dot())?;
        if status.kind == FileType::SymbolicLink && follow == Follow::Always {
            // It was none when the path was resolved.
            return Err(Errno::Loop);
        }
        if place.slash && status.kind != FileType::Directory {
            return Err(Errno::Notdir);
        }
        write_status(memory, result, &status)
    }

    pub(crate) fn path_filestat_set_times(
        &mut self,
        fd: u32,
        flags: u32,
        at: u32,
        bytes: u32,
        (accessed, modified, which): (u64, u64, u32),
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let follow = lookup(flags)?;
        let (accessed, modified) = times(accessed, modified, which)?;
        let right = Rights::PATH_FILESTAT_SET_TIMES;
        let place = resolve!(self, (fd, at, bytes), right, follow, memory);
        directory_before_slash(&mut self.host, &place)?;
        self.host.set_times_at(place.directory, place.last.or_dot(), accessed, modified)
    }

    pub(crate) fn path_link(
        &mut self,
        old: Argument,
        flags: u32,
        new: Argument,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let follow = lookup(flags)?;
        let [walk, second_walk] = &mut self.walks;
        let [path, second_path] = &mut self.scratch.paths;
        let from = resolve!(self, (walk, path), old, Rights::PATH_LINK_SOURCE, follow, memory);
        let to = resolve!(
            self,
            (second_walk, second_path),
            new,
            Rights::PATH_LINK_TARGET,
            Follow::Never,
            memory
        );
        let old_name = from.last.or(Errno::Perm, Errno::Perm)?;
        let new_name = to.last.or(Errno::Exist, Errno::Exist)?;
        directory_before_slash(&mut self.host, &from)?;
        no_slash(&mut self.host, &to)?;
        self.host.create_link(from.directory, old_name, to.directory, new_name)
    }

    #[allow(clippy::too_many_arguments)] // So has the interface's function.
    pub(crate) fn path_open(
        &mut self,
        path: Argument,
        lookup_flags: u32,
        open_flags: u32,
        (base, inheriting): (u64, u64),
        fd_flags: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let mut follow = lookup(lookup_flags)?;
        let open_flags = OpenFlags::from_number(open_flags.into()).ok_or(Errno::Inval)?;
        let flags = FdFlags::from_number(fd_flags.into()).ok_or(Errno::Inval)?;
        let (base, inheriting) = (Rights(base), Rights(inheriting));
        let create = open_flags.contains(OpenFlags::CREAT);
        let exclusive = open_flags.contains(OpenFlags::EXCL);
        let truncate = open_flags.contains(OpenFlags::TRUNC);
        let mut directory = open_flags.contains(OpenFlags::DIRECTORY);
        if create && directory {
            return Err(Errno::Inval);
        }
        if create && exclusive {
            follow = Follow::BeforeSlash;
        }
        let mut needed = Rights::PATH_OPEN;
        for (condition, right) in [
            (create, Rights::PATH_CREATE_FILE),
            (truncate, Rights::PATH_FILESTAT_SET_SIZE),
            (flags.contains(FdFlags::DSYNC), Rights::FD_DATASYNC),
            (flags.intersects(FdFlags::RSYNC.or(FdFlags::SYNC)), Rights::FD_SYNC),
        ] {
            if condition {
                needed = needed.or(right);
            }
        }
        check(memory, result, 1, 4)?;
        let parent = self.table.directory(path.0, needed)?;
        if !parent.inheriting.contains(base.or(inheriting)) {
            return Err(Errno::Notcapable);
        }
        let number = self.table.vacant()?;
        let place = resolve!(self, path, needed, follow, memory);
        if place.slash {
            if create {
                return Err(Errno::Isdir);
            }
            directory = true;
        }
        let how = Open {
            read: base.intersects(READ),
            // A directory has none of these rights, so they are dropped if it can be nothing else.
            write: (base.intersects(WRITE) && !directory) || truncate,
            create,
            exclusive,
            truncate,
            directory,
            flags,
        };
        let handle = self.host.open(place.directory, place.last.or_dot(), how)?;
        let kind = self.host.status(&handle)?.kind;
        let base = base.and(Rights::of(kind));
        let inheriting = if kind == FileType::Directory { inheriting } else { Rights::NONE };
        let entry = Entry { handle, kind, flags, base, inheriting, preopen: None };
        write_u32(memory, result, number)?;
        self.table.put(number, entry)?;
        Ok(())
    }

    pub(crate) fn path_readlink(
        &mut self,
        path: Argument,
        buffer: u32,
        bytes: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        check(memory, buffer, bytes, 1)?;
        check(memory, result, 1, 4)?;
        let [first, second] = &mut self.scratch.paths;
        let room = (&mut self.walks[0], first);
        let right = Rights::PATH_READLINK;
        let place = resolve!(self, room, path, right, Follow::BeforeSlash, memory);
        directory_before_slash(&mut self.host, &place)?;
        let name = place.last.or(Errno::Inval, Errno::Inval)?;
        let link = second.link();
        let length = self.host.read_link(place.directory, name, link)?;
        let target = link.get(..length.min(bytes as usize)).ok_or(Errno::Io)?;
        memory.write(buffer, target)?;
        write_u32(memory, result, target.len() as u32)
    }

    pub(crate) fn path_remove_directory(
        &mut self,
        fd: u32,
        at: u32,
        bytes: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let right = Rights::PATH_REMOVE_DIRECTORY;
        let place = resolve!(self, (fd, at, bytes), right, Follow::Never, memory);
        let name = place.last.or(Errno::Inval, Errno::Notempty)?;
        self.host.remove_directory(place.directory, name)
    }

    pub(crate) fn path_rename(
        &mut self,
        old: Argument,
        new: Argument,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let [walk, second_walk] = &mut self.walks;
        let [path, second_path] = &mut self.scratch.paths;
        let from =
            resolve!(self, (walk, path), old, Rights::PATH_RENAME_SOURCE, Follow::Never, memory);
        let to = resolve!(
            self,
            (second_walk, second_path),
            new,
            Rights::PATH_RENAME_TARGET,
            Follow::Never,
            memory
        );
        let old_name = from.last.or(Errno::Busy, Errno::Busy)?;
        let new_name = to.last.or(Errno::Busy, Errno::Busy)?;
        // Slashes after either name demand that a directory is renamed.
        let slash = from.slash || to.slash;
        let Place { directory, last, .. } = from;
        directory_before_slash(&mut self.host, &Place { directory, last, slash })?;
        self.host.rename(directory, old_name, to.directory, new_name)
    }

    pub(crate) fn path_symlink(
        &mut self,
        target: u32,
        target_bytes: u32,
        path: Argument,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let [first, second] = &mut self.scratch.paths;
        let target = second.load(memory, target, target_bytes)?;
        match target.first() {
            None => return Err(Errno::Noent),
            // Nothing here would follow it, but others who share the files might.
            Some(b'/') => return Err(Errno::Notcapable),
            Some(_) => {}
        }
        let room = (&mut self.walks[0], first);
        let place = resolve!(self, room, path, Rights::PATH_SYMLINK, Follow::Never, memory);
        let name = place.last.or(Errno::Exist, Errno::Exist)?;
        no_slash(&mut self.host, &place)?;
        self.host.create_symlink(target, place.directory, name)
    }

    pub(crate) fn path_unlink_file(
        &mut self,
        fd: u32,
        at: u32,
        bytes: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        let right = Rights::PATH_UNLINK_FILE;
        let place = resolve!(self, (fd, at, bytes), right, Follow::Never, memory);
        let Last::Name(name) = place.last else { return Err(Errno::Isdir) };
        directory_before_slash(&mut self.host, &place)?;
        if place.slash {
            return Err(Errno::Isdir);
        }
        self.host.remove_file(place.directory, name)
    }
}
