//! Linux's accesses to guarded ports: those that put the machine to sleep, and the cokernel's serial port.
//!
//! In the sleep state S3 memory keeps its contents, and Linux wakes up without a hypervisor below: it could then read
//! what was hidden. So the bit that begins a sleep has no effect while Linux is a guest, unless the sleep is the one
//! that switches the machine off: memory is lost with it, and a machine behind a locked wall can be switched off.
//!
//! The serial port is as if there were none: it reads as ones, and what Linux writes is lost.
//!
//! Reference: ACPI 6.5, 4.8.3.2.1 (PM1 control registers); AMD APM 2, 15.10.2 (the exit's information).

use core::ops::Range;

/// Bit 13 of the control register, SLP_EN, is this bit of its second byte.
const SLEEP: u8 = 1 << 5;

/// Bits 10 to 12, SLP_TYP, are these of the same byte.
const TYPE_SHIFT: u8 = 2;
const TYPE: u8 = 7;

/// Ports of a 16550.
const SERIAL_PORTS: u32 = 8;

/// The ports of the serial line at `port`, 0 for none.
pub fn serial(port: u32) -> Range<u32> {
    if port == 0 {
        0..0
    } else {
        port..port + SERIAL_PORTS
    }
}

/// A control register: its port, 0 for none, and the sleep type that switches the machine off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    #[allow(missing_docs)]
    pub port: u32,
    #[allow(missing_docs)]
    pub off: u32,
}

impl Control {
    /// Whether writing `byte` to the second byte begins a sleep that keeps memory.
    fn sleeps(&self, byte: u8) -> bool {
        byte & SLEEP != 0 && u32::from(byte >> TYPE_SHIFT & TYPE) != self.off
    }
}

/// An access to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first port.
    pub port: u16,
    /// Bytes: 1, 2 or 4.
    pub bytes: u32,
    /// Whether the guest reads.
    pub input: bool,
    /// Whether memory is the other side, not a register.
    pub string: bool,
}

impl Access {
    /// The access that an exit describes by its first information.
    pub fn of(info: u64) -> Self {
        Self {
            port: (info >> 16) as u16,
            bytes: (info >> 4 & 7) as u32,
            input: info & 1 != 0,
            string: info >> 2 & 1 != 0,
        }
    }

    /// Whether a byte of it is one of `ports`.
    pub fn touches(&self, ports: &Range<u32>) -> bool {
        let first = u32::from(self.port);
        first < ports.end && ports.start < first + self.bytes
    }

    /// RAX after a read of ports that do not exist; `rax` is its value before.
    pub fn absent(&self, rax: u64) -> u64 {
        match self.bytes {
            1 => rax | 0xff,
            2 => rax | 0xffff,
            _ => 0xffff_ffff,
        }
    }

    /// `value`, which the guest writes to one of `controls`, without the bits that begin a sleep.
    pub fn awake(&self, value: u32, controls: [Control; 2]) -> u32 {
        let mut bytes = value.to_le_bytes();
        for (i, byte) in bytes.iter_mut().enumerate().take(self.bytes as usize) {
            let port = u32::from(self.port) + i as u32;
            let is_here = |control: &Control| control.port != 0 && port == control.port + 1;
            if controls.iter().any(|control| is_here(control) && control.sleeps(*byte)) {
                *byte &= !SLEEP;
            }
        }
        u32::from_le_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFF: u32 = 5;
    const CONTROLS: [Control; 2] = [Control { port: 0x604, off: OFF }, Control { port: 0, off: 0 }];
    const SLP_EN: u32 = 1 << 13;

    fn written(port: u16, bytes: u32, value: u32) -> u32 {
        Access { port, bytes, input: false, string: false }.awake(value, CONTROLS)
    }

    #[test]
    fn exits_are_decoded() {
        let out = Access { port: 0x604, bytes: 2, input: false, string: false };
        assert_eq!(Access::of(0x0604_0020), out);
        assert_eq!(Access::of(0x0604_0021), Access { input: true, ..out });
        assert_eq!(Access::of(0x0604_0045), Access { bytes: 4, input: true, string: true, ..out });
    }

    #[test]
    fn no_width_or_address_begins_a_sleep() {
        for (port, bytes, sleep) in [
            (0x604, 2, SLP_EN),
            (0x604, 4, SLP_EN),
            (0x605, 1, SLP_EN >> 8),
            (0x605, 2, SLP_EN >> 8),
            (0x603, 4, SLP_EN << 8),
            (0x602, 4, SLP_EN << 16),
        ] {
            assert_eq!(written(port, bytes, sleep | 1), 1, "{port:#x} {bytes}");
        }
    }

    #[test]
    fn only_the_sleep_that_loses_memory_begins() {
        for kind in 0..8 {
            let sleep = SLP_EN | kind << 10;
            let passed = if kind == OFF { sleep } else { kind << 10 };
            assert_eq!(written(0x604, 2, sleep), passed, "{kind}");
            assert_eq!(written(0x605, 1, sleep >> 8), passed >> 8, "{kind}");
        }
        let unknown = [Control { port: 0x604, off: u32::MAX }; 2];
        let access = Access { port: 0x604, bytes: 2, input: false, string: false };
        for kind in 0..8 {
            assert_eq!(access.awake(SLP_EN | kind << 10, unknown), kind << 10);
        }
    }

    #[test]
    fn any_byte_of_the_serial_port_is_guarded() {
        let ports = serial(0x3e8);
        let touches =
            |port, bytes| Access { port, bytes, input: false, string: false }.touches(&ports);
        assert!(touches(0x3e8, 1) && touches(0x3ef, 1) && touches(0x3e7, 2) && touches(0x3e5, 4));
        assert!(!touches(0x3e7, 1) && !touches(0x3f0, 4) && !touches(0x3e4, 4));
        let none = Access { port: 0, bytes: 4, input: false, string: false };
        assert!(!none.touches(&serial(0)));
    }

    #[test]
    fn absent_ports_read_as_ones() {
        let read = |bytes| {
            Access { port: 0, bytes, input: true, string: false }.absent(0x1122_3344_5566_7700)
        };
        assert_eq!(
            [read(1), read(2), read(4)],
            [0x1122_3344_5566_77ff, 0x1122_3344_5566_ffff, 0xffff_ffff]
        );
    }

    #[test]
    fn other_bits_and_ports_pass() {
        for bit in (0..16).filter(|bit| *bit != 13) {
            assert_eq!(written(0x604, 2, 1 << bit), 1 << bit);
        }
        for (port, bytes) in [(0x602, 2), (0x604, 1), (0x606, 2), (0, 4), (1, 1)] {
            assert_eq!(written(port, bytes, u32::MAX), u32::MAX, "{port:#x} {bytes}");
        }
    }
}
