//! HPET timer 2 as tick, timer 3 as guard where there is one; else timer 2 is both. As the module has them.
//!
//! Reference: IA-PC HPET Specification 1.0a, 2.3.

use crate::arch::x86_64 as arch;
use crate::schedule::Counter;

/// Low half of the main counter.
pub const COUNTER: u32 = 0xf0;

/// The tick's timer.
pub const TICK: u32 = 2;

const TIMER_ENABLE: u32 = 1 << 2;
/// Of a timer's configuration: the interrupt goes out as a message.
pub const TIMER_MESSAGE: u32 = 1 << 14;

/// Offset of timer `n`'s configuration.
pub const fn timer(n: u32) -> u64 {
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
    message: [u32; 2],
}

impl Hpet {
    /// A timer whose registers are mapped at `registers`: its configuration with interrupts off, the number of the
    /// timer that guards the budget, and where messages go, data and address.
    ///
    /// # Safety
    ///
    /// `registers` must be mapped as long as the result lives, and both timers must be the caller's.
    pub unsafe fn new(registers: u64, config: u32, guard: u32, message: [u32; 2]) -> Self {
        Self { registers, config, guard, message }
    }

    /// A register.
    pub fn get(&self, offset: u64) -> u32 {
        // SAFETY: a register of a timer that is ours.
        unsafe { ((self.registers + offset) as *const u32).read_volatile() }
    }

    /// Sets a register.
    pub fn set(&mut self, offset: u64, value: u32) {
        // SAFETY: as above.
        unsafe { ((self.registers + offset) as *mut u32).write_volatile(value) };
    }

    /// Whether the guard has a timer of its own.
    pub fn has_own_guard(&self) -> bool {
        self.guard != TICK
    }

    /// The guard's comparator.
    pub fn set_guard(&mut self, at: u32) {
        self.set(u64::from(comparator(self.guard)), at);
    }

    fn each(&self) -> impl Iterator<Item = u32> + use<> {
        [TICK, self.guard].into_iter().take(1 + usize::from(self.has_own_guard()))
    }

    /// Sets the timers up, silent.
    pub fn set_up(&mut self) {
        for n in self.each() {
            self.set(timer(n), self.config);
            if self.config & TIMER_MESSAGE != 0 {
                self.set(timer(n) + 0x10, self.message[0]);
                self.set(timer(n) + 0x14, self.message[1]);
            }
        }
    }

    /// Interrupts from here on. After the comparators are set: a timer that is enabled first fires once at once.
    pub fn enable(&mut self) {
        for n in self.each() {
            self.set(timer(n), self.config | TIMER_ENABLE);
        }
    }

    /// Silent from here on.
    pub fn disable(&mut self) {
        for n in self.each() {
            self.set(timer(n), self.config);
        }
    }

    /// Whether the tick's timer is as [`Hpet::enable`] left it.
    pub fn is_as_set(&self) -> bool {
        const OURS: u32 = TIMER_ENABLE | TIMER_MESSAGE | 1 << 8 | 31 << 9;
        self.get(timer(TICK)) & OURS == (self.config | TIMER_ENABLE) & OURS
    }

    /// The registers are mapped elsewhere from now on.
    ///
    /// # Safety
    ///
    /// As for [`Hpet::new`].
    pub unsafe fn moved(self, registers: u64) -> Self {
        Self { registers, ..self }
    }

    /// The timer that guards the budget.
    pub fn guard(&self) -> u32 {
        self.guard
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
