//! Finds this machine's timer and the route of its interrupts.
//!
//! The registers are at the addresses that every chipset of the q35's family uses.

use super::ioapic;
use crate::arch::x86_64 as arch;
use crate::hpet::{timer, Hpet, TICK, TIMER_MESSAGE};
use crate::schedule::{Counter, Rates};

/// Physical address of the registers.
pub const REGISTERS: u64 = 0xfed0_0000;

const ID: u64 = 0;
const PERIOD: u64 = 4;
const CONFIG: u64 = 0x10;
const ENABLE: u32 = 1;
/// 100 ns, the longest that the specification allows.
const PERIOD_MAX_FS: u32 = 100_000_000;

const GUARD: u32 = 3;
const TIMER_32_BIT: u32 = 1 << 8;
const TIMER_ROUTE: u32 = 9;
const TIMER_MESSAGE_CAPABLE: u32 = 1 << 15;

/// To the local APIC 0, delivery mode NMI. Intel SDM 3A 11.11.
const MESSAGE: [u32; 2] = [4 << 8, 0xfee0_0000];

/// Duration of a comparison of the two clocks.
const COMPARE_US: u64 = 20_000;
/// Attempts to read both clocks at the same time.
const SAMPLES: u32 = 32;

/// Takes the timer whose registers are mapped at `registers`, and returns the name of its interrupt route.
///
/// # Safety
///
/// `registers` must be mapped as long as the result lives; the IO-APIC's must be while this runs.
pub unsafe fn take(registers: u64) -> Result<(Hpet, &'static str), &'static str> {
    // SAFETY: the caller's promise.
    let bare = |config, guard| unsafe { Hpet::new(registers, config, guard, MESSAGE) };
    let h = bare(0, TICK);
    let id = h.get(ID);
    let last = id >> 8 & 31;
    if id == u32::MAX || id == 0 || !(1..=PERIOD_MAX_FS).contains(&h.get(PERIOD)) {
        return Err("no HPET at 0xfed00000: use -machine q35");
    }
    if last < TICK {
        return Err("the HPET has no timer 2");
    }
    let capable = |n| h.get(timer(n)) & TIMER_MESSAGE_CAPABLE != 0;
    let routes = |n| h.get(timer(n) + 4);
    let alike = last >= GUARD && capable(GUARD) == capable(TICK) && routes(GUARD) == routes(TICK);
    let (delivery, route) = if capable(TICK) {
        (TIMER_MESSAGE, "hpet-msi")
    } else {
        // SAFETY: the caller's promise.
        let pin = unsafe { ioapic::take(routes(TICK)) };
        (pin.ok_or("no IO-APIC pin for the HPET")? << TIMER_ROUTE, "hpet-ioapic")
    };
    let mut h = bare(TIMER_32_BIT | delivery, if alike { GUARD } else { TICK });
    h.set(CONFIG, h.get(CONFIG) | ENABLE);
    Ok((h, route))
}

impl Hpet {
    /// Both clocks at the same time: the counter, and the time-stamp counter halfway through reading it.
    fn both(&self) -> (u32, u64) {
        let sample = |_| {
            let before = arch::tsc();
            let count = self.now();
            let took = arch::tsc() - before;
            (took, count, before + took / 2)
        };
        let (_, count, tsc) = (0..SAMPLES).map(sample).min_by_key(|l| l.0).expect("one at least");
        (count, tsc)
    }

    /// Measures the time-stamp counter with the HPET, whose period is exact.
    pub fn rates(&self) -> Rates {
        let period_fs = self.get(PERIOD);
        let wait = Rates { period_fs, tsc_khz: 1 }.counts(COMPARE_US) as u32;
        let (count0, tsc0) = self.both();
        while self.now().wrapping_sub(count0) < wait {
            core::hint::spin_loop();
        }
        let (count1, tsc1) = self.both();
        let fs = u128::from(count1.wrapping_sub(count0)) * u128::from(period_fs);
        let tsc_khz = (u128::from(tsc1 - tsc0) * 1_000_000_000_000 + fs / 2) / fs;
        Rates { period_fs, tsc_khz: tsc_khz as u64 }
    }
}
