//! The program `kyozon-linux`: dispatches commands and prints one-line errors.

use kyozon_linux::cli::{self, Cli, Command};
use kyozon_linux::fs::kernel::Boot;
use kyozon_linux::{bench, fs, interrupt};
use liblinux::confined::child;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    // A program that ignores SIGCHLD passes that on; then nobody learns how a confined kernel's process ended.
    // SAFETY: the default action is no code, and there are no other threads yet.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    // A limit on the size of files (ulimit -f) is then an error of the call, which has a message.
    // SAFETY: as above.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let result = match Cli::read().command {
        Command::Fs { linux, in_process, limit, memory, command } => {
            let confined = (!in_process).then_some(Duration::from_secs(limit));
            interrupt::install();
            let linux = linux.unwrap_or_else(cli::image);
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
