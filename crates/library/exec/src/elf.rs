//! Places a program's ELF files in this process, as the host's kernel does at execve(2).

use anyhow::{bail, ensure, Context, Result};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const PAGE: u64 = 4096;

/// A file in memory.
#[derive(Debug)]
pub struct Placed {
    /// What is added to the file's addresses.
    pub base: u64,
    /// Its entry.
    pub entry: u64,
    /// Its program headers.
    pub headers: u64,
    /// How many they are.
    pub header_count: u64,
    /// The dynamic linker that it asks for.
    pub interpreter: Option<PathBuf>,
}

fn structures<T: Copy>(file: &File, offset: u64, count: usize) -> std::io::Result<Vec<T>> {
    let mut bytes = vec![0u8; count * size_of::<T>()];
    file.read_exact_at(&mut bytes, offset)?;
    // SAFETY: T is one of the structures of integers of elf(5), for which all bits are valid.
    let read =
        |i: usize| unsafe { bytes.as_ptr().add(i * size_of::<T>()).cast::<T>().read_unaligned() };
    Ok((0..count).map(read).collect())
}

/// Maps the file at `path`.
pub fn place(path: &Path) -> Result<Placed> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let mut magic = [0; 4];
    file.read_exact_at(&mut magic, 0)
        .with_context(|| format!("{}: not a program", path.display()))?;
    let foreign = || format!("{}: not a program for x86-64", path.display());
    let header = structures::<libc::Elf64_Ehdr>(&file, 0, 1).ok().with_context(foreign)?[0];
    let fits = header.e_ident[..5] == [0x7f, b'E', b'L', b'F', 2]
        && header.e_machine == libc::EM_X86_64
        && [libc::ET_EXEC, libc::ET_DYN].contains(&header.e_type)
        && header.e_phentsize as usize == size_of::<libc::Elf64_Phdr>();
    ensure!(fits, foreign());
    let headers = structures::<libc::Elf64_Phdr>(&file, header.e_phoff, header.e_phnum.into())?;
    let loads: Vec<_> = headers.iter().filter(|h| h.p_type == libc::PT_LOAD).collect();
    let (Some(first), Some(last)) = (loads.first(), loads.last()) else {
        bail!("{}: nothing to load", path.display());
    };
    let start = first.p_vaddr / PAGE * PAGE;
    let end = (last.p_vaddr + last.p_memsz).next_multiple_of(PAGE);
    let base = if header.e_type == libc::ET_EXEC {
        reserve(start, end - start, libc::MAP_FIXED_NOREPLACE).with_context(|| {
            format!("{}: its addresses are taken in this process", path.display())
        })?;
        0
    } else {
        let align = loads.iter().map(|h| h.p_align).max().unwrap_or(PAGE).max(PAGE);
        let bytes = end - start + align;
        let at = reserve(crate::area::hint(bytes), bytes, 0)?;
        at.next_multiple_of(align) - start
    };
    for load in &loads {
        segment(&file, load, base).with_context(|| path.display().to_string())?;
    }
    let interpreter = match headers.iter().find(|h| h.p_type == libc::PT_INTERP) {
        Some(header) => {
            let mut name = vec![0; header.p_filesz as usize];
            file.read_exact_at(&mut name, header.p_offset)?;
            name.retain(|&byte| byte != 0);
            Some(PathBuf::from(String::from_utf8(name)?))
        }
        None => None,
    };
    let within =
        |h: &&&libc::Elf64_Phdr| (h.p_offset..h.p_offset + h.p_filesz).contains(&header.e_phoff);
    let phdr = loads.iter().find(within).map_or(0, |h| header.e_phoff - h.p_offset + h.p_vaddr);
    Ok(Placed {
        base,
        entry: base + header.e_entry,
        headers: base + phdr,
        header_count: header.e_phnum.into(),
        interpreter,
    })
}

fn map(at: u64, bytes: u64, protection: i32, flags: i32, file: i32, offset: u64) -> Result<u64> {
    // SAFETY: fixed mappings go into ranges that `reserve` returned.
    let result =
        unsafe { libc::mmap(at as *mut _, bytes as usize, protection, flags, file, offset as i64) };
    ensure!(result != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
    Ok(result as u64)
}

fn reserve(at: u64, bytes: u64, flags: i32) -> Result<u64> {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map(at, bytes, libc::PROT_NONE, flags, -1, 0)
}

fn segment(file: &File, header: &libc::Elf64_Phdr, base: u64) -> Result<()> {
    let flag = |bit, protection| if header.p_flags & bit != 0 { protection } else { 0 };
    let protection = flag(libc::PF_R, libc::PROT_READ)
        | flag(libc::PF_W, libc::PROT_WRITE)
        | flag(libc::PF_X, libc::PROT_EXEC);
    let before = header.p_vaddr % PAGE;
    let start = base + header.p_vaddr - before;
    let file_end = base + header.p_vaddr + header.p_filesz;
    let end = base + header.p_vaddr + header.p_memsz;
    let fixed = libc::MAP_PRIVATE | libc::MAP_FIXED;
    if header.p_filesz > 0 {
        let offset = header.p_offset - before;
        map(start, header.p_filesz + before, protection, fixed, file.as_raw_fd(), offset)?;
    }
    if end > file_end {
        let next = file_end.next_multiple_of(PAGE);
        if header.p_filesz > 0 && protection & libc::PROT_WRITE != 0 {
            // SAFETY: the rest of the segment's last page, which was just mapped for writing.
            unsafe { std::ptr::write_bytes(file_end as *mut u8, 0, (next - file_end) as usize) };
        }
        let next = if header.p_filesz > 0 { next } else { start };
        if end > next {
            map(next, end - next, protection, fixed | libc::MAP_ANONYMOUS, -1, 0)?;
        }
    }
    Ok(())
}

/// Maps a stack of the size that the host allows, with a guard below, and returns its end.
pub fn stack() -> Result<u64> {
    /// As much as the kernel keeps free below a stack, `stack_guard_gap`.
    const GUARD: u64 = 1 << 20;
    /// Without a limit, and with a great one. Memory is taken when the program touches it.
    const MOST: u64 = 1 << 30;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is valid.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) };
    let bytes = limit.rlim_cur.clamp(GUARD, MOST).next_multiple_of(PAGE) + GUARD;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK | libc::MAP_NORESERVE;
    let at = map(0, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)?;
    map(at, GUARD, libc::PROT_NONE, flags | libc::MAP_FIXED, -1, 0)?;
    Ok(at + bytes)
}
