//! The machine as the layer offers it: the boot block's functions, typed.

use crate::machine::{Frames, Machine, WORDS};
use crate::memory::Memory;
use core::arch::asm;
use core::cell::UnsafeCell;
use kyozon_abi::events::CheckStatus;
use kyozon_abi::layer::*;

/// The tick that came last and was not looked at.
struct Tick(UnsafeCell<Option<TickEvent>>);

// SAFETY: one CPU; the handler writes it only in `idle` and in user mode, when nothing of the kernel reads it.
unsafe impl Sync for Tick {}

static TICK: Tick = Tick(UnsafeCell::new(None));

/// The layer's tick handler.
pub extern "C" fn on_tick(event: *const TickEvent) {
    // SAFETY: the layer's event, as long as the handler runs; and see `Tick`.
    unsafe { *TICK.0.get() = Some(event.read()) };
}

/// The layer.
pub struct Layer {
    boot: Option<&'static BootBlock>,
    memory: Memory,
    /// Time-stamp counter when the CPU was last given back, and how long after that it is again, at boot.
    rested: u64,
    turn: u64,
}

/// Calls a service by address.
macro_rules! service {
    ($layer:expr, $field:ident: fn($($type:ty),*) -> $result:ty, $($argument:expr),*) => {
        match $layer.boot {
            Some(boot) => {
                // SAFETY: the boot block says that this is a function of this type.
                let f: extern "C" fn($($type),*) -> $result = unsafe { core::mem::transmute(boot.$field) };
                f($($argument),*)
            }
            None => Default::default(),
        }
    };
}

fn tsc() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

impl Layer {
    /// No layer yet.
    pub const NONE: Self = Self { boot: None, memory: Memory::EMPTY, rested: 0, turn: 0 };

    /// The layer that wrote this boot block.
    pub fn new(boot: &'static BootBlock) -> Self {
        // SAFETY: the boot block's list, of as many pieces as it says.
        let pieces = unsafe {
            core::slice::from_raw_parts(boot.pieces as *const Range, boot.piece_count as usize)
        };
        let budget = u64::from(boot.budget_us) * boot.tsc_khz / 1000;
        Self { boot: Some(boot), memory: Memory::new(pieces), rested: tsc(), turn: budget / 2 }
    }

    /// Where the kernel wants to be entered. 0, or `SERVICE_*`.
    pub fn set_handlers(&mut self, handlers: &Handlers) -> i64 {
        service!(self, handlers: fn(*const Handlers) -> i64, handlers)
    }

    /// Leaves for user mode; returns only to refuse.
    pub fn enter_user(&mut self, frame: &Frame) -> i64 {
        let mut frame = *frame;
        service!(self, enter_user: fn(*mut Frame) -> i64, &mut frame)
    }

    /// Gives the CPU back where half of a budget is spent.
    pub fn breathe(&mut self) {
        if tsc().wrapping_sub(self.rested) > self.turn {
            self.idle();
            self.rested = tsc();
        }
    }
}

impl Frames for Layer {
    #[inline]
    fn page(&mut self, physical: u64) -> Option<&mut [u64; WORDS]> {
        let at = self.boot?.memory + self.memory.offset(physical)?;
        // SAFETY: a page of the cokernel's memory, which the layer maps there for the cokernel alone. Tasks may write to
        // it only while nothing of the kernel runs, and words have no invalid values.
        Some(unsafe { &mut *(at as *mut [u64; WORDS]) })
    }
}

impl Machine for Layer {
    #[inline]
    fn enter(&mut self, root: u64) {
        // SAFETY: a space of `Space::new`, in which the kernel is mapped as in every other.
        unsafe { asm!("mov cr3, {}", in(reg) root, options(nostack, preserves_flags)) };
    }

    fn forget(&mut self, address: u64) {
        // SAFETY: a translation that is dropped is made anew from the page tables.
        unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) };
    }

    fn fault_address(&mut self) -> u64 {
        let value;
        // SAFETY: reads a register that only page faults change.
        unsafe { asm!("mov {}, cr2", out(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    #[inline]
    fn tick(&mut self) -> Option<TickEvent> {
        // SAFETY: see `Tick`.
        unsafe { (*TICK.0.get()).take() }
    }

    fn idle(&mut self) {
        service!(self, idle: fn() -> (),)
    }

    fn report(&mut self, kind: u32, code: u32, line: &[u8]) -> i64 {
        let report = Report { kind, code, text: line.as_ptr() as u64, bytes: line.len() as u64 };
        service!(self, report: fn(*const Report) -> i64, &report)
    }

    fn publish(&mut self, check: u64, status: &CheckStatus) -> i64 {
        service!(self, publish: fn(u64, *const CheckStatus) -> i64, check, status)
    }

    fn repair(&mut self, request: &RepairRequest) -> i64 {
        service!(self, linux_repair: fn(*const RepairRequest) -> i64, request)
    }

    fn window(&mut self, window: &mut Window) -> i64 {
        service!(self, linux_window: fn(*mut Window) -> i64, window)
    }
}
