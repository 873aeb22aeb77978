//! Forbidden actions of user mode. Each faults; a handler gets the fault, or the task ends.

use crate::check::Checks;
use crate::peer;
use core::arch::asm;
use core::hint::black_box;
use kyozon_abi::layer::{LAYER_BASE, MEMORY_BASE, WINDOW_BASE};
use kyozon_abi::task::*;
use kyozon_task::ipc::{self, Endpoint};
use kyozon_task::{linux, report, task, Error};

/// An invalid instruction.
pub const INVALID: u64 = 0;
const NO_STACK: u64 = 18;
const STACK: u64 = 19;

/// The expected vector of each action.
const VECTORS: [u64; 25] = [
    6,  // 0: an invalid instruction
    0,  // 1: division by zero
    14, // 2: a null pointer
    14, // 3: an unmapped address
    14, // 4: the kernel's text
    14, // 5: the layer
    14, // 6: the cokernel's memory
    14, // 7: the kernel's window
    14, // 8: writes to text
    14, // 9: writes to its start information
    14, // 10: executes its stack
    13, // 11: a privileged instruction
    13, // 12: an I/O port
    3,  // 13: a breakpoint
    7,  // 14: the FPU
    6,  // 15: Linux's system call
    13, // 16: the NMI's gate
    13, // 17: a non-canonical address
    12, // 18: a non-canonical stack pointer
    14, // 19: stack exhaustion
    14, // 20: an unmapped stack pointer
    14, // 21: jumps to null
    1,  // 22: single steps
    13, // 23: a control register
    6,  // 24: a call of the hypervisor
];

/// Carries out action `kind` of `VECTORS`.
pub extern "C" fn fault(kind: u64) -> ! {
    let read = |address: u64| {
        // SAFETY: faults, or reads a word that is not used.
        let _ = unsafe { black_box(address as *const u64).read_volatile() };
    };
    let write = |address: u64| {
        // SAFETY: faults; if it does not, the test fails.
        unsafe { black_box(address as *mut u64).write_volatile(1) };
    };
    // SAFETY: each faults; none returns.
    unsafe {
        match kind {
            0 => asm!("ud2"),
            1 => asm!("div {0}", in(reg) 0u64, inout("rax") 1u64 => _, inout("rdx") 0u64 => _),
            2 => asm!("mov rax, [0]", out("rax") _),
            3 => read(TASK_HEAP_BASE - 4096),
            4 => read(0x2000_0000),
            5 => write(LAYER_BASE),
            6 => write(MEMORY_BASE),
            7 => read(WINDOW_BASE),
            8 => write(TASK_BASE),
            9 => write(TASK_INFO),
            10 => asm!("push 0", "jmp rsp"),
            11 => asm!("cli"),
            12 => asm!("out 0x80, al"),
            13 => asm!("int3"),
            14 => asm!("pxor xmm0, xmm0"),
            15 => asm!("syscall", out("rcx") _, out("r11") _),
            16 => asm!("int 2"),
            17 => asm!("mov rax, [{0}]", in(reg) 1u64 << 63 | 1 << 40, out("rax") _),
            NO_STACK => asm!("mov rsp, {0}", "push 0", in(reg) 1u64 << 62),
            STACK => read(deeper(1)),
            20 => asm!("mov rsp, {0}", "push 0", in(reg) 0x1000u64),
            21 => asm!("jmp {0}", in(reg) 0u64),
            22 => asm!("push 0x102", "popfq", "nop"),
            23 => asm!("mov rax, cr3", out("rax") _),
            24 => asm!("vmmcall"),
            _ => {}
        }
    }
    // No fault: the thread ends, and the test stalls at its handler.
    kyozon_task::thread::exit()
}

#[inline(never)]
fn deeper(n: u64) -> u64 {
    let here = black_box([n; 64]);
    if n == u64::MAX {
        return 0;
    }
    deeper(n + 1) + here[3]
}

/// Every fault in a thread of task 1, with this task as handler; then one in task 2 without a handler.
pub fn run() {
    let mut c = Checks::new("faults");
    let Ok(handler) = Endpoint::new() else { return };
    let peer = Endpoint::of_task(1);
    c.same("handler", task::set_fault_handler(1, Some(handler)), Ok(()));
    for (kind, vector) in VECTORS.iter().enumerate() {
        let started = peer.call([peer::FAULT, kind as u64, 0, 0, 0, 0]);
        c.same("started", started.map(|m| m.words[0]), Ok(1));
        let Ok(message) = handler.receive() else { return };
        c.same("badge", message.badge, BADGE_FAULT | 1);
        let [received, error, rip, cr2, ..] = message.words;
        // QEMU 7.2 raises 13 instead of 12 for a non-canonical stack pointer.
        let received = if kind as u64 == NO_STACK && received == 13 { *vector } else { received };
        if received != *vector {
            let _ = report!(
                "test faults: kind {kind} vector {received}, expected {vector}: error {error:#x} rip {rip:#x} cr2 {cr2:#x}"
            );
        }
        c.same("vector", received, *vector);
        if kind as u64 == STACK {
            let bottom = TASK_STACK_TOP - TASK_STACK_STRIDE - THREAD_STACK_BYTES;
            c.same("guard", (bottom - 4096..bottom).contains(&cr2), true);
        }
        // `ud2` is two bytes long; the code behind it ends the thread.
        let answer = if kind as u64 == INVALID { [FAULT_RESUME, rip + 2] } else { [FAULT_STOP, 0] };
        c.same("reply", ipc::reply([answer[0], answer[1], 0, 0, 0, 0]), Ok(()));
        // A resumed thread has a lower priority: it ends while this one waits.
        let _ = linux::wait_tick();
    }
    c.same("alive", peer.call([0; 6]).map(|m| m.words), Ok([1; 6]));
    // Task 2 has no fault handler: it ends, and its caller gets an error.
    let other = Endpoint::of_task(2);
    c.same("alive", other.call([0; 6]).map(|m| m.words), Ok([1; 6]));
    c.same("gone", other.call([peer::FAULT_SELF, 3, 0, 0, 0, 0]).map(drop), Err(Error::Gone));
    c.same("gone", other.call([0; 6]).map(drop), Err(Error::Gone));
    c.same("stop", task::stop(2), Err(Error::Argument));
    // Task 1 is still there after all faults.
    c.same("alive", Endpoint::of_task(1).call([0; 6]).map(|m| m.words), Ok([1; 6]));
    c.end();
}
