//! A compiler for programs whose system calls are calls of their host.
//!
//!     kyozon-cc ARGUMENT...      as gcc; also as rustc's linker
//!     kyozon-cc --rust-flags     prints the flags with which rustc uses it for x86_64-unknown-linux-musl
//!
//! Environment: `KYOZON_SYSROOT` is the C library's folder (default: `libc` beside this program), `KYOZON_GCC` the
//! compiler (default: `gcc`), `RUSTC` the compiler of Rust (default: `rustc`).

use kyozon_libc::sysroot::{rust_flags, Sysroot};
use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(env::args_os().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kyozon-cc: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<OsString>) -> Result<(), Box<dyn Error>> {
    let own = env::current_exe()?;
    let setting = |name, default: &str| env::var_os(name).unwrap_or_else(|| default.into());
    if arguments == ["--rust-flags"] {
        let flags = rust_flags(&setting("RUSTC", "rustc"), &own)?;
        let flags: Vec<_> = flags.iter().map(|flag| flag.to_string_lossy()).collect();
        println!("{}", flags.join(" "));
        return Ok(());
    }
    let folder = env::var_os("KYOZON_SYSROOT").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| own.with_file_name("libc"));
    let gcc = setting("KYOZON_GCC", "gcc");
    let error = Sysroot::open(&folder)?.gcc(&gcc).args(arguments).exec();
    Err(format!("cannot run {}: {error}", gcc.display()).into())
}
