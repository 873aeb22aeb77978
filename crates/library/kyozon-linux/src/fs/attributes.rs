//! Owner, rights, times and extended attributes of an entry.

use super::failure::{explain, failed, warn};
use super::walk::Folder;
use anyhow::{bail, Result};
use liblinux::Errno;
use std::ffi::{CStr, CString};

/// What could not be kept.
#[derive(Debug, Default)]
pub struct Lost {
    /// What the file system or the user cannot keep for any file, each named once.
    kinds: Vec<&'static str>,
    /// Extended attributes that are too large for the file system.
    large: u64,
}

impl Lost {
    /// Adds what no file keeps.
    fn note(&mut self, what: &'static str) {
        if !self.kinds.contains(&what) {
            self.kinds.push(what);
        }
    }

    /// Warns about all. An error if an attribute was too large.
    pub fn end(self) -> Result<()> {
        for what in &self.kinds {
            warn(&format!("{what} were not kept: {}", explain(Errno(libc::EPERM))));
        }
        match self.large {
            0 => Ok(()),
            1 => bail!("1 extended attribute was not kept: the warning says why"),
            count => bail!("{count} extended attributes were not kept: the warnings say why"),
        }
    }
}

/// An entry's owner.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
}

/// What an entry gets.
#[derive(Debug, Clone)]
pub struct Attributes {
    /// Type and rights, as `st_mode`.
    pub mode: u32,
    /// Its owner; without one, that of the kernel's task, and no set-user-id bits.
    pub owner: Option<Owner>,
    /// Access and modification time.
    pub times: [libc::timespec; 2],
    /// Extended attributes.
    pub extended: Vec<(CString, Vec<u8>)>,
}

impl Attributes {
    /// Those of an entry, with owner and extended attributes if `archive`.
    pub fn read(from: &Folder<'_>, name: &CStr, stat: &libc::stat, archive: bool) -> Result<Self> {
        let time = |tv_sec, tv_nsec| libc::timespec { tv_sec, tv_nsec };
        Ok(Self {
            mode: stat.st_mode,
            owner: archive.then_some(Owner { user: stat.st_uid, group: stat.st_gid }),
            times: [
                time(stat.st_atime, stat.st_atime_nsec),
                time(stat.st_mtime, stat.st_mtime_nsec),
            ],
            extended: if archive { extended(from, name)? } else { Vec::new() },
        })
    }

    /// Gives them to an entry, in the order in which they do not undo each other.
    pub fn set(&self, to: &Folder<'_>, name: &CStr, lost: &mut Lost) -> Result<()> {
        let path = to.join(name);
        let mut rights = self.mode & 0o777;
        if let Some(Owner { user, group }) = self.owner {
            match to.calls.chown_at(to.fd, name, user, group) {
                Ok(()) => rights = self.mode & 0o7777,
                Err(Errno(libc::EPERM)) => lost.note("owners"),
                Err(error) => return Err(failed("set the owner of", &path)(error)),
            }
        }
        for (attribute, value) in &self.extended {
            match to.calls.set_attribute_at(to.fd, name, attribute, value) {
                Err(Errno(libc::EPERM | libc::EOPNOTSUPP)) => lost.note("extended attributes"),
                // It may be only this attribute that has no room: then the other files have some.
                Err(error @ Errno(libc::ENOSPC | libc::E2BIG | libc::ERANGE)) => {
                    let what = format!("set {} of", attribute.to_string_lossy());
                    warn(&failed(&what, &path)(error).to_string());
                    lost.large += 1;
                }
                set => set.map_err(failed("set an attribute of", &path))?,
            }
        }
        if self.mode & libc::S_IFMT != libc::S_IFLNK {
            to.calls.chmod_at(to.fd, name, rights).map_err(failed("set the rights of", &path))?;
        }
        to.calls.set_times_at(to.fd, name, &self.times).map_err(failed("set the times of", &path))
    }
}

/// The extended attributes of an entry; a link's, not its target's.
pub fn extended(from: &Folder<'_>, name: &CStr) -> Result<Vec<(CString, Vec<u8>)>> {
    let path = from.join(name);
    let names = match from.calls.attributes_at(from.fd, name) {
        Err(Errno(libc::EOPNOTSUPP)) => return Ok(Vec::new()),
        names => names.map_err(failed("read the attributes of", &path))?,
    };
    names
        .into_iter()
        .map(|attribute| {
            let value = from.calls.attribute_at(from.fd, name, &attribute);
            Ok((attribute, value.map_err(failed("read an attribute of", &path))?))
        })
        .collect()
}
