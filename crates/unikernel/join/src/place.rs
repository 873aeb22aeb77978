//! Where groups are found: `$XDG_RUNTIME_DIR/kyozon`, for root also `/run/kyozon`, with one folder for each group,
//! which holds its socket.
//!
//! A process that creates a group, joins it or removes its folder holds the lock of the folder above, for a few
//! milliseconds. So a group folder whose socket has no listener was left behind by a killed keeper.

use crate::error::Context;
use crate::socket::Socket;
use crate::{Error, Result};
use rustix::fs::{flock, FlockOperation, Mode};
use rustix::io::Errno;
use rustix::net::{
    bind, connect, listen, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType,
};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Maximum bytes of a group's name.
pub const NAME_BYTES: usize = 32;
/// Maximum time to wait for the lock.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// The folder that contains all groups of a user.
#[derive(Clone, Debug)]
pub struct Place {
    base: PathBuf,
}

/// The lock of a [`Place`]. Dropping it releases the lock.
#[derive(Debug)]
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Explicitly, as a keeper that was forked meanwhile has a copy of the descriptor.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// The result of [`Place::meet`].
#[derive(Debug)]
pub enum Met {
    /// The group exists; this is the connection to its keeper.
    Joined(Socket),
    /// The group is new, and needs a keeper.
    Made {
        /// The first joiner's end.
        socket: Socket,
        /// The keeper's listening socket.
        listener: OwnedFd,
        /// To be held until the keeper runs.
        lock: Lock,
    },
}

/// Whether `name` is valid for a group.
pub fn is_name(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(good) && !name.starts_with('.')
}

fn check_name(name: &str) -> Result<()> {
    if is_name(name) {
        return Ok(());
    }
    let rule = "letters, digits, '-', '_' or '.', and no '.' at the start";
    Err(Error::Refused(format!("{name:?} is no valid group name: use 1 to {NAME_BYTES} {rule}")))
}

impl Place {
    /// Finds the folder of this user's groups. Creates nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NoPlace`]: `XDG_RUNTIME_DIR` is not set, or is not a folder of this user.
    pub fn find() -> Result<Self> {
        let me = rustix::process::geteuid();
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty());
        if let Some(path) = runtime.map(PathBuf::from) {
            let mine = fs::metadata(&path).is_ok_and(|m| m.is_dir() && m.uid() == me.as_raw());
            if mine && path.is_absolute() {
                return Ok(Self { base: path.join("kyozon") });
            }
            if !me.is_root() {
                let path = path.display();
                return Err(Error::NoPlace(format!(
                    "XDG_RUNTIME_DIR is {path}, which is not your folder: set it to one that you own"
                )));
            }
        }
        if me.is_root() {
            return Ok(Self { base: "/run/kyozon".into() });
        }
        Err(Error::NoPlace(
            "no folder for groups: set XDG_RUNTIME_DIR to one that you own, such as /run/user/UID"
                .into(),
        ))
    }

    /// Uses another folder.
    pub fn at(base: &Path) -> Self {
        Self { base: base.to_owned() }
    }

    /// The folder.
    pub fn base(&self) -> &Path {
        &self.base
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    fn address(&self, name: &str) -> Result<SocketAddrUnix> {
        let path = self.folder(name).join("socket");
        SocketAddrUnix::new(&path).map_err(|_| {
            Error::NoPlace(format!(
                "{} is too long for a socket: set XDG_RUNTIME_DIR to a shorter path",
                path.display()
            ))
        })
    }

    /// Names of all groups, sorted. They include groups whose keeper was killed.
    ///
    /// # Errors
    ///
    /// [`Error::System`]: the folder cannot be read.
    pub fn groups(&self) -> Result<Vec<String>> {
        let folder = match fs::read_dir(&self.base) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            folder => folder.context("read the folder of groups")?,
        };
        let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<_> = names.filter(|name| is_name(name)).collect();
        names.sort();
        Ok(names)
    }

    /// Connects to an existing group.
    ///
    /// # Errors
    ///
    /// [`Error::NoGroup`], [`Error::NotYours`], or [`Error::Refused`] if the name is invalid.
    pub fn connect(&self, name: &str) -> Result<Socket> {
        check_name(name)?;
        self.try_connect(name)?.ok_or_else(|| Error::NoGroup(name.into()))
    }

    fn try_connect(&self, name: &str) -> Result<Option<Socket>> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(family, kind, flags, None).context("create a socket")?;
        match connect(&socket, &self.address(name)?) {
            Ok(()) => Ok(Some(socket.into())),
            Err(Errno::NOENT | Errno::CONNREFUSED | Errno::NOTDIR) => Ok(None),
            Err(Errno::ACCESS | Errno::PERM) => Err(Error::NotYours(name.into())),
            Err(error) => Err(error).context("connect to the group"),
        }
    }

    /// Creates the folder, or checks that it is private to this user; takes its lock.
    fn lock(&self) -> Result<Lock> {
        let end = Instant::now() + TIMEOUT;
        loop {
            match fs::DirBuilder::new().mode(0o700).create(&self.base) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    let base = self.base.display();
                    return Err(Error::NoPlace(format!(
                        "cannot create the folder of groups {base}: {error}"
                    )));
                }
                _ => {}
            }
            let there = match fs::symlink_metadata(&self.base) {
                // Another process has just removed its last group, and this folder.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                there => there.context("inspect the folder of groups")?,
            };
            let mine = there.uid() == rustix::process::geteuid().as_raw();
            if !there.is_dir() || !mine || there.permissions().mode() & 0o77 != 0 {
                let base = self.base.display();
                return Err(Error::NoPlace(format!(
                    "{base} is not private to you: it must be your own folder, with mode 0700"
                )));
            }
            let Ok(folder) = File::open(&self.base) else { continue };
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if folder.metadata().is_ok_and(|m| m.nlink() != 0) => {
                    return Ok(Lock(folder))
                }
                Ok(()) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                Err(error) => return Err(error).context("lock the folder of groups"),
            }
        }
    }

    /// Joins a group, or creates it. Replaces a folder that a killed keeper has left behind.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`]: the name is invalid. [`Error::NoPlace`]: the folder of groups is not usable.
    /// [`Error::NotYours`], [`Error::System`]: the group's own folder or socket is not usable.
    pub fn meet(&self, name: &str) -> Result<Met> {
        check_name(name)?;
        let address = self.address(name)?;
        let lock = self.lock()?;
        if let Some(socket) = self.try_connect(name)? {
            return Ok(Met::Joined(socket));
        }
        self.remove(name);
        fs::DirBuilder::new()
            .mode(0o700)
            .create(self.folder(name))
            .context("create the group's folder")?;
        let made = self.make(name, &address);
        if made.is_err() {
            self.remove(name);
        }
        let (socket, listener) = made?;
        Ok(Met::Made { socket, listener, lock })
    }

    fn make(&self, name: &str, address: &SocketAddrUnix) -> Result<(Socket, OwnedFd)> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(family, kind, flags, None).context("create a socket")?;
        bind(&listener, address).context("create the group's socket")?;
        let socket = self.folder(name).join("socket");
        rustix::fs::chmod(&socket, Mode::from(0o600)).context("make the group's socket private")?;
        listen(&listener, BACKLOG).context("listen at the group's socket")?;
        let first = self.try_connect(name)?.ok_or(Error::Gone)?;
        Ok((first, listener))
    }

    /// Removes a group's folder.
    fn remove(&self, name: &str) {
        let folder = self.folder(name);
        let _ = fs::remove_file(folder.join("socket"));
        let _ = fs::remove_dir(&folder);
    }

    /// For a keeper whose last joiner is gone: removes the group's folder, and the folder above if it is empty then.
    /// Does nothing if `busy`, called under the lock, says that a joiner has come meanwhile. Returns whether it was
    /// removed.
    pub fn leave(&self, name: &str, busy: impl FnOnce() -> bool) -> bool {
        let lock = self.lock();
        if lock.is_ok() && busy() {
            return false;
        }
        self.remove(name);
        let _ = fs::remove_dir(&self.base);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Place) {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::at(&folder.path().join("kyozon"));
        (folder, place)
    }

    #[test]
    fn names_are_checked() {
        for name in ["a", "board-1.x_Y", &"a".repeat(32)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", ".", "..", ".a", "a/b", "a b", "ä", &"a".repeat(33)] {
            assert!(!is_name(name), "{name}");
            let (_folder, place) = place();
            assert!(matches!(place.meet(name), Err(Error::Refused(_))));
            assert!(!place.base.exists());
        }
    }

    #[test]
    fn first_joiner_creates_the_group_others_find_it() {
        let (_folder, place) = place();
        assert!(matches!(place.connect("x"), Err(Error::NoGroup(_))));
        assert_eq!(place.groups().unwrap(), [""; 0]);
        let Met::Made { listener, lock, .. } = place.meet("x").unwrap() else {
            panic!("exists already")
        };
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&place.base), mode(&place.folder("x"))), (0o700, 0o700));
        drop(lock);
        assert!(matches!(place.meet("x"), Ok(Met::Joined(_))));
        assert_eq!(place.groups().unwrap(), ["x"]);
        assert!(!place.leave("x", || true) && place.connect("x").is_ok());
        // A killed keeper's folder is replaced.
        drop(listener);
        assert!(matches!(place.connect("x"), Err(Error::NoGroup(_))));
        let Met::Made { lock, .. } = place.meet("x").unwrap() else { panic!("still alive") };
        drop(lock);
        assert!(place.leave("x", || false) && !place.base.exists());
    }

    #[test]
    fn a_folder_that_is_not_private_is_refused() {
        let (_folder, place) = place();
        fs::create_dir(&place.base).unwrap();
        fs::set_permissions(&place.base, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(place.meet("x"), Err(Error::NoPlace(_))));
        fs::remove_dir(&place.base).unwrap();
        std::os::unix::fs::symlink("/tmp", &place.base).unwrap();
        assert!(matches!(place.meet("x"), Err(Error::NoPlace(_))));
        let long = Place::at(Path::new(&format!("/tmp/{}", "x".repeat(120))));
        assert!(matches!(long.meet("x"), Err(Error::NoPlace(_))));
    }
}
