//! The program `kyozon`: dispatches commands and prints one-line errors.

use clap::{CommandFactory, Parser};
use kyozon::cli::{Bench, Cli, Command};
use kyozon::events::journal::{self, Journal};
use kyozon::events::Format;
use kyozon::inspect::Sources;
use kyozon::machine::{Machine, ThisMachine};
use kyozon::typed::Typed;
use kyozon::{
    bench, colocation, events, groups, inspect, library, metrics, policy, report, top, typed,
    unikernel,
};
use kyozon_tender::console;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    match execute(Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            let text = format!("{error:#}").split_whitespace().collect::<Vec<_>>().join(" ");
            // A full pipe that nobody reads must not keep the program from ending.
            console::message(&format!("kyozon: {text}"));
            ExitCode::FAILURE
        }
    }
}

fn warn(warning: Option<&str>) {
    if let Some(warning) = warning {
        console::message(&format!("kyozon: warning: {warning}"));
    }
}

fn execute(command: Command) -> anyhow::Result<ExitCode> {
    let mut out = Vec::new();
    let mut code = ExitCode::SUCCESS;
    match command {
        Command::Load(options) => {
            let loaded = colocation::load(&mut ThisMachine, &options)?;
            warn(loaded.warning.as_deref());
            writeln!(out, "{}", report::loaded(&loaded.status, options.watch()))?;
            if let Some(code) = loaded.code {
                writeln!(out, "{}", report::code(&code))?;
            }
        }
        Command::Policy { file } => {
            let read = |path: &PathBuf| policy::parse(path, &ThisMachine.read(path)?);
            write!(
                out,
                "{}",
                policy::print(&file.as_ref().map(read).transpose()?.unwrap_or_default())
            )?;
        }
        Command::Unload { key_file } => {
            let line = colocation::unload(&mut ThisMachine, key_file.as_deref())?;
            writeln!(out, "{line}")?;
        }
        Command::Status { json, openmetrics } => {
            let status = colocation::status(&mut ThisMachine)?;
            match (json, openmetrics) {
                (_, true) => write!(out, "{}", metrics::text(&status))?,
                (true, _) => writeln!(out, "{}", report::json(&status)?)?,
                _ => writeln!(out, "{}", report::text(&status))?,
            }
            code = report::exit_code(&status);
        }
        Command::Top => return top::run(&mut ThisMachine),
        Command::Events { image: Some(image), format, json, .. } => {
            let format = if json { Format::Json } else { format };
            let saved = events::saved::print(&image, &mut out, format)?;
            for warning in saved.warnings() {
                warn(Some(&format!("{}: {warning}", image.display())));
            }
            if saved.is_doubtful() {
                code = ExitCode::from(inspect::UNJUDGED);
            }
        }
        Command::Events { follow, format, json, image: None } => {
            let format = if json { Format::Json } else { format };
            if format == Format::Journal {
                let mut journal = Journal::connect(Path::new(journal::SOCKET))?;
                return events::print(&mut ThisMachine, &mut journal, follow, format);
            }
            return events::print(&mut ThisMachine, &mut io::stdout().lock(), follow, format);
        }
        Command::Inspect { what: Some(what), image, kernel_image, modules, json } => {
            let sources = Sources { image, package: kernel_image, modules };
            let listing = inspect::listing::list(what, &sources)?;
            warn(listing.warning.as_deref());
            match json {
                true => writeln!(out, "{:#}", listing.json())?,
                false => writeln!(out, "{listing}")?,
            }
            code = ExitCode::from(listing.status());
        }
        Command::Inspect { what: None, image, kernel_image, modules, json } => {
            let inspection = inspect::inspect(&Sources { image, package: kernel_image, modules })?;
            warn(inspection.warning());
            match json {
                true => writeln!(out, "{:#}", inspection.json())?,
                false => writeln!(out, "{inspection}")?,
            }
            code = ExitCode::from(inspection.status());
        }
        Command::Run(options) => return unikernel::run(&options),
        Command::Fs { words } => return Err(library::fs(&words)),
        Command::Exec { words } => return Err(library::exec(&words)),
        Command::Cc { words } => return Err(library::compiler("kyozon-cc", &words)),
        Command::Cxx { words } => return Err(library::compiler("kyozon-c++", &words)),
        Command::Typed(Typed::Cc { words }) => return typed::cc(&words),
        Command::Typed(Typed::Run(options)) => return typed::execute(&options),
        Command::Typed(command) => write!(out, "{}", typed::run(&command)?)?,
        Command::Ps { json } => write!(out, "{}", groups::show(json)?)?,
        Command::Kill { target } => groups::kill(&target)?,
        Command::Bench { what: Bench::Shm, rounds, json } => {
            let set = bench::shm(&bench::image(), rounds, |round| {
                if round % 5 == 0 {
                    eprintln!("kyozon: round {round} of {rounds}");
                }
            })?;
            let text = if json { serde_json::to_string(&set)? } else { bench::text(&set) };
            write!(out, "{}", text.trim_end())?;
            writeln!(out)?;
        }
        Command::BenchPart { words } => return Ok(ExitCode::from(kyozon_shm::run_words(&words))),
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "kyozon", &mut out);
        }
        Command::Man => clap_mangen::Man::new(Cli::command()).render(&mut out)?,
    }
    match io::stdout().write_all(&out) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(code),
    }
}
