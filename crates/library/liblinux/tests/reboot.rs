//! Booting and halting leaves nothing in the process. Alone in its process, because it counts what the process has.

mod common;

use std::fs;

/// Reboots; more with KYOZON_REBOOTS.
const REBOOTS: usize = 50;
/// Resident KiB that may come and go: the allocator's.
const SLACK: u64 = 4096;

/// What this process has: resident KiB, mappings, threads, descriptors.
fn has() -> (u64, usize, usize, usize) {
    let status = fs::read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    let resident = line.trim().trim_end_matches(" kB").parse().expect("a number");
    let count = |folder: &str| fs::read_dir(folder).expect("a folder").count();
    let maps = fs::read_to_string("/proc/self/maps").expect("maps").lines().count();
    (resident, maps, count("/proc/self/task"), count("/proc/self/fd"))
}

#[test]
fn reboots_leave_nothing() {
    let reboots =
        std::env::var("KYOZON_REBOOTS").map_or(REBOOTS, |text| text.parse().expect("a number"));
    let reboot = || {
        let (instance, thread) = common::boot(common::config());
        let other = instance.clone();
        let worker = std::thread::spawn(move || drop(other.attach().expect("attach")));
        worker.join().expect("no panic");
        instance.halt(thread).expect("halt");
    };
    // The first boots fill the allocator's caches.
    (0..5).for_each(|_| reboot());
    let before = has();
    (0..reboots).for_each(|_| reboot());
    let after = has();
    assert!(after.0 <= before.0 + SLACK, "resident KiB grew from {} to {}", before.0, after.0);
    assert!(after.1 <= before.1 + 4, "mappings grew from {} to {}", before.1, after.1);
    assert_eq!((after.2, after.3), (before.2, before.3), "threads and descriptors");
}
