//! `kyozon typed run`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, bail, Context, Error, Result};
use clap::Args;
use kyozon_abi::typed::TYPED_RESERVED;
use kyozon_tender::console;
use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_checker::program::Program;
use kyozon_typed_compiler::BackEnd;
use kyozon_typed_runner::{Directory, Start, MAGIC, TRAPPED};
use kyozon_typed_wasi::types::Rights;
use rustix::fs::{memfd_create, MemfdFlags};

use super::cache::Place;
use super::compile::{compile, Compiler};
use super::{engine, filter, host, kernel, packets, read};
use crate::library;

/// Options of `kyozon typed run`.
#[derive(Debug, Args)]
pub struct Options {
    /// The program
    pub program: PathBuf,
    /// Give the program a directory, by its own name or as GUEST; may be repeated. IMAGE:/PATH is a directory in an
    /// image of a file system, as for kyozon fs
    #[arg(long, value_name = "HOST[::GUEST]")]
    pub dir: Vec<OsString>,
    /// Give the program a directory that it can only read; may be repeated
    #[arg(long, value_name = "HOST[::GUEST]")]
    pub dir_ro: Vec<OsString>,
    /// Set a variable of the program's environment, which is empty otherwise; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<OsString>,
    /// With directories in images: run Linux in this process. Then a system call is a function call, but an image that
    /// breaks Linux breaks this process
    #[arg(long)]
    pub in_process: bool,
    /// End the program after so many seconds, with exit status 124
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub time_limit: Option<u64>,
    /// How it is compiled, if it is in WebAssembly
    #[command(flatten)]
    pub compiler: Compiler,
    /// Run the program in kernel mode, with the module kyozon-typed
    #[arg(long, conflicts_with = "in_process")]
    pub kernel: bool,
    /// With --kernel, for a program that was written in assembly: MiB of memory at the start of the region (16)
    #[arg(long, value_name = "MIB", requires = "kernel")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub memory: Option<u16>,
    /// With --kernel, for a program that was written in assembly: give it the packets of a network interface, as handle
    /// 3, and run it again when there are more, until it ends itself
    #[arg(long, value_name = "INTERFACE", requires = "kernel")]
    pub packets: Option<String>,
    /// With --kernel, for a program that was written in assembly: give it the packets that a network interface
    /// receives, and pass them on to Linux or drop them, as it says. It runs again when there are more, until it ends
    /// itself
    #[arg(long, value_name = "INTERFACE", requires = "kernel", conflicts_with = "packets")]
    pub filter: Option<String>,
    /// With --filter: what becomes of a packet that comes while 1024 packets, or 4 MiB of them, wait for the program
    #[arg(long, value_name = "VERDICT", requires = "filter", default_value = "drop")]
    pub when_full: filter::Verdict,
    /// The program's arguments
    #[arg(last = true)]
    pub arguments: Vec<OsString>,
}

/// Runs a program: its exit status.
///
/// # Errors
///
/// The program cannot be read, compiled or loaded, the checker refuses it, or a directory cannot be opened.
pub fn run(options: &Options) -> Result<ExitCode> {
    let program = &options.program;
    let name = || program.display().to_string();
    let in_images = directories(options).any(|(word, _)| path_in_image(split(word).0).is_some());
    if options.in_process && !in_images {
        bail!("--in-process: no directory is in an image: give one by --dir IMAGE:/PATH");
    }
    if options.kernel && in_images {
        bail!(
            "--kernel: a directory is in an image: mount it, or run the program without --kernel"
        );
    }
    check_environment(&options.env)?;
    let start = if in_images { None } else { Some(start(options)?) };
    let device = options.kernel.then(kernel::device).transpose()?;
    let bytes = read(program)?;
    let file = if bytes.starts_with(b"\0asm") {
        compiled(&bytes, options.compiler.back_end()).with_context(name)?
    } else {
        bytes
    };
    let limit = Duration::from_secs(options.time_limit.unwrap_or(0));
    let Some(start) = start else { return Err(with_images(options, &file)) };
    let ended = match device {
        Some(device) if !is_compiled(&file) => {
            check_assembly(options).with_context(name)?;
            let memory = usize::from(options.memory.unwrap_or(16)) << 20;
            let packets = packets_of(options)?;
            return run_assembly(&device, &file, &kernel::Assembly { memory, packets }, &name());
        }
        Some(device) => {
            if options.memory.is_some() {
                bail!("{}: --memory: a compiled program has the memory that it asks for", name());
            }
            let packets = [("--packets", &options.packets), ("--filter", &options.filter)];
            if let Some((option, _)) = packets.iter().find(|(_, value)| value.is_some()) {
                bail!("{}: {option}: WASI has no packets, for a compiled program", name());
            }
            engine::run(&device, &file, start, limit).with_context(name)?
        }
        None => kyozon_typed_runner::run(&file, TYPED_RESERVED, start, limit)
            .map_err(|message| anyhow!("{}: {message}", name()))?,
    };
    if let Some(message) = ended.message() {
        console::message(&format!("kyozon: {}: {message}", name()));
    }
    Ok(ended.status().into())
}

/// Whether a file was compiled from WebAssembly: a manifest follows its text.
fn is_compiled(file: &[u8]) -> bool {
    let program = Program::parse(file, host(file));
    program.is_ok_and(|program| program.rest().starts_with(MAGIC))
}

/// Fails for options that are for compiled programs.
fn check_assembly(options: &Options) -> Result<()> {
    let Options { dir, dir_ro, env, time_limit, arguments, .. } = options;
    let lists = [("--dir", dir), ("--dir-ro", dir_ro), ("--env", env), ("arguments", arguments)];
    let mut given = lists.iter().filter(|(_, list)| !list.is_empty()).map(|(name, _)| *name);
    match given.next().or(time_limit.map(|_| "--time-limit")) {
        Some(option) => bail!("{option}: a program that was written in assembly takes none"),
        None => Ok(()),
    }
}

fn packets_of(options: &Options) -> Result<kernel::Packets> {
    Ok(match (&options.packets, &options.filter) {
        (Some(interface), _) => kernel::Packets::Of(packets::socket(interface)?),
        (None, Some(interface)) => kernel::Packets::Filtered(filter::Options {
            interface: interface.clone(),
            when_full: options.when_full,
        }),
        (None, None) => kernel::Packets::None,
    })
}

fn run_assembly(
    device: &File,
    file: &[u8],
    assembly: &kernel::Assembly,
    name: &str,
) -> Result<ExitCode> {
    let ended = kernel::run(device, file, assembly);
    if let kernel::Packets::Filtered(options) = &assembly.packets {
        if let Some(message) = filter::missed(device, options.when_full) {
            console::message(&format!("kyozon: {name}: {message}"));
        }
    }
    Ok(match ended.with_context(|| name.to_string())? {
        kernel::Ended::Exit(result) => ExitCode::from(result as u8),
        kernel::Ended::Trap(why, at) => {
            console::message(&format!("kyozon: {name}: trap at {at:#x}: {why}"));
            ExitCode::from(TRAPPED)
        }
    })
}

/// What is kept of an earlier run if the checker accepts it, or a new file.
fn compiled(wasm: &[u8], back_end: BackEnd<'_>) -> Result<Vec<u8>> {
    let place = Place::new(wasm, back_end);
    let kept = place.as_ref().and_then(Place::read);
    if let Some(file) = kept.filter(|file| verify(file, host(file), &mut Arena::default()).is_ok())
    {
        return Ok(file);
    }
    let file = compile(wasm, back_end)?;
    if let Some(place) = place {
        place.write(&file);
    }
    Ok(file)
}

fn start(options: &Options) -> Result<Start> {
    let mut start = Start::with_own_standard().context("standard input, output and error")?;
    let name = options.program.file_name().unwrap_or_default();
    start.arguments.push(name.as_bytes().to_vec());
    start.arguments.extend(options.arguments.iter().map(|a| a.as_bytes().to_vec()));
    start.environment.extend(options.env.iter().map(|v| v.as_bytes().to_vec()));
    for (word, rights) in directories(options) {
        let (host, name) = split(word);
        let directory = File::open(host)
            .and_then(|file| Ok((file.metadata()?.is_dir(), file)))
            .with_context(|| host.display().to_string())?;
        let (true, file) = directory else { bail!("{} is not a directory", host.display()) };
        start.directories.push(Directory { name, handle: file.into(), rights });
    }
    Ok(start)
}

/// The directories, and what may be done in them.
fn directories(options: &Options) -> impl Iterator<Item = (&OsString, Rights)> {
    let writable = options.dir.iter().map(|word| (word, Rights::ALL));
    writable.chain(options.dir_ro.iter().map(|word| (word, Rights::READ_ONLY)))
}

fn check_environment(variables: &[OsString]) -> Result<()> {
    match variables.iter().find(|variable| !variable.as_bytes().contains(&b'=')) {
        Some(variable) => bail!("--env {}: say NAME=VALUE", variable.display()),
        None => Ok(()),
    }
}

/// Where the path in an image begins, if a directory is in one and not the host's.
fn path_in_image(host: &Path) -> Option<usize> {
    let colon = host.as_os_str().as_bytes().windows(2).position(|pair| pair == b":/")?;
    (!host.is_dir()).then_some(colon + 1)
}

/// Becomes the program that runs typed programs on library Linux. Returns only an error.
fn with_images(options: &Options, file: &[u8]) -> Error {
    let name = options.program.file_name().unwrap_or_default();
    // It is inherited, and ends with the program.
    let memory = memfd_create("kyozon-typed", MemfdFlags::empty()).map(File::from);
    let memory = match memory.map_err(Error::from).and_then(|mut memory| {
        memory.write_all(file)?;
        Ok(memory)
    }) {
        Ok(memory) => memory,
        Err(error) => return error.context("a copy of the program in memory"),
    };
    let mut words: Vec<OsString> = Vec::new();
    for (option, list) in [("--dir", &options.dir), ("--dir-ro", &options.dir_ro)] {
        for word in list {
            words.extend([option.into(), explicit(word)]);
        }
    }
    for variable in &options.env {
        words.extend(["--env".into(), variable.clone()]);
    }
    if let Some(seconds) = options.time_limit {
        words.extend(["--time-limit".into(), seconds.to_string().into()]);
    }
    if options.in_process {
        words.push("--in-process".into());
    }
    words.push(format!("/proc/self/fd/{}", memory.as_raw_fd()).into());
    words.extend([name.into(), "--".into()]);
    words.extend(options.arguments.iter().cloned());
    library::typed(&words)
}

/// A directory with the name that the program finds it by: by default its own, or its path in the image.
fn explicit(word: &OsStr) -> OsString {
    let (host, name) = split(word);
    let mut explicit = host.as_os_str().to_owned();
    explicit.push("::");
    explicit.push(OsStr::from_bytes(&name));
    explicit
}

/// The two names of a directory: `HOST` or `HOST::GUEST`. One in an image has its path there for the second.
fn split(word: &OsStr) -> (&Path, Vec<u8>) {
    let bytes = word.as_bytes();
    match bytes.windows(2).rposition(|pair| pair == b"::") {
        Some(at) => (Path::new(OsStr::from_bytes(&bytes[..at])), bytes[at + 2..].to_vec()),
        None => {
            let path = path_in_image(Path::new(word)).unwrap_or(0);
            (Path::new(word), bytes[path..].to_vec())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_its_own_name_or_another() {
        for (word, host, guest) in [
            ("/tmp", "/tmp", "/tmp"),
            (".::/", ".", "/"),
            ("a::b::c", "a::b", "c"),
            ("disk.img:/a", "disk.img:/a", "/a"),
            ("disk.img@2:/::x", "disk.img@2:/", "x"),
            ("disk.img:/::/", "disk.img:/", "/"),
        ] {
            let expected = (Path::new(host), guest.as_bytes().to_vec());
            assert_eq!(split(OsStr::new(word)), expected);
        }
    }
}
