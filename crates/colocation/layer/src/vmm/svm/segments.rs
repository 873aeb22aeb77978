//! Segment registers of guests, as Linux has them in 64-bit mode.

use super::vmcb::Segment;
use crate::arch::x86_64::svm;

/// A data segment as it is loaded in 64-bit mode: null, or Linux's flat ones.
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

/// Kernel code of 64 bits.
pub const CODE: Segment =
    Segment { selector: svm::KERNEL_CODE, attributes: 0xa9b, limit: u32::MAX, base: 0 };
