//! Words and options.

mod load;
mod run;
mod values;

use clap::{Parser, Subcommand, ValueEnum};
pub use load::{Isolation, LoadOptions, Tick, Watch};
pub use run::{Backend, RunOptions};
pub use values::Target;

/// Puts a cokernel beside the running Linux kernel, and takes it out again; runs unikernels.
#[derive(Debug, Parser)]
#[command(
    name = "kyozon",
    version,
    after_help = "Exit status: 0 done (status: a cokernel runs), 1 failed, 2 wrong usage;\n\
    status and events also: 3 nothing is loaded; status also: 4 the cokernel was stopped;\n\
    run: the unikernel's own, 0 to 119; 120 it crashed, 124 its time was over, 128+N signal N."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load a cokernel beside the running kernel (needs CAP_SYS_MODULE)
    ///
    /// Where no other is named, the cokernel is the microkernel with the monitor, which watches the running kernel for
    /// tampering and undoes it. What the kernel looks like is read from itself at this moment (needs CAP_SYSLOG and
    /// CAP_SYS_ADMIN): what was tampered with before is not all told.
    ///
    /// The kernel is not patched, restarted or reconfigured. A timer that Linux does not use interrupts it with
    /// non-maskable interrupts, and the cokernel runs in between, also while Linux has interrupts off.
    #[command(args_override_self = true)]
    Load(LoadOptions),
    /// Stop the cokernel and give everything back (needs CAP_SYS_MODULE)
    Unload,
    /// Say what is loaded and what it costs
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print what the cokernel and its monitor reported
    ///
    /// Without isolation Linux can change what is printed here: only the copy on the cokernel's serial line is beyond
    /// its reach.
    Events {
        /// Go on until interrupted, or until the cokernel is unloaded
        #[arg(long, short)]
        follow: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Run a unikernel, in a virtual machine or in a confined process
    ///
    /// The image is a static ELF file made with the crate kyozon-unikernel. It runs in user mode only, and reaches
    /// its own memory, its regions and what it asks for: its console is the standard output. Before its first
    /// instruction this command gives up files, programs and the network for itself.
    ///
    /// With --group, guests of several runs meet: they share regions by name, each with its own rights. The first run
    /// of a group makes it, under $XDG_RUNTIME_DIR/kyozon, for root /run/kyozon; it goes with the last.
    Run(RunOptions),
    /// Show groups and their guests
    ///
    /// MEMORY is what a guest may have, RESIDENT what the process that runs it has now.
    Ps {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// End a group's guests, or one of them
    ///
    /// Each is ended by the command that runs it, whose status is then 143. A host program gets SIGTERM. Returns when
    /// they have ended.
    Kill {
        /// The group, or one of its peers by number
        #[arg(value_name = "GROUP[/PEER]", value_parser = values::target)]
        target: Target,
    },
    /// Measure what shared memory costs and brings
    ///
    /// Two virtual machines, two threads, and ways without shared memory do the same in turns. Needs /dev/kvm, and is
    /// worth something on a machine that does nothing else, with two CPUs or more.
    Bench {
        /// What to measure
        #[arg(value_enum)]
        what: Bench,
        /// How often each is done
        #[arg(long, value_name = "N", default_value_t = crate::bench::ROUNDS, value_parser = clap::value_parser!(u16).range(1..=1000))]
        rounds: u16,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// One experiment of a measurement, on threads of this process
    #[command(hide = true)]
    BenchPart {
        /// Its name, how many samples, and its number
        words: Vec<String>,
    },
    /// Print a completion script
    Completion {
        /// For this shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
pub enum Bench {
    /// Shared memory: the same work between two virtual machines and between two threads, messages beside them
    Shm,
}
