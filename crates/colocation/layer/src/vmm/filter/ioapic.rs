//! Linux's writes to an IO-APIC, of which one pin may be the tick's.
//!
//! Reference: Intel 82093AA data sheet, 3.1 and 3.2; the EOI register exists in later chips. All take writes of 4
//! bytes.

use super::Verdict::{self, Pass, Refuse};

/// Selects the register that the window shows. The caller remembers Linux's value and leaves it in place.
pub const SELECT: u32 = 0;
/// The window on the selected register.
pub const WINDOW: u32 = 0x10;
const EOI: u32 = 0x40;

const ID: u32 = 0;
/// Two registers a pin.
const PINS: u32 = 0x10;

/// The cokernel's part of the IO-APIC.
#[derive(Clone, Copy, Debug)]
pub struct Ours {
    /// The tick's pin, if it has one here.
    pub pin: Option<u32>,
}

/// Judges a write of `bytes` bytes at `offset` in the page of registers, where `select` was last written to
/// [`SELECT`]. Offsets without a register are refused: a chip may decode fewer address bits.
pub fn write(ours: Ours, select: u32, offset: u32, bytes: usize, value: u64) -> Verdict {
    // The bits above are reserved, and chips look at these only.
    let register = select & 0xff;
    let is_our_pin = register >= PINS && ours.pin == Some((register - PINS) / 2);
    match (offset, bytes) {
        (SELECT | EOI, 4) => Pass(value),
        (WINDOW, 4) if register != ID && !is_our_pin => Pass(value),
        _ => Refuse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Ours = Ours { pin: Some(20) };

    #[test]
    fn window_refuses_our_pin_and_the_id() {
        for select in 0..0x100 {
            let want = if matches!(select, 0 | 0x38 | 0x39) { Refuse } else { Pass(0x1_0000) };
            assert_eq!(write(OURS, select, 0x10, 4, 0x1_0000), want, "{select:#x}");
            assert_eq!(write(OURS, select | 0xffff_ff00, 0x10, 4, 0x1_0000), want, "{select:#x}");
        }
    }

    #[test]
    fn all_pins_are_linuxs_if_none_is_ours() {
        assert!((0x10..0x100).all(|s| write(Ours { pin: None }, s, 0x10, 4, 5) == Pass(5)));
        assert_eq!(write(Ours { pin: None }, 0, 0x10, 4, 5), Refuse);
        let first = Ours { pin: Some(0) };
        assert_eq!(write(first, 0x10, 0x10, 4, 5), Refuse);
        assert_eq!(write(first, 0x0f, 0x10, 4, 5), Pass(5));
        assert_eq!(write(first, 0x12, 0x10, 4, 5), Pass(5));
    }

    #[test]
    fn only_select_and_eoi_pass() {
        for select in [0, 0x38, 0x12] {
            for offset in 0..0x1000 {
                let is_register = matches!(offset, 0 | 0x40) || offset == 0x10 && select == 0x12;
                let want = if is_register { Pass(0x38) } else { Refuse };
                assert_eq!(write(OURS, select, offset, 4, 0x38), want, "{offset:#x}");
            }
        }
        for bytes in [1, 2, 8] {
            for offset in [0, 0x10, 0x40] {
                assert_eq!(write(OURS, 0x12, offset, bytes, 0), Refuse);
            }
        }
    }
}
