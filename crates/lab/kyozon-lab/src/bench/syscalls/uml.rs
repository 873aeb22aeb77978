//! User-Mode Linux, the Debian package.

use super::LIMIT;
use crate::{cache, process, product};
use anyhow::{ensure, Result};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// The library that makes register sets complete, in the tree.
const SHIM: &str = "crates/lab/kyozon-lab/src/bench/syscalls/xstate.c";
/// A first process that does not exist: the kernel panics instead of starting it.
const NO_INIT: &str = "/none";

/// A User-Mode Linux that can start processes on this machine.
pub struct UserMode {
    /// Its root file system, and files of its own.
    folder: TempDir,
    /// The library of [`SHIM`], if the processor needs it.
    shim: Option<PathBuf>,
}

impl UserMode {
    /// Prepares it, and tries it. It gets [`SHIM`] only if it works with that and not without.
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for name in ["root/dev", "root/proc", "root/sys", "root/tmp", "home"] {
            fs::create_dir_all(folder.path().join(name))?;
        }
        fs::copy(product::file("kyozon-linux")?, folder.path().join("root/kyozon-linux"))?;
        let mut linux = Self { folder, shim: None };
        if linux.syscalls().is_err() {
            let shim = linux.folder.path().join("xstate.so");
            let mut compiler = Command::new("gcc");
            compiler.args(["-O2", "-Wall", "-shared", "-fPIC", "-o"]).arg(&shim);
            process::run_ok(compiler.arg(cache::tree()?.join(SHIM)), LIMIT)?;
            linux.shim = Some(shim);
            linux.syscalls()?;
        }
        Ok(linux)
    }

    /// What must be said beside its figures.
    pub fn note(&self) -> Option<&'static str> {
        self.shim.is_some().then_some("with register sets made complete for this processor")
    }

    /// Boots with the program as the first process, which measures system calls. Returns what that printed.
    pub fn syscalls(&self) -> Result<String> {
        // What follows -- goes to the first process.
        let output = self.run("/kyozon-linux", &["--", "bench-syscalls", "native", "/tmp"])?;
        ensure!(output.contains("\npipe "), "it does not run a process on this processor");
        Ok(output)
    }

    /// Milliseconds of CPU time of a boot, to the first process's start.
    pub fn boot(&self) -> Result<f64> {
        let before = process::children_time()?;
        let output = self.run(NO_INIT, &[])?;
        let time = process::children_time()? - before;
        ensure!(output.contains("Run /none as init process"), "it does not boot");
        Ok(time.as_secs_f64() * 1000.0)
    }

    fn run(&self, init: &str, words: &[&str]) -> Result<String> {
        let mut command = Command::new("linux.uml");
        command.args(["mem=128M", "root=/dev/root", "rootfstype=hostfs", "rw", "panic=-1"]);
        command.arg(format!("rootflags={}", self.folder.path().join("root").display()));
        command.arg(format!("init={init}"));
        // Without console=, it adds one behind the words of the first process.
        command.args(["console=tty0", "con=null", "con0=null,fd:1"]).args(words);
        // It keeps files in HOME.
        command.env("HOME", self.folder.path().join("home"));
        if let Some(shim) = &self.shim {
            command.env("LD_PRELOAD", shim);
        }
        // When the first process ends, the kernel panics: the status says nothing.
        Ok(process::run(&mut command, LIMIT)?.stdout)
    }
}
