//! Tables `shm` and `shm-paths`: what `kyozon bench shm` measures, in one run.

use super::kyozon;
use crate::process;
use anyhow::{Context, Result};
use kyozon_results::{RowSet, Table};
use std::path::Path;
use std::time::Duration;

/// All of it.
const LIMIT: Duration = Duration::from_secs(900);
const COMMAND: &str = "make bench TABLES=shm";

pub fn measure(results: &Path) -> Result<()> {
    let exchange = Table::new(
        "shm",
        "Numbers there and back",
        "8192 integers there and back between two, as in the experiment of the paper on shared memory between unikernels (Xen, i7-3770: \
         116 us by shared memory, 14978 us by messages, 129 times that): written by one, each raised by one by the other, checked by the first. \
         'vm' two virtual machines with the memory in common, 'process' the same image in two confined processes, 'threads' the same source as two \
         threads of Linux; 'vm-message' one Ethernet frame each way between two virtual machines, carried by the tender; 'tcp', 'unix', 'pipe' between \
         two threads by the kernel. In turns, in one run, each side on a CPU of its own. Their ratios are in the table of the parts.",
        COMMAND,
    );
    let paths = Table::new(
        "shm-paths",
        "Memory that is shared, in parts",
        "Of the same run as the numbers there and back, between two virtual machines and between two threads. A line and a wake-up are one way and \
         back, and one way: from release to the return of acquire, of who waits for 5 us and looks, and of who waits for 2 ms and sleeps. \
         A thread's start is from the call to its first instruction: in a virtual machine, it is one. ring, in place and copies: the time of 16 MiB \
         in records of that size through a ring of 4 MiB; copied in and out, written and read where they lie by 8 bytes, copied once by one out of what the other CPU has \
         just written (across), and copied once by one with nobody else. A ratio is that of the medians of each round, low and high its interval; of speeds, it is the ring's speed in that of the copy.",
        COMMAND,
    );
    let output = process::run_ok(kyozon()?.args(["bench", "shm", "--json"]), LIMIT)?;
    let set: RowSet = serde_json::from_str(&output).context("output of kyozon bench shm")?;
    set.rows.into_iter().fold(exchange, Table::row).write(results)?;
    set.further.into_iter().fold(paths, Table::row).write(results)?;
    Ok(())
}
