//! The command line: commands and their options. The doc comments are the help texts.

mod load;
mod run;
mod values;

use crate::events::Format;
use crate::inspect::listing::What;
use clap::{Parser, Subcommand, ValueEnum};
pub use load::{Isolation, LoadOptions, Tick, Watch};
pub use run::{Backend, RunOptions};
use std::ffi::OsString;
use std::path::PathBuf;
pub use values::Target;

/// Loads a cokernel beside the running Linux kernel and unloads it again; runs unikernels
#[derive(Debug, Parser)]
#[command(
    name = "kyozon",
    version,
    after_help = "Exit status: 0 done (status: a cokernel runs), 1 failed, 2 wrong usage;\n\
    status, top and events also: 3 nothing is loaded; status also: 4 the cokernel was stopped or the\n\
    monitor is blind; inspect also: 4 not everything was judged, 5 something was found;\n\
    run: the unikernel's own, 0 to 119; 120 it crashed, 124 the time limit was reached, 128+N signal N."
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// A command with its options.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load a cokernel beside the running kernel (needs CAP_SYS_MODULE)
    ///
    /// By default the cokernel is the microkernel with the monitor, which watches the running kernel for tampering and
    /// repairs it. The monitor's profile is made from the running kernel at this moment (needs CAP_SYSLOG and
    /// CAP_SYS_ADMIN): not all earlier tampering is reported.
    ///
    /// The kernel is not patched, restarted or reconfigured. A timer that Linux does not use interrupts it with
    /// non-maskable interrupts, and the cokernel runs in between, even while Linux has interrupts disabled.
    #[command(args_override_self = true)]
    Load(LoadOptions),
    /// Print what the monitor does about each class of findings, as a file for load --policy
    Policy {
        /// The policy to check and print, instead of the default
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Stop the cokernel and return its CPU time, memory and timer to Linux (needs CAP_SYS_MODULE)
    Unload {
        /// The key with which the wall was locked by load --key-file
        #[arg(long, value_name = "FILE")]
        key_file: Option<PathBuf>,
    },
    /// Show status and overhead
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print metrics in the text format of OpenMetrics
        #[arg(long, conflicts_with = "json")]
        openmetrics: bool,
    },
    /// Show status, checks and the latest events in the terminal, live; q ends it
    Top,
    /// Print what the cokernel and its monitor reported
    ///
    /// With isolation none, Linux can change the events; only the copy on the cokernel's serial line is out of its
    /// reach.
    Events {
        /// Continue until interrupted, or until the cokernel is unloaded
        #[arg(long, short)]
        follow: bool,
        /// How to print them
        #[arg(long, value_enum, default_value_t)]
        format: Format,
        /// The same as --format json
        #[arg(long, conflicts_with = "format")]
        json: bool,
        /// Print those in an image of a machine's memory, with the time since the load
        #[arg(long, value_name = "FILE", conflicts_with = "follow")]
        image: Option<PathBuf>,
    },
    /// Look for tampering in the memory of this machine, or in an image of one's; list tasks, modules or hooks
    ///
    /// Runs the monitor's checks once, or lists what the kernel's memory has, with the places that should have it and
    /// lack it: the kernel's own structures, and what Linux tells user space. Needs no cokernel. This machine's memory
    /// is what /proc/kcore shows (needs CAP_SYS_RAWIO); a kernel that forges that file deceives this command, but not
    /// the monitor.
    ///
    /// An image is an ELF core (/proc/vmcore in a crash kernel, or QEMU's dump-guest-memory), one made with LiME, or
    /// plain memory from address 0 on (QEMU's pmemsave). The kernel must be a Linux that the monitor could watch; all
    /// about it comes from the image.
    Inspect {
        /// What to list, instead of running the checks
        #[arg(value_enum)]
        what: Option<What>,
        /// The image, instead of this machine's memory
        #[arg(long, value_name = "FILE")]
        image: Option<PathBuf>,
        /// The image of the kernel's package, with which code is compared [default: /boot/vmlinuz-RELEASE]
        #[arg(long, value_name = "FILE")]
        kernel_image: Option<PathBuf>,
        /// The files of the kernel's modules, with which their code is compared [default: /lib/modules/RELEASE]
        #[arg(long, value_name = "FOLDER")]
        modules: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a unikernel, in a virtual machine or in a confined process
    ///
    /// The image is a static ELF file made with the crate kyozon-unikernel. It runs in user mode only and can reach
    /// its own memory, its regions and its devices; its console is the standard output. Before the image's first
    /// instruction, this command gives up access to files, programs and the network for itself.
    ///
    /// With --group, guests of several commands share regions by name, each with its own rights. The group's first
    /// command creates it under $XDG_RUNTIME_DIR/kyozon (root: /run/kyozon), and it ends with its last command.
    Run(RunOptions),
    /// Show groups and their guests
    ///
    /// MEMORY is a guest's limit, RESIDENT the memory that the process running it has now.
    Ps {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End a group's guests, or one of them
    ///
    /// The command that runs a guest ends it and exits with status 143. A host program gets SIGTERM. Returns when all
    /// of them have ended.
    Kill {
        /// The group, or the number of one of its peers
        #[arg(value_name = "GROUP[/PEER]", value_parser = values::target)]
        target: Target,
    },
    /// Measure shared-memory performance
    ///
    /// Compares two virtual machines with two threads and with transports without shared memory, in alternating rounds.
    /// Needs /dev/kvm and two CPUs. Run it on an idle machine; other load distorts the figures.
    Bench {
        /// What to measure
        #[arg(value_enum)]
        what: Bench,
        /// Number of rounds
        #[arg(long, value_name = "N", default_value_t = crate::bench::ROUNDS, value_parser = clap::value_parser!(u16).range(1..=1000))]
        rounds: u16,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run one experiment on threads of this process
    #[command(hide = true)]
    BenchPart {
        /// The experiment's name, number of samples and argument
        words: Vec<String>,
    },
    /// Run an unmodified program with files and Internet sockets of library Linux: [--mount IMAGE:/PATH]... -- PROGRAM
    #[command(disable_help_flag = true)]
    Exec {
        /// Options, then the program and its arguments
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Compile or link a C program whose system calls are function calls of library Linux: gcc's arguments
    #[command(disable_help_flag = true)]
    Cc {
        /// Arguments of gcc; --rust-flags prints the flags with which rustc makes such a program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Compile or link such a program in C++: g++'s arguments
    #[command(name = "c++", disable_help_flag = true)]
    Cxx {
        /// Arguments of g++
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Work on files in images of file systems by library Linux: ls, cat, cp, rm, mkdir, stat, find, tar, df, batch,
    /// mount
    #[command(disable_help_flag = true)]
    Fs {
        /// A command and its arguments; help describes them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Typed code, which a checker proves safe: compile, run, check, assemble, disassemble
    #[command(subcommand)]
    Typed(crate::typed::Typed),
    /// Print a completion script
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

/// A measurement.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Bench {
    /// Shared memory between two virtual machines, compared with two threads and with messages
    Shm,
}
