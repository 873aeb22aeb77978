//! Classifies instructions by their cost. Intel SDM 2, appendix A (opcode maps).

/// Events that cost more than an instruction, as `docs/results/costs.toml` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
#[allow(missing_docs)] // the names are the instructions'
pub enum Event {
    Cr3Write,
    Cr2Write,
    Cr0Write,
    Cr4Write,
    Lidt,
    Lgdt,
    Sidt,
    Sgdt,
    Ltr,
    MovSegment,
    Swapgs,
    /// RDFSBASE, RDGSBASE.
    ReadBase,
    /// WRFSBASE, WRGSBASE.
    WriteBase,
    Rdmsr,
    Wrmsr,
    Rdtsc,
    Cpuid,
    /// IRET to the same privilege level.
    Iret,
    /// IRET to user mode.
    IretUser,
    /// A software interrupt.
    IntGate,
    Pio,
    /// INVLPG, INVPCID.
    Invalidate,
    /// A load or store outside RAM.
    Mmio,
    /// The first access to a page after CR3 was written.
    Refill,
    /// An interrupt or exception delivered through a gate.
    Delivery,
    Vmrun,
    /// A guest's exit, for any reason.
    Vmexit,
    Vmload,
    Vmsave,
    Stgi,
    Clgi,
}

/// Names, in the order of [`Event`].
pub const EVENTS: [&str; 31] = include!("events.in");

/// Prefixes, opcode and the bytes after it.
struct Parts<'a> {
    repeat: bool,
    two_bytes: bool,
    opcode: u8,
    rest: &'a [u8],
}

fn parts(bytes: &[u8]) -> Option<Parts<'_>> {
    let mut at = 0;
    let mut repeat = false;
    while let Some(byte) = bytes.get(at) {
        match byte {
            0xf3 => repeat = true,
            0x66 | 0x67 | 0xf2 | 0xf0 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x40..=0x4f => {}
            _ => break,
        }
        at += 1;
    }
    let two_bytes = *bytes.get(at)? == 0x0f;
    at += usize::from(two_bytes);
    Some(Parts { repeat, two_bytes, opcode: *bytes.get(at)?, rest: &bytes[at + 1..] })
}

/// The event of the instruction `bytes`, if it has one. IRET is [`Event::Iret`], whatever its target.
pub fn event(bytes: &[u8]) -> Option<Event> {
    let Parts { repeat, two_bytes, opcode, rest } = parts(bytes)?;
    let modrm = rest.first().copied().unwrap_or(0);
    let (register, memory) = (modrm >> 3 & 7, modrm >> 6 != 3);
    if !two_bytes {
        return match opcode {
            0xcf => Some(Event::Iret),
            0x8e => Some(Event::MovSegment),
            0xcc | 0xcd | 0xf1 => Some(Event::IntGate),
            0xe4..=0xe7 | 0xec..=0xef | 0x6c..=0x6f => Some(Event::Pio),
            _ => None,
        };
    }
    match (opcode, register, memory) {
        (0x22, 0, _) => Some(Event::Cr0Write),
        (0x22, 2, _) => Some(Event::Cr2Write),
        (0x22, 3, _) => Some(Event::Cr3Write),
        (0x22, 4, _) => Some(Event::Cr4Write),
        (0x00, 3, _) => Some(Event::Ltr),
        (0x01, 0, true) => Some(Event::Sgdt),
        (0x01, 1, true) => Some(Event::Sidt),
        (0x01, 2, true) => Some(Event::Lgdt),
        (0x01, 3, true) => Some(Event::Lidt),
        (0x01, 7, true) => Some(Event::Invalidate),
        (0x01, 3, false) => match modrm {
            0xd8 => Some(Event::Vmrun),
            0xda => Some(Event::Vmload),
            0xdb => Some(Event::Vmsave),
            0xdc => Some(Event::Stgi),
            0xdd => Some(Event::Clgi),
            _ => None,
        },
        (0x01, 7, false) if modrm == 0xf8 => Some(Event::Swapgs),
        (0x01, 7, false) if modrm == 0xf9 => Some(Event::Rdtsc),
        (0x30, ..) => Some(Event::Wrmsr),
        (0x31, ..) => Some(Event::Rdtsc),
        (0x32, ..) => Some(Event::Rdmsr),
        (0xa2, ..) => Some(Event::Cpuid),
        (0xa1 | 0xa9, ..) => Some(Event::MovSegment),
        (0xae, 0 | 1, false) if repeat => Some(Event::ReadBase),
        (0xae, 2 | 3, false) if repeat => Some(Event::WriteBase),
        (0x38, ..) if rest.first() == Some(&0x82) => Some(Event::Invalidate),
        _ => None,
    }
}

/// Whether the instruction `bytes` is a VMMCALL. A guest gets past it only after its host has entered it again.
pub fn is_vmmcall(bytes: &[u8]) -> bool {
    bytes == [0x0f, 0x01, 0xd9]
}

/// Whether the instruction `bytes` may transfer control to another address than the next one.
pub fn is_transfer(bytes: &[u8]) -> bool {
    let Some(Parts { two_bytes, opcode, rest, .. }) = parts(bytes) else { return false };
    if two_bytes {
        let svm = opcode == 1 && matches!(rest.first(), Some(0xd8 | 0xd9));
        return svm || matches!(opcode, 0x80..=0x8f | 0x05 | 0x07 | 0x34 | 0x35);
    }
    match opcode {
        0x70..=0x7f | 0xe0..=0xe3 | 0xe8 | 0xe9 | 0xeb | 0xc2 | 0xc3 | 0xca | 0xcb | 0xcf => true,
        0xcc | 0xcd | 0xf1 | 0xea | 0x9a => true,
        0xff => matches!(rest.first().map(|modrm| modrm >> 3 & 7), Some(2..=5)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_by_their_bytes() {
        for (bytes, wanted) in [
            (&[0x0f, 0x22, 0xd8][..], Some(Event::Cr3Write)),
            (&[0x0f, 0x22, 0xd0], Some(Event::Cr2Write)),
            (&[0x0f, 0x20, 0xd8], None), // a read
            (&[0x0f, 0x01, 0x1d, 0, 0, 0, 0], Some(Event::Lidt)),
            (&[0x0f, 0x01, 0x15, 0, 0, 0, 0], Some(Event::Lgdt)),
            (&[0x0f, 0x01, 0x05, 0, 0, 0, 0], Some(Event::Sgdt)),
            (&[0x0f, 0x01, 0xf8], Some(Event::Swapgs)),
            (&[0x0f, 0x01, 0xca], None), // CLAC
            (&[0x0f, 0x01, 0xd8], Some(Event::Vmrun)),
            (&[0x0f, 0x01, 0xd9], None), // VMMCALL: the exit has the cost
            (&[0x0f, 0x01, 0xda], Some(Event::Vmload)),
            (&[0x0f, 0x01, 0xdb], Some(Event::Vmsave)),
            (&[0x0f, 0x01, 0xdc], Some(Event::Stgi)),
            (&[0x0f, 0x01, 0xdd], Some(Event::Clgi)),
            (&[0x0f, 0x00, 0xd8], Some(Event::Ltr)),
            (&[0x0f, 0x00, 0xe0], None), // VERR
            (&[0x0f, 0x30], Some(Event::Wrmsr)),
            (&[0x48, 0xcf], Some(Event::Iret)),
            (&[0xf3, 0x48, 0x0f, 0xae, 0xd8], Some(Event::WriteBase)),
            (&[0xf3, 0x48, 0x0f, 0xae, 0xc8], Some(Event::ReadBase)),
            (&[0x0f, 0xae, 0xe8], None), // LFENCE
            (&[0x66, 0x0f, 0x38, 0x82, 0x00], Some(Event::Invalidate)),
            (&[0x8e, 0xd0], Some(Event::MovSegment)),
            (&[0xcd, 0x80], Some(Event::IntGate)),
            (&[0xee], Some(Event::Pio)),
            (&[0x90], None),
            (&[0x66], None),
            (&[], None),
        ] {
            assert_eq!(event(bytes), wanted, "{bytes:02x?}");
        }
    }

    #[test]
    fn transfers_by_their_bytes() {
        for bytes in [
            &[0x75, 0][..],
            &[0x0f, 0x84],
            &[0xff, 0xe0],
            &[0x48, 0xcf],
            &[0xc3],
            &[0xe8],
            &[0x0f, 0x01, 0xd8],
            &[0x0f, 0x01, 0xd9],
        ] {
            assert!(is_transfer(bytes), "{bytes:02x?}");
        }
        for bytes in [
            &[0x90][..],
            &[0xf4],
            &[0xff, 0xc0],
            &[0x0f, 0x22, 0xd8],
            &[0xf3, 0xa4],
            &[],
            &[0x0f, 0x01, 0xdc],
        ] {
            assert!(!is_transfer(bytes), "{bytes:02x?}");
        }
    }

    #[test]
    fn every_event_has_a_name() {
        assert_eq!(Event::Clgi as usize, EVENTS.len() - 1);
        assert_eq!(EVENTS[Event::Refill as usize], "cr3_tlb_refill");
        assert_eq!(EVENTS[Event::Vmexit as usize], "vmexit");
    }
}
