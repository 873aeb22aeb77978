//! The loader: an ELF file with one segment that holds the door, a loop, and the table of system calls that the loop
//! executes.

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
/// Offset of the loop in the tender's pages.
const LOOP: u64 = system::DOOR + 128;
/// Offset of the table of system calls in the tender's pages. The filter follows the table.
const TABLE: u64 = system::DOOR + PAGE;
/// Size of the segment in bytes.
pub const SEGMENT_BYTES: u64 = 8 * PAGE;
/// Size of a row of the table in bytes.
const ROW_BYTES: u64 = 64;

global_asm!(
    // Position-independent code that is copied into the loader's file. It never runs in the tender.
    ".pushsection .rodata.kyozon_loader, \"a\"",
    "kyozon_loader_start:",
    ".fill 16, 1, 0xcc",
    // The door. rcx and r11 are caller-saved, as is rax.
    "mov eax, {door}",
    "syscall",
    "ret",
    ".balign 32, 0xcc",
    // The doorbell with the number in edi: adds 1 to its counter.
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
    // The loop. A row holds a number, six arguments, and whether the call is optional; the last row's number is -1.
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

/// One system call of the loader.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// System-call number.
    pub number: i64,
    /// Arguments.
    pub arguments: [u64; 6],
    /// Whether the guest can start if the call fails.
    pub optional: bool,
    /// Purpose of the call, for the error message: "cannot {purpose}".
    pub purpose: &'static str,
}

/// Guest address of the `n`th row.
pub fn row_address(n: usize) -> u64 {
    GUEST_SYSTEM_BASE + TABLE + n as u64 * ROW_BYTES
}

/// Guest address of the filter if the table has `steps` steps.
pub fn filter_address(steps: usize) -> u64 {
    row_address(steps + 1)
}

/// The guest's state after the loader's last step.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// Address of the first instruction.
    pub entry: u64,
    /// Initial `rsp`.
    pub stack: u64,
    /// Initial `rdi` and `rsi`.
    pub arguments: [u64; 2],
}

/// The loader's file, which executes `steps` and then jumps to `start`. `data` lies at [`filter_address`].
///
/// # Errors
///
/// The steps and the data do not fit into the segment.
pub fn file(steps: &[Step], start: Start, data: &[u8]) -> Result<Vec<u8>> {
    let mut segment = code().to_vec();
    ensure!(Internal, segment.len() as u64 <= PAGE, "the loader's code has more than a page");
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
    ensure!(Internal, segment.len() as u64 <= SEGMENT_BYTES, "the loader has too many steps");
    segment.resize(SEGMENT_BYTES as usize, 0);

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
    for word in [PAGE, base, base, SEGMENT_BYTES, SEGMENT_BYTES, PAGE] {
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
    fn offsets_match_the_code() {
        let code = code();
        let at = |offset: u64| &code[(offset - system::DOOR) as usize..];
        // mov eax, imm32; cmp edi, imm8; lea rbx, [rip + ...]
        assert_eq!(at(DOOR)[0], 0xb8);
        assert_eq!(at(DOOR)[1..5], DOOR_NUMBER.to_le_bytes());
        assert_eq!(at(DOORBELL)[..3], [0x83, 0xff, DOORBELL_COUNT as u8]);
        assert_eq!(at(LOOP)[..3], [0x48, 0x8d, 0x1d]);
        let distance = i32::from_le_bytes(at(LOOP)[3..7].try_into().unwrap());
        assert_eq!(LOOP + 7 + distance as u64, TABLE);
    }

    #[test]
    fn too_many_steps_are_refused() {
        let step = Step { number: 0, arguments: [0; 6], optional: false, purpose: "" };
        assert!(file(&[step; 400], Start::default(), &[]).is_ok());
        assert!(file(&[step; 500], Start::default(), &[]).is_err());
    }
}
