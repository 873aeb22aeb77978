//! User mode: an address space with one page of code and one of stack, and a handler that counts exits.

use crate::layer::*;
use core::arch::global_asm;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::layer::*;

const PAGE: u64 = 4096;
/// Address of user code: in an unused entry of the level-4 table, with four and with five levels.
const CODE: u64 = 0x80_0000_0000;
const STACK: u64 = CODE + 0x10_0000;

const PRESENT_WRITE_USER: u64 = 7;
const PRESENT_USER: u64 = 5;
const NO_EXECUTE: u64 = 1 << 63;

#[repr(C, align(4096))]
struct Stack([u8; 8192]);
static mut USER_STACK: Stack = Stack([0; 8192]);

/// Top of the user handler's stack.
pub fn stack_top() -> u64 {
    (&raw const USER_STACK) as u64 + size_of::<Stack>() as u64
}

// Snippets of 64 bytes. Each ends with `int 0x80`, or never.
global_asm!(
    ".section .rodata.user, \"a\"",
    ".globl user_code, user_code_end",
    "user_code:",
    // 0: spin
    ".balign 64",
    "1: inc rbx",
    "jmp 1b",
    // 1: system call of the layer
    ".balign 64",
    "mov eax, 0x1234",
    "int 0x80",
    "ud2",
    // 2: FPU
    ".balign 64",
    "pxor xmm0, xmm0",
    "int 0x80",
    // 3: Linux's system call instruction
    ".balign 64",
    "syscall",
    "int 0x80",
    // 4: Linux's other system call instruction
    ".balign 64",
    "sysenter",
    "int 0x80",
    // 5: Linux's old system call
    ".balign 64",
    "int 3",
    "int 0x80",
    // 6: privileged
    ".balign 64",
    "cli",
    "int 0x80",
    // 7: privileged
    ".balign 64",
    "hlt",
    "int 0x80",
    // 8: I/O
    ".balign 64",
    "mov edx, 0x70",
    "in al, dx",
    "int 0x80",
    // 9: the layer's memory
    ".balign 64",
    "mov eax, [0x10000000]",
    "int 0x80",
    // 10: Linux's memory
    ".balign 64",
    "mov rbx, 0x400000000000",
    "mov rax, [rbx]",
    "int 0x80",
    // 11: the most hostile flags and segments, then a system call
    ".balign 64",
    "push 0x240cd5",
    "popfq",
    "mov eax, 0x2b",
    "mov ds, eax",
    "mov es, eax",
    "mov fs, eax",
    "mov gs, eax",
    "int 0x80",
    // 12: the NMI's gate
    ".balign 64",
    "int 2",
    "int 0x80",
    // 13: unmapped memory
    ".balign 64",
    "mov rax, [rsp + 0x1000000]",
    "int 0x80",
    // 14: segment bases
    ".balign 64",
    "rdgsbase rax",
    "mov rbx, 0x7777000",
    "wrgsbase rbx",
    "wrfsbase rbx",
    "int 0x80",
    ".balign 64",
    "user_code_end:",
);

extern "C" {
    fn user_code();
    fn user_code_end();
}

const SNIPPET_BYTES: u64 = 64;
const SYSENTER: u64 = 4;
const SEGMENT_BASES: u64 = 14;
/// Expected vector of each snippet, from 1.
const EXPECTED: [u64; 14] = [0x80, 7, 6, 13, 3, 13, 13, 13, 14, 14, 0x80, 13, 14, 0x80];

/// Physical address of the cokernel's memory at `offset`.
fn physical(offset: u64) -> u64 {
    let boot = boot();
    let mut rest = offset;
    for i in 0..u64::from(boot.piece_count) {
        // SAFETY: the boot block's list.
        let piece = unsafe { *(boot.pieces as *const Range).add(i as usize) };
        if rest < piece.bytes {
            return piece.base + rest;
        }
        rest -= piece.bytes;
    }
    0
}

/// Number of pages taken from the end of the cokernel's memory.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A zeroed page: virtual and physical address.
fn page() -> (*mut u64, u64) {
    let boot = boot();
    let offset = boot.memory_bytes - PAGE * (1 + NEXT.fetch_add(1, Relaxed));
    let at = (boot.memory + offset) as *mut u64;
    // SAFETY: an unused page of the cokernel's memory.
    unsafe { at.write_bytes(0, 512) };
    (at, physical(offset))
}

/// Makes the address space and switches to it. The tables are copies of the layer's with one additional entry.
fn build() {
    let boot = boot();
    let (top, top_pa) = page();
    let copy = |from: u64, to: *mut u64| {
        // SAFETY: both are whole pages.
        unsafe { core::ptr::copy_nonoverlapping(from as *const u64, to, 512) };
    };
    copy(boot.tables, top);
    let level4 = if boot.paging_levels == 5 {
        let (level4, pa) = page();
        copy(boot.tables + PAGE, level4);
        // SAFETY: this function's own page.
        unsafe { top.write(pa | PRESENT_WRITE_USER) };
        level4
    } else {
        top
    };
    let (level3, level3_pa) = page();
    let (level2, level2_pa) = page();
    let (level1, level1_pa) = page();
    let (code, code_pa) = page();
    let (_, stack_pa) = page();
    let index = |va: u64, level: u32| (va >> (3 + 9 * level) & 511) as usize;
    // SAFETY: this function's own pages; the code fits one.
    unsafe {
        level4.add(index(CODE, 4)).write(level3_pa | PRESENT_WRITE_USER);
        level3.add(index(CODE, 3)).write(level2_pa | PRESENT_WRITE_USER);
        level2.add(index(CODE, 2)).write(level1_pa | PRESENT_WRITE_USER);
        level1.add(index(CODE, 1)).write(code_pa | PRESENT_USER);
        level1.add(index(STACK, 1)).write(stack_pa | PRESENT_WRITE_USER | NO_EXECUTE);
        let from = user_code as *const () as *const u8;
        let bytes = user_code_end as *const () as usize - from as usize;
        core::ptr::copy_nonoverlapping(from, code.cast(), bytes);
        core::arch::asm!("mov cr3, {}", in(reg) top_pa | boot.page_table & 0xfff);
    }
}

fn frame(snippet: u64) -> Frame {
    Frame { rip: CODE + snippet * SNIPPET_BYTES, rsp: STACK + PAGE, ..Frame::default() }
}

static SNIPPET: AtomicU64 = AtomicU64::new(0);
static TICKS: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);
static PROGRESS: AtomicU64 = AtomicU64::new(0);

/// Handles every exit from user mode.
pub extern "C" fn on_user(frame: &mut Frame) {
    if frame.vector == 2 {
        let ticks = TICKS.fetch_add(1, Relaxed) + 1;
        let before = PROGRESS.swap(frame.rbx, Relaxed);
        if frame.rbx < before {
            WRONG.fetch_add(1, Relaxed);
        }
        if ticks.is_multiple_of(100) {
            print(format_args!(
                "test user_spin: ticks {ticks} progress {} wrong {}",
                frame.rbx,
                WRONG.load(Relaxed)
            ));
        }
        return;
    }
    let snippet = SNIPPET.load(Relaxed);
    let expected = EXPECTED.get((snippet as usize).wrapping_sub(1)).copied().unwrap_or(0);
    // Some CPUs have no `sysenter` in 64-bit mode, and older ones no segment-base instructions.
    let is_invalid = [SYSENTER, SEGMENT_BASES].contains(&snippet) && frame.vector == 6;
    if !is_invalid && frame.vector != expected || frame.cs != USER_CODE_SELECTOR {
        WRONG.fetch_add(1, Relaxed);
        print(format_args!(
            "test user: snippet {snippet} vector {} expected {expected} error {:#x} rip {:#x}",
            frame.vector, frame.error, frame.rip
        ));
    }
    if snippet as usize == EXPECTED.len() {
        if frame.vector == 0x80 && frame.rax != 0 {
            WRONG.fetch_add(1, Relaxed);
            print(format_args!("test user: saw Linux's GS base {:#x}", frame.rax));
        }
        print(format_args!(
            "test user: snippets {snippet} wrong {} ticks {}",
            WRONG.load(Relaxed),
            TICKS.load(Relaxed)
        ));
        // The last report; snippet 0 then shows that user state is kept across trips.
        SNIPPET.store(0, Relaxed);
        *frame = self::frame(0);
        return;
    }
    // Idle in between: user state must survive it.
    if snippet.is_multiple_of(2) {
        idle();
    }
    SNIPPET.store(snippet + 1, Relaxed);
    *frame = self::frame(snippet + 1);
}

/// Runs a snippet that never idles.
pub fn spin() {
    build();
    let answer = enter_user(&mut frame(0));
    print(format_args!("test user_spin: refused {answer}"));
}

/// Runs the snippets in order.
pub fn hostile() {
    build();
    SNIPPET.store(1, Relaxed);
    let answer = enter_user(&mut frame(1));
    print(format_args!("test user: refused {answer}"));
}
