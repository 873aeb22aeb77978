//! The loader: an ELF file of one segment, which holds the door, a loop, and the table of system calls that the loop
//! makes.

use super::descriptors::{DOORBELLS, DOORBELL_COUNT};
use super::filter::DOOR_NUMBER;
use crate::error::{ensure, Result};
use crate::layout::{system, PAGE};
use kyozon_abi::unikernel::GUEST_SYSTEM_BASE;
use std::arch::global_asm;

/// Offset of the door in the tender's pages.
pub const DOOR: u64 = system::DOOR + 16;
/// Offset of the doorbell in the tender's pages.
pub const DOORBELL: u64 = system::DOOR + 32;
/// Offset of the loop.
const LOOP: u64 = system::DOOR + 128;
/// Offset of the table, and of the filter behind it.
const TABLE: u64 = system::DOOR + PAGE;
/// Bytes of the segment.
pub const BYTES: u64 = 8 * PAGE;

global_asm!(
    // Position-independent code, copied from here into the loader's file; it never runs in the tender.
    ".pushsection .rodata.kyozon_loader, \"a\"",
    "kyozon_loader_start:",
    ".fill 16, 1, 0xcc",
    // The door: rcx and r11 are the caller's to save, as rax is.
    "mov eax, {door}",
    "syscall",
    "ret",
    ".balign 32, 0xcc",
    // The doorbell of the number in edi: adds 1 to its counter.
    "cmp edi, {count}",
    "jae 1f",
    "add edi, {doorbells}",
    "lea rsi, [rip + 2f]",
    "mov edx, 8",
    "mov eax, {write}",
    "syscall",
    "1: ret",
    ".balign 8, 0xcc",
    "2: .quad 1",
    ".balign 128, 0xcc",
    // The loop: rows of number, six arguments, and whether failure matters; the last row's number is -1.
    "lea rbx, [rip + kyozon_loader_start + {table}]",
    "3: mov rax, [rbx]",
    "cmp rax, -1",
    "je 4f",
    "mov rdi, [rbx + 8]",
    "mov rsi, [rbx + 16]",
    "mov rdx, [rbx + 24]",
    "mov r10, [rbx + 32]",
    "mov r8, [rbx + 40]",
    "mov r9, [rbx + 48]",
    "syscall",
    "cmp rax, -4096",
    "jbe 5f",
    "cmp qword ptr [rbx + 56], 0",
    "jne 5f",
    // The tracer finds the row in rbx and the error in rax.
    "ud2",
    "5: add rbx, 64",
    "jmp 3b",
    "4: mov rsp, [rbx + 8]",
    "mov rdi, [rbx + 16]",
    "mov rax, [rbx + 24]",
    "mov rsi, [rbx + 32]",
    "xor ebx, ebx",
    "xor ebp, ebp",
    "xor edx, edx",
    "jmp rax",
    "kyozon_loader_end:",
    ".popsection",
    door = const DOOR_NUMBER,
    count = const DOORBELL_COUNT,
    doorbells = const DOORBELLS,
    write = const libc::SYS_write,
    table = const PAGE,
);

extern "C" {
    static kyozon_loader_start: u8;
    static kyozon_loader_end: u8;
}

fn code() -> &'static [u8] {
    let (start, end) = (&raw const kyozon_loader_start, &raw const kyozon_loader_end);
    // SAFETY: the labels enclose bytes of this program that never change.
    unsafe { std::slice::from_raw_parts(start, end.offset_from(start) as usize) }
}

/// One system call that the loader makes.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Its number.
    pub number: i64,
    /// Its arguments.
    pub arguments: [u64; 6],
    /// Whether the guest can start where it fails.
    pub optional: bool,
    /// What it is for, where it fails.
    pub what: &'static str,
}

/// Where in the address space the `n`th row is.
pub fn row(n: usize) -> u64 {
    GUEST_SYSTEM_BASE + TABLE + n as u64 * 64
}

/// Where the filter will be, behind so many steps.
pub fn filter_address(steps: usize) -> u64 {
    row(steps + 1)
}

/// Where the loader goes in the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// The first instruction.
    pub entry: u64,
    /// `rsp` there.
    pub stack: u64,
    /// `rdi` and `rsi` there.
    pub arguments: [u64; 2],
}

/// The loader's file: makes `steps`, then goes to `start`. `data` lies at [`filter_address`].
pub fn file(steps: &[Step], start: Start, data: &[u8]) -> Result<Vec<u8>> {
    let mut segment = code().to_vec();
    ensure!(Internal, segment.len() as u64 <= PAGE, "the loader's code fits a page");
    segment.resize(PAGE as usize, 0xcc);
    let mut rows: Vec<u64> = Vec::new();
    for step in steps {
        rows.push(step.number as u64);
        rows.extend(step.arguments);
        rows.push(step.optional.into());
    }
    let [first, second] = start.arguments;
    rows.extend([u64::MAX, start.stack, first, start.entry, second, 0, 0, 0]);
    segment.extend(rows.iter().flat_map(|word| word.to_le_bytes()));
    segment.extend(data);
    ensure!(Internal, segment.len() as u64 <= BYTES, "the loader has too much to do");
    segment.resize(BYTES as usize, 0);

    let base = GUEST_SYSTEM_BASE + system::DOOR;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    file.extend(2_u16.to_le_bytes());
    file.extend(62_u16.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    for word in [GUEST_SYSTEM_BASE + LOOP, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    file.extend([1_u32.to_le_bytes(), 5_u32.to_le_bytes()].concat());
    for word in [PAGE, base, base, BYTES, BYTES, PAGE] {
        file.extend(word.to_le_bytes());
    }
    file.resize(PAGE as usize, 0);
    file.extend(segment);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_lies_where_the_offsets_say() {
        let code = code();
        let at = |offset: u64| &code[(offset - system::DOOR) as usize..];
        // mov eax, imm32; cmp edi, imm8; lea rbx, [rip + ...]
        assert_eq!(at(DOOR)[0], 0xb8);
        assert_eq!(at(DOOR)[1..5], DOOR_NUMBER.to_le_bytes());
        assert_eq!(at(DOORBELL)[..3], [0x83, 0xff, DOORBELL_COUNT as u8]);
        assert_eq!(at(LOOP)[..3], [0x48, 0x8d, 0x1d]);
        let to = i32::from_le_bytes(at(LOOP)[3..7].try_into().unwrap());
        assert_eq!(LOOP + 7 + to as u64, TABLE);
    }

    #[test]
    fn too_many_steps_are_refused() {
        let step = Step { number: 0, arguments: [0; 6], optional: false, what: "" };
        assert!(file(&[step; 400], Start::default(), &[]).is_ok());
        assert!(file(&[step; 500], Start::default(), &[]).is_err());
    }
}
