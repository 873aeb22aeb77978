//! The reset of the machine.

use crate::arch::x86_64 as arch;

/// The chipset's reset control register, and its bits "hard reset" and "reset now".
const RESET_CONTROL: u16 = 0xcf9;
const HARD: u8 = 1 << 1;
const NOW: u8 = 1 << 2;
/// The keyboard controller's command port, and its command "pulse the line that resets the processor".
const KEYBOARD_COMMAND: u16 = 0x64;
const PULSE_RESET: u8 = 0xfe;
/// Polls of a port, each about a microsecond, that a reset may take.
const POLLS: u32 = 100_000;

/// Resets the machine, as if its button had been pressed: by the chipset, by the keyboard controller, and by a fault
/// that the processor cannot deliver. Linux writes nothing back to its disks.
pub fn machine() -> ! {
    for (port, value) in
        [(RESET_CONTROL, HARD), (RESET_CONTROL, HARD | NOW), (KEYBOARD_COMMAND, PULSE_RESET)]
    {
        // SAFETY: Linux, whose ports these are, does not go on.
        unsafe { arch::out8(port, value) };
        for _ in 0..POLLS {
            // SAFETY: the status of the keyboard controller, which a read does not change.
            unsafe { arch::in8(KEYBOARD_COMMAND) };
        }
    }
    // SAFETY: nothing runs after this.
    unsafe { arch::shut_down() }
}
