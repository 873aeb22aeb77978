//! The serial line: a 16550, polled.

use crate::arch::x86_64 as arch;
use crate::events::Events;

/// Bytes that the line gets in one go: what its buffer holds.
const BURST: u32 = 16;
/// Line status register, and its bit "transmitter buffer empty".
const LINE_STATUS: u16 = 5;
const BUFFER_EMPTY: u8 = 1 << 5;
/// Time-stamp milliseconds that the last words may take.
const LAST_WORDS_MS: u64 = 5;

/// Lets the line follow the ring as far as it is ready to.
pub fn say(events: &mut Events, port: u16) {
    // SAFETY: the operator gave this port to the cokernel.
    while events.has_serial() && unsafe { arch::in8(port + LINE_STATUS) } & BUFFER_EMPTY != 0 {
        for _ in 0..BURST {
            match events.serial() {
                // SAFETY: as above.
                Some(byte) => unsafe { arch::out8(port, byte) },
                None => break,
            }
        }
    }
}

/// Lets the line say what it can before nobody listens; bounded.
pub fn last_words(events: &mut Events, port: u16, tsc_khz: u64) {
    let now = arch::tsc();
    while events.has_serial() && arch::tsc() - now < LAST_WORDS_MS * tsc_khz {
        say(events, port);
    }
}
