//! The vector registers of the first task: they outlast ticks and other tasks, and no other task has them.

use crate::check::Checks;
use crate::peer;
use core::arch::asm;
use kyozon_abi::task::*;
use kyozon_task::clock::tsc;
use kyozon_task::ipc::{self, Endpoint};
use kyozon_task::{linux, task, StartInfo};

/// Contents of the sixteen registers of SSE.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Registers([[u64; 2]; 16]);

/// The vector of a first use, and the action of [`crate::faults`] that is one.
const TRAP: u64 = 7;
const USE: u64 = 14;
const ROUNDS: u64 = 50;
/// Ticks for which a round spins.
const TICKS: u64 = 3;
/// An x87 control word and an MXCSR that are not the initial ones: single precision; results too small are zero.
const CONTROL: u16 = 0x7f;
const MXCSR: u32 = 0x9f80;

/// Keeps values in the registers while ticks pass, and lets task 1 try to use them.
pub fn run(info: &'static StartInfo) {
    let mut c = Checks::new("vectors");
    c.same("initial", controls(), (0x37f, 0x1f80));
    set_controls(CONTROL, MXCSR);
    let peer = Endpoint::of_task(1);
    let Ok(handler) = Endpoint::new() else { return };
    c.same("handler", task::set_fault_handler(1, Some(handler)), Ok(()));
    let period = 1000 * info.tsc_khz / u64::from(info.tick_hz);
    for round in 0..ROUNDS {
        let word = |n: u64| (round << 32 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut registers =
            Registers(core::array::from_fn(|n| [word(2 * n as u64), word(2 * n as u64 + 1)]));
        let before = registers;
        spin_with(&mut registers, tsc() + TICKS * period);
        c.same("kept", registers, before);
        // A thread of task 1 runs in the same trip: it gets the trap, not what is in them.
        load(&before);
        let started = peer.call([peer::FAULT, USE, 0, 0, 0, 0]);
        c.same("started", started.map(|m| m.words[0]), Ok(1));
        let Ok(message) = handler.receive() else { return };
        c.same("trap", (message.badge, message.words[0]), (BADGE_FAULT | 1, TRAP));
        store(&mut registers);
        c.same("kept from a task", registers, before);
        c.same("reply", ipc::reply([FAULT_STOP, 0, 0, 0, 0, 0]), Ok(()));
        // The thread has a lower priority: it ends while this one waits.
        let _ = linux::wait_tick();
        c.same("controls", controls(), (CONTROL, MXCSR));
    }
    c.end();
}

/// Uses an upper half of a vector register, which faults and ends this task.
pub fn upper_half() {
    let mut registers = Registers([[0; 2]; 16]);
    store(&mut registers);
    // SAFETY: faults.
    unsafe { asm!("vpxor ymm0, ymm0, ymm0") };
}

macro_rules! for_all {
    ($before:literal, $after:literal) => {
        concat!(
            ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n",
            $before,
            "xmm\\n",
            $after,
            "\n.endr"
        )
    };
}

fn load(from: &Registers) {
    // SAFETY: the compiler uses no vector register in a task.
    unsafe {
        asm!(for_all!("movdqa ", ", [{0} + 16 * \\n]"), in(reg) from, options(nostack, readonly))
    };
}

fn store(to: &mut Registers) {
    // SAFETY: writes a value of 256 bytes, aligned.
    unsafe {
        asm!(for_all!("movdqa [{0} + 16 * \\n], ", ""), in(reg) to, options(nostack));
    }
}

/// Loads the registers, waits until the time-stamp counter is at `end`, and stores them.
fn spin_with(registers: &mut Registers, end: u64) {
    load(registers);
    while tsc() < end {}
    store(registers);
}

/// The x87 control word and MXCSR.
fn controls() -> (u16, u32) {
    let (mut control, mut mxcsr) = (0u16, 0u32);
    // SAFETY: writes two variables.
    unsafe {
        asm!("fnstcw [{}]", "stmxcsr [{}]", in(reg) &mut control, in(reg) &mut mxcsr, options(nostack));
    }
    (control, mxcsr)
}

fn set_controls(control: u16, mxcsr: u32) {
    // SAFETY: both are valid and mask all exceptions; the compiler uses no floating point in a task.
    unsafe {
        asm!("fldcw [{}]", "ldmxcsr [{}]", in(reg) &control, in(reg) &mxcsr, options(nostack, readonly));
    }
}
