//! Typed programs whose files are in images: `kyozon typed run` becomes this program for them.
//!
//! The program runs in this process; a call of it on a file is a call of library Linux, which is confined in a process
//! of its own, or a function call if the user asks for that.

mod host;

use crate::cli::KernelOptions;
use crate::fs::failure::failed;
use crate::fs::place::Place;
use crate::fs::session::Session;
use crate::fs::within;
use crate::interrupt;
use anyhow::{anyhow, Context, Result};
use host::{File, Files, Handle};
use kyozon_abi::typed::TYPED_RESERVED;
use kyozon_typed_runner::{Arena, Command, Directory, Start};
use kyozon_typed_wasi::types::Rights;
use liblinux::calls::CWD;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// A program, what it is given, and the kernel of its files.
#[derive(clap::Args)]
pub struct Options {
    /// The kernel.
    #[command(flatten)]
    pub kernel: KernelOptions,
    /// The file that was compiled
    pub file: PathBuf,
    /// The program's name
    pub name: OsString,
    /// A directory: a place, two colons, the name that the program finds it by
    #[arg(long, value_name = "PLACE::NAME")]
    pub dir: Vec<OsString>,
    /// A directory that can only be read
    #[arg(long, value_name = "PLACE::NAME")]
    pub dir_ro: Vec<OsString>,
    /// A variable of the environment
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<OsString>,
    /// End the program after so many seconds
    #[arg(long, default_value_t = 0)]
    pub time_limit: u64,
    /// The program's arguments
    #[arg(last = true)]
    pub arguments: Vec<OsString>,
}

/// A directory that the program is given.
struct Given {
    place: Place,
    name: Vec<u8>,
    rights: Rights,
}

impl Given {
    /// The directory that a word names: the last two colons are before the program's name for it.
    fn parse(word: &OsStr, rights: Rights) -> Result<Self> {
        let bytes = word.as_bytes();
        let at = bytes.windows(2).rposition(|pair| pair == b"::");
        let at = at.with_context(|| format!("{}: say PLACE::NAME", word.display()))?;
        let place = Place::parse(OsStr::from_bytes(&bytes[..at]));
        Ok(Self { place, name: bytes[at + 2..].to_vec(), rights })
    }

    fn is_written(&self) -> bool {
        self.rights != Rights::READ_ONLY
    }

    /// Opens it, as the user named it: links in its path are followed.
    fn open<'a>(&self, session: &'a Session) -> Result<Directory<Handle<'a>>> {
        let (calls, path) = (session.calls(&self.place), self.place.path());
        let how = libc::O_RDONLY | libc::O_DIRECTORY;
        let name = crate::fs::walk::c_string(path.as_os_str())?;
        let fd = calls.open_at(CWD, &name, how, 0).map_err(failed("open", path))?;
        let handle = Handle::File(File::new(calls, fd));
        Ok(Directory { name: self.name.clone(), handle, rights: self.rights })
    }
}

/// Runs a program: its exit status.
pub fn run(options: &Options) -> Result<ExitCode> {
    let name = options.name.display();
    let file = fs::read(&options.file).with_context(|| options.file.display().to_string())?;
    let mut arena = Arena::default();
    // Before the kernel, whose handler of faults passes on what is not the kernel's.
    let command = Command::load(&file, TYPED_RESERVED, &mut arena)
        .map_err(|message| anyhow!("{name}: {message}"))?;
    let writable = options.dir.iter().map(|word| Given::parse(word, Rights::ALL));
    let read_only = options.dir_ro.iter().map(|word| Given::parse(word, Rights::READ_ONLY));
    let given = writable.chain(read_only).collect::<Result<Vec<_>>>()?;
    let places: Vec<_> = given.iter().map(|given| (&given.place, given.is_written())).collect();
    let limit = Duration::from_secs(options.time_limit);
    let mut ended = None;
    within(&options.kernel.boot(), &places, |session| {
        let start = start(options, &given, session)?;
        interrupt::check()?;
        ended = Some(start.run_on(Files::new(), Handle::Process, |wasi| command.run(wasi, limit))?);
        interrupt::check()
    })?;
    let ended = ended.context("the program was not run")?;
    if let Some(message) = ended.message() {
        eprintln!("kyozon: {name}: {message}");
    }
    Ok(ended.status().into())
}

fn start<'a>(
    options: &Options,
    given: &[Given],
    session: &'a Session,
) -> Result<Start<Handle<'a>>> {
    let mut start = Start::with_own_standard().context("standard input, output and error")?;
    start.arguments.push(options.name.clone().into_vec());
    start.arguments.extend(options.arguments.iter().map(|word| word.as_bytes().to_vec()));
    start.environment.extend(options.env.iter().map(|word| word.as_bytes().to_vec()));
    start.directories = given.iter().map(|given| given.open(session)).collect::<Result<_>>()?;
    Ok(start)
}
