//! The gate between a program and our code, in assembler.
//!
//! **In.** A stub ([`crate::patch`]) or the handler of SIGSYS continues at the entry, with the number in rax and the
//! program's return address in rcx: both rcx and r11 are lost in a system call anyway. Numbers without a handler go to
//! the host at once. For others the gate saves the registers, exchanges the stack, and calls the library directly if
//! nothing but a descriptor's number changes. Otherwise it exchanges the FS base, too, and calls the dispatcher.
//! Vector registers are saved too: compilers keep values in them across a `syscall` instruction, which preserves them.
//!
//! **Out.** The program's registers come from the thread's record. The gate executes the host's system calls itself,
//! with the program's FS base and stack, so that signals, restarts and masks are the host's affair.
//!
//! Invariants:
//!
//! 1. While the selector is `PROGRAM`, FS base and stack are the program's.
//! 2. A signal that arrives while the selector is `OURS` is deferred. If it arrives between `leave_start` and
//!    `leave_end`, or `direct_start` and `direct_end`, the way out starts again and finds it.
//! 3. `start` to `end` is the range from which the host accepts system calls whatever the selector says: those that the
//!    gate makes for the program, and the return from signal handlers.

use crate::calls::ROUTES;
use crate::state::{Registers, State, PROGRAM};
use kyozon_libc::seam::Thread;
use std::arch::{asm, global_asm};
use std::mem::offset_of;
use std::ops::Range;

/// What the dispatcher asks of the gate.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The result is in the registers.
    Done = 0,
    /// The host executes the call.
    Native = 1,
    /// The thread leaves the program.
    Leave = 2,
    /// A direct call is not possible: the dispatcher decides.
    Dispatched = 3,
}

/// Bytes below the stack pointer that belong to leaf functions, and 8 more: System V ABI for x86-64, 3.2.2.
const BELOW_RED_ZONE: u32 = 128 + 8;

global_asm!(
    include_str!("registers.s"),
    // Beyond the range: this system call raises SIGSYS, whose frame then gets all registers and the signal mask.
    ".text",
    ".p2align 6",
    "kyozon_exec_bounce: syscall",
    "ud2",
    ".p2align 6",
    ".globl kyozon_exec_start, kyozon_exec_bounce, kyozon_exec_entry, kyozon_exec_trapped, kyozon_exec_enter",
    ".globl kyozon_exec_leave_start, kyozon_exec_leave_end, kyozon_exec_host_call, kyozon_exec_host_syscall",
    ".globl kyozon_exec_direct_start, kyozon_exec_direct_end, kyozon_exec_copy, kyozon_exec_copy_end",
    ".globl kyozon_exec_host_abort, kyozon_exec_restorer, kyozon_exec_sigreturn, kyozon_exec_end",
    ".globl kyozon_exec_seam_call, kyozon_exec_seam_again, kyozon_exec_seam_dispatched, kyozon_exec_seam_leave_start",
    ".globl kyozon_exec_seam_leave_end, kyozon_exec_seam_native, kyozon_exec_seam_return, kyozon_exec_seam_interrupted",
    ".globl kyozon_exec_seam_start_thread, kyozon_exec_seam_unmap_exit, kyozon_exec_seam_unmapped",
    ".globl kyozon_exec_seam_end",
    "kyozon_exec_start:",
    "kyozon_exec_trapped:",
    "movb $1, %gs:{trapped}",
    "mov ${dispatched}, %r11d",
    "jmp 1f",
    "kyozon_exec_entry:",
    "cmp ${calls}, %rax",
    "jae 5f",
    "lea {routes}(%rip), %r11",
    "movzbl (%r11,%rax), %r11d",
    "test %r11d, %r11d",
    "je 3f",
    "1:",
    "kyozon_exec_save",
    ".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "movups %xmm\\n, %gs:{vectors}+16*\\n",
    ".endr",
    "mov %gs:{host_sp}, %rsp",
    "xor %ebp, %ebp",
    "cmp ${dispatched}, %r11d",
    "je 2f",
    "mov %gs:{this}, %rdi",
    "mov %r11d, %esi",
    "call {direct}",
    "cmp ${slow}, %eax",
    "je 2f",
    "mov %al, %gs:{native}",
    // The way out of a direct call: FS base and preserved registers are the program's.
    "kyozon_exec_direct_start:",
    "cmpb $0, %gs:{pending}",
    "jne 4f",
    "kyozon_exec_load",
    "kyozon_exec_direct_end:",
    "jne 5f",
    "jmp *%rcx",
    "4:",
    "rdfsbase %r11",
    "mov %r11, %gs:{program_fs}",
    "jmp 6f",
    "2:",
    "rdfsbase %r11",
    "mov %r11, %gs:{program_fs}",
    "mov %gs:{host_fs}, %r11",
    "wrfsbase %r11",
    "mov %gs:{this}, %rdi",
    "call {dispatch}",
    "cmp ${leave}, %eax",
    "je 7f",
    "mov %al, %gs:{native}",
    // The way out. All that it uses is in the record, so that it can start again.
    "kyozon_exec_leave_start:",
    "cmpb $0, %gs:{pending}",
    "jne 6f",
    "mov %gs:{program_fs}, %r11",
    "wrfsbase %r11",
    "mov %gs:{preserved}, %rbx",
    "mov %gs:{preserved}+16, %r12",
    "mov %gs:{preserved}+24, %r13",
    "mov %gs:{preserved}+32, %r14",
    "mov %gs:{preserved}+40, %r15",
    "kyozon_exec_load",
    "kyozon_exec_leave_end:",
    "jne 5f",
    "jmp *%rcx",
    // The host's, unless the dispatcher has something to do before.
    "3:",
    "mov ${dispatched}, %r11d",
    "cmpl $0, {reserved}(%rip)",
    "jne 1b",
    // The host executes the call. The return address waits below the red zone: a handler may make calls meanwhile.
    "5:",
    "lea -{below}(%rsp), %rsp",
    "mov %rcx, (%rsp)",
    "syscall",
    "mov (%rsp), %rcx",
    "lea {below}(%rsp), %rsp",
    "jmp *%rcx",
    // A signal is pending, and all others are blocked. Queue it, and return to the program through SIGSYS.
    "6:",
    "mov %gs:{host_fs}, %r11",
    "wrfsbase %r11",
    "mov %gs:{host_sp}, %rsp",
    "mov %gs:{this}, %rdi",
    "call {deliver}",
    "mov %gs:{program_fs}, %r11",
    "wrfsbase %r11",
    "kyozon_exec_load_vectors",
    "mov %gs:{rsp}, %rsp",
    "movb ${program}, %gs:{selector}",
    "mov $-1, %rax",
    "jmp kyozon_exec_bounce",
    "7:",
    "kyozon_exec_leave_thread:",
    "mov %gs:{host_sp}, %rsp",
    "add $8, %rsp",
    "pop %r15",
    "pop %r14",
    "pop %r13",
    "pop %r12",
    "pop %rbx",
    "pop %rbp",
    "ret",
    // void enter(void): runs the program until its thread leaves.
    "kyozon_exec_enter:",
    "push %rbp",
    "push %rbx",
    "push %r12",
    "push %r13",
    "push %r14",
    "push %r15",
    "sub $8, %rsp",
    "mov %rsp, %gs:{host_sp}",
    "rdfsbase %r11",
    "mov %r11, %gs:{host_fs}",
    "jmp kyozon_exec_leave_start",
    // i64 host_call(u64 number, const u64 arguments[6]): a system call of the host that a deferred signal interrupts,
    // also one that arrives just before the instruction.
    "kyozon_exec_host_call:",
    "cmpb $0, %gs:{pending}",
    "jne kyozon_exec_host_abort",
    "mov %rdi, %rax",
    "mov 0(%rsi), %rdi",
    "mov 16(%rsi), %rdx",
    "mov 24(%rsi), %r10",
    "mov 32(%rsi), %r8",
    "mov 40(%rsi), %r9",
    "mov 8(%rsi), %rsi",
    "kyozon_exec_host_syscall:",
    "syscall",
    "ret",
    "kyozon_exec_host_abort:",
    "mov ${not_made}, %rax",
    "ret",
    // u64 copy(void *to, const void *from, u64 bytes): returns the bytes that are missing after a fault.
    "kyozon_exec_copy:",
    "mov %rdx, %rcx",
    "rep movsb",
    "kyozon_exec_copy_end:",
    "mov %rcx, %rax",
    "ret",
    // Unwinders recognize a signal's frame by these two instructions.
    ".p2align 4",
    "nop",
    "kyozon_exec_restorer:",
    "mov $15, %rax",
    "kyozon_exec_sigreturn:",
    "syscall",
    "ud2",
    include_str!("seam.s"),
    "kyozon_exec_end:",
    routes = sym ROUTES,
    reserved = sym crate::reserve::RESERVED,
    direct = sym crate::calls::direct,
    dispatched = const crate::calls::DISPATCHED,
    leave = const Way::Leave as u32,
    slow = const Way::Dispatched as u32,
    dispatch = sym crate::calls::dispatch,
    deliver = sym crate::signals::deliver,
    calls = const crate::calls::NUMBERS,
    below = const BELOW_RED_ZONE,
    not_made = const crate::host::NOT_MADE,
    program = const PROGRAM,
    this = const offset_of!(State, this),
    selector = const offset_of!(State, selector),
    pending = const offset_of!(State, pending),
    native = const offset_of!(State, native),
    trapped = const offset_of!(State, trapped),
    host_fs = const offset_of!(State, host_fs),
    program_fs = const offset_of!(State, program_fs),
    host_sp = const offset_of!(State, host_sp),
    vectors = const offset_of!(State, vectors),
    rax = const offset_of!(State, registers) + offset_of!(Registers, rax),
    rdi = const offset_of!(State, registers) + offset_of!(Registers, rdi),
    rsi = const offset_of!(State, registers) + offset_of!(Registers, rsi),
    rdx = const offset_of!(State, registers) + offset_of!(Registers, rdx),
    r10 = const offset_of!(State, registers) + offset_of!(Registers, r10),
    r8 = const offset_of!(State, registers) + offset_of!(Registers, r8),
    r9 = const offset_of!(State, registers) + offset_of!(Registers, r9),
    rsp = const offset_of!(State, registers) + offset_of!(Registers, rsp),
    rip = const offset_of!(State, registers) + offset_of!(Registers, rip),
    preserved = const offset_of!(State, registers) + offset_of!(Registers, preserved),
    // Those of seam.s.
    interrupted = const -libc::EINTR,
    clone = const libc::SYS_clone,
    exit = const libc::SYS_exit,
    unmap_exit = const crate::seam::UNMAP_EXIT,
    thread_flags = const kyozon_libc::seam::THREAD_FLAGS,
    thread_function = const offset_of!(Thread, function),
    thread_argument = const offset_of!(Thread, argument),
    thread_stack = const offset_of!(Thread, stack_end),
    thread_fs = const offset_of!(Thread, fs_base),
    thread_tid = const offset_of!(Thread, tid),
    thread_clear_tid = const offset_of!(Thread, clear_tid),
    options(att_syntax)
);

extern "C" {
    fn kyozon_exec_start();
    fn kyozon_exec_end();
    fn kyozon_exec_bounce();
    fn kyozon_exec_entry();
    fn kyozon_exec_trapped();
    fn kyozon_exec_enter();
    fn kyozon_exec_leave_start();
    fn kyozon_exec_leave_end();
    fn kyozon_exec_direct_start();
    fn kyozon_exec_direct_end();
    fn kyozon_exec_copy(to: *mut u8, from: *const u8, bytes: u64) -> u64;
    fn kyozon_exec_copy_end();
    fn kyozon_exec_host_call(number: u64, arguments: *const u64) -> i64;
    fn kyozon_exec_host_syscall();
    fn kyozon_exec_host_abort();
    fn kyozon_exec_restorer();
    fn kyozon_exec_sigreturn();
}

fn address(function: unsafe extern "C" fn()) -> u64 {
    function as *const () as u64
}

/// The range from which the host accepts system calls.
pub fn range() -> Range<u64> {
    address(kyozon_exec_start)..address(kyozon_exec_end)
}

/// Where stubs continue.
pub fn entry() -> u64 {
    address(kyozon_exec_entry)
}

/// Where a system call continues that came by SIGSYS.
pub fn trapped() -> u64 {
    address(kyozon_exec_trapped)
}

/// The instruction behind the system call that asks the handler of SIGSYS to return to the program.
pub fn bounced() -> u64 {
    address(kyozon_exec_bounce) + 2
}

/// What a signal handler returns to.
pub fn restorer() -> u64 {
    address(kyozon_exec_restorer)
}

/// The system call of the restorer.
pub fn sigreturn() -> u64 {
    address(kyozon_exec_sigreturn)
}

/// Where our code continues after a signal that was deferred at `rip`.
pub fn after_deferral(rip: u64) -> u64 {
    let host_call = kyozon_exec_host_call as *const () as u64;
    if (address(kyozon_exec_leave_start)..address(kyozon_exec_leave_end)).contains(&rip) {
        address(kyozon_exec_leave_start)
    } else if (address(kyozon_exec_direct_start)..address(kyozon_exec_direct_end)).contains(&rip) {
        address(kyozon_exec_direct_start)
    } else if (host_call..=address(kyozon_exec_host_syscall)).contains(&rip) {
        address(kyozon_exec_host_abort)
    } else {
        crate::seam::after_deferral(rip)
    }
}

/// Copies bytes and returns how many are missing, because an address is bad.
///
/// # Safety
///
/// One of the ranges is the caller's, the other one the program's.
pub unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) -> usize {
    // SAFETY: the caller's promise; a fault continues at the function's end.
    unsafe { kyozon_exec_copy(to, from, bytes as u64) as usize }
}

/// Where our code continues after a fault at `rip`, if it expected one.
pub fn after_fault(rip: u64) -> Option<u64> {
    let range = kyozon_exec_copy as *const () as u64..address(kyozon_exec_copy_end);
    range.contains(&rip).then_some(range.end)
}

/// Runs the program on the calling thread, with `mask` as its signal mask, until the thread leaves it. The caller has
/// blocked all signals.
///
/// # Safety
///
/// The record's registers and FS base are those of a program that may run here.
pub unsafe fn enter(state: &State, mask: u64) {
    // SAFETY: the record lives until this function returns; FSGSBASE was checked at start.
    unsafe { asm!("wrgsbase {}", in(reg) &raw const *state, options(nostack, preserves_flags)) };
    crate::host::set_mask(mask);
    // SAFETY: the caller's promise. The function preserves what the ABI says.
    unsafe { kyozon_exec_enter() };
    crate::host::set_mask(!crate::host::NEVER_BLOCKED);
    // SAFETY: the thread is no program's any more.
    unsafe { asm!("wrgsbase {}", in(reg) 0u64, options(nostack, preserves_flags)) };
}

/// A system call of the host from our code. A signal for the program ends it with `-EINTR`, or with
/// [`NOT_MADE`](crate::host::NOT_MADE).
///
/// # Safety
///
/// As the system call itself. The calling thread is a program's.
pub unsafe fn host_call(number: i64, arguments: [u64; 6]) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { kyozon_exec_host_call(number as u64, arguments.as_ptr()) }
}
