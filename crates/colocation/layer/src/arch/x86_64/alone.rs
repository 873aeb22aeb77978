//! Without Linux: the NMI's stub, the halt, and the CPU's features.
//!
//! The halted CPU stands on the host's stack, whose top word stays the address of `alone_left`: a trip that ends
//! returns there, as it would to the trampoline. The cokernel's registers lie on its own stack, where `idle` put them.

use super::registers::{open_nmis_at, push_first, push_rest};
use core::arch::{asm, global_asm, x86_64::__cpuid_count};
use core::mem::offset_of;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use kyozon_abi::layer::{Frame, Trip};

/// `alone_on_halted`: not the tick's NMI, or not due.
pub const GO_NOT: u32 = 0;
/// `alone_on_halted`: the cokernel is idle and nothing waits: call its tick handler.
pub const GO_IDLE: u32 = 1;
/// `alone_on_halted`: the cokernel resumes where it was interrupted.
pub const GO_ON: u32 = 2;

/// Bytes of the host's stack; boot runs on it too.
const STACK_BYTES: usize = 32 * 1024;
const NMI_STACK_BYTES: usize = 8 * 1024;

extern "C" {
    static ALONE_HALTED: AtomicU32;
    /// The gate of vector 2.
    pub fn alone_nmi();
    /// The gate of vector 18.
    pub fn alone_machine_check();
    fn alone_halt() -> !;
    fn alone_first();
    fn alone_nmi_stack_top();
    fn alone_fault_stack_top();
    fn alone_machine_check_stack_top();
}

global_asm!(
    ".section .data.alone, \"aw\"",
    ".balign 64",
    ".globl ALONE_HALTED, alone_stack, alone_stack_top",
    // 1 while the CPU is halted, or about to be, and a trip may begin from an NMI.
    "ALONE_HALTED: .long 0",
    // 1 after an NMI that came while a trip was being ended.
    "ALONE_NOTED: .long 0",
    ".balign 64",
    "alone_stack: .skip {stack} - 8",
    ".quad alone_left",
    "alone_stack_top:",
    ".section .bss.alone, \"aw\", @nobits",
    ".globl alone_nmi_stack_top, alone_fault_stack_top, alone_machine_check_stack_top",
    ".balign 64",
    ".skip {nmi_stack}",
    "alone_nmi_stack_top: .skip {nmi_stack}",
    "alone_fault_stack_top: .skip {nmi_stack}",
    "alone_machine_check_stack_top:",

    ".section .text.alone, \"ax\"",
    ".globl alone_nmi, alone_machine_check, alone_halt, alone_first",

    // Entered from the gate on IST 2, NMIs held back. Intel SDM 3A 6.7.1 (NMIs are held back until IRET), 6.14.5 (IST).
    // Any code may have been interrupted, so all registers are saved; the clock is read as early as possible.
    ".balign 64",
    "alone_nmi:",
    "push 0",
    "push 2",
    push_first!(),
    "rdtsc",
    push_rest!(),
    "cmp dword ptr [rip + ALONE_HALTED], 0",
    "je 4f",
    "alone_look:",
    "shl rdx, 32",
    "lea rdi, [rax + rdx]",
    "call alone_on_halted",
    "cmp eax, {go_idle}",
    "jb 5f",
    "ja 3f",
    // To the handler, on the cokernel's stack as `idle` left it: aligned, callee-saved registers on it.
    "mov rsp, [rip + LAYER_RESUME_RSP]",
    "lea rdi, [rip + ALONE_TRIP]", // the event is its start
    "call [rip + LAYER_TICK]",
    "call alone_watch",
    // Returns from `idle`; the IRET opens NMIs.
    "mov rax, rsp",
    open_nmis_at!("layer_resume_yield"),
    // Enters the layer as the trampoline does: it continues by IRET, and returns to `alone_left`.
    "3: lea rsp, [rip + alone_stack_top - 8]",
    "lea rdi, [rip + ALONE_ENTRY]",
    "lea rsi, [rip + ALONE_TRIP]",
    "jmp layer_entry",
    "4: cmp dword ptr [rip + ALONE_TRIP + {inside}], 0",
    "je 6f",
    // An NMI that comes before the layer is ready is not lost: the layer reads the clock when it is ready.
    "cmp qword ptr [rip + ALONE_TRIP + {nmi_entry}], 0",
    "jne layer_nmi_saved",
    "jmp layer_pop",
    "6: mov dword ptr [rip + ALONE_NOTED], 1",
    "jmp layer_pop",
    // No trip began: returns into the halt. From `alone_noted` there is no frame, and the halt is the next code.
    "5: cmp dword ptr [rip + ALONE_HALTED], 0",
    "jne layer_pop",

    // No register has a meaning here, and the stack is empty. An NMI that begins a trip does not return here.
    "alone_halt:",
    "lea rsp, [rip + alone_stack_top - 16]",
    "mov dword ptr [rip + ALONE_HALTED], 1",
    "cmp dword ptr [rip + ALONE_NOTED], 0",
    "jne alone_noted",
    "2: hlt",
    "jmp 2b",
    "alone_noted:",
    "mov dword ptr [rip + ALONE_HALTED], 0",
    "mov dword ptr [rip + ALONE_NOTED], 0",
    "rdtsc",
    "jmp alone_look",

    // The end of a trip: `ret` of `layer_abandon`. NMIs are held back if the cokernel was cut off.
    "alone_left:",
    "mov dword ptr [rip + ALONE_TRIP + {inside}], 0",
    "lea rsp, [rip + alone_stack_top - 16]",
    "call alone_end",
    "test eax, eax",
    "jz alone_halt",
    "mov rax, rsp",
    open_nmis_at!("alone_halt"),

    // As `layer_first`, on the stack of the cokernel's start: rdi and rsi are the layer's entry and the trip.
    "alone_first:",
    "call alone_init",
    "mov rdi, rax",
    "call rdx",
    "call layer_returned",
    "ud2",

    // Entered from the gate on IST 3. Execution cannot continue after it.
    "alone_machine_check:",
    "push 0",
    "push 18",
    push_first!(),
    push_rest!(),
    "mov rdi, rsp",
    "call layer_unhandled",
    "ud2",
    stack = const STACK_BYTES,
    nmi_stack = const NMI_STACK_BYTES,
    go_idle = const GO_IDLE,
    inside = const offset_of!(Trip, inside),
    nmi_entry = const offset_of!(Trip, nmi_entry),
);

const _: () = assert!(offset_of!(Trip, event) == 0 && GO_NOT < GO_IDLE && GO_IDLE < GO_ON);
const _: () = assert!(offset_of!(Frame, rax) == 10 * 8 && offset_of!(Frame, rdi) == 14 * 8);

/// Top of the stack of NMIs.
pub fn nmi_stack_top() -> u64 {
    alone_nmi_stack_top as *const () as u64
}

/// Top of the stack of double faults.
pub fn fault_stack_top() -> u64 {
    alone_fault_stack_top as *const () as u64
}

/// Top of the stack of machine checks.
pub fn machine_check_stack_top() -> u64 {
    alone_machine_check_stack_top as *const () as u64
}

/// Whether an NMI may begin a trip.
pub fn set_halted(halted: bool) {
    // SAFETY: an atomic of the code above.
    unsafe { ALONE_HALTED.store(u32::from(halted), Relaxed) };
}

/// Halts until the first tick, for which the layer's first trip is `alone_first`.
///
/// # Safety
///
/// Gates, task register and page tables are those of this image; the layer's entry is filled.
pub unsafe fn halt() -> ! {
    // SAFETY: before the first trip; nothing on the host's stack is needed any more.
    unsafe {
        super::entry::LAYER_RESUME.store(alone_first as *const () as u64, Relaxed);
        alone_halt()
    }
}

const CR0_MONITOR_FPU: u64 = 1 << 1;
const CR0_NUMERIC_ERROR: u64 = 1 << 5;
const CR0_WRITE_PROTECT: u64 = 1 << 16;
const CR4_MACHINE_CHECK: u64 = 1 << 6;
/// FXSAVE and SIMD exceptions: the FPU exists, and CR0.TS keeps user mode from using it.
const CR4_SIMD: u64 = 3 << 9;
const CR4_UMIP: u64 = 1 << 11;
const CR4_FSGSBASE: u64 = 1 << 16;
const CR4_SMEP: u64 = 1 << 20;
const CR4_SMAP: u64 = 1 << 21;

/// Switches on the features of this CPU that Linux uses too: SMEP, SMAP, UMIP, FSGSBASE. Intel SDM 3A 2.5.
pub fn set_features() {
    #[allow(unused_unsafe)] // a safe function from Rust 1.94 on
    // SAFETY: 64-bit CPUs have the instruction; the result for a leaf that does not exist is not used.
    let (last, leaf) = unsafe { (__cpuid_count(0, 0).eax, __cpuid_count(7, 0)) };
    let (ebx, ecx) = if last >= 7 { (leaf.ebx, leaf.ecx) } else { (0, 0) };
    let mut on = CR4_MACHINE_CHECK | CR4_SIMD;
    for (register, bit, flag) in
        [(ebx, 0, CR4_FSGSBASE), (ebx, 7, CR4_SMEP), (ebx, 20, CR4_SMAP), (ecx, 2, CR4_UMIP)]
    {
        if register >> bit & 1 != 0 {
            on |= flag;
        }
    }
    // SAFETY: none of these changes accesses to supervisor memory; there is no user memory yet.
    unsafe {
        asm!("mov {t}, cr4", "or {t}, {on}", "mov cr4, {t}",
             "mov {t}, cr0", "or {t}, {cr0}", "mov cr0, {t}",
             t = out(reg) _, on = in(reg) on,
             cr0 = in(reg) CR0_MONITOR_FPU | CR0_NUMERIC_ERROR | CR0_WRITE_PROTECT,
             options(nostack));
    }
}
