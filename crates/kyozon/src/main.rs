//! `kyozon`.

use clap::{CommandFactory, Parser};
use kyozon::cli::{Cli, Command};
use kyozon::machine::ThisMachine;
use kyozon::{colocation, report};
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    match carry_out(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            let text = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
            eprintln!("kyozon: {text}");
            ExitCode::FAILURE
        }
    }
}

fn carry_out(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Load(options) => {
            let status = colocation::load(&mut ThisMachine, &options)?;
            println!("{}", report::loaded(&status));
        }
        Command::Unload => {
            println!("{}", colocation::unload(&mut ThisMachine)?);
        }
        Command::Status { json } => {
            let status = colocation::status(&mut ThisMachine)?;
            println!("{}", if json { report::json(&status)? } else { report::text(&status) });
            return Ok(report::exit_code(&status));
        }
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "kyozon", &mut io::stdout());
        }
        Command::Man => clap_mangen::Man::new(Cli::command()).render(&mut io::stdout())?,
    }
    Ok(ExitCode::SUCCESS)
}
