//! The functions of the seam on x86-64.
//!
//! Each passes its arguments on to the kernel from the registers of the C ABI, without a word of stack. All lie in one
//! page, so that a filter can tell their system calls from any others.

use crate::signals;
use kyozon_libc::seam::{Thread, THREAD_FLAGS};
use std::arch::{asm, global_asm};
use std::ffi::{c_int, c_long};
use std::mem::offset_of;

global_asm!(
    ".pushsection .text.kyozon_host, \"ax\"",
    ".balign 4096",
    "kyozon_host_begin:",
    // long call(long number, long a1, ..., long a6)
    ".globl kyozon_host_call",
    "kyozon_host_call:",
    "mov rax, rdi",
    "cmp eax, {sigaction}",
    "je {set_action}",
    // The same for the host itself.
    ".globl kyozon_host_plain_call",
    "kyozon_host_plain_call:",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    // rcx tells a call that the kernel repeats from one that it has not seen yet: SYSCALL leaves the return address.
    "xor ecx, ecx",
    "kyozon_host_syscall:",
    "syscall",
    "kyozon_host_return:",
    "ret",
    "kyozon_host_interrupted:",
    "mov rax, {interrupted}",
    "ret",
    // int start_thread(const struct kyozon_thread *thread)
    ".globl kyozon_host_start_thread",
    "kyozon_host_start_thread:",
    "mov r9, [rdi + {function}]",
    "mov rsi, [rdi + {stack_end}]",
    "and rsi, -16",
    "sub rsi, 8",
    "mov rax, [rdi + {argument}]",
    "mov [rsi], rax",
    "mov rdx, [rdi + {tid}]",
    "mov r10, [rdi + {clear_tid}]",
    "mov r8, [rdi + {fs_base}]",
    "mov edi, {thread}",
    "mov eax, {clone}",
    "syscall",
    "test eax, eax",
    "jz 1f",
    "ret",
    "1: xor ebp, ebp",
    "pop rdi",
    "call r9",
    "jmp 2f",
    // void unmap_exit(void *base, unsigned long bytes)
    ".globl kyozon_host_unmap_exit",
    "kyozon_host_unmap_exit:",
    "mov eax, {munmap}",
    "syscall",
    "2: xor edi, edi",
    "mov eax, {exit}",
    "syscall",
    "ud2",
    // Where signal handlers return to.
    ".globl kyozon_host_restorer",
    "kyozon_host_restorer:",
    "mov eax, {sigreturn}",
    "syscall",
    "ud2",
    "kyozon_host_end:",
    ".popsection",
    sigaction = const libc::SYS_rt_sigaction,
    set_action = sym signals::set_action,
    interrupted = const -libc::EINTR,
    function = const offset_of!(Thread, function),
    argument = const offset_of!(Thread, argument),
    stack_end = const offset_of!(Thread, stack_end),
    fs_base = const offset_of!(Thread, fs_base),
    tid = const offset_of!(Thread, tid),
    clear_tid = const offset_of!(Thread, clear_tid),
    thread = const THREAD_FLAGS,
    clone = const libc::SYS_clone,
    munmap = const libc::SYS_munmap,
    exit = const libc::SYS_exit,
    sigreturn = const libc::SYS_rt_sigreturn,
);

extern "C" {
    static kyozon_host_begin: u8;
    static kyozon_host_end: u8;
    static kyozon_host_syscall: u8;
    static kyozon_host_return: u8;
    static kyozon_host_interrupted: u8;
    static kyozon_host_restorer: u8;

    /// A system call as the kernel offers it.
    pub fn kyozon_host_plain_call(
        number: c_long,
        a1: c_long,
        a2: c_long,
        a3: c_long,
        a4: c_long,
        a5: c_long,
        a6: c_long,
    ) -> c_long;
}

kyozon_libc::seam!(SEAM: kyozon_host_call, kyozon_host_start_thread, kyozon_host_unmap_exit);

/// First address of the functions, and the address after the last. They share a page.
pub fn functions() -> (u64, u64) {
    ((&raw const kyozon_host_begin) as u64, (&raw const kyozon_host_end) as u64)
}

/// Address for the kernel's `sa_restorer`.
pub fn restorer() -> usize {
    (&raw const kyozon_host_restorer) as usize
}

/// If the signal with this context came between the begin of a call and its system call, the number of the call.
pub fn call_about_to_start(context: &libc::ucontext_t) -> Option<c_long> {
    let register = |index: c_int| context.uc_mcontext.gregs[index as usize];
    let pc = register(libc::REG_RIP) as usize;
    let begin = kyozon_host_call as *const () as usize;
    let plain = kyozon_host_plain_call as *const () as usize;
    let syscall = (&raw const kyozon_host_syscall) as usize;
    let after = &raw const kyozon_host_return as i64;
    let repeated = pc == syscall && register(libc::REG_RCX) == after;
    let before = (begin..=syscall).contains(&pc) && !repeated;
    // Both entries begin by copying the number.
    let copied = pc != begin && pc != plain;
    before.then(|| register(if copied { libc::REG_RAX } else { libc::REG_RDI }))
}

/// Lets the call of this context return `-EINTR`. The stack is still that of its caller.
pub fn interrupt_call(context: &mut libc::ucontext_t) {
    let target = (&raw const kyozon_host_interrupted) as i64;
    context.uc_mcontext.gregs[libc::REG_RIP as usize] = target;
}

/// Enters a program.
///
/// # Safety
///
/// `entry` is the entry of a mapped program, and `stack` has what a program finds there at its entry.
pub unsafe fn enter(entry: usize, stack: usize) -> ! {
    // SAFETY: By the caller. Zero in rdx: there is no function to register with atexit.
    unsafe {
        asm!(
            "mov rsp, {stack}",
            "xor ebp, ebp",
            "jmp {entry}",
            stack = in(reg) stack,
            entry = in(reg) entry,
            in("rdx") 0,
            options(noreturn)
        )
    }
}
