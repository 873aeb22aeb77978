//! HPET timer 2 as tick, timer 3 as guard where there is one; else timer 2 is both. As the module has them.
//!
//! Reference: IA-PC HPET Specification 1.0a, 2.3. The registers are where every chipset of the q35's family has them.

use super::ioapic;
use super::schedule::{Counter, Rates};
use crate::arch::x86_64 as arch;

/// Physical address of the registers.
pub const REGISTERS: u64 = 0xfed0_0000;

const ID: u64 = 0;
const PERIOD: u64 = 4;
const CONFIG: u64 = 0x10;
/// Low half of the main counter.
pub const COUNTER: u32 = 0xf0;
const ENABLE: u32 = 1;
/// 100 ns, the longest that the specification allows.
const PERIOD_MAX_FS: u32 = 100_000_000;

const TICK: u32 = 2;
const GUARD: u32 = 3;

const TIMER_ENABLE: u32 = 1 << 2;
const TIMER_32_BIT: u32 = 1 << 8;
const TIMER_ROUTE: u32 = 9;
const TIMER_MESSAGE: u32 = 1 << 14;
const TIMER_MESSAGE_CAPABLE: u32 = 1 << 15;

/// To the local APIC 0, delivery mode NMI. Intel SDM 3A 11.11.
const MESSAGE_ADDRESS: u32 = 0xfee0_0000;
const MESSAGE_NMI: u32 = 4 << 8;

/// How long the rates of two clocks are compared.
const COMPARE_US: u64 = 20_000;
/// Attempts to read both clocks at one time.
const LOOKS: u32 = 32;

const fn timer(n: u32) -> u64 {
    0x100 + 0x20 * n as u64
}

/// Offset of timer `n`'s comparator.
pub const fn comparator(n: u32) -> u32 {
    0x108 + 0x20 * n
}

/// The timer. One CPU uses it.
pub struct Hpet {
    registers: u64,
    config: u32,
    guard: u32,
    /// How interrupts come, for people.
    pub route: &'static str,
}

impl Hpet {
    /// Takes the timer whose registers are mapped at `registers`.
    ///
    /// # Safety
    ///
    /// `registers` must be mapped as long as the result lives; the IO-APIC's must be while this runs.
    pub unsafe fn take(registers: u64) -> Result<Self, &'static str> {
        let mut h = Self { registers, config: TIMER_32_BIT, guard: TICK, route: "hpet-msi" };
        let id = h.get(ID);
        let last = id >> 8 & 31;
        if id == u32::MAX || id == 0 || !(1..=PERIOD_MAX_FS).contains(&h.get(PERIOD)) {
            return Err("no HPET at 0xfed00000: use -machine q35");
        }
        if last < TICK {
            return Err("the HPET has no timer 2");
        }
        let capable = |h: &Self, n| h.get(timer(n)) & TIMER_MESSAGE_CAPABLE != 0;
        let routes = |h: &Self, n| h.get(timer(n) + 4);
        let alike =
            |h: &Self| capable(h, GUARD) == capable(h, TICK) && routes(h, GUARD) == routes(h, TICK);
        if last >= GUARD && alike(&h) {
            h.guard = GUARD;
        }
        if capable(&h, TICK) {
            h.config |= TIMER_MESSAGE;
        } else {
            // SAFETY: the caller's promise.
            let pin = unsafe { ioapic::take(routes(&h, TICK)) };
            h.config |= pin.ok_or("no IO-APIC pin for the HPET")? << TIMER_ROUTE;
            h.route = "hpet-ioapic";
        }
        h.set(CONFIG, h.get(CONFIG) | ENABLE);
        Ok(h)
    }

    fn get(&self, offset: u64) -> u32 {
        // SAFETY: a register of a timer that is ours.
        unsafe { ((self.registers + offset) as *const u32).read_volatile() }
    }

    fn set(&self, offset: u64, value: u32) {
        // SAFETY: as above.
        unsafe { ((self.registers + offset) as *mut u32).write_volatile(value) };
    }

    /// The registers are mapped elsewhere from now on.
    ///
    /// # Safety
    ///
    /// As for [`Hpet::take`].
    pub unsafe fn moved(self, registers: u64) -> Self {
        Self { registers, ..self }
    }

    /// The timer that guards the budget.
    pub fn guard(&self) -> u32 {
        self.guard
    }

    /// Whether the guard has a timer of its own.
    pub fn has_own_guard(&self) -> bool {
        self.guard != TICK
    }

    /// The guard's comparator.
    pub fn set_guard(&mut self, at: u32) {
        self.set(u64::from(comparator(self.guard)), at);
    }

    /// Both clocks at one time: the counter, and the time-stamp counter in the middle of reading it.
    fn both(&self) -> (u32, u64) {
        let look = |_| {
            let before = arch::tsc();
            let count = self.now();
            let took = arch::tsc() - before;
            (took, count, before + took / 2)
        };
        let (_, count, tsc) = (0..LOOKS).map(look).min_by_key(|l| l.0).expect("one at least");
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

    fn each(&self) -> impl Iterator<Item = u32> {
        [TICK, self.guard].into_iter().take(1 + usize::from(self.has_own_guard()))
    }

    /// Sets the timers up, silent.
    pub fn set_up(&mut self) {
        for n in self.each() {
            self.set(timer(n), self.config);
            if self.config & TIMER_MESSAGE != 0 {
                self.set(timer(n) + 0x10, MESSAGE_NMI);
                self.set(timer(n) + 0x14, MESSAGE_ADDRESS);
            }
        }
    }

    /// Interrupts from here on. After the comparators are set: a timer that is enabled first fires once at once.
    pub fn enable(&mut self) {
        for n in self.each() {
            self.set(timer(n), self.config | TIMER_ENABLE);
        }
    }
}

impl Counter for Hpet {
    fn now(&self) -> u32 {
        self.get(u64::from(COUNTER))
    }

    fn set_tick(&mut self, at: u32) {
        self.set(u64::from(comparator(TICK)), at);
    }

    fn tsc(&self) -> u64 {
        arch::tsc()
    }
}
