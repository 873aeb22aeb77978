//! Checks that read the files of the source tree.

use super::report::Count;
use super::{Outcome, LIMIT};
use crate::process;
use anyhow::{ensure, Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Crates that are linked with kernel code, or load it into their own process.
const LINKS_KERNEL: [&str; 5] = [
    "crates/library/capi/",
    "crates/library/exec/",
    "crates/library/kyozon-linux/",
    "crates/library/liblinux/",
    "crates/typed/kernel/",
];

/// Every crate has its licence, and every file of kernel code names its own.
pub(super) fn headers(tree: &Path, _nightly: bool) -> Result<Outcome> {
    let is_manifest = |file: &str| file.ends_with("/Cargo.toml");
    for (file, text) in committed(tree, "crates")?.into_iter().filter(|(file, _)| is_manifest(file))
    {
        let kernel = LINKS_KERNEL.iter().any(|folder| file.starts_with(folder));
        let line = if kernel { "license = \"GPL-2.0-only\"" } else { "license.workspace = true" };
        ensure!(String::from_utf8_lossy(&text).contains(line), "{file}: add {line}");
    }
    let kernel_files = committed(tree, "linux")?;
    for (file, text) in &kernel_files {
        let top = String::from_utf8_lossy(text).lines().take(2).collect::<String>();
        let line = "SPDX-License-Identifier: GPL-2.0-only";
        ensure!(top.contains(line), "{file}: add {line} to its first two lines");
    }
    Ok(file_count(kernel_files.len()))
}

/// No committed file is a binary.
pub(super) fn text(tree: &Path, _nightly: bool) -> Result<Outcome> {
    let files = committed(tree, ".")?;
    for (file, text) in &files {
        ensure!(is_text(text), "{file}: not a text file");
    }
    Ok(file_count(files.len()))
}

/// Name and contents of each file below `folder` that git tracks, or would track.
pub(super) fn committed(tree: &Path, folder: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let mut git = Command::new("git");
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", folder];
    let files = process::run_ok(git.args(arguments).current_dir(tree), LIMIT)?;
    let is_file = |name: &&str| tree.join(name).symlink_metadata().is_ok_and(|m| m.is_file());
    files
        .split_terminator('\0')
        .filter(is_file)
        .map(|file| Ok((file.to_owned(), fs::read(tree.join(file)).context(file.to_owned())?)))
        .collect()
}

/// The outcome of a check that `files` files have passed: skipped if there was none.
pub(super) fn file_count(files: usize) -> Outcome {
    let count = Count { passed: files.min(1), skipped: usize::from(files == 0), failed: 0 };
    (count, format!("{files} files"))
}

pub(super) fn is_text(bytes: &[u8]) -> bool {
    !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok()
}
