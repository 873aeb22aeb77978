//! Into the cokernel and out of it.
//!
//! The cokernel runs on its own stacks. A trip is a coroutine switch: `layer_entry` resumes where `layer_leave` left,
//! at the address in `LAYER_RESUME`.
//!
//! `layer_entry` resumes by IRET: until then the CPU holds back NMIs, since it came from Linux's NMI handler, and
//! without NMIs there would be no guard on the budget.

use super::registers::{open_nmis_at, pop_frame, pop_kept, push_first, push_kept, push_rest};
use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, AtomicU64};
use kyozon_abi::image_header;
use kyozon_abi::layer::{Frame, Trip, IMAGE_LAYER, KERNEL_CODE_SELECTOR};

/// Bytes of the stack that the cokernel's `start` gets.
pub const START_STACK_BYTES: usize = 16 * 1024;

extern "C" {
    /// Address at which the next trip continues.
    pub static LAYER_RESUME: AtomicU64;
    /// Stack pointer with which the next trip continues.
    pub static LAYER_RESUME_RSP: AtomicU64;
    /// The trampoline's stack of this trip: its return address is on top.
    pub static LAYER_TRIP_RSP: AtomicU64;
    /// The cokernel's tick handler.
    pub static LAYER_TICK: AtomicU64;
    /// The cokernel's handler of interrupted user mode.
    pub static LAYER_USER: AtomicU64;
    /// What `idle` has to do before it leaves: `WORK_*`.
    pub static LAYER_WORK: AtomicU32;
    /// How often in a row the cokernel's kernel mode was cut off, with no `idle` and no user mode in between.
    pub static LAYER_CUTS: AtomicU32;
    /// Added to the time-stamp counter at the beginning of a trip, before the comparison with the guard's time.
    pub static LAYER_GUARD_SLACK: AtomicU64;
    /// 1 while the state that user mode may change is the cokernel's.
    pub static LAYER_USER_SWITCHED: AtomicU32;
    /// Registers of a cokernel that was cut off in kernel mode, and its CR2.
    pub static mut LAYER_CUT_FRAME: Frame;
    /// See [`LAYER_CUT_FRAME`].
    pub static LAYER_CUT_CR2: AtomicU64;
    /// The stack of `start`.
    pub static LAYER_START_STACK: [u8; START_STACK_BYTES];

    /// A handler that does nothing.
    pub fn layer_nothing();
    /// `idle` of the boot block.
    pub fn layer_idle();
    /// `enter_user` of the boot block.
    pub fn layer_enter_user();
    /// Leaves the trip from a service, and returns when the module has entered again.
    pub fn layer_yield();
    /// Continues after [`layer_idle`], with the trip's tick.
    pub fn layer_resume_idle();
    /// Continues with the registers in [`LAYER_CUT_FRAME`].
    pub fn layer_resume_cut();
    /// Delivers the trip's tick to user mode, whose frame is on the stack.
    pub fn layer_resume_user();
    /// Top of a small stack, for a trip that continues with a frame.
    pub fn layer_scratch_top();
    /// Gives the CPU back, from any stack.
    pub fn layer_abandon() -> !;
}

pub use kyozon_abi::layer::WORK_TICK;

/// [`LAYER_WORK`]: the serial line has bytes to send.
pub const WORK_SERIAL: u32 = 2;

image_header!(IMAGE_LAYER, "layer_entry");

global_asm!(
    ".section .data.layer, \"aw\"",
    ".balign 64",
    ".globl LAYER_RESUME, LAYER_RESUME_RSP, LAYER_TRIP_RSP, LAYER_TICK, LAYER_USER, LAYER_WORK, LAYER_CUTS",
    ".globl LAYER_USER_SWITCHED, LAYER_CUT_FRAME, LAYER_CUT_CR2, LAYER_START_STACK, layer_scratch_top",
    ".globl LAYER_GUARD_SLACK",
    "LAYER_RESUME: .quad layer_first",
    "LAYER_RESUME_RSP: .quad LAYER_START_STACK + {start_stack}",
    "LAYER_TRIP_RSP: .quad 0",
    "LAYER_TICK: .quad layer_nothing",
    "LAYER_USER: .quad layer_unhandled",
    // Until the first guard is armed, the comparison must not find that it has passed.
    "LAYER_GUARD_SLACK: .quad -(1 << 62)",
    "LAYER_WORK: .long 0",
    "LAYER_CUTS: .long 0",
    "LAYER_USER_SWITCHED: .long 0",
    "LAYER_SECOND: .long 0",
    ".section .bss.layer, \"aw\", @nobits",
    ".balign 64",
    ".balign 16",
    "LAYER_CUT_FRAME: .skip 176",
    "LAYER_CUT_CR2: .skip 8",
    ".balign 64",
    "LAYER_SCRATCH: .skip 1024",
    "layer_scratch_top:",
    // Behind read-only data: a stack that overflows faults, see layer.ld.
    ".section .data.stack, \"aw\"",
    ".balign 4096",
    "LAYER_START_STACK: .skip {start_stack}",

    ".section .text.layer, \"ax\"",
    ".globl layer_entry, layer_idle, layer_yield, layer_nothing, layer_resume_cut, layer_resume_user, layer_abandon",
    ".globl layer_nmi, layer_machine_check, layer_enter_user, layer_stubs",
    ".globl layer_nmi_saved, layer_pop, layer_resume_idle, layer_resume_yield",

    // The trip's event, rsi, to the cokernel: a copy on its stack, since the handler may be cut off and see the next
    // trip. The stack is aligned.
    ".macro LAYER_CALL_TICK",
    "push qword ptr [rsi + 24]",
    "push qword ptr [rsi + 16]",
    "push qword ptr [rsi + 8]",
    "push qword ptr [rsi]",
    "mov rdi, rsp",
    "call [rip + LAYER_TICK]",
    "add rsp, 32",
    ".endm",

    // (rdi: *const LayerEntry, rsi: *mut Trip), called by the trampoline, which saved all that the ABI would.
    "layer_entry:",
    "mov [rip + LAYER_TRIP_RSP], rsp",
    // If the guard's NMI came before the trip began, because firmware held the CPU for that long, no code has armed
    // the guard again: layer_guard_passed does.
    "rdtsc",
    "shl rdx, 32",
    "or rax, rdx",
    "add rax, [rip + LAYER_GUARD_SLACK]",
    "sub rax, [rsi + {guard_tsc}]",
    "jns 8f",
    "9: mov rsp, [rip + LAYER_RESUME_RSP]",
    "mov edx, ss",
    "push rdx",
    "push qword ptr [rip + LAYER_RESUME_RSP]",
    "push 2",
    "push {kernel_code}",
    "push qword ptr [rip + LAYER_RESUME]",
    "iretq",

    // Still on the trampoline's stack: two pages with one frame of its own, aligned for a call.
    "8: push rdi",
    "push rsi",
    "sub rsp, 8",
    "call layer_guard_passed",
    "add rsp, 8",
    "pop rsi",
    "pop rdi",
    "jmp 9b",

    // The first trip: rax is the boot block, rdx the cokernel's start.
    "layer_first:",
    "call layer_init",
    "mov rdi, rax",
    "call rdx",
    "call layer_returned",
    "ud2",

    "layer_nothing: ret",

    // idle(): does the work that WORK_* name first. Eight bytes keep the stack aligned for the tick handler.
    "layer_idle:",
    "mov dword ptr [rip + LAYER_CUTS], 0",
    "cmp dword ptr [rip + LAYER_WORK], 0",
    "jne 3f",
    "2: sub rsp, 8",
    push_kept!(),
    "lea rax, [rip + layer_resume_idle]",
    "layer_leave:",
    "mov [rip + LAYER_RESUME], rax",
    "mov [rip + LAYER_RESUME_RSP], rsp",
    "cmp dword ptr [rip + LAYER_USER_SWITCHED], 0",
    "jne 4f",
    "layer_abandon:",
    "mov rsp, [rip + LAYER_TRIP_RSP]",
    "ret",
    "3: sub rsp, 8",
    "call layer_work",
    "add rsp, 8",
    "test eax, eax",
    "jz 2b",
    "ret",
    "4: call layer_user_back",
    "jmp layer_abandon",

    "layer_resume_idle:",
    "cmp dword ptr [rip + LAYER_WORK], 0",
    "jne 5f",
    "LAYER_CALL_TICK",
    "layer_resume_yield:",
    pop_kept!(),
    "add rsp, 8",
    "ret",

    // A tick came while the last trip was ending: both ticks are delivered as one.
    "5: call layer_keep_trip",
    "call layer_kept_tick",
    "jmp layer_resume_yield",

    "layer_yield:",
    "sub rsp, 8",
    push_kept!(),
    "lea rax, [rip + layer_resume_yield]",
    "jmp layer_leave",

    // A cokernel that was cut off in kernel mode continues, as if it had not been interrupted.
    "layer_resume_cut:",
    "call layer_keep_trip",
    "mov rax, [rip + LAYER_CUT_CR2]",
    "mov cr2, rax",
    "lea rsp, [rip + LAYER_CUT_FRAME]",
    "jmp layer_pop",

    // User mode was cut off: its frame is on the stack, and the trip brought a tick.
    "layer_resume_user:",
    "LAYER_CALL_TICK",
    "jmp layer_to_user_handler",
    // User mode was interrupted by a tick: its frame is on the stack, the tick is kept. NMIs are open.
    "layer_deliver_user:",
    "xor ecx, ecx",
    "xchg [rip + LAYER_SECOND], ecx",
    "test ecx, ecx",
    "jz 6f",
    "call layer_on_second_nmi",
    "6: call layer_kept_tick",
    "layer_to_user_handler:",
    "mov rdi, rsp",
    "call [rip + LAYER_USER]",
    "layer_back_to_user:",
    // The cokernel's kernel mode has finished in time: the count of cut-offs in a row starts again.
    "mov dword ptr [rip + LAYER_CUTS], 0",
    // A tick that came while the cokernel served user mode is delivered as if it had come right after.
    "test dword ptr [rip + LAYER_WORK], {work_tick}",
    "jnz 7f",
    "mov rdi, rsp",
    "call layer_prepare_user",
    "layer_pop:",
    pop_frame!(),
    "iretq",

    "7: mov qword ptr [rsp + {vector}], 2",
    "jmp layer_deliver_user",

    // enter_user(rdi: *mut Frame): the frame is copied to the top of the user stack, where an interrupt would put it.
    "layer_enter_user:",
    "sub rsp, 8",
    "call layer_check_user",
    "add rsp, 8",
    "test rax, rax",
    "js 2f",
    "mov rsp, rax",
    "jmp layer_back_to_user",
    "2: ret",

    "layer_exception:",
    push_first!(),
    push_rest!(),
    "test byte ptr [rsp + 18 * 8], 3", // Frame::cs
    "jnz layer_to_user_handler",
    "mov rdi, rsp",
    "call layer_fault",
    // Typed code faulted: its frame was moved.
    "mov rsp, rax",
    "jmp layer_to_user_handler",

    // Entered from the trampoline's gate, at the top of the NMI stack, at which every NMI starts. The CPU holds NMIs
    // back until an IRET. That can also be an IRET in system-management mode (Intel SDM 3C 32.8) or the one of a
    // machine check, so a second NMI may come while the first is handled, and would overwrite its frame. Therefore the
    // first NMI copies its frame below the bytes that a second one needs. The second, recognized by the interrupted
    // stack pointer, is only counted; the first checks that count before it returns. If the second interrupts the first
    // after that last check, it moves the first back to it. User mode chooses its stack pointer, so only kernel mode's
    // is believed.
    "layer_nmi:",
    "push rax",
    "test byte ptr [rsp + 16], 3", // cs
    "jnz 2f",
    "mov rax, rsp",
    "sub rax, [rsp + 32]", // RSP of the interrupted code
    "cmp rax, {nmi_stack}",
    "jb 4f",
    "2: pop rax",
    "sub rsp, {nmi_second}",
    // ss, rsp, rflags, cs, rip: each push moves the next one under the same offset.
    ".rept 5",
    "push qword ptr [rsp + {nmi_second} + 32]",
    ".endr",
    "push 0",
    "push 2",
    push_first!(),
    push_rest!(),
    "layer_nmi_saved:",
    "mov rdi, rsp",
    "call layer_on_nmi",
    // 0: continue. 1: leave the trip. Else the address to which the frame was moved: deliver the tick with NMIs open.
    "cmp rax, 1",
    "jb 3f",
    "je layer_abandon",
    open_nmis_at!("layer_deliver_user"),
    "3: xor ecx, ecx",
    "xchg [rip + LAYER_SECOND], ecx",
    "test ecx, ecx",
    "jnz layer_nmi_saved",
    pop_frame!(),
    "layer_last_look:",
    "cmp dword ptr [rip + LAYER_SECOND], 0",
    "jne layer_once_more",
    "iretq",
    // The popped registers are still in memory: a second NMI's frame lies above them, and a machine check has a stack
    // of its own.
    "layer_once_more:",
    "sub rsp, {registers}",
    "jmp 3b",
    "4: lea rax, [rip + layer_last_look]",
    "cmp [rsp + 8], rax", // RIP of the interrupted code
    "jb 5f",
    "lea rax, [rip + layer_once_more]",
    "cmp [rsp + 8], rax",
    "jae 5f",
    "mov [rsp + 8], rax",
    "5: pop rax",
    "lock inc dword ptr [rip + LAYER_SECOND]",
    "iretq",

    "layer_machine_check:",
    "push 0",
    "push 18",
    push_first!(),
    push_rest!(),
    "mov rdi, rsp",
    "call layer_on_machine_check",
    "test rax, rax",
    "jz layer_pop",
    "jmp layer_abandon",

    // 32 stubs and int 0x80, 16 bytes each; the CPU pushes an error code for the vectors in the mask.
    ".balign 16",
    "layer_stubs:",
    ".set vector, 0",
    ".rept 33",
    ".balign 16",
    ".if vector == 32",
    "push 0",
    "push 0x80",
    ".else",
    ".if (({with_error}) >> vector) & 1 == 0",
    "push 0",
    ".endif",
    "push vector",
    ".endif",
    "jmp layer_exception",
    ".set vector, vector + 1",
    ".endr",
    start_stack = const START_STACK_BYTES,
    with_error = const WITH_ERROR_CODE,
    work_tick = const WORK_TICK,
    guard_tsc = const core::mem::offset_of!(Trip, guard_tsc),
    vector = const core::mem::offset_of!(Frame, vector),
    registers = const core::mem::offset_of!(Frame, rip),
    nmi_stack = const NMI_STACK_BYTES,
    nmi_second = const NMI_SECOND_BYTES,
    kernel_code = const KERNEL_CODE,
);

/// Code selector of kernel mode in every mode: Linux's.
const KERNEL_CODE: u64 = KERNEL_CODE_SELECTOR;
/// Size of the module's `nmi_stack` in bytes, or less: the code of an NMI uses no more of it.
const NMI_STACK_BYTES: u32 = 4096;
/// Bytes left free for the register that a second NMI pushes; the stack stays aligned.
const NMI_SECOND_BYTES: u32 = 24;

/// Exceptions for which the CPU pushes an error code: 8, 10..=14, 17, 21, 29, 30. Intel SDM 3A 6.15, AMD APM 2 8.2.
const WITH_ERROR_CODE: u32 = 1 << 8 | 0x1f << 10 | 1 << 17 | 1 << 21 | 1 << 29 | 1 << 30;

const _: () = assert!(core::mem::offset_of!(Frame, cs) == 18 * 8);
