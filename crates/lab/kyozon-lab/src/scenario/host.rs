//! A scenario's steps on this machine.

use super::Case;
use crate::guest::Output;
use crate::{cache, process, product};
use anyhow::{ensure, Context, Result};
use std::os::unix::fs::DirBuilderExt;
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

/// Environment variable that marks the processes of one scenario.
const MARK: &str = "KYOZON_SCENARIO";

impl Case {
    /// Runs the host steps, each in a shell with a scratch folder.
    pub(super) fn on_host(&self) -> Result<()> {
        let scratch = cache::scratch()?;
        // The scratch folder's name is unique, so it marks this scenario's processes.
        let mark = scratch.path().display().to_string();
        let temporary = scratch.path().join("tmp");
        fs::create_dir(&temporary)?;
        let runtime = scratch.path().join("run");
        fs::DirBuilder::new().mode(0o700).create(&runtime)?;
        let product = product::folder()?;
        let exe = env::current_exe()?;
        let own = exe.parent().context("a program has a folder")?.to_owned();
        let path = [self.folder.join("bin"), product.clone(), own];
        let inherited = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths(path.into_iter().chain(env::split_paths(&inherited)))?;
        for step in &self.description.host {
            let mut command = Command::new("/bin/sh");
            command
                .args(["-c", &step.run])
                // The flags of the make that runs the suite are not meant for a make that a step runs.
                .env_remove("MAKEFLAGS")
                .env_remove("MFLAGS")
                .current_dir(&self.folder)
                .env("PATH", &path)
                .env(MARK, &mark);
            command
                .env("TREE", cache::tree()?)
                .env("SCRATCH", scratch.path())
                .env("TMPDIR", &temporary)
                .env("XDG_RUNTIME_DIR", &runtime)
                .env("KYOZON_PRODUCT", &product)
                .envs(&step.env);
            let finished = process::run(&mut command, Duration::from_secs(step.expect.limit))?;
            let output = Output {
                status: finished.status.code().unwrap_or(-1),
                stdout: finished.stdout.into(),
                stderr: finished.stderr.into(),
                ..Output::default()
            };
            step.expect.check(&step.run, &output)?;
            let left = marked(&mark)?;
            ensure!(left.is_empty(), "{:?} left processes running: {}", step.run, left.join(", "));
            let files: Vec<_> =
                fs::read_dir(&temporary)?.filter_map(|e| Some(e.ok()?.file_name())).collect();
            ensure!(files.is_empty(), "{:?} left temporary files: {files:?}", step.run);
        }
        Ok(())
    }
}

/// Names of the running processes that carry the scenario's mark.
fn marked(mark: &str) -> Result<Vec<String>> {
    let needle = format!("{MARK}={mark}\0");
    let mut names = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.windows(needle.len()).any(|bytes| bytes == needle.as_bytes()) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            names.push(format!("{} ({})", name.trim(), entry.file_name().to_string_lossy()));
        }
    }
    Ok(names)
}
