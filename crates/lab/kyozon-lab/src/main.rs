//! `kyozon-lab`: boots stock kernels in emulators, runs scenarios, measures.

use anyhow::{ensure, Context, Result};
use clap::{Args, Parser, Subcommand};
use kyozon_lab::emulator::{arguments, qemu};
use kyozon_lab::guest::{Guest, Output};
use kyozon_lab::kernels::{Kernel, SERIES};
use kyozon_lab::spec::{Program, Spec};
use kyozon_lab::{batch, bench, bochs, cache, demo, module, process, product, storm, suite};
use kyozon_lab::{talk, wire};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use std::{fs, io};

/// Boot stock Debian kernels in emulators, run scenarios in them, measure
#[derive(Parser)]
#[command(name = "kyozon-lab", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Download kernel packages and unpack them into the cache (nothing is installed)
    Fetch {
        /// Kernel series [default: all that the project is tested on]
        #[arg(long)]
        kernel: Vec<String>,
        /// Kernel flavour: cloud or generic
        #[arg(long, default_value = "cloud")]
        flavour: String,
        /// Download the newest point release even if one is in the cache
        #[arg(long)]
        update: bool,
    },
    /// Record a kernel of another distribution, whose packages somebody unpacked into one folder
    Adopt {
        /// Its series, which --kernel takes from then on
        #[arg(long, value_name = "SERIES")]
        series: String,
        /// Folder with boot/vmlinuz-RELEASE, lib/modules/RELEASE and usr/src/linux-headers-RELEASE; it must stay
        folder: PathBuf,
    },
    /// Build a module of this project against a kernel in the cache
    Module {
        /// Folder with a Kbuild file
        source: PathBuf,
        /// Kernel series
        #[arg(long, default_value = SERIES[0])]
        kernel: String,
        /// Kernel flavour: cloud or generic
        #[arg(long, default_value = "cloud")]
        flavour: String,
    },
    /// Boot a guest, run a shell script in it, power it off
    Run {
        /// Emulator
        #[arg(long, value_enum, default_value_t)]
        emulator: Program,
        #[command(flatten)]
        guest: GuestArgs,
        /// Copy a file into the guest: HOST:GUEST
        #[arg(long, value_name = "HOST:GUEST")]
        put: Vec<String>,
        /// Copy a file out of the guest at the end: GUEST:HOST
        #[arg(long, value_name = "GUEST:HOST")]
        get: Vec<String>,
        /// Write the guest's memory as an ELF core at the end
        #[arg(long, value_name = "FILE")]
        dump: Option<PathBuf>,
        /// Make the run repeatable to the instruction (one CPU), and print the script's instruction count
        #[arg(long)]
        deterministic: bool,
        /// Time limit of the script, in seconds
        #[arg(long, default_value_t = 60)]
        timeout: u64,
        /// Script for the guest's /bin/sh
        script: String,
    },
    /// Boot a guest with a shell on this terminal (leave with 'poweroff -f', or Ctrl-A X)
    Shell {
        #[command(flatten)]
        guest: GuestArgs,
    },
    /// Run every test of the project, or those whose name contains a given part
    Test(suite::Options),
    /// Repeat one run of the nightly test storm
    Storm(storm::Options),
    /// Show what the project does, on real kernels
    Demo(demo::Options),
    /// Measure and write docs/results; with --check, compare with the bounds beside each table
    Bench(bench::Options),
    /// Serve a unikernel's network, and check that a TCP server there echoes bytes
    Echo(wire::Options),
    /// Serve a unikernel's network, send files to a TCP server there and write its answers
    Talk(talk::Options),
}

#[derive(Args)]
struct GuestArgs {
    /// Kernel series
    #[arg(long, default_value = SERIES[0])]
    kernel: String,
    /// Kernel flavour: cloud or generic
    #[arg(long, default_value = "cloud")]
    flavour: String,
    /// CPUs
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    smp: u32,
    /// Memory in MiB
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(96..=16384))]
    mem: u32,
    /// QEMU's -machine [default: q35]
    #[arg(long)]
    machine: Option<String>,
    /// QEMU's -cpu, or a CPU model of Bochs [default: max without erms and fsrm, or trinity_apu]
    #[arg(long)]
    cpu: Option<String>,
    /// QEMU's -accel: tcg or kvm [default: tcg]
    #[arg(long)]
    accel: Option<String>,
    /// Words to add to the kernel command line
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    append: String,
    /// Module of the kernel package to load at the start
    #[arg(long)]
    module: Vec<String>,
    /// Put kyozon.ko, its images and the command into the guest
    #[arg(long)]
    kyozon: bool,
    /// Argument for QEMU
    #[arg(long, allow_hyphen_values = true, value_name = "ARGUMENT")]
    qemu: Vec<String>,
    /// Time limit of the boot, in seconds [default: 180, with Bochs 600]
    #[arg(long)]
    boot_timeout: Option<u64>,
}

impl GuestArgs {
    fn spec(self, emulator: Program) -> Result<Spec> {
        let kernel = Kernel::fetch(&self.kernel, &self.flavour, false)?;
        let defaults = Spec::of(emulator, &kernel).smp(self.smp);
        let spec = Spec {
            mem: self.mem,
            machine: self.machine.unwrap_or(defaults.machine),
            cpu: self.cpu.unwrap_or(defaults.cpu),
            accel: self.accel.unwrap_or(defaults.accel),
            append: self.append,
            devices: self.qemu,
            modules: self.module,
            boot_limit: self.boot_timeout.map_or(defaults.boot_limit, Duration::from_secs),
            ..defaults
        };
        if self.kyozon {
            return product::install(spec);
        }
        Ok(spec)
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    match process::end_all_on_signal().and_then(|()| carry_out(command)) {
        Ok(code) => code,
        Err(error) => {
            // One line, also if an inner error has several.
            let text = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
            eprintln!("kyozon-lab: {text}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(command: Command) -> Result<ExitCode> {
    match command {
        Command::Echo(options) => wire::echo(&options)?,
        Command::Talk(options) => talk::talk(&options)?,
        Command::Fetch { kernel, flavour, update } => {
            let all: Vec<String> = SERIES.map(String::from).into();
            for series in if kernel.is_empty() { all } else { kernel } {
                print_kernel(&Kernel::fetch(&series, &flavour, update)?);
            }
        }
        Command::Adopt { series, folder } => print_kernel(&Kernel::adopt(&series, &folder)?),
        Command::Module { source, kernel, flavour } => {
            let built = module::build(&source, &Kernel::fetch(&kernel, &flavour, false)?)?;
            built.warnings.iter().for_each(|warning| eprintln!("{warning}"));
            println!("{}", built.file.display());
        }
        Command::Run { emulator, guest, put, get, dump, deterministic, timeout, script } => {
            let mut spec = guest.spec(emulator)?;
            for (host, guest) in pairs(&put)? {
                let contents = fs::read(host).with_context(|| format!("--put {host}"))?;
                spec.files.push((guest.into(), 0o755, contents));
            }
            let gets = pairs(&get)?;
            ensure!(
                !deterministic || gets.is_empty(),
                "--get and --deterministic exclude each other: print the file instead"
            );
            ensure!(
                emulator != Program::Bochs || gets.is_empty(),
                "--get: a guest in Bochs takes no commands while it runs: print the file instead"
            );
            ensure!(
                dump.is_none() || !deterministic && emulator == Program::Qemu,
                "--dump needs QEMU without --deterministic"
            );
            let limit = Duration::from_secs(timeout);
            if deterministic || emulator == Program::Bochs {
                let limit = spec.boot_limit + limit;
                let run = match emulator {
                    Program::Qemu => batch::run(&spec, &[&script], limit)?,
                    Program::Bochs => bochs::run(&spec, &[&script], limit)?,
                };
                let output = &run.outputs[0];
                print_output(output)?;
                if deterministic {
                    let (ticks, booted) = (output.ticks(), run.booted_tsc);
                    eprintln!("{ticks} instructions, after {booted} from reset to the agent");
                }
                return Ok(exit_code(output, timeout));
            }
            let mut guest = Guest::boot(&spec)?;
            let output = guest.run_for(&script, limit)?;
            print_output(&output)?;
            for (from, to) in gets {
                fs::write(to, guest.get(from)?).with_context(|| format!("--get {from}:{to}"))?;
            }
            if let Some(to) = dump {
                guest.dump(&to)?;
            }
            guest.shutdown()?;
            return Ok(exit_code(&output, timeout));
        }
        Command::Shell { guest } => shell(&guest.spec(Program::Qemu)?)?,
        Command::Storm(options) => storm::repeat(&options)?,
        Command::Test(options) => return suite::run(&options),
        Command::Demo(options) => return demo::run(&options),
        Command::Bench(options) => return bench::run(&options),
    }
    Ok(ExitCode::SUCCESS)
}

fn print_kernel(kernel: &Kernel) {
    println!("Linux {} ({}) in {}", kernel.release, kernel.version, kernel.root.display());
}

fn pairs(args: &[String]) -> Result<Vec<(&str, &str)>> {
    args.iter()
        .map(|arg| arg.split_once(':').with_context(|| format!("{arg:?} is not FROM:TO")))
        .collect()
}

fn print_output(output: &Output) -> Result<()> {
    io::stdout().write_all(&output.stdout)?;
    io::stderr().write_all(&output.stderr)?;
    Ok(())
}

fn exit_code(output: &Output, limit: u64) -> ExitCode {
    if output.timed_out {
        eprintln!("kyozon-lab: the script did not end within {limit} s; --timeout allows more");
    }
    ExitCode::from(output.status.clamp(0, 255) as u8)
}

/// QEMU in the foreground: the terminal is the guest's console.
fn shell(spec: &Spec) -> Result<()> {
    let folder = cache::scratch()?;
    let initrd = folder.path().join("initrd");
    fs::write(&initrd, spec.initramfs(&[])?.pack())?;
    let mut command = qemu();
    command
        .args(arguments(spec, &initrd, &spec.command_line("kyozon.shell"))?)
        .args(["-serial", "mon:stdio"]);
    let status = command.status().context("start QEMU")?;
    ensure!(status.success(), "QEMU ended with {status}");
    Ok(())
}
