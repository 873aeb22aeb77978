//! Segment registers of guests, with the values that Linux uses in 64-bit mode.

use super::vmcb::Segment;
use crate::arch::x86_64::svm;

/// A data segment of 64-bit mode: null, or one of Linux's flat segments.
pub fn data_segment(selector: u16) -> Segment {
    match selector & !3 {
        0 => Segment { selector, ..Segment::default() },
        _ => Segment {
            selector,
            attributes: if selector & 3 == 3 { 0xcf3 } else { 0xc93 },
            limit: u32::MAX,
            base: 0,
        },
    }
}

/// The 64-bit code segment of kernel mode.
pub const CODE: Segment =
    Segment { selector: svm::KERNEL_CODE, attributes: 0xa9b, limit: u32::MAX, base: 0 };
