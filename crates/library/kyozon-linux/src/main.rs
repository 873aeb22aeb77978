//! The program `kyozon-linux`: dispatches commands and prints one-line errors.

use clap::Parser;
use kyozon_linux::cli::{Cli, Command};
use kyozon_linux::fs::kernel::Boot;
use kyozon_linux::{bench, fs, interrupt};
use liblinux::confined::child;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    // A program that ignores SIGCHLD passes that on; then nobody learns how a confined kernel's process ended.
    // SAFETY: the default action is no code, and there are no other threads yet.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let result = match Cli::parse().command {
        Command::Fs { linux, in_process, limit, memory, command } => {
            let confined = (!in_process).then_some(Duration::from_secs(limit));
            interrupt::install();
            let boot = Boot { linux, confined, memory_bytes: memory << 20, tasks: 0 };
            fs::execute(&boot, command)
        }
        Command::ConfinedKernel { words } => child::run(&words),
        Command::BenchSyscalls { linux, kernel, folder } => {
            bench::syscalls(&linux, kernel, &folder)
        }
        Command::BenchFileio { linux, kernel, place } => bench::files::run(&linux, kernel, &place),
        Command::BenchBoot { linux } => bench::boot(&linux),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let text = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
            eprintln!("kyozon: {}", fs::failure::printable(&text));
            interrupt::end();
            ExitCode::FAILURE
        }
    }
}
