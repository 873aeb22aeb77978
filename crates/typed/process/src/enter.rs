//! The way into a program and out of it: stacks are changed, callee-saved registers are planted and compared.

use std::arch::naked_asm;

/// How a run is left, shared with the signal handler.
#[repr(C)]
pub(crate) struct Run {
    /// The stack pointer to leave with.
    pub stack: u64,
    /// rax at the return.
    pub result: u64,
    /// Bit n is set if the n-th planted register changed (rbx, rbp, r12 to r15).
    pub changed: u64,
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
