//! The serial line: a 16550, polled.

use crate::arch::x86_64 as arch;
use crate::events::Events;

/// Bytes that its buffer holds.
const BURST: u32 = 16;
/// Line status register, and its bit "transmitter buffer empty".
const LINE_STATUS: u16 = 5;
const BUFFER_EMPTY: u8 = 1 << 5;
/// Milliseconds that [`drain`] may take.
const DRAIN_MS: u64 = 5;
/// Milliseconds without a byte after which [`flush`] gives up.
const PATIENCE_MS: u64 = 100;

/// Sends as much of the waiting lines as the port accepts now. Returns whether it accepted any.
pub fn feed(events: &mut Events, port: u16) -> bool {
    let mut accepted = false;
    // SAFETY: the operator gave this port to the cokernel.
    while events.has_serial() && unsafe { arch::in8(port + LINE_STATUS) } & BUFFER_EMPTY != 0 {
        accepted = true;
        for _ in 0..BURST {
            match events.serial() {
                // SAFETY: as above.
                Some(byte) => unsafe { arch::out8(port, byte) },
                None => break,
            }
        }
    }
    accepted
}

/// Calls `feed_some` until it says that no line waits any more (`None`), or until it accepts nothing for a while.
#[cold]
pub fn flush(tsc_khz: u64, mut feed_some: impl FnMut() -> Option<bool>) {
    let mut heard = arch::tsc();
    while let Some(accepted) = feed_some() {
        let now = arch::tsc();
        if accepted {
            heard = now;
        } else if now.wrapping_sub(heard) > PATIENCE_MS * tsc_khz {
            return;
        }
    }
}

/// Sends the rest of the waiting lines, for at most a few milliseconds.
pub fn drain(events: &mut Events, port: u16, tsc_khz: u64) {
    let now = arch::tsc();
    while events.has_serial() && arch::tsc() - now < DRAIN_MS * tsc_khz {
        feed(events, port);
    }
}
