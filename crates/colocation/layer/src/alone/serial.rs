//! The serial line, for messages that are not events: polled, from the first instruction of Rust on.

use crate::arch::x86_64::{in8, out8};
use core::fmt::{self, Write};

/// COM1.
pub const PORT: u16 = 0x3f8;

/// Line status register, and its bit "transmitter holding register empty".
const LINE_STATUS: u16 = 5;
const EMPTY: u8 = 1 << 5;
/// Maximum reads of the status for one byte.
const MAX_READS: u32 = 1 << 20;

/// The line.
pub struct Serial;

impl Serial {
    /// 115200 baud, 8 bits, no parity; buffers of 16 bytes. PC16550D data sheet, 8.
    pub fn set_up() {
        for (register, value) in [(1, 0), (3, 0x80), (0, 1), (1, 0), (3, 3), (2, 7), (4, 3)] {
            // SAFETY: no other kernel uses COM1.
            unsafe { out8(PORT + register, value) };
        }
    }
}

impl Write for Serial {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        for &byte in s.as_bytes() {
            for _ in 0..MAX_READS {
                // SAFETY: as above.
                if unsafe { in8(PORT + LINE_STATUS) } & EMPTY != 0 {
                    break;
                }
            }
            // SAFETY: as above.
            unsafe { out8(PORT, byte) };
        }
        Ok(())
    }
}

/// Writes a line.
macro_rules! line {
    ($($argument:tt)*) => {{
        use core::fmt::Write;
        let mut serial = $crate::alone::serial::Serial;
        let _ = writeln!(serial, $($argument)*);
    }};
}
pub(crate) use line;
