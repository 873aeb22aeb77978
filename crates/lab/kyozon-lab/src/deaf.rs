//! A CPU that QEMU gives no interrupts any more.
//!
//! With several CPUs, QEMU's TCG now and then loses CPU 0's global interrupt flag (`docs/emulators.md`). Linux
//! waits in HLT then, and nothing wakes it. VMRUN sets the flag (AMD APM 2, chapter 15), so that nothing in the
//! guest can do the same: its CPU waits at one place with interrupts enabled, while one is pending that nothing
//! holds back. A hypervisor that masks its guest's interrupts and forgets it would look alike; such a test fails
//! again when it runs once more.

use std::fmt;
use std::ops::Range;

/// The interrupt flag and the trap flag in RFLAGS.
const INTERRUPTS: u64 = 1 << 9;
const TRAP: u64 = 1 << 8;
/// Where Linux's image lies.
const IMAGE: Range<u64> = 0xffff_ffff_8000_0000..0xffff_ffff_c000_0000;

/// Why a test failed that may run once more.
#[derive(Debug)]
pub struct DeafCpu;

impl fmt::Display for DeafCpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QEMU lost CPU 0's global interrupt flag")
    }
}

impl std::error::Error for DeafCpu {}

/// What QEMU's monitor says at one moment.
#[derive(Debug)]
pub struct Moment {
    /// Of all CPUs: `info registers -a`.
    pub registers: String,
    /// Of CPU 0: `info lapic 0`.
    pub interrupts: String,
}

impl Moment {
    /// Where CPU 0 waits although an interrupt is pending; `None` if it does not, or if there is no other CPU.
    fn waits_at(&self) -> Option<u64> {
        let (first, _others) = self.registers.split_once("CPU#0")?.1.split_once("CPU#1")?;
        let word = |name: &str| first.split_whitespace().find_map(|word| word.strip_prefix(name));
        let number = |name: &str| u64::from_str_radix(word(name)?, 16).ok();
        let is_kernel = word("CPL=") == Some("0");
        let waits =
            word("HLT=") == Some("1") && number("RFL=")? & (INTERRUPTS | TRAP) == INTERRUPTS;
        let pending = self.interrupts.lines().find_map(|line| line.strip_prefix("IRR"))?;
        let highest: u64 = pending.split_whitespace().filter_map(|it| it.parse().ok()).max()?;
        let priority = self.interrupts.split_once("PPR 0x")?.1.get(..2)?;
        let is_free = highest >> 4 > u64::from_str_radix(priority, 16).ok()? >> 4;
        number("RIP=").filter(|rip| IMAGE.contains(rip) && is_kernel && waits && is_free)
    }
}

impl DeafCpu {
    /// Whether CPU 0 is deaf at both moments.
    pub fn is_at(before: &Moment, after: &Moment) -> bool {
        before.waits_at().is_some_and(|place| after.waits_at() == Some(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(rip: &str, flags: &str, halted: u8, pending: &str, priority: &str) -> Moment {
        Moment {
            registers: format!(
                "\nCPU#0\nRAX=00 RBX=00\nR15=00 RIP={rip} RFL={flags} [-----P-] CPL=0 II=0 A20=1 \
                 SMM=0 HLT={halted}\nES =0000\n\nCPU#1\nRIP=1 RFL=00000002 CPL=0 HLT=0\n"
            ),
            interrupts: format!(
                "dumping local APIC state for CPU 0 \n\nISR\t (none)\nIRR\t {pending}\n\n\
                 APR 0x00 TPR 0x00 DFR 0x0f LDR 0x00 PPR 0x{priority}\n"
            ),
        }
    }

    #[test]
    fn a_cpu_is_deaf_that_waits_with_an_interrupt_pending() {
        let deaf = || moment("ffffffff81e0a1cb", "00000206", 1, "236 251", "00");
        assert!(DeafCpu::is_at(&deaf(), &deaf()));
        for other in [
            moment("ffffffff81e0a1cc", "00000206", 1, "236", "00"),
            moment("ffffffff81e0a1cb", "00000006", 1, "236", "00"),
            moment("ffffffff81e0a1cb", "00000306", 1, "236", "00"),
            moment("ffffffff81e0a1cb", "00000206", 0, "236", "00"),
            moment("ffffffff81e0a1cb", "00000206", 1, "(none)", "00"),
            moment("ffffffff81e0a1cb", "00000206", 1, "236", "e0"),
        ] {
            assert!(!DeafCpu::is_at(&deaf(), &other), "{other:?}");
            assert!(!DeafCpu::is_at(&other, &deaf()), "{other:?}");
        }
        let alone = Moment { registers: deaf().registers.replace("CPU#1", ""), ..deaf() };
        assert!(!DeafCpu::is_at(&alone, &alone));
    }
}
