//! Runs a program of the C library in its own process, and answers its calls with Linux's own. With it, the library is
//! tested without a library kernel or a unikernel.
//!
//!     kyozon-libc-test-host [--seam-version NUMBER] PROGRAM [ARGUMENT]...
//!
//! | module | purpose |
//! |---|---|
//! | `image` | maps the program |
//! | `stack` | arguments, environment and auxiliary vector |
//! | `arch` | the three functions of the seam, in assembly |
//! | `signals` | dispositions of signals |
//! | `filter` | system calls from other places than `arch` kill the process |
//!
//! Invariants: once the program runs, no code here uses thread-local data, because the FS base is the program's. So
//! nothing allocates, panics or calls the host's C library. The status is the program's; it is 126 if the program
//! cannot be started.
//!
//! Must not know: what the program does.

mod arch;
mod filter;
mod image;
mod signals;
mod stack;

use arch::x86_64 as machine;
use image::Image;
use kyozon_libc::seam::{self, Seam};
use std::convert::Infallible;
use std::ffi::OsString;
use std::process::ExitCode;
use std::{env, fs};

const USAGE: &str = "usage: kyozon-libc-test-host [--seam-version NUMBER] PROGRAM [ARGUMENT]...";

fn main() -> ExitCode {
    let Err(problem) = run(&env::args_os().skip(1).collect::<Vec<_>>());
    eprintln!("kyozon-libc-test-host: {problem}");
    ExitCode::from(126)
}

/// Runs a program in place of this one.
fn run(arguments: &[OsString]) -> Result<Infallible, String> {
    let (version, arguments) = match arguments {
        [option, version, rest @ ..] if option == "--seam-version" => {
            (version.to_str().and_then(|text| text.parse().ok()).ok_or(USAGE)?, rest)
        }
        all => (seam::VERSION, all),
    };
    let program = arguments.first().ok_or(USAGE)?;
    let within = |problem: String| format!("{}: {problem}", program.display());
    let file = fs::read(program).map_err(|error| within(error.to_string()))?;
    let image = Image::map(&file).map_err(within)?;
    let stack =
        stack::build(&image, arguments, Box::leak(Box::new(Seam { version, ..machine::SEAM })))?;
    signals::reset()?;
    // A program that refuses its host enters the kernel by itself.
    if version == seam::VERSION {
        filter::install()?;
    }
    // SAFETY: The image is mapped, and the stack has what a program finds at its entry.
    unsafe { machine::enter(image.entry, stack) }
}
