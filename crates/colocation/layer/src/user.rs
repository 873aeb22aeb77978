//! Frames of user mode: the fields that a cokernel may set, and those that the layer sets.

use kyozon_abi::layer::{
    Frame, Range, KERNEL_CODE_SELECTOR, USER_CODE_SELECTOR, USER_DATA_SELECTOR,
};

/// Carry, parity, adjust, zero, sign, trap, direction, overflow, alignment, identification.
const USER_FLAGS: u64 = 0x0024_0dd5;
/// Carry, parity, adjust, zero, sign, overflow.
const ARITHMETIC_FLAGS: u64 = 0x8d5;
/// The bit of RFLAGS that is always set.
const FLAGS_ONE: u64 = 2;
/// End of the lower half with four levels of page tables.
const LOWER_HALF_4: u64 = 1 << 47;
/// The same with five levels.
const LOWER_HALF_5: u64 = 1 << 56;

/// Makes `frame` one that `iretq` takes to user mode with interrupts off and no I/O rights.
///
/// An address outside the lower half becomes 0, which is never mapped: the task faults, not the layer. (`iretq` to an
/// address that is not canonical faults in kernel mode.)
pub fn sanitize(frame: &mut Frame, paging_levels: u32) {
    let end = if paging_levels == 5 { LOWER_HALF_5 } else { LOWER_HALF_4 };
    if frame.rip >= end {
        frame.rip = 0;
    }
    frame.cs = USER_CODE_SELECTOR;
    frame.ss = USER_DATA_SELECTOR;
    frame.rflags = frame.rflags & USER_FLAGS | FLAGS_ONE;
}

/// Makes a frame of typed code one that `iretq` takes there with interrupts off. `stack` is the stack selector that the
/// CPU holds: Linux's, or null after user mode.
pub fn sanitize_typed(frame: &mut Frame, stack: u64) {
    frame.cs = KERNEL_CODE_SELECTOR;
    frame.ss = stack;
    frame.rflags = frame.rflags & ARITHMETIC_FLAGS | FLAGS_ONE;
}

/// Whether `frame` is one of kernel mode in `typed`, the addresses of typed code.
pub fn is_typed(frame: &Frame, typed: &Range) -> bool {
    frame.cs == KERNEL_CODE_SELECTOR && frame.rip.wrapping_sub(typed.base) < typed.bytes
}

/// Whether the CPU was in user mode at `frame`.
pub fn is_user(frame: &Frame) -> bool {
    frame.cs & 3 == 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_frames_become_harmless() {
        let mut frame = Frame {
            rip: 0x8000_0000_0000,
            cs: 0x10,
            ss: 0,
            rflags: u64::MAX,
            rsp: u64::MAX,
            rax: 5,
            ..Frame::default()
        };
        sanitize(&mut frame, 4);
        assert_eq!((frame.rip, frame.cs, frame.ss), (0, 0x33, 0x2b));
        assert_eq!(
            frame.rflags & (1 << 9 | 3 << 12 | 1 << 14 | 1 << 16 | 1 << 17),
            0,
            "interrupts, I/O level, nested task, resume, virtual-8086"
        );
        assert_eq!(frame.rax, 5);
        assert!(is_user(&frame));
    }

    #[test]
    fn typed_code_keeps_kernel_mode_and_gets_no_rights() {
        let typed = Range { base: 0x1000, bytes: 0x1000 };
        let frame = |rip, cs| Frame { rip, cs, rflags: u64::MAX, ss: 0x2b, ..Frame::default() };
        for (rip, cs, is) in [
            (0x1000, 0x10, true),
            (0x1fff, 0x10, true),
            (0xfff, 0x10, false),
            (0x2000, 0x10, false),
            (0x1000, 0x33, false),
            (0x1000, 0, false),
        ] {
            assert_eq!(is_typed(&frame(rip, cs), &typed), is, "{rip:#x} {cs:#x}");
        }
        assert!(!is_typed(&frame(0, 0x10), &Range::default()), "no code is typed");
        let mut frame = frame(0x1000, 0x10);
        sanitize_typed(&mut frame, 0x18);
        assert_eq!((frame.rip, frame.cs, frame.ss, frame.rflags), (0x1000, 0x10, 0x18, 0x8d7));
        assert!(!is_user(&frame));
    }

    #[test]
    fn five_levels_have_a_larger_half() {
        let mut frame = Frame { rip: 0x8000_0000_0000, ..Frame::default() };
        sanitize(&mut frame, 5);
        assert_eq!(frame.rip, 0x8000_0000_0000);
    }
}
