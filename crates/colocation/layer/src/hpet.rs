//! HPET timer 2 as tick, timer 3 as guard. Without a timer 3, timer 2 is both. The module does the same.
//!
//! Reference: IA-PC HPET Specification 1.0a, 2.3.

use crate::arch::x86_64 as arch;
use crate::schedule::Counter;

/// Low half of the main counter.
pub const COUNTER: u32 = 0xf0;

/// The tick's timer.
pub const TICK: u32 = 2;

const TIMER_ENABLE: u32 = 1 << 2;
/// In a timer's configuration: the interrupt is sent as a message.
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
    guard_address: u32,
}

impl Hpet {
    /// A timer whose registers are mapped at `registers`. `config` is its configuration with interrupts off, `guard`
    /// the number of the timer that guards the budget, `message` the data and the address of its messages.
    ///
    /// # Safety
    ///
    /// `registers` must be mapped as long as the result lives, and both timers must be the caller's.
    pub unsafe fn new(registers: u64, config: u32, guard: u32, message: [u32; 2]) -> Self {
        Self { registers, config, guard, message, guard_address: message[1] }
    }

    /// Lets the guard's messages go to all CPUs. It must not be the tick's timer.
    pub fn guard_all(&mut self) {
        /// The physical destination that is every CPU. Intel SDM 3A 11.11.1.
        const ALL: u32 = 0xff << 12;
        self.guard_address |= ALL;
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
                let address = if n == TICK { self.message[1] } else { self.guard_address };
                self.set(timer(n) + 0x14, address);
            }
        }
    }

    /// Switches interrupts on. Call it after the comparators are set: a timer that is enabled first fires at once.
    pub fn enable(&mut self) {
        for n in self.each() {
            self.set(timer(n), self.config | TIMER_ENABLE);
        }
    }

    /// Switches interrupts off.
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

    /// The same timer with its registers mapped at `registers`.
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
