//! The program `kyozon-linux`: dispatches commands and prints one-line errors.

use clap::Parser;
use kyozon_linux::cli::{Cli, Command};
use kyozon_linux::{bench, fs};
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Fs { linux, command } => fs::execute(&linux, command),
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
            eprintln!("kyozon: {text}");
            ExitCode::FAILURE
        }
    }
}
