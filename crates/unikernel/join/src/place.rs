//! Where groups are found: `$XDG_RUNTIME_DIR/kyozon`, for root also `/run/kyozon`, and in it a folder for each with a
//! socket.
//!
//! One who makes a group, joins it, or takes its folder away holds the lock of the folder above meanwhile, which is a
//! matter of milliseconds. So a folder whose socket nobody listens to is what a killed keeper left.

use crate::error::What;
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

/// Bytes of a group's name, at most.
pub const NAME_BYTES: usize = 32;
/// How long the lock may be somebody else's.
const PATIENCE: Duration = Duration::from_secs(5);
/// Connections that wait to be accepted, at most.
const BACKLOG: i32 = 128;

/// The folder above all groups of a user's.
#[derive(Clone, Debug)]
pub struct Place {
    base: PathBuf,
}

/// The lock of a [`Place`], until it is dropped.
#[derive(Debug)]
pub struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Explicitly, as a keeper that was made meanwhile has a copy of the descriptor.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// How one came to a group.
#[derive(Debug)]
pub enum Met {
    /// It was there.
    Joined(Socket),
    /// It is new, and somebody has to keep it.
    Made {
        /// The first joiner's.
        socket: Socket,
        /// The keeper's.
        listener: OwnedFd,
        /// Until the keeper is there.
        lock: Lock,
    },
}

/// Whether a group may be called so.
pub fn is_name(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(good) && !name.starts_with('.')
}

fn check_name(name: &str) -> Result<()> {
    if is_name(name) {
        return Ok(());
    }
    let rule = "letters, digits, '-', '_', '.', the last not at the beginning";
    Err(Error::Refused(format!("{name:?} is no name of a group: 1 to {NAME_BYTES} {rule}")))
}

impl Place {
    /// Where this user's groups are. Nothing is made.
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
                    "XDG_RUNTIME_DIR is {path}, which is no folder of yours: groups have no place"
                )));
            }
        }
        if me.is_root() {
            return Ok(Self { base: "/run/kyozon".into() });
        }
        Err(Error::NoPlace(
            "groups have no place: set XDG_RUNTIME_DIR to a folder of yours, such as /run/user/UID"
                .into(),
        ))
    }

    /// This folder instead.
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
                "{} is too long for a socket: groups have no place",
                path.display()
            ))
        })
    }

    /// Names of groups, also of those that nobody keeps.
    pub fn groups(&self) -> Result<Vec<String>> {
        let folder = match fs::read_dir(&self.base) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            folder => folder.what("read the folder of groups")?,
        };
        let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<_> = names.filter(|name| is_name(name)).collect();
        names.sort();
        Ok(names)
    }

    /// Connects to a group that is there.
    pub fn connect(&self, name: &str) -> Result<Socket> {
        check_name(name)?;
        self.try_connect(name)?.ok_or_else(|| Error::NoGroup(name.into()))
    }

    fn try_connect(&self, name: &str) -> Result<Option<Socket>> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(family, kind, flags, None).what("make a socket")?;
        match connect(&socket, &self.address(name)?) {
            Ok(()) => Ok(Some(socket.into())),
            Err(Errno::NOENT | Errno::CONNREFUSED | Errno::NOTDIR) => Ok(None),
            Err(Errno::ACCESS | Errno::PERM) => Err(Error::NotYours(name.into())),
            Err(error) => Err(error).what("connect to the group"),
        }
    }

    /// Makes the folder, or sees that it is ours alone; takes its lock.
    fn lock(&self) -> Result<Lock> {
        let end = Instant::now() + PATIENCE;
        loop {
            match fs::DirBuilder::new().mode(0o700).create(&self.base) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    let base = self.base.display();
                    return Err(Error::NoPlace(format!("cannot make {base} for groups: {error}")));
                }
                _ => {}
            }
            let there = match fs::symlink_metadata(&self.base) {
                // The last group of another took it away.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                there => there.what("look at the folder of groups")?,
            };
            let mine = there.uid() == rustix::process::geteuid().as_raw();
            if !there.is_dir() || !mine || there.permissions().mode() & 0o77 != 0 {
                let base = self.base.display();
                return Err(Error::NoPlace(format!(
                    "{base} is not a folder of yours alone (mode 0700)"
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
                Err(error) => return Err(error).what("lock the folder of groups"),
            }
        }
    }

    /// Joins a group, or makes it. A folder that a killed keeper left is replaced.
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
            .what("make the group's folder")?;
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
        let listener = socket_with(family, kind, flags, None).what("make a socket")?;
        bind(&listener, address).what("make the group's socket")?;
        let socket = self.folder(name).join("socket");
        rustix::fs::chmod(&socket, Mode::from(0o600)).what("close the group's socket to others")?;
        listen(&listener, BACKLOG).what("listen")?;
        let first = self.try_connect(name)?.ok_or(Error::Gone)?;
        Ok((first, listener))
    }

    /// Takes a group's folder away, and the one above where it was the last.
    fn remove(&self, name: &str) {
        let folder = self.folder(name);
        let _ = fs::remove_file(folder.join("socket"));
        let _ = fs::remove_dir(&folder);
    }

    /// For a keeper whose last joiner is gone: takes the folder away, unless `busy` says, under the lock, that somebody
    /// has come meanwhile. Whether it is gone.
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
    fn the_first_makes_it_and_others_find_it() {
        let (_folder, place) = place();
        assert!(matches!(place.connect("x"), Err(Error::NoGroup(_))));
        assert_eq!(place.groups().unwrap(), [""; 0]);
        let Met::Made { listener, lock, .. } = place.meet("x").unwrap() else { panic!("there?") };
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&place.base), mode(&place.folder("x"))), (0o700, 0o700));
        drop(lock);
        assert!(matches!(place.meet("x"), Ok(Met::Joined(_))));
        assert_eq!(place.groups().unwrap(), ["x"]);
        assert!(!place.leave("x", || true) && place.connect("x").is_ok());
        // Killed: what is left is replaced.
        drop(listener);
        assert!(matches!(place.connect("x"), Err(Error::NoGroup(_))));
        let Met::Made { lock, .. } = place.meet("x").unwrap() else { panic!("alive?") };
        drop(lock);
        assert!(place.leave("x", || false) && !place.base.exists());
    }

    #[test]
    fn a_folder_that_is_not_ours_alone_is_refused() {
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
