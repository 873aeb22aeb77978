//! The way into a program and out of it: stacks are changed, callee-saved registers are planted and compared.

use std::arch::naked_asm;

use crate::signals::{self, Outcome, RUN};
use crate::space::Space;

/// What an import of a gated image leads to: its number and its first six general arguments. Returns the result, or
/// none to end the run.
pub(crate) type Calls<'a> = dyn FnMut(&mut Space, u32, &[u64; 6]) -> Option<u64> + 'a;

/// The functions of the host during a run.
pub(crate) struct Outside<'a> {
    pub space: *mut Space,
    pub calls: &'a mut Calls<'a>,
    /// How one of them ended the run.
    pub ended: Option<Outcome>,
}

/// How a run is left, shared with the signal handler and with imports.
#[repr(C)]
pub(crate) struct Run {
    /// The stack pointer to leave with.
    pub stack: u64,
    /// rax at the return.
    pub result: u64,
    /// Bit n is set if the n-th planted register changed (rbx, rbp, r12 to r15).
    pub changed: u64,
    /// For [`gate`]: an [`Outside`]. Null if no import leads there.
    pub outside: *mut Outside<'static>,
}

/// Calls a program. Returns 0 after its return, 1 if the signal handler left it by [`leave`].
///
/// # Safety
///
/// `entry` is the entry of a program that the checker accepted, in its image. `top` is the end of a writable stack of
/// [`kyozon_typed_checker::STACK`] bytes at a multiple of its size. `arguments` points to six numbers. `run` stays
/// valid.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn enter(
    entry: *const u8,
    top: *mut u8,
    arguments: *const u64,
    run: *mut Run,
) -> u64 {
    // In: rdi, rsi, rdx, rcx as above. The System V ABI's callee-saved registers are kept on the host's stack; the
    // program's stack has `run` above its return address. Vector registers and flags are the caller's to lose.
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rcx], rsp",
        "mov r11, rdi",
        "mov r10, rdx",
        "lea rsp, [rsi - 16]",
        "mov [rsp], rcx",
        "mov rdi, [r10]",
        "mov rsi, [r10 + 8]",
        "mov rdx, [r10 + 16]",
        "mov rcx, [r10 + 24]",
        "mov r8, [r10 + 32]",
        "mov r9, [r10 + 40]",
        "mov rbx, 0x1b1b1b1b",
        "mov rbp, 0x2b2b2b2b",
        "mov r12, 0x3b3b3b3b",
        "mov r13, 0x4b4b4b4b",
        "mov r14, 0x5b5b5b5b",
        "mov r15, 0x6b6b6b6b",
        "xor eax, eax",
        "call r11",
        "mov rcx, [rsp]",
        "mov [rcx + 8], rax",
        "xor edx, edx",
        "cmp rbx, 0x1b1b1b1b",
        "setne dl",
        "mov rax, rdx",
        "cmp rbp, 0x2b2b2b2b",
        "setne dl",
        "lea rax, [rdx + 2 * rax]",
        "cmp r12, 0x3b3b3b3b",
        "setne dl",
        "lea rax, [rdx + 2 * rax]",
        "cmp r13, 0x4b4b4b4b",
        "setne dl",
        "lea rax, [rdx + 2 * rax]",
        "cmp r14, 0x5b5b5b5b",
        "setne dl",
        "lea rax, [rdx + 2 * rax]",
        "cmp r15, 0x6b6b6b6b",
        "setne dl",
        "lea rax, [rdx + 2 * rax]",
        "mov [rcx + 16], rax",
        "mov rsp, [rcx]",
        "xor eax, eax",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// Where the signal handler continues after a fault, with `run` in rdi: makes [`enter`] return 1.
///
/// # Safety
///
/// Only a signal handler that interrupted a program may continue here.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn leave(run: *mut Run) -> u64 {
    // In: rdi = run, whose first field is the stack pointer that `enter` kept.
    naked_asm!(
        "mov rsp, [rdi]",
        "mov eax, 1",
        "cld",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// What the host's function returned.
#[repr(C)]
struct Answer {
    result: u64,
    /// 1 if the run ends.
    ends: u64,
}

/// Where imports of a gated image lead, with the import's number in eax: calls [`call_outside`] on the host's stack,
/// because a program's has little room. It returns to the program, or makes [`enter`] return 1.
///
/// # Safety
///
/// Only a program that runs may come here, as by a call.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn gate() {
    // On the program's stack: the arguments, and rbx, which holds that stack's pointer meanwhile. The host's stack is
    // free below what `enter` kept.
    naked_asm!(
        "push r9",
        "push r8",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "mov rdx, rsp",
        "push rbx",
        "mov rbx, rsp",
        "mov esi, eax",
        "mov rdi, [rip + {run}]",
        "mov rsp, [rdi]",
        "and rsp, -16",
        "call {call_outside}",
        "test edx, edx",
        "jnz 2f",
        "mov rsp, rbx",
        "pop rbx",
        "add rsp, 48",
        "ret",
        "2:",
        "mov rdi, [rip + {run}]",
        "jmp {leave}",
        run = sym RUN,
        call_outside = sym call_outside,
        leave = sym leave,
    )
}

/// Calls the host's function.
///
/// # Safety
///
/// A program runs, and `run` is its; `arguments` points to six numbers.
unsafe extern "C" fn call_outside(
    run: *mut Run,
    import: u32,
    arguments: *const [u64; 6],
) -> Answer {
    // SAFETY: the run's owner waits in `enter`, and nothing else refers to what it announced.
    let (outside, arguments) = unsafe { (&mut *(*run).outside, &*arguments) };
    // SAFETY: as above.
    let space = unsafe { &mut *outside.space };
    let result = (outside.calls)(space, import, arguments);
    outside.ended = match result {
        None => Some(Outcome::Left),
        Some(_) => signals::is_due().then_some(Outcome::TimeOut),
    };
    Answer { result: result.unwrap_or(0), ends: u64::from(outside.ended.is_some()) }
}
