//! Table `fileio`: files in records of 16 KiB, on an ext4 in an image: by library Linux, and by the host through a loop
//! device on the same image. And copies of a large file into images, by `kyozon fs` with its defaults and by cp.

mod copies;

use super::described;
use crate::{process, product};
use anyhow::{bail, Context, Result};
use kyozon_results::Row;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Rounds. In each, both kernels are measured once; odd rounds reverse the order.
const ROUNDS: usize = 9;
/// MiB of the image.
const IMAGE: &str = "2048M";
const LIMIT: Duration = Duration::from_secs(300);

/// The requirement that this machine lacks.
pub fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("root, to mount the image on the host".into());
    }
    (!Path::new("/dev/loop-control").exists())
        .then(|| "loop devices, to mount the image on the host".into())
}

/// A size in KiB and an operation.
type Name = (u64, String);

/// Measures and writes the table.
pub fn measure(results: &Path) -> Result<()> {
    if let Some(what) = missing() {
        bail!("needs {what}");
    }
    let folder = tempfile::tempdir()?;
    let image = folder.path().join("disk");
    let make = format!("truncate -s {IMAGE} \"$1\" && mkfs.ext4 -q \"$1\"");
    run(Command::new("sh").args(["-c", &make, "sh"]).arg(&image))?;
    let mut times: BTreeMap<(Name, &str), Vec<f64>> = BTreeMap::new();
    for round in 0..ROUNDS {
        let mut kernels = ["direct", "native"];
        if round % 2 == 1 {
            kernels.reverse();
        }
        for kernel in kernels {
            for (name, us) in figures(&once(kernel, &image)?)? {
                times.entry((name, kernel)).or_default().push(us);
            }
        }
        eprintln!("fileio: {} of {ROUNDS} rounds", round + 1);
    }
    let mut table = described(results, "fileio")?;
    let names: Vec<Name> = times
        .keys()
        .filter(|(_, kernel)| *kernel == "direct")
        .map(|(name, _)| name.clone())
        .collect();
    for name in names {
        let of = |kernel| times.get(&(name.clone(), kernel)).context("a figure of each kernel");
        let (direct, native) = (of("direct")?, of("native")?);
        let group = format!("{} KiB, {}", name.0, name.1);
        table =
            table.row(Row::from_samples("direct", "us", direct)?.counting("rounds").group(&group));
        table =
            table.row(Row::from_samples("native", "us", native)?.counting("rounds").group(&group));
        table = table.row(Row::ratio("direct : native", direct, native)?.group(&group));
    }
    copies::measure(table, folder.path())?.write(results)?;
    Ok(())
}

fn run(command: &mut Command) -> Result<String> {
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command.env("KYOZON_LINUX", product::file("linux.elf").context("run make library")?);
    process::run_ok(command, LIMIT)
}

/// The output of one measurement. The host's mount has a namespace of its own, and ends with it.
fn once(kernel: &str, image: &Path) -> Result<String> {
    let program = product::file("kyozon-linux")?;
    let mut command = if kernel == "direct" {
        let mut command = Command::new(&program);
        command.args(["bench-fileio", "direct"]).arg(image);
        command
    } else {
        let script = "mount -o loop \"$1\" /mnt && \"$2\" bench-fileio native /mnt && umount /mnt";
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, "sh"]).arg(image).arg(&program);
        command
    };
    run(&mut command)
}

/// Lines of a size in KiB, an operation, and the microseconds of a record.
fn figures(output: &str) -> Result<Vec<(Name, f64)>> {
    let figure = |line: &str| {
        let mut words = line.split(' ');
        let mut word = || words.next().with_context(|| format!("the line {line:?}"));
        Ok(((word()?.parse()?, word()?.to_owned()), word()?.parse()?))
    };
    output.lines().map(figure).collect()
}
