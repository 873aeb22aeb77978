//! A file of 1 GiB is copied into a new image, until the image has it: by `kyozon fs` with its defaults, 128 MiB of
//! memory among them, and by cp onto a loop mount of the host.

use super::run;
use crate::product;
use anyhow::Result;
use kyozon_results::{Row, Table};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Rounds. In each, every way is measured once; odd rounds reverse the order.
const ROUNDS: usize = 5;
/// File systems of the images.
const KINDS: [&str; 2] = ["ext4", "xfs"];
/// Ways to copy. The last one is the host's.
const WAYS: [&str; 3] = ["fs", "fs --in-process", "cp"];
/// Makes the file: what cannot be compressed, in the host's page cache.
const MAKE_FILE: &str = "head -c 1G /dev/urandom >\"$1\" && sync \"$1\"";
/// Makes an image. Nothing of earlier copies is left to be written.
const MAKE_IMAGE: &str = "rm -f \"$1\" && truncate -s 2G \"$1\" && \"mkfs.$2\" -q \"$1\" && sync";
const COPY: &str = "mount -o loop \"$2\" /mnt && cp \"$1\" /mnt && umount /mnt";

/// Adds the rows.
pub fn measure(mut table: Table, folder: &Path) -> Result<Table> {
    let (file, image) = (folder.join("file"), folder.join("image"));
    run(Command::new("sh").args(["-c", MAKE_FILE, "sh"]).arg(&file))?;
    for kind in KINDS {
        let mut times = [const { Vec::new() }; WAYS.len()];
        for round in 0..ROUNDS {
            let mut order: Vec<usize> = (0..WAYS.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for way in order {
                let mut make = Command::new("sh");
                run(make.args(["-c", MAKE_IMAGE, "sh"]).arg(&image).arg(kind))?;
                let mut copy = copy(WAYS[way], &file, &image)?;
                let start = Instant::now();
                run(&mut copy)?;
                times[way].push(start.elapsed().as_secs_f64() * 1000.0);
            }
        }
        eprintln!("fileio: copies into {kind}");
        let group = format!("1 GiB into a new {kind}");
        for (way, times) in WAYS.into_iter().zip(&times) {
            table =
                table.row(Row::from_samples(way, "ms", times)?.counting("rounds").group(&group));
        }
        let [library @ .., host] = &times;
        for (way, times) in WAYS.into_iter().zip(library) {
            table = table.row(Row::ratio(&format!("{way} : cp"), times, host)?.group(&group));
        }
    }
    Ok(table)
}

fn copy(way: &str, file: &Path, image: &Path) -> Result<Command> {
    if way == "cp" {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", COPY, "sh"]).arg(file).arg(image);
        return Ok(command);
    }
    let mut command = Command::new(product::file("kyozon-linux")?);
    let mut target = image.as_os_str().to_owned();
    target.push(":/");
    command.args(way.split(' ')).arg("cp").arg(file).arg(target);
    Ok(command)
}
