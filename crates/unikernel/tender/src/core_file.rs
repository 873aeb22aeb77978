//! Writes a guest's core file for a debugger: ELF with one thread's registers and all memory that the guest could read.

use crate::backend::Registers;
use crate::error::{ensure, Result};
use crate::memory::Memory;
use rustix::fs::{fstat, FileType};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const PAGE: u64 = 4096;
/// Pages between two questions whether to go on.
const PAGES_AT_ONCE: u64 = 256;
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

/// Creates a core file. It does not wait for a pipe's reader.
///
/// # Errors
///
/// The file cannot be created, or is not a regular file.
pub fn create(path: &Path) -> Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true).custom_flags(libc::O_NONBLOCK);
    let file = options.open(path)?;
    let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
    ensure!(Options, kind == FileType::RegularFile, "it is not a regular file: use another path");
    Ok(file)
}

/// Writes a core file to `to`. Pages of zeros become holes, and untouched memory stays so. Returns `false` if `go_on`
/// returned `false` first; the file then lacks pages.
///
/// # Errors
///
/// The file cannot be written, or the memory has too many pieces for its headers.
pub fn write(
    to: &mut (impl Write + Seek),
    memory: &Memory,
    registers: &Registers,
    go_on: &dyn Fn() -> bool,
) -> Result<bool> {
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
    let mut count = 0;
    let mut complete = true;
    for (base, bytes, _) in pieces {
        let end = base + bytes;
        let mut address = memory.next_data(base, end);
        while complete && address < end {
            count += 1;
            complete = count % PAGES_AT_ONCE != 0 || go_on();
            // A page that was revoked in the meantime becomes a hole as well.
            if memory.read(address, &mut page).is_ok() && page.iter().any(|b| *b != 0) {
                let at = offset + (address - base);
                if position != at {
                    to.seek(SeekFrom::Start(at))?;
                }
                to.write_all(&page)?;
                position = at + PAGE;
            }
            address = match address + PAGE {
                next if next < end => memory.next_data(next, end),
                _ => end,
            };
        }
        offset += bytes;
    }
    if position < offset {
        // Writing the last byte gives the file the length that its headers state.
        to.seek(SeekFrom::Start(offset - 1))?;
        to.write_all(&[0])?;
    }
    to.flush()?;
    Ok(complete)
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
        assert!(write(&mut core, &memory, &registers, &|| true).unwrap());
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

    /// Bytes of a guest's memory that Linux has allocated.
    fn allocated(memory: &Memory) -> i64 {
        let file = memory.block.file_offset().unwrap();
        fstat(file.file()).unwrap().st_blocks * 512
    }

    #[test]
    fn a_core_file_touches_no_memory_and_keeps_a_deadline() {
        let file = elf::tests::image();
        let image = elf::parse(&file).unwrap();
        let layout = Layout::new(&image, 64 << 20).unwrap();
        let memory = Memory::new(&image, &file, layout, true).unwrap();
        memory.write(GUEST_HEAP_BASE + (32 << 20), b"in the middle").unwrap();
        let before = allocated(&memory);
        let path = std::env::temp_dir().join(format!("kyozon-core-{}", std::process::id()));
        let mut core = create(&path).unwrap();
        assert!(write(&mut core, &memory, &Registers::default(), &|| true).unwrap());
        let about = fstat(&core).unwrap();
        assert!(about.st_size > 64 << 20 && about.st_blocks * 512 < 1 << 20, "{about:?}");
        assert_eq!(allocated(&memory), before);
        let heap = memory.layout.heap;
        assert_eq!(
            memory.next_data(heap.base, heap.base + heap.bytes),
            GUEST_HEAP_BASE + (32 << 20)
        );
        // A guest that must end does not finish its core file.
        let page = [1; PAGE as usize];
        (0..1000).for_each(|i| memory.write(GUEST_HEAP_BASE + i * PAGE, &page).unwrap());
        core.set_len(0).unwrap();
        assert!(!write(&mut core, &memory, &Registers::default(), &|| false).unwrap());
        assert!(fstat(&core).unwrap().st_blocks * 512 < 2 << 20);
        std::fs::remove_file(path).unwrap();
        assert!(create(Path::new("/dev/null")).is_err());
    }
}
