//! A compiler for programs whose system calls are calls of their host.
//!
//!     kyozon-cc ARGUMENT...      as gcc; also as rustc's linker
//!     kyozon-cc --rust-flags     prints the flags with which rustc uses it for x86_64-unknown-linux-musl
//!     kyozon-c++ ARGUMENT...     as g++: the same program under another name
//!
//! `kyozon cc` and `kyozon c++` are the same.
//!
//! Environment: `KYOZON_SYSROOT` is the C library's folder (default: `libc` beside this program), `KYOZON_GCC` and
//! `KYOZON_GXX` are the compilers (default: `gcc`, `g++`), `RUSTC` the compiler of Rust (default: `rustc`).

use kyozon_libc::sysroot::{rust_flags, Sysroot};
use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = env::args_os();
    let name = words.next().unwrap_or_default();
    let cxx = Path::new(&name).file_name().is_some_and(|name| name == "kyozon-c++");
    match run(cxx, words.collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", if cxx { "kyozon-c++" } else { "kyozon-cc" });
            ExitCode::FAILURE
        }
    }
}

fn run(cxx: bool, arguments: Vec<OsString>) -> Result<(), Box<dyn Error>> {
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
    let sysroot = Sysroot::open(&folder)?;
    let (compiler, mut command) = if cxx {
        let gxx = setting("KYOZON_GXX", "g++");
        let command = sysroot.gxx(&gxx)?;
        (gxx, command)
    } else {
        let gcc = setting("KYOZON_GCC", "gcc");
        let command = sysroot.gcc(&gcc);
        (gcc, command)
    };
    let error = command.args(arguments).exec();
    Err(format!("cannot run {}: {error}: run apt-get install g++", compiler.display()).into())
}
