//! What make did before the suite began: it installed and built.

use crate::emulator;
use std::fs;
use std::os::unix::process::parent_id;
use std::time::Duration;

/// Shells and makes between the outermost make and this program, at most.
const GENERATIONS: usize = 6;

/// CPU time of all that the outermost make above this program has run to its end; `None` without make.
pub(super) fn cpu_time() -> Option<Duration> {
    let mut found = None;
    let mut pid = parent_id();
    for _ in 0..GENERATIONS {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { break };
        let Some((parent, children)) = parse(&stat) else { break };
        if stat.contains(" (make) ") {
            found = Some(children);
        }
        pid = parent;
    }
    found
}

/// The parent, and the CPU time of the children that have ended and were waited for.
fn parse(stat: &str) -> Option<(u32, Duration)> {
    let (_, fields) = stat.rsplit_once(") ")?;
    Some((fields.split(' ').nth(1)?.parse().ok()?, emulator::cpu_time(stat, true)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_children_are_read() {
        let stat = "7 (a b) c) S 5 7 7 0 -1 4 1 2 3 4 100 200 250 50 20 0 1 0 9 8";
        assert_eq!(parse(stat), Some((5, Duration::from_secs(3))));
        assert_eq!(parse("7 (make) S 5"), None);
    }
}
