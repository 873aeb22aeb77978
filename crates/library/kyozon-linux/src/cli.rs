//! The command line.

use crate::fs::place::{Image, Place};
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Linux as a library.
#[derive(Parser)]
#[command(name = "kyozon-linux", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Work on files in images of file systems, without root and without mounting. IMAGE:/PATH names a file in an image
    /// or a block device, IMAGE@2:/PATH one in its second partition
    Fs {
        /// Library Linux's image.
        #[arg(long, env = "KYOZON_LINUX", default_value_os_t = default_image(), global = true, hide_default_value = true)]
        linux: PathBuf,
        /// Run Linux in this process: faster, but an image that breaks Linux breaks this process
        #[arg(long, global = true)]
        in_process: bool,
        /// End Linux if a call takes longer, in seconds
        #[arg(
            long,
            global = true,
            default_value_t = 120,
            value_parser = clap::value_parser!(u64).range(1..),
            conflicts_with = "in_process"
        )]
        limit: u64,
        /// Linux's memory, in MiB. The host gives what is used. xfs needs 512 to remove or make 100 000 files
        #[arg(long, global = true, default_value_t = 512, value_parser = memory)]
        memory: usize,
        /// The operation.
        #[command(subcommand)]
        command: Operation,
    },
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
        /// What to copy, then where: a folder, or a new name
        #[arg(required = true, num_args = 2..)]
        paths: Vec<Place>,
    },
    /// Remove files
    Rm {
        /// Folders with everything in them
        #[arg(short, visible_short_alias = 'R')]
        recursive: bool,
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
    Df {
        /// IMAGE:/
        path: Place,
    },
    /// Show the file system of an image in a folder of this machine, by FUSE. `fusermount3 -u FOLDER` ends that
    Mount(Mount),
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

/// `../lib/kyozon/linux.elf` beside the program, where `make install` puts it.
fn default_image() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let folder = program
        .parent()
        .and_then(|folder| folder.parent())
        .unwrap_or(std::path::Path::new("/usr/local"));
    folder.join("lib/kyozon/linux.elf")
}
