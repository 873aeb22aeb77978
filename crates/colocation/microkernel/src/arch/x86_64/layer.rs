//! The machine as the layer offers it: typed calls of the boot block's functions.

use crate::machine::{Frames, Machine, WORDS};
use crate::memory::Memory;
use core::arch::asm;
use core::cell::UnsafeCell;
use kyozon_abi::events::StatusWords;
use kyozon_abi::layer::*;

/// The newest tick that the kernel has not handled.
struct Tick(UnsafeCell<Option<TickEvent>>);

// SAFETY: one CPU; the handler writes it only during `idle` and user mode, when no kernel code reads it.
unsafe impl Sync for Tick {}

static TICK: Tick = Tick(UnsafeCell::new(None));

/// The layer's tick handler.
pub extern "C" fn on_tick(event: *const TickEvent) {
    // SAFETY: the layer's event is valid while the handler runs; see also `Tick`.
    unsafe { *TICK.0.get() = Some(event.read()) };
}

/// The layer's services and the memory that it gave.
pub struct Layer {
    boot: Option<&'static BootBlock>,
    memory: Memory,
    /// Time-stamp counter after the last idle during boot.
    idle_tsc: u64,
    /// Time-stamp ticks from one idle to the next during boot: half a budget.
    interval_tsc: u64,
    /// Linux's readable ranges, once they were asked for.
    window: Option<Window>,
    /// A task has the vector registers, unless the trip has ended since.
    are_vectors_given: bool,
}

/// Calls a service through its address in the boot block.
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

/// The time-stamp counter.
pub fn tsc() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

impl Layer {
    /// No layer: every service answers 0.
    pub const NONE: Self = Self {
        boot: None,
        memory: Memory::EMPTY,
        idle_tsc: 0,
        interval_tsc: 0,
        window: None,
        are_vectors_given: false,
    };

    /// The layer that wrote this boot block.
    pub fn new(boot: &'static BootBlock) -> Self {
        // SAFETY: the boot block's list with its length.
        let pieces = unsafe {
            core::slice::from_raw_parts(boot.pieces as *const Range, boot.piece_count as usize)
        };
        let budget = u64::from(boot.budget_us) * boot.tsc_khz / 1000;
        Self {
            boot: Some(boot),
            memory: Memory::new(pieces),
            idle_tsc: tsc(),
            interval_tsc: budget / 2,
            window: None,
            are_vectors_given: false,
        }
    }

    /// The operator's parameter.
    pub fn parameter(&self) -> u64 {
        self.boot.map_or(0, |boot| boot.parameter)
    }

    /// Sets the kernel's entry points. Returns 0 or `SERVICE_*`.
    pub fn set_handlers(&mut self, handlers: &Handlers) -> i64 {
        service!(self, handlers: fn(*const Handlers) -> i64, handlers)
    }

    /// Enters user mode; returns only if the layer refuses.
    pub fn enter_user(&mut self, frame: &Frame) -> i64 {
        let mut frame = *frame;
        service!(self, enter_user: fn(*mut Frame) -> i64, &mut frame)
    }

    #[cold]
    fn take_vectors(&mut self) {
        self.are_vectors_given = false;
        // It refuses nothing.
        let _: i64 = service!(self, vectors: fn(u64) -> i64, 0);
    }

    /// Idles until the next tick if half of a budget is spent.
    pub fn yield_cpu(&mut self) {
        if tsc().wrapping_sub(self.idle_tsc) > self.interval_tsc {
            self.idle();
            self.idle_tsc = tsc();
        }
    }
}

impl Frames for Layer {
    #[inline]
    fn page(&mut self, physical: u64) -> Option<&mut [u64; WORDS]> {
        let at = self.boot?.memory + self.memory.offset(physical)?;
        // SAFETY: a page of the cokernel's memory, which the layer maps there for the cokernel only. Tasks may write to
        // it only while no kernel code runs, and words have no invalid values.
        Some(unsafe { &mut *(at as *mut [u64; WORDS]) })
    }
}

impl Machine for Layer {
    #[inline]
    fn enter(&mut self, root: u64) {
        if self.are_vectors_given {
            self.take_vectors();
        }
        // SAFETY: a root of `Space::new`; the kernel is mapped alike in every space.
        unsafe { asm!("mov cr3, {}", in(reg) root, options(nostack, preserves_flags)) };
    }

    fn forget(&mut self, address: u64) {
        // SAFETY: the CPU reloads a dropped translation from the page tables.
        unsafe { asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags)) };
    }

    fn fault_address(&mut self) -> u64 {
        let value;
        // SAFETY: reads a register.
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

    fn task_image(&self, task: usize) -> Option<&'static [u8]> {
        let boot = self.boot.filter(|boot| (task as u64) < boot.task_count)?;
        // SAFETY: the boot block's list, and an image in it. Both stay readable and unchanged as long as the cokernel
        // runs.
        unsafe {
            let range = &*(boot.tasks as *const Range).add(task);
            Some(core::slice::from_raw_parts(range.base as *const u8, range.bytes as usize))
        }
    }

    fn report(&mut self, kind: u32, code: u32, line: &[u8]) -> i64 {
        let report = Report { kind, code, text: line.as_ptr() as u64, bytes: line.len() as u64 };
        service!(self, report: fn(*const Report) -> i64, &report)
    }

    fn publish(&mut self, index: u64, status: &StatusWords) -> i64 {
        service!(self, publish: fn(u64, *const StatusWords) -> i64, index, status)
    }

    fn repair(&mut self, request: &RepairRequest) -> i64 {
        service!(self, linux_repair: fn(*const RepairRequest) -> i64, request)
    }

    fn clock(&mut self) -> u64 {
        tsc()
    }

    fn copy_linux(&mut self, from: u64, to: u64, at: usize, words: usize) -> bool {
        if self.window.is_none() {
            let mut window = Window { count: 0, ram: [Range::default(); MAX_RANGES] };
            if self.window(&mut window) == 0 {
                self.window = Some(window);
            }
        }
        let bytes = 8 * words as u64;
        let inside = self.window.as_ref().is_some_and(|window| {
            window.ram.iter().take(window.count as usize).any(|range| {
                let start = from.wrapping_sub(range.base);
                start < range.bytes && bytes <= range.bytes - start
            })
        });
        if !inside {
            return false;
        }
        let Some(into) = self.page(to).and_then(|page| page.get_mut(at..at + words)) else {
            return false;
        };
        // SAFETY: the window is mapped for as long as the cokernel runs. Linux may write there at any time, so its
        // memory is no Rust value; all words have a meaning.
        unsafe {
            asm!("rep movsq", inout("rcx") words => _, inout("rsi") WINDOW_BASE + from => _,
                 inout("rdi") into.as_mut_ptr() => _, options(nostack, preserves_flags));
        }
        true
    }

    fn linux_registers(&mut self, registers: &mut LinuxRegisters) -> i64 {
        service!(self, linux_registers: fn(*mut LinuxRegisters) -> i64, registers)
    }

    fn reset(&mut self, how: u64) -> i64 {
        service!(self, reset: fn(u64) -> i64, how)
    }

    fn watch(&mut self, range: Range, space: u64) -> i64 {
        service!(self, watch: fn(u64, u64, u64) -> i64, range.base, range.bytes, space)
    }

    fn other_registers(&mut self, registers: &mut LinuxRegisters) -> i64 {
        service!(self, other_registers: fn(*mut LinuxRegisters) -> i64, registers)
    }

    fn writes(&mut self, writes: &mut Writes) -> i64 {
        service!(self, writes: fn(*mut Writes) -> i64, writes)
    }

    fn give_vectors(&mut self) -> bool {
        self.are_vectors_given = service!(self, vectors: fn(u64) -> i64, 1) == 0;
        self.are_vectors_given
    }

    fn window(&mut self, window: &mut Window) -> i64 {
        service!(self, linux_window: fn(*mut Window) -> i64, window)
    }
}
