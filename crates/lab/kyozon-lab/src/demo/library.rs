//! Linux as a library: file systems in images, without root, and what a system call costs.

use crate::{cache, process, product};
use anyhow::{ensure, Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(120);
/// A file system, the mebibytes of its image, the command that makes it, and the one that checks it.
const KINDS: [(&str, u64, &str, &str); 4] = [
    ("ext4", 64, "mkfs.ext4 -q", "e2fsck -fn"),
    ("xfs", 512, "mkfs.xfs -q", "xfs_repair -n"),
    ("btrfs", 256, "mkfs.btrfs -q", "btrfs check -q"),
    ("vfat", 64, "mkfs.vfat -F 32", "fsck.vfat -n"),
];
/// User and group that own nothing.
const NOBODY: &str = "65534";

/// Copies a tree into each kind of image and back as an unprivileged user, and compares system calls.
pub fn show() -> Result<()> {
    println!("\nLinux as a library: Debian's Linux 6.12 as a part of a process, without root and without a machine");
    let folder = tempfile::tempdir()?;
    for name in ["kyozon-linux", "linux.elf"] {
        fs::copy(product::file(name)?, folder.path().join(name)).context("run make library")?;
    }
    process::run_ok(
        Command::new("cp").arg("-r").arg(cache::tree()?.join("docs")).arg(folder.path()),
        LIMIT,
    )?;
    open(folder.path())?;
    for (kind, megabytes, make, check) in KINDS {
        round_trip(folder.path(), kind, megabytes, make, check)?;
    }
    system_calls(folder.path())
}

/// Lets every user write to a folder and what is in it.
fn open(folder: &Path) -> Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777))?;
    process::run_ok(Command::new("chmod").args(["-R", "a+rwX"]).arg(folder), LIMIT).map(drop)
}

/// Runs a script in a folder, without privileges if this process has them.
fn script(folder: &Path, text: &str) -> Result<String> {
    let root = rustix::process::geteuid().is_root();
    let mut command = Command::new(if root { "setpriv" } else { "sh" });
    if root {
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "sh"]);
    }
    command.args(["-euc", text]).current_dir(folder);
    command
        .env("KYOZON_LINUX", folder.join("linux.elf"))
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    process::run_ok(&mut command, LIMIT)
}

fn round_trip(folder: &Path, kind: &str, megabytes: u64, make: &str, check: &str) -> Result<()> {
    let start = Instant::now();
    let made = format!("truncate -s {megabytes}M {kind}.img; {make} {kind}.img >log 2>&1 || {{ cat log; exit 1; }}");
    let copied = format!("./kyozon-linux fs cp -r docs {kind}.img:/; ./kyozon-linux fs cp -r {kind}.img:/docs {kind}");
    let compared =
        format!("diff -r docs {kind}; {check} {kind}.img >log 2>&1 || {{ cat log; exit 1; }}");
    let count = format!("find {kind} -type f | wc -l");
    let output = script(folder, &format!("{made}\n{copied}\n{compared}\n{count}"))
        .with_context(|| kind.to_owned())?;
    let files: usize = output.trim().parse().with_context(|| format!("{kind}: {output:?}"))?;
    ensure!(files > 0, "{kind}: nothing was copied");
    println!(
        "    {kind:<6}{files} files into an image and back as an unprivileged user: the same, {} agrees ({:.1} s)",
        check.split(' ').next().unwrap_or_default(),
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Nanoseconds of a system call as a function call, and of the host's.
fn system_calls(folder: &Path) -> Result<()> {
    let measure = |kernel| script(folder, &format!("./kyozon-linux bench-syscalls {kernel}"));
    let (direct, native) = (measure("direct")?, measure("native")?);
    println!("  nanoseconds of a system call: as a function call into the library, and of this machine's kernel");
    for (ours, theirs) in direct.lines().zip(native.lines()) {
        let parse = |line: &str| -> Option<(String, f64)> {
            let (name, ns) = line.split_once(' ')?;
            Some((name.to_owned(), ns.trim().parse().ok()?))
        };
        let ((name, ours), (_, theirs)) =
            parse(ours).zip(parse(theirs)).with_context(|| ours.to_owned())?;
        println!("    {name:<11}{ours:>8.1}{theirs:>8.1}   {:>4.1} times as fast", theirs / ours);
    }
    Ok(())
}
