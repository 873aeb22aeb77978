//! What a program is given.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use kyozon_typed_wasi::types::{FileType, Rights};
use kyozon_typed_wasi::{Entry, Host, Program, Scratch, Storage, Wasi};
use rustix::fs::OFlags;
use rustix::process::{getrlimit, Resource};

use crate::convert;
use crate::host::Process;

/// Most descriptors of a program. It has at most a quarter of those that the process may open, so that the process does
/// not run out of them when the program does.
const DESCRIPTORS: usize = 1024;
/// Most directories on the way to a file.
const DEPTH: usize = 256;

/// A directory that a program finds under a name.
#[derive(Debug)]
pub struct Directory<T = OwnedFd> {
    /// The name, for example `/` or `.`.
    pub name: Vec<u8>,
    /// The directory, opened for reading.
    pub handle: T,
    /// What the program may do by it and below it: for example [`Rights::ALL`] or [`Rights::READ_ONLY`].
    pub rights: Rights,
}

/// What a program starts with. Its directories are a host's; other descriptors are the process's.
#[derive(Debug)]
pub struct Start<T = OwnedFd> {
    /// Its arguments, its name first.
    pub arguments: Vec<Vec<u8>>,
    /// Its environment, as `name=value`.
    pub environment: Vec<Vec<u8>>,
    /// Its first descriptors: standard input, output and error. A descriptor that is open only for reading cannot be
    /// written, and the reverse; one that appends can do nothing else to the file. The program cannot change their
    /// flags, as the process may share them with others. A directory among them gives access to nothing.
    pub standard: Vec<OwnedFd>,
    /// Its directories. They follow the standard descriptors, so the first is number 3 if those are three.
    pub directories: Vec<Directory<T>>,
    /// Descriptors after the directories: sockets that are connected, or that listen.
    pub sockets: Vec<OwnedFd>,
}

impl<T> Default for Start<T> {
    fn default() -> Start<T> {
        let (arguments, environment) = (Vec::new(), Vec::new());
        let (standard, directories, sockets) = (Vec::new(), Vec::new(), Vec::new());
        Start { arguments, environment, standard, directories, sockets }
    }
}

impl<T> Start<T> {
    /// A start with the process's own standard input, output and error.
    ///
    /// # Errors
    ///
    /// No descriptor is left.
    pub fn with_own_standard() -> io::Result<Start<T>> {
        let own = [
            io::stdin().as_fd().try_clone_to_owned()?,
            io::stdout().as_fd().try_clone_to_owned()?,
            io::stderr().as_fd().try_clone_to_owned()?,
        ];
        Ok(Start { standard: own.into(), ..Start::default() })
    }

    /// Calls `use_` with the interface of a program that starts so on a host, which makes handles of the process's
    /// descriptors by `own`. The program's descriptors are closed afterwards.
    ///
    /// # Errors
    ///
    /// An argument, variable or name has a zero byte, the handle of a directory is something else, there are more
    /// descriptors than 1,024 or a quarter of the process's limit, or the kernel does not tell what a descriptor is.
    pub fn run_on<H: Host<Handle = T>, R>(
        self,
        mut host: H,
        own: impl Fn(OwnedFd) -> T,
        use_: impl FnOnce(&mut Wasi<'_, H>) -> R,
    ) -> io::Result<R> {
        let (names, directories): (Vec<_>, Vec<_>) = self
            .directories
            .into_iter()
            .map(|Directory { name, handle, rights }| (name, (handle, rights)))
            .unzip();
        let names = strings(&names);
        let arguments = strings(&self.arguments);
        let environment = strings(&self.environment);
        for string in [&arguments, &environment, &names].into_iter().flatten() {
            if string.contains(&0) {
                let string = string.escape_ascii();
                let message = format!("\"{string}\" has a zero byte: remove it");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
        }
        let mut descriptors = Vec::new();
        for handle in self.standard {
            let entry = entry(handle, &own)?;
            let base = entry.base.without(Rights::FD_FDSTAT_SET_FLAGS);
            descriptors.push(Some(Entry { base, ..entry }));
        }
        for (n, (handle, rights)) in directories.into_iter().enumerate() {
            if kind(&mut host, &handle)? != FileType::Directory {
                let name = names[n].escape_ascii();
                let message = format!(
                    "\"{name}\" is not a directory: give the program a directory by this name"
                );
                return Err(io::Error::new(io::ErrorKind::NotADirectory, message));
            }
            descriptors.push(Some(Entry::preopen(handle, n, rights)));
        }
        for handle in self.sockets {
            descriptors.push(Some(entry(handle, &own)?));
        }
        let most = most_descriptors();
        if descriptors.len() > most {
            let message = format!(
                "{} descriptors: at most {most}; the most are {DESCRIPTORS}, with a limit of {} open files (ulimit -n)",
                descriptors.len(),
                4 * DESCRIPTORS
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        descriptors.resize_with(most, || None);
        let [mut first, mut second] = [(); 2].map(|()| Vec::new());
        first.resize_with(DEPTH, || None);
        second.resize_with(DEPTH, || None);
        let mut scratch = Box::new(Scratch::new());
        let storage = Storage {
            descriptors: &mut descriptors,
            entered: [&mut first, &mut second],
            scratch: &mut scratch,
        };
        let program =
            Program { arguments: &arguments, environment: &environment, preopens: &names };
        Ok(use_(&mut Wasi::new(host, storage, program)))
    }
}

impl Start {
    /// Calls `use_` with the interface of a program that starts so in this process. Its descriptors are closed
    /// afterwards.
    ///
    /// # Errors
    ///
    /// Those of [`run_on`](Start::run_on).
    pub fn run<R>(self, use_: impl FnOnce(&mut Wasi<'_, Process>) -> R) -> io::Result<R> {
        self.run_on(Process::new(), |handle| handle, use_)
    }
}

fn strings(strings: &[Vec<u8>]) -> Vec<&[u8]> {
    strings.iter().map(Vec::as_slice).collect()
}

/// The number of descriptors that a program can have.
fn most_descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    let quarter = limit.and_then(|limit| usize::try_from(limit / 4).ok());
    quarter.map_or(DESCRIPTORS, |quarter| quarter.min(DESCRIPTORS))
}

/// The type of a file.
fn kind<H: Host>(host: &mut H, handle: &H::Handle) -> io::Result<FileType> {
    let status = host.status(handle);
    let kind = status.map(|status| status.kind);
    kind.map_err(|error| io::Error::other(format!("cannot find a descriptor's type: {error:?}")))
}

/// A descriptor of the process, with the rights that its type and the way it was opened leave.
fn entry<T>(handle: OwnedFd, own: impl Fn(OwnedFd) -> T) -> io::Result<Entry<T>> {
    let flags = rustix::fs::fcntl_getfl(&handle)?;
    let kind = kind(&mut Process::new(), &handle)?;
    let terminal = kind == FileType::CharacterDevice && rustix::termios::isatty(&handle);
    let entry = Entry::new(own(handle), kind);
    if kind == FileType::Directory {
        // Only a directory with a name says what may be done below it.
        let base = Rights::FD_FILESTAT_GET;
        return Ok(Entry { base, inheriting: Rights::NONE, ..entry });
    }
    let resize = Rights::FD_ALLOCATE.or(Rights::FD_FILESTAT_SET_SIZE);
    let mut lost = Rights::NONE;
    match flags & OFlags::ACCMODE {
        OFlags::WRONLY => lost = Rights::FD_READ,
        OFlags::RDONLY => lost = Rights::FD_WRITE.or(resize).or(Rights::FD_FILESTAT_SET_TIMES),
        _ => {}
    }
    if flags.contains(OFlags::APPEND) {
        lost = lost.or(resize);
    }
    // By these rights, C libraries find out whether a device is a terminal.
    if terminal {
        lost = lost.or(Rights::FD_SEEK).or(Rights::FD_TELL);
    }
    Ok(Entry { flags: convert::from_oflags(flags), base: entry.base.without(lost), ..entry })
}
