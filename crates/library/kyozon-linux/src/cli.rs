//! The command line.

use crate::fs::kernel::Boot;
use crate::fs::place::{Image, Place};
use clap::{Parser, Subcommand, ValueEnum};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// Linux as a library.
#[derive(Parser)]
#[command(name = "kyozon", bin_name = "kyozon", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The command line of this process.
    pub fn read() -> Self {
        Self::parse_from(usual(std::env::args_os()))
    }
}

/// find's own options have one dash: those that `fs find` has, too, get the second one.
fn usual(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    if let Some(at) = words.iter().position(|word| word == "find") {
        for word in &mut words[at..] {
            if ["-name", "-type", "-print0"].iter().any(|option| word == option) {
                *word = [OsStr::new("-"), word].into_iter().collect();
            }
        }
    }
    words
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Work on files in images of file systems, without root and without mounting. IMAGE:/PATH names a file in an image
    /// or a block device, IMAGE@2:/PATH one in its second partition
    Fs {
        /// The kernel.
        #[command(flatten)]
        kernel: KernelOptions,
        /// The operation.
        #[command(subcommand)]
        command: Operation,
    },
    /// Run a typed program whose directories are in images
    #[command(hide = true)]
    TypedRun(crate::typed::Options),
    /// Run Linux for another process
    #[command(hide = true)]
    ConfinedKernel {
        /// What liblinux passes
        #[arg(allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Measure system calls: prints a line for each, its name and the nanoseconds of one call
    #[command(hide = true)]
    BenchSyscalls {
        /// Library Linux's image
        #[arg(long, env = "KYOZON_LINUX", default_value_os_t = default_image(), hide_default_value = true)]
        linux: PathBuf,
        /// The kernel
        kernel: Kernel,
        /// A folder of that kernel in memory, for a file
        #[arg(default_value = "/dev/shm")]
        folder: PathBuf,
    },
    /// Measure reading and writing files in records of 16 KiB: prints a line for each size and operation, and the
    /// microseconds of a record
    #[command(hide = true)]
    BenchFileio {
        /// Library Linux's image
        #[arg(long, env = "KYOZON_LINUX", default_value_os_t = default_image(), hide_default_value = true)]
        linux: PathBuf,
        /// The kernel
        kernel: Kernel,
        /// For direct, a disk with an ext4; for native, a folder of one
        place: PathBuf,
    },
    /// Measure time from the start to a running kernel and back: prints nanoseconds of CPU time
    #[command(hide = true)]
    BenchBoot {
        /// Library Linux's image
        #[arg(long, env = "KYOZON_LINUX", default_value_os_t = default_image(), hide_default_value = true)]
        linux: PathBuf,
    },
}

/// The kernel for files in images.
#[derive(clap::Args)]
pub struct KernelOptions {
    /// Library Linux's image. Without it, that of the environment's KYOZON_LINUX, or the one beside the program
    #[arg(long, global = true)]
    pub linux: Option<PathBuf>,
    /// Run Linux in this process: faster, but an image that breaks Linux breaks this process
    #[arg(long, global = true)]
    pub in_process: bool,
    /// End Linux if a call takes longer, in seconds
    #[arg(
        long,
        global = true,
        default_value_t = 120,
        value_parser = clap::value_parser!(u64).range(1..),
        conflicts_with = "in_process"
    )]
    pub limit: u64,
    /// Linux's memory, in MiB. The host gives what is used. xfs needs 512 to remove or make 100 000 files
    #[arg(long, global = true, default_value_t = 512, value_parser = memory)]
    pub memory: usize,
}

impl KernelOptions {
    /// What to boot.
    pub fn boot(&self) -> Boot {
        let linux = self.linux.clone().unwrap_or_else(image);
        let confined = (!self.in_process).then_some(Duration::from_secs(self.limit));
        Boot { linux, confined, memory_bytes: self.memory << 20, tasks: 0 }
    }
}

/// Kernels whose system calls are measured.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kernel {
    /// Library Linux in this process
    Direct,
    /// The kernel that runs this process
    Native,
}

/// What to do with files.
#[derive(Subcommand)]
pub enum Operation {
    /// List a folder
    Ls {
        /// With type, rights, links, owner, group, size and time
        #[arg(short)]
        long: bool,
        /// Also names that begin with a dot, which are always shown
        #[arg(short)]
        all: bool,
        /// One name a line, which is always so
        #[arg(short = '1')]
        one: bool,
        /// IMAGE:/PATH
        path: Place,
    },
    /// Write files to standard output
    Cat {
        /// IMAGE:/PATH
        #[arg(required = true)]
        paths: Vec<Place>,
    },
    /// Copy files and folders, either direction. Times, rights and holes are kept
    Cp {
        /// Folders with everything in them
        #[arg(short, visible_short_alias = 'R')]
        recursive: bool,
        /// As -r; also keep owners, extended attributes, hard links and device nodes
        #[arg(short)]
        archive: bool,
        /// Also keep owners. Rights and times are always kept
        #[arg(short)]
        preserve: bool,
        /// Replace what is there, which is the default
        #[arg(short)]
        force: bool,
        /// Replace nothing
        #[arg(short, conflicts_with = "force")]
        no_clobber: bool,
        /// Print each copy
        #[arg(short)]
        verbose: bool,
        /// What to copy, then where: a folder, or a new name
        #[arg(required = true, num_args = 2..)]
        paths: Vec<Place>,
    },
    /// Remove files
    Rm {
        /// Folders with everything in them
        #[arg(short, visible_short_alias = 'R')]
        recursive: bool,
        /// It is no error if there is no such file
        #[arg(short)]
        force: bool,
        /// IMAGE:/PATH
        #[arg(required = true)]
        paths: Vec<Place>,
    },
    /// Make folders
    Mkdir {
        /// Also the folders that lead there
        #[arg(short)]
        parents: bool,
        /// IMAGE:/PATH
        #[arg(required = true)]
        paths: Vec<Place>,
    },
    /// Show everything about a file
    Stat {
        /// IMAGE:/PATH
        path: Place,
    },
    /// List everything in a folder
    Find {
        /// Only names that match this pattern
        #[arg(long)]
        name: Option<glob::Pattern>,
        /// Only files of this type
        #[arg(long = "type")]
        kind: Option<Kind>,
        /// End paths with a zero byte, for xargs -0
        #[arg(long)]
        print0: bool,
        /// IMAGE:/PATH
        path: Place,
    },
    /// Write an archive of a folder to standard output, or put one from standard input into a folder
    Tar {
        /// Write an archive, which is what it does without -x
        #[arg(short, conflicts_with = "extract")]
        create: bool,
        /// Put the archive's files into the folder
        #[arg(short = 'x')]
        extract: bool,
        /// The archive, instead of standard output or input
        #[arg(short)]
        file: Option<PathBuf>,
        /// IMAGE:/PATH
        path: Place,
    },
    /// Show the size of a file system
    #[command(disable_help_flag = true)]
    Df {
        /// Sizes for people
        #[arg(short = 'h')]
        human: bool,
        /// Print help
        #[arg(long, action = clap::ArgAction::Help)]
        help: Option<bool>,
        /// IMAGE:/
        path: Place,
    },
    /// Do several operations, one a line, as they are written behind `kyozon fs`
    Batch(Batch),
    /// Show the file system of an image in a folder of this machine, by FUSE. `fusermount3 -u FOLDER` ends that
    Mount(Mount),
}

/// Several operations.
#[derive(clap::Args)]
pub struct Batch {
    /// The file with the lines, instead of standard input
    #[arg(short)]
    pub file: Option<PathBuf>,
    /// The image of paths that begin with :/, such as :/etc
    pub image: Option<Image>,
}

/// A line of a batch.
#[derive(Parser)]
#[command(
    name = "batch",
    no_binary_name = true,
    disable_help_flag = true,
    disable_help_subcommand = true
)]
pub struct Line {
    /// The operation.
    #[command(subcommand)]
    pub operation: Operation,
}

impl Line {
    /// The operation that words name.
    pub fn parse_words(words: impl Iterator<Item = OsString>) -> Result<Operation, clap::Error> {
        Self::try_parse_from(usual(words)).map(|line| line.operation)
    }
}

/// What to mount, and how.
#[derive(clap::Args)]
pub struct Mount {
    /// For reading only: the image stays as it is
    #[arg(short, long)]
    pub read_only: bool,
    /// The kind of file system, such as ext4. Without it, the kernel finds out
    #[arg(long)]
    pub kind: Option<String>,
    /// Stay in the foreground
    #[arg(short, long)]
    pub foreground: bool,
    /// Let other users in, with the rights that the image gives them. Without it, only the user who mounts has access,
    /// and to everything
    #[arg(long)]
    pub allow_other: bool,
    /// IMAGE, or IMAGE@2 for its second partition
    pub image: Image,
    /// Where its files appear
    pub folder: PathBuf,
}

/// Types of files that find distinguishes.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Regular file
    F,
    /// Directory
    D,
    /// Symbolic link
    L,
    /// Pipe
    P,
    /// Socket
    S,
    /// Block device
    B,
    /// Character device
    C,
}

impl Kind {
    /// Its `DT_` constant.
    pub fn number(self) -> u8 {
        match self {
            Self::F => libc::DT_REG,
            Self::D => libc::DT_DIR,
            Self::L => libc::DT_LNK,
            Self::P => libc::DT_FIFO,
            Self::S => libc::DT_SOCK,
            Self::B => libc::DT_BLK,
            Self::C => libc::DT_CHR,
        }
    }
}

/// MiB of a kernel's memory.
fn memory(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|_| "a number of MiB is needed".to_owned())?;
    if (1..=1 << 20).contains(&number) {
        Ok(number)
    } else {
        Err("from 1 MiB to 1 TiB".into())
    }
}

/// The image if the command line names none.
fn image() -> PathBuf {
    std::env::var_os("KYOZON_LINUX").map_or_else(default_image, PathBuf::from)
}

/// `../lib/kyozon/linux.elf` beside the program, where `make install` puts it.
fn default_image() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program
        .parent()
        .and_then(|folder| folder.parent())
        .unwrap_or(std::path::Path::new("/usr/local"));
    folder.join("lib/kyozon/linux.elf")
}
