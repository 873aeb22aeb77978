//! The system-call filter of a guest's process: it allows doorbells, hands the door to the tracer, and turns every
//! other call into an exception of the guest.

use super::descriptors::{DOORBELLS, DOORBELL_COUNT};
use crate::error::Result;
use kyozon_bpf::{Condition, Filter, ALLOW, TRACE, TRAP};
use libc::sock_filter;

/// System-call number of the door. No kernel has this call; without a tracer it would fail.
pub const DOOR_NUMBER: u32 = 0x4b59;

/// The filter's program. A doorbell of a peer or queue that does not exist is a closed descriptor, so ringing it has
/// no effect.
///
/// # Errors
///
/// The program is inconsistent; an error of the tender itself.
pub fn program() -> Result<Vec<sock_filter>> {
    let first = DOORBELLS as u32;
    let bad = Some("bad");
    let mut filter = Filter::new("bad");
    filter.jump(Condition::Equal(DOOR_NUMBER), Some("door"), None);
    filter.jump(Condition::Equal(libc::SYS_write as u32), None, bad);
    filter.load_low(0);
    filter.jump(Condition::AtLeast(first), None, bad);
    filter.jump(Condition::AtLeast(first + DOORBELL_COUNT as u32), bad, None);
    filter.load_low(2);
    filter.jump(Condition::Equal(8), None, bad);
    for argument in [0, 2] {
        filter.load_high(argument);
        filter.jump(Condition::Equal(0), None, bad);
    }
    filter.end(ALLOW);
    filter.label("door");
    filter.end(TRACE);
    filter.label("bad");
    filter.end(TRAP);
    Ok(filter.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kyozon_bpf::evaluate;

    const ARCH: u32 = 0xc000_003e;

    #[test]
    fn only_doorbells_and_the_door_pass() {
        let program = program().unwrap();
        let first = DOORBELLS as u64;
        let write = libc::SYS_write as u32;
        assert_eq!(evaluate(&program, ARCH, DOOR_NUMBER, &[]), TRACE);
        for number in 0..DOORBELL_COUNT as u64 {
            assert_eq!(evaluate(&program, ARCH, write, &[first + number, 5, 8]), ALLOW);
        }
        let high = 1 << 32;
        for arguments in [
            [first - 1, 0, 8],
            [first + DOORBELL_COUNT as u64, 0, 8],
            [1, 0, 8],
            [first | high, 0, 8],
            [first, 0, 9],
            [first, 0, 0],
            [first, 0, 8 | high],
        ] {
            assert_eq!(evaluate(&program, ARCH, write, &arguments), TRAP, "{arguments:?}");
        }
        // On another architecture a number means another call; x32 calls have an extra bit in the number.
        assert_eq!(evaluate(&program, 0x4000_0003, DOOR_NUMBER, &[]), TRAP);
        assert_eq!(evaluate(&program, ARCH, write | 0x4000_0000, &[first, 0, 8]), TRAP);
        for number in (0..600).filter(|n| *n != write) {
            assert_eq!(evaluate(&program, ARCH, number, &[first, 0, 8]), TRAP, "{number}");
        }
    }
}
