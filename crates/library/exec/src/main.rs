//! `kyozon-linux-exec`: the command line of this crate.

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use kyozon_linux_exec::{run, Mount, Options, Owned, CANNOT_START};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs an unmodified program whose files and sockets are library Linux's.
#[derive(Parser)]
struct Arguments {
    /// The kernel image.
    #[arg(long, env = "KYOZON_LINUX", default_value = "/usr/local/lib/kyozon/linux.elf")]
    kernel: PathBuf,
    /// The library's memory in MiB.
    #[arg(long, default_value_t = 128)]
    memory: usize,
    /// A file system image, where the program sees it, and options after another colon: a type (ext4), ro. Type
    /// tmpfs needs no image.
    #[arg(long, value_name = "IMAGE:PATH[:OPTIONS]")]
    mount: Vec<String>,
    /// Calls that move to the library: credentials (ids of the process, its user and groups), ipc (pipes, eventfds,
    /// local sockets), or all.
    #[arg(long, value_enum, value_delimiter = ',')]
    library: Vec<Class>,
    /// Leave system calls as they are: each raises SIGSYS.
    #[arg(long)]
    no_rewrite: bool,
    /// Print the library's log.
    #[arg(long)]
    verbose: bool,
    /// A second command in the same process, split at spaces. The program starts when it listens on a socket, or after
    /// ten seconds; it ends with the program.
    #[arg(long)]
    beside: Option<String>,
    /// The program's file, if it is not the command's first word: after execve(2).
    #[arg(long, hide = true)]
    executable: Option<PathBuf>,
    /// The working directory, if it is below a mount point: after execve(2).
    #[arg(long, hide = true)]
    directory: Option<PathBuf>,
    /// No library: paths below mount points fail. For programs that a forked process executes.
    #[arg(long, hide = true)]
    guard: bool,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<OsString>,
}

/// A class of system calls.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Class {
    Credentials,
    Ipc,
    All,
}

fn mount(text: &str) -> Result<Mount> {
    let mut parts = text.split(':');
    let image = parts.next().unwrap_or_default().into();
    let point: PathBuf = parts.next().context("a mount is IMAGE:PATH")?.into();
    anyhow::ensure!(point.is_absolute(), "{}: the path is not absolute", point.display());
    let mut mount = Mount { image, point, kind: "ext4".into(), read_only: false };
    for option in parts.flat_map(|options| options.split(',')) {
        match option {
            "ro" => mount.read_only = true,
            kind => mount.kind = kind.into(),
        }
    }
    Ok(mount)
}

fn main() {
    let Err(error) = start(Arguments::parse());
    eprintln!("kyozon-linux exec: {error:#}");
    std::process::exit(CANNOT_START);
}

fn start(arguments: Arguments) -> Result<std::convert::Infallible> {
    let mounts = arguments.mount.iter().map(|text| mount(text)).collect::<Result<_>>()?;
    let split = |text: String| text.split_whitespace().map(OsString::from).collect();
    let moves =
        |class| arguments.library.iter().any(|&other| other == class || other == Class::All);
    run(Options {
        kernel: arguments.kernel,
        memory: arguments.memory << 20,
        mounts,
        rewrite: !arguments.no_rewrite,
        verbose: arguments.verbose,
        beside: arguments.beside.map(split),
        command: arguments.command,
        executable: arguments.executable,
        directory: arguments.directory,
        owned: Owned { credentials: moves(Class::Credentials), ipc: moves(Class::Ipc) },
        guard: arguments.guard,
    })
}
