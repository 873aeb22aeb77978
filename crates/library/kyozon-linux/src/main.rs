//! The program `kyozon-linux`: dispatches commands and prints one-line errors.

use kyozon_linux::cli::{Cli, Command};
use kyozon_linux::{bench, fs, interrupt, typed};
use liblinux::confined::child;
use std::process::ExitCode;

/// The exit status of a command that did what it should.
fn succeeded((): ()) -> ExitCode {
    ExitCode::SUCCESS
}

fn main() -> ExitCode {
    // A program that ignores SIGCHLD passes that on; then nobody learns how a confined kernel's process ended.
    // SAFETY: the default action is no code, and there are no other threads yet.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    // A limit on the size of files (ulimit -f) is then an error of the call, which has a message.
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let result = match Cli::read().command {
        Command::Fs { kernel, command } => {
            interrupt::install();
            fs::execute(&kernel.boot(), command).map(succeeded)
        }
        Command::TypedRun(options) => {
            interrupt::install();
            typed::run(&options)
        }
        Command::ConfinedKernel { words } => child::run(&words),
        Command::BenchSyscalls { linux, kernel, folder } => {
            bench::syscalls(&linux, kernel, &folder).map(succeeded)
        }
        Command::BenchFileio { linux, kernel, place } => {
            bench::files::run(&linux, kernel, &place).map(succeeded)
        }
        Command::BenchBoot { linux } => bench::boot(&linux).map(succeeded),
    };
    match result {
        Ok(status) => status,
        Err(error) => {
            if fs::output::is_closed(&error) {
                // SAFETY: the default action ends the process, as it ends other programs of which nobody reads the
                // output.
                unsafe {
                    libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                    libc::raise(libc::SIGPIPE);
                }
            }
            eprintln!("kyozon: {}", fs::failure::printable(&format!("{error:#}")));
            interrupt::end();
            ExitCode::FAILURE
        }
    }
}
