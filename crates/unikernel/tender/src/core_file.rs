//! Writes a guest's core file for a debugger: ELF with one thread's registers and all memory that the guest could read.

use crate::backend::Registers;
use crate::error::{ensure, Result};
use crate::memory::Memory;
use std::io::{Seek, SeekFrom, Write};

const PAGE: u64 = 4096;
/// Size of `struct elf_prstatus` on x86-64 in bytes (linux/elfcore.h).
const STATUS_BYTES: usize = 336;
/// Offset of the registers in it.
const STATUS_REGISTERS: usize = 112;

/// The note with the registers, in the order of `struct user_regs_struct`.
fn note(r: &Registers, signal: u16) -> Vec<u8> {
    let registers = [
        r.r15, r.r14, r.r13, r.r12, r.rbp, r.rbx, r.r11, r.r10, r.r9, r.r8, r.rax, r.rcx, r.rdx,
        r.rsi, r.rdi, r.rax, r.rip, 0x33, r.rflags, r.rsp, 0x2b, r.fs_base, r.gs_base, 0, 0, 0, 0,
    ];
    let mut status = vec![0; STATUS_BYTES];
    status[12..14].copy_from_slice(&signal.to_le_bytes());
    for (i, register) in registers.iter().enumerate() {
        let at = STATUS_REGISTERS + i * 8;
        status[at..at + 8].copy_from_slice(&register.to_le_bytes());
    }
    let mut note = Vec::new();
    for word in [5, STATUS_BYTES as u32, 1] {
        note.extend(word.to_le_bytes());
    }
    note.extend(b"CORE\0\0\0\0");
    note.extend(status);
    note
}

/// A program header of the System V ABI.
fn header(kind: u32, flags: u32, offset: u64, address: u64, bytes: u64, memory: u64) -> Vec<u8> {
    let mut header = [kind.to_le_bytes(), flags.to_le_bytes()].concat();
    for word in [offset, address, 0, bytes, memory, if kind == 1 { PAGE } else { 4 }] {
        header.extend(word.to_le_bytes());
    }
    header
}

/// Writes a core file to `to`. Pages of zeros become holes.
///
/// # Errors
///
/// The file cannot be written, or the memory has too many pieces for its headers.
pub fn write(to: &mut (impl Write + Seek), memory: &Memory, registers: &Registers) -> Result<()> {
    let mut pieces = memory.readable();
    pieces.sort_unstable();
    let note = note(registers, libc::SIGSEGV as u16);
    let headers = pieces.len() + 1;
    ensure!(Internal, headers < 0xffff, "too many pieces of memory for a core file");
    let notes_at = 64 + headers as u64 * 56;
    let mut at = (notes_at + note.len() as u64).next_multiple_of(PAGE);

    let mut start = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    for half in [4_u16, 62] {
        start.extend(half.to_le_bytes());
    }
    start.extend(1_u32.to_le_bytes());
    for word in [0_u64, 64, 0] {
        start.extend(word.to_le_bytes());
    }
    start.extend(0_u32.to_le_bytes());
    for half in [64, 56, headers as u16, 0, 0, 0] {
        start.extend(half.to_le_bytes());
    }
    start.extend(header(4, 0, notes_at, 0, note.len() as u64, 0));
    for (base, bytes, write) in &pieces {
        start.extend(header(1, 4 | u32::from(*write) << 1, at, *base, *bytes, *bytes));
        at += bytes;
    }
    start.extend(note);
    to.write_all(&start)?;
    let mut position = start.len() as u64;
    let mut offset = position.next_multiple_of(PAGE);
    let mut page = [0; PAGE as usize];
    for (base, bytes, _) in pieces {
        for done in (0..bytes).step_by(PAGE as usize) {
            // A page that was revoked in the meantime becomes a hole as well.
            if memory.read(base + done, &mut page).is_ok() && page.iter().any(|b| *b != 0) {
                if position != offset {
                    to.seek(SeekFrom::Start(offset))?;
                }
                to.write_all(&page)?;
                position = offset + PAGE;
            }
            offset += PAGE;
        }
    }
    if position < offset {
        // Writing the last byte gives the file the length that its headers state.
        to.seek(SeekFrom::Start(offset - 1))?;
        to.write_all(&[0])?;
    }
    to.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf;
    use crate::layout::Layout;
    use kyozon_abi::unikernel::*;
    use std::io::Cursor;

    #[test]
    fn headers_locate_the_memory() {
        let file = elf::tests::image();
        let image = elf::parse(&file).unwrap();
        let layout = Layout::new(&image, 1 << 20).unwrap();
        let memory = Memory::new(&image, &file, layout, false).unwrap();
        memory.write(GUEST_STACK_TOP - 8, b"on stack").unwrap();
        let mut core = Cursor::new(Vec::new());
        let registers = Registers { rip: 0x1122, ..Registers::default() };
        write(&mut core, &memory, &registers).unwrap();
        let core = core.into_inner();
        let word = |at: usize| u64::from_le_bytes(core[at..at + 8].try_into().unwrap());
        let count = usize::from(u16::from_le_bytes([core[56], core[57]]));
        assert_eq!(count, memory.readable().len() + 1);
        let mut found = false;
        let mut end = 0;
        for i in 0..count {
            let at = 64 + i * 56;
            let (offset, base, bytes) = (word(at + 8), word(at + 16), word(at + 32));
            end = end.max(offset + bytes);
            if i > 0 && (base..base + bytes).contains(&(GUEST_STACK_TOP - 8)) {
                let at = (offset + GUEST_STACK_TOP - 8 - base) as usize;
                found = &core[at..at + 8] == b"on stack";
            }
        }
        assert!(found);
        assert_eq!(end, core.len() as u64);
        // The note: 12 bytes of head, 8 of name, then the status; rip is register 16.
        let status = word(64 + 8) as usize + 20;
        assert_eq!(word(status + STATUS_REGISTERS + 16 * 8), 0x1122);
    }
}
