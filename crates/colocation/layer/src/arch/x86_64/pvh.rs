//! The PVH entry: 32-bit protected mode without paging, `ebx` at the start information. To long mode, and to Rust.
//!
//! Reference: Xen, docs/misc/pvh.pandoc; the note's type is XEN_ELFNOTE_PHYS32_ENTRY in public/elfnote.h. Intel SDM 3A
//! 9.8.5 for the way to long mode.

use core::arch::{asm, global_asm};

global_asm!(
    ".section .note.pvh, \"a\", @note",
    ".balign 4",
    ".long 4, 8, 18", // bytes of name and value; XEN_ELFNOTE_PHYS32_ENTRY
    ".asciz \"Xen\"",
    ".quad pvh_start", // some loaders read four bytes, some eight
    // A gigabyte a table, in pages of 2 MiB, at their physical addresses.
    ".section .bss.pvh, \"aw\", @nobits",
    ".balign 4096",
    "pvh_top: .skip 4096",
    "pvh_level3: .skip 4096",
    "pvh_level2: .skip 4 * 4096",
    ".section .rodata.pvh, \"a\"",
    ".balign 8",
    "pvh_gdt: .quad 0, 0, 0x00af9b000000ffff, 0x00cf93000000ffff",
    "pvh_gdtr: .word 31",
    ".quad pvh_gdt",
    // Preconditions: flat segments, paging off, interrupts off, no stack; the image is at its link address.
    ".section .text.pvh, \"ax\"",
    ".globl pvh_start",
    ".code32",
    "pvh_start:",
    "cld",
    "movl %ebx, %esi",
    "movl $0x80000000, %eax",
    "cpuid",
    "cmpl $0x80000001, %eax",
    "jb 9f",
    "movl $0x80000001, %eax",
    "cpuid",
    "andl $0x20100000, %edx", // long mode and the no-execute bit
    "cmpl $0x20100000, %edx",
    "jne 9f",
    "movl $pvh_level3 + 7, pvh_top",
    "movl $4, %ecx",
    "movl $pvh_level2 + 7, %eax",
    "movl $pvh_level3, %edi",
    "2: movl %eax, (%edi)",
    "addl $4096, %eax",
    "addl $8, %edi",
    "loop 2b",
    "movl $4 * 512, %ecx",
    "movl $0x83, %eax", // present, writable, 2 MiB
    "movl $pvh_level2, %edi",
    "3: movl %eax, (%edi)",
    "addl $0x200000, %eax",
    "addl $8, %edi",
    "loop 3b",
    "movl %cr4, %eax",
    "orl $0x20, %eax", // PAE
    "movl %eax, %cr4",
    "movl $pvh_top, %eax",
    "movl %eax, %cr3",
    "movl $0xc0000080, %ecx", // EFER: long mode, no-execute; no `syscall`
    "movl $0x900, %eax",
    "xorl %edx, %edx",
    "wrmsr",
    "movl %cr0, %eax",
    "orl $0x80000000, %eax",  // paging
    "andl $0x9fffffff, %eax", // caches
    "movl %eax, %cr0",
    "lgdt pvh_gdtr",
    "ljmp $0x10, $pvh_long",
    // This CPU lacks a required feature: switches the machine off. See `power_off`.
    "9: movw $0x604, %dx",
    "movw $0x2000, %ax",
    "outw %ax, %dx",
    "hlt",
    "jmp 9b",
    ".code64",
    "pvh_long:",
    "movl $0x18, %eax",
    "movl %eax, %ds",
    "movl %eax, %es",
    "movl %eax, %ss",
    "leaq alone_stack_top - 16(%rip), %rsp",
    "xorl %ebp, %ebp",
    "movl %esi, %edi",
    "call alone_start",
    "ud2",
    options(att_syntax)
);

/// ACPI's PM1a control register of the q35, and "sleep type 5, now" in it.
const POWER: u16 = 0x604;
const OFF: u16 = 0x2000;

/// Switches the machine off; halts for ever if that fails.
pub fn power_off() -> ! {
    loop {
        // SAFETY: no other software runs on this machine.
        unsafe {
            asm!("out dx, ax", "cli", "hlt", in("dx") POWER, in("ax") OFF, options(nomem, nostack));
        }
    }
}
