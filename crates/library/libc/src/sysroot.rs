//! The folder that `scripts/libc.sh` builds, and the compilers that use it.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rust's target whose standard library fits.
const RUST_TARGET: &str = "x86_64-unknown-linux-musl";

/// A C library with its headers and start files.
#[derive(Debug)]
pub struct Sysroot(PathBuf);

/// Why there is no compiler.
#[derive(Debug)]
pub enum Error {
    /// The folder is not a sysroot.
    NoSysroot(PathBuf),
    /// The sysroot in this folder has no C++ library.
    NoCxx(PathBuf),
    /// rustc cannot be asked.
    NoRustc(String),
    /// The standard library for [`RUST_TARGET`] is not in this folder.
    NoRustTarget(PathBuf),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSysroot(folder) => write!(
                f,
                "{} has no C library: run make install, or set KYOZON_SYSROOT to the folder that scripts/libc.sh prints",
                folder.display()
            ),
            Self::NoCxx(folder) => write!(
                f,
                "{} has no C++ library: set KYOZON_SYSROOT to the folder that scripts/libcxx.sh prints",
                folder.display()
            ),
            Self::NoRustc(why) => write!(f, "cannot run rustc: {why}: install Rust, or set RUSTC"),
            Self::NoRustTarget(folder) => write!(
                f,
                "{} has no standard library for {RUST_TARGET}: run rustup target add {RUST_TARGET}",
                folder.display()
            ),
        }
    }
}

impl std::error::Error for Error {}

impl Sysroot {
    /// The sysroot in `folder`.
    ///
    /// # Errors
    ///
    /// The folder has no C library.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let found = ["lib/gcc.specs", "lib/libc.a"].iter().all(|file| folder.join(file).is_file());
        found.then(|| Self(folder.into())).ok_or_else(|| Error::NoSysroot(folder.into()))
    }

    /// The compiler `gcc`, set up for programs in C. It accepts gcc's arguments.
    pub fn gcc(&self, gcc: &OsString) -> Command {
        let mut command = Command::new(gcc);
        command.arg(with("--sysroot=", &self.0));
        command.arg(with("-specs=", &self.0.join("lib/gcc.specs"))).arg("-fPIE");
        command
    }

    /// The compiler `gxx`, set up for programs in C++. It accepts g++'s arguments.
    ///
    /// # Errors
    ///
    /// The sysroot has no C++ library.
    pub fn gxx(&self, gxx: &OsString) -> Result<Command, Error> {
        if !self.0.join("lib/libstdc++.a").is_file() {
            return Err(Error::NoCxx(self.0.clone()));
        }
        Ok(self.gcc(gxx))
    }
}

/// The flags with which rustc links programs for its target `x86_64-unknown-linux-musl` by way of `linker`, a program
/// that takes the arguments of [`Sysroot::gcc`]. The prebuilt standard library calls musl's functions, but its own
/// start files and C library stay out.
///
/// # Errors
///
/// rustc does not run, or has no standard library for the target.
pub fn rust_flags(rustc: &OsString, linker: &Path) -> Result<Vec<OsString>, Error> {
    let mut ask = Command::new(rustc);
    let answer = ask
        .args(["--print", "target-libdir", "--target", RUST_TARGET])
        .output()
        .map_err(|error| Error::NoRustc(error.to_string()))?;
    if !answer.status.success() {
        let why = String::from_utf8_lossy(&answer.stderr);
        return Err(Error::NoRustc(why.lines().next().unwrap_or("no reason given").into()));
    }
    let folder = PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim());
    // The unwinder.
    let own = folder.join("self-contained");
    if !own.join("libunwind.a").is_file() {
        return Err(Error::NoRustTarget(folder));
    }
    Ok(vec![
        with("-Clinker=", linker),
        "-Clinker-flavor=gcc".into(),
        "-Clink-self-contained=no".into(),
        "-Ctarget-feature=+crt-static".into(),
        "-Crelocation-model=pic".into(),
        with("-Lnative=", &own),
        // The crate rustix enters the kernel by itself otherwise.
        "--cfg=rustix_use_libc".into(),
    ])
}

/// An option with a path.
fn with(option: &str, path: &Path) -> OsString {
    [option.as_ref(), path.as_os_str()].into_iter().collect()
}
