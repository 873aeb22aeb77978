//! The filter of a guest's process: doorbells may be rung, the door is the tracer's, all else is an error of the guest's.

use super::DOORBELLS;
use kyozon_abi::unikernel::MAX_PEERS;
use seccompiler::sock_filter;

/// Number of the system call that is the door. No kernel has it: without a tracer it would fail.
pub const DOOR_NUMBER: u32 = 0x4b59;

const RET_TRACE: u32 = 0x7ff0_0000;
const RET_TRAP: u32 = 0x0003_0000;
const RET_ALLOW: u32 = 0x7fff_0000;
/// AUDIT_ARCH_X86_64.
const ARCH: u32 = 0xc000_003e;
/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

const fn load(offset: u32) -> sock_filter {
    sock_filter { code: 0x20, jt: 0, jf: 0, k: offset }
}

const fn back(action: u32) -> sock_filter {
    sock_filter { code: 0x06, jt: 0, jf: 0, k: action }
}

/// Goes on where equal, else to the instruction that is `or` further.
const fn equal(value: u32, or: u8) -> sock_filter {
    sock_filter { code: 0x15, jt: 0, jf: or, k: value }
}

/// The filter. Doorbells of peers that do not exist are descriptors that are not open: ringing them does nothing.
pub fn program() -> Vec<sock_filter> {
    let write = libc::SYS_write as u32;
    let at_least = |value, or| sock_filter { code: 0x35, jt: 0, jf: or, k: value };
    let at_most = |value, or| sock_filter { code: 0x25, jt: or, jf: 0, k: value };
    // The low half of an argument comes first.
    vec![
        load(ARCHITECTURE),
        equal(ARCH, 15),
        load(NUMBER),
        equal(DOOR_NUMBER, 1),
        back(RET_TRACE),
        equal(write, 11),
        load(ARGUMENTS),
        at_least(DOORBELLS as u32, 9),
        at_most((DOORBELLS + MAX_PEERS as i32 - 1) as u32, 8),
        load(ARGUMENTS + 4),
        equal(0, 6),
        load(ARGUMENTS + 16),
        equal(8, 4),
        load(ARGUMENTS + 20),
        equal(0, 2),
        back(RET_ALLOW),
        back(RET_TRAP),
        back(RET_TRAP),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program says, as the kernel would.
    fn judge(program: &[sock_filter], arch: u32, number: u32, arguments: [u64; 3]) -> u32 {
        let mut data = [number.to_le_bytes(), arch.to_le_bytes(), [0; 4], [0; 4]].concat();
        data.extend(arguments.iter().flat_map(|a| a.to_le_bytes()));
        let (mut at, mut value) = (0, 0_u32);
        loop {
            let i = &program[at];
            let jump = |yes: bool| usize::from(if yes { i.jt } else { i.jf });
            at += 1;
            match i.code {
                0x20 => {
                    let k = i.k as usize;
                    value = u32::from_le_bytes(data[k..k + 4].try_into().unwrap());
                }
                0x06 => return i.k,
                0x15 => at += jump(value == i.k),
                0x35 => at += jump(value >= i.k),
                0x25 => at += jump(value > i.k),
                code => panic!("{code:#x}"),
            }
        }
    }

    #[test]
    fn a_guest_can_ring_and_call_and_nothing_else() {
        let program = program();
        let first = DOORBELLS as u64;
        let write = libc::SYS_write as u32;
        assert_eq!(judge(&program, ARCH, DOOR_NUMBER, [0; 3]), RET_TRACE);
        for peer in 0..MAX_PEERS as u64 {
            assert_eq!(judge(&program, ARCH, write, [first + peer, 5, 8]), RET_ALLOW);
        }
        let high = 1 << 32;
        for arguments in [
            [first - 1, 0, 8],
            [first + MAX_PEERS as u64, 0, 8],
            [1, 0, 8],
            [first | high, 0, 8],
            [first, 0, 9],
            [first, 0, 0],
            [first, 0, 8 | high],
        ] {
            assert_eq!(judge(&program, ARCH, write, arguments), RET_TRAP, "{arguments:?}");
        }
        // Other architectures' numbers mean other calls; x32 is a bit of the number.
        assert_eq!(judge(&program, 0x4000_0003, DOOR_NUMBER, [0; 3]), RET_TRAP);
        assert_eq!(judge(&program, ARCH, write | 0x4000_0000, [first, 0, 8]), RET_TRAP);
        for number in (0..600).filter(|n| *n != write) {
            assert_eq!(judge(&program, ARCH, number, [first, 0, 8]), RET_TRAP, "{number}");
        }
    }
}
