//! A file system of an image in a folder of the host, by FUSE.
//!
//! | module | contents |
//! |---|---|
//! | [`protocol`] | the host's requests |
//! | [`server`] | what the threads that serve them share |
//! | [`worker`] | a thread, and its task in the kernel |
//! | [`nodes`], [`handles`], [`closing`] | inodes, open files, and descriptors to close |
//! | [`names`], [`folder`], [`inode`], [`file`] | what is done with them |
//! | [`attributes`] | what the host learns about an inode |
//! | [`background`], [`signals`] | the process |
//!
//! Invariants:
//!
//! 1. A request names an inode by a number and, in a folder, by one component of a path. The kernel never follows a
//!    path or a link for it.
//! 2. What the host learns was checked: types, names, lengths, error numbers.
//! 3. What grows with the image or with the host's requests has a bound, or the host's caches bound it.
//! 4. However a mount ends, the image is unmounted if its kernel still runs.

mod attributes;
mod background;
mod closing;
mod file;
mod folder;
mod handles;
mod inode;
mod names;
mod nodes;
mod protocol;
mod server;
mod signals;
mod worker;

use super::attach::Options;
use super::failure::{explain, failed};
use super::kernel::{Boot, Tasks};
use super::place::Place;
use super::session::Session;
use crate::cli::Mount;
use anyhow::{anyhow, ensure, Result};
use fuser::{Config, MountOption, SessionACL, SessionUnmounter};
use liblinux::calls::{Arg, Calls, Fd};
use liblinux::Errno;
use protocol::Protocol;
use server::Server;
use signals::Signals;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;

/// Threads that serve requests. The kernel runs one at a time; the others wait for the disk.
const THREADS: usize = 4;
/// Descriptors that the kernel's process may have.
const DESCRIPTORS: u64 = 1 << 20;

/// What happens to a mount.
enum Event {
    /// The host ended it, or it failed.
    Unmounted(io::Result<()>),
    /// A signal asks for its end.
    Signal,
    /// The kernel has ended.
    Died(String),
}

/// Where messages go.
#[derive(Clone, Copy)]
enum Messages {
    Terminal,
    Log,
}

impl Messages {
    fn say(self, text: &str) {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match self {
            Self::Terminal => eprintln!("kyozon: {line}"),
            Self::Log => {
                let line = CString::new(format!("kyozon: {line}")).unwrap_or_default();
                let how = libc::LOG_DAEMON | libc::LOG_ERR;
                // SAFETY: both are strings, and the format takes one.
                unsafe { libc::syslog(how, c"%s".as_ptr(), line.as_ptr()) };
            }
        }
    }
}

/// Mounts, and returns when that has ended.
pub fn run(boot: &Boot, what: &Mount) -> Result<()> {
    let folder = what.folder.canonicalize().map_err(|error| told(&what.folder, &error))?;
    ensure!(folder.is_dir(), "{} is not a folder: make one, and mount there", folder.display());
    let file = what.image.file.canonicalize().map_err(|error| told(&what.image.file, &error))?;
    let leaving = if what.foreground { None } else { Some(background::start()?) };
    let signals = Signals::block();
    let place = Place::root(what.image.clone());
    let write = !what.read_only;
    // SAFETY: the calls take nothing and cannot fail.
    let owner = unsafe { (libc::getuid(), libc::getgid()) };
    let options =
        Options { kind: what.kind.as_deref(), owner: Some(owner), enforced: what.allow_other };
    let boot = Boot { tasks: THREADS, ..boot.clone() };
    let mut session =
        Session::with(&boot, &[(&place, write)], &options).map_err(|error| hint(error, write))?;
    let (sender, events) = channel();
    let started = serve(&session, &place, what.allow_other, sender.clone()).and_then(|server| {
        let mounted = Mounted::new(server.clone(), &session, &place, what, &file, &folder);
        mounted.inspect_err(|_| server.stop(session.calls(&place)))
    });
    let mut mounted = match started {
        Ok(mounted) => mounted,
        Err(error) => {
            // The reason is what counts.
            let _ = session.close();
            session.died()?;
            return Err(error);
        }
    };
    let server = mounted.server.clone();
    mounted.watch(signals, &sender);
    let messages = match leaving {
        Some(leaving) => {
            leaving.leave()?;
            Messages::Log
        }
        None => Messages::Terminal,
    };
    let died = mounted.wait(messages, &events);
    server.stop(session.calls(&place));
    let closed = session.close();
    // That was said when it happened.
    if died {
        std::process::exit(1);
    }
    let ended = session.died().and(closed.after(Ok(())));
    if let (Err(error), Messages::Log) = (&ended, messages) {
        messages.say(&format!("{error:#}"));
    }
    ended
}

fn told(path: &Path, error: &io::Error) -> anyhow::Error {
    let why = error.raw_os_error().map_or_else(|| error.to_string(), |n| explain(Errno(n)));
    anyhow!("{}: {why}", path.display())
}

/// An image that cannot be written can be read.
fn hint(error: anyhow::Error, write: bool) -> anyhow::Error {
    let mut denied =
        [libc::EACCES, libc::EROFS, libc::EPERM].map(|number| explain(Errno(number))).to_vec();
    denied.push("it can only be read".into());
    let text = format!("{error:#}");
    if write && denied.iter().any(|why| text.ends_with(why.as_str())) {
        return anyhow!("{text}: use -r to mount it for reading");
    }
    error
}

/// A file system that the host has mounted.
struct Mounted {
    server: Arc<Server>,
    folder: PathBuf,
    unmounter: SessionUnmounter,
    session: Option<fuser::Session<Protocol>>,
    tasks: Tasks,
}

/// Raises the number of descriptors that tasks may have.
fn raise_limit(calls: &dyn Calls) -> liblinux::calls::Result<()> {
    let limit = [DESCRIPTORS.to_ne_bytes(), DESCRIPTORS.to_ne_bytes()].concat();
    let number = |number: u64| Arg::Number(number);
    let which = number(u64::from(libc::RLIMIT_NOFILE));
    let arguments = &mut [number(0), which, Arg::In(&limit), number(0)];
    calls.call(libc::SYS_prlimit64, arguments).map(drop)
}

fn options(what: &Mount, image: &Path, kind: &str) -> Config {
    // A comma would end the option.
    let name = image.display().to_string().replace([',', '\\'], "_");
    let mut options = Config::default();
    options.mount_options = vec![
        MountOption::FSName(name),
        // The crate would pass a `Subtype` to fusermount3 only.
        MountOption::CUSTOM(format!("subtype=kyozon-{kind}")),
        // The image's programs and devices are not this machine's.
        MountOption::NoSuid,
        MountOption::NoDev,
        if what.read_only { MountOption::RO } else { MountOption::RW },
    ];
    if what.allow_other {
        options.mount_options.push(MountOption::DefaultPermissions);
        options.acl = SessionACL::All;
    }
    options.n_threads = Some(THREADS);
    options
}

/// Serves an image's file system, as soon as threads pass requests.
fn serve(
    session: &Session,
    place: &Place,
    shared: bool,
    sender: Sender<Event>,
) -> Result<Arc<Server>> {
    let calls = session.calls(place);
    let root = Path::new("/");
    raise_limit(calls).map_err(|errno| anyhow!("the limit of open files: {}", explain(errno)))?;
    let sender = Mutex::new(sender);
    let ended = move || {
        let sender = sender.lock().unwrap_or_else(|e| e.into_inner());
        // Nobody waits for it any more.
        let _ = sender.send(Event::Died("Linux panicked".into()));
    };
    let (kind, tasks) = (session.kind(place), session.tasks()?);
    let how = libc::O_PATH | libc::O_DIRECTORY;
    let fd: Fd = calls.open(root, how, 0).map_err(failed("open", root))?;
    let server = Server::new(calls, tasks, fd, kind, shared, ended);
    Ok(Arc::new(server.map_err(failed("read", root))?))
}

/// Why the host does not mount.
fn refused(folder: &Path, error: &io::Error) -> anyhow::Error {
    let what = format!("cannot mount on {}", folder.display());
    if !Path::new("/dev/fuse").exists() {
        return anyhow!("{what}: this machine has no /dev/fuse: load the module fuse");
    }
    if error.kind() == io::ErrorKind::PermissionDenied && File::open("/dev/fuse").is_err() {
        return anyhow!(
            "{what}: this user may not open /dev/fuse: give its users rights to it (mode 666)"
        );
    }
    if error.kind() == io::ErrorKind::NotFound {
        return anyhow!(
            "{what}: fusermount3 not found: install the package fuse3, or mount as root"
        );
    }
    let why = error.raw_os_error().map_or_else(|| error.to_string(), |n| explain(Errno(n)));
    anyhow!("{what}: {why}")
}

impl Mounted {
    /// Mounts.
    fn new(
        server: Arc<Server>,
        session: &Session,
        place: &Place,
        what: &Mount,
        image: &Path,
        folder: &Path,
    ) -> Result<Self> {
        let tasks = session.tasks()?;
        let options = options(what, image, session.kind(place));
        let mut session = fuser::Session::new(Protocol(server.clone()), folder, &options)
            .map_err(|error| refused(folder, &error))?;
        let unmounter = session.unmount_callable();
        Ok(Self { server, folder: folder.to_owned(), unmounter, session: Some(session), tasks })
    }

    /// Serves requests, and watches for whatever ends the mount.
    fn watch(&mut self, signals: Signals, events: &Sender<Event>) {
        let sender = events.clone();
        let session = self.session.take();
        thread::spawn(move || {
            let ended = session.map_or(Ok(()), fuser::Session::run);
            let _ = sender.send(Event::Unmounted(ended));
        });
        let sender = events.clone();
        thread::spawn(move || loop {
            signals.wait();
            let _ = sender.send(Event::Signal);
        });
        let (sender, tasks) = (events.clone(), self.tasks.clone());
        thread::spawn(move || {
            if let Some(why) = tasks.wait_for_death() {
                let _ = sender.send(Event::Died(why));
            }
        });
    }

    /// Waits for the end. Returns whether the kernel died before; that gets a message when it happens.
    fn wait(&mut self, messages: Messages, events: &Receiver<Event>) -> bool {
        let mut died = false;
        for event in events {
            match event {
                Event::Died(why) if !died => {
                    died = true;
                    let folder = self.folder.display();
                    messages
                        .say(&format!("{folder}: {why}: unmount it with fusermount3 -u {folder}"));
                }
                Event::Died(_) => (),
                Event::Unmounted(Ok(())) => return died,
                Event::Unmounted(Err(error)) => {
                    messages.say(&format!("{}: {error}", self.folder.display()));
                    return died;
                }
                Event::Signal => {
                    unmount(&self.folder, &mut self.unmounter);
                    return died;
                }
            }
        }
        died
    }
}

/// Takes a mount away from the host, also if files of it are open: who has them gets errors from here on.
fn unmount(folder: &Path, unmounter: &mut SessionUnmounter) {
    // What programs wrote to mappings is still in the host's memory.
    if let Ok(root) = File::open(folder) {
        // SAFETY: the descriptor is open. Errors are the programs' own.
        unsafe { libc::syncfs(root.as_raw_fd()) };
    }
    if unmounter.unmount().is_err() {
        let folder = CString::new(folder.as_os_str().as_bytes()).unwrap_or_default();
        // SAFETY: the path is a string. It fails if the mount is gone.
        unsafe { libc::umount2(folder.as_ptr(), libc::MNT_DETACH) };
    }
}
