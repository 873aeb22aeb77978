//! Makes a profile of a kernel and says what is in it.
//!
//! `cargo run -p kyozon-monitor --example dump -- BTF KALLSYMS IOMEM RELEASE`: files with what
//! `/sys/kernel/btf/vmlinux`, `/proc/kallsyms`, `/proc/iomem` and `uname -r` give on the target.

use kyozon_monitor::profile::build::{build, Sources};
use kyozon_monitor::profile::Profile;
use std::error::Error;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let [btf, kallsyms, iomem, release] =
        names.get(..4).and_then(|n| n.first_chunk()).ok_or("four files are wanted")?;
    let btf = std::fs::read(btf)?;
    let [kallsyms, iomem, release] = [kallsyms, iomem, release].map(std::fs::read_to_string);
    let (kallsyms, iomem, release) = (kallsyms?, iomem?, release?);
    let start = Instant::now();
    let bytes =
        build(&Sources { btf: &btf, kallsyms: &kallsyms, iomem: &iomem, release: &release })?;
    let built = start.elapsed();
    let start = Instant::now();
    let profile = Profile::decode(&bytes)?;
    println!(
        "{}: {} bytes, built in {built:?}, decoded in {:?}",
        profile.release(),
        bytes.len(),
        start.elapsed()
    );
    println!("{} symbols, image at {:#x}", profile.symbol_count(), profile.text_base());
    println!("task_struct.tasks: {:?}", profile.field("task_struct", "tasks"));
    Ok(())
}
