//! Rewrites `syscall` instructions, one byte each, so that they jump to the gate.
//!
//! `syscall` is `0f 05`. With the first byte changed to `e9`, the processor reads a jump whose displacement is `05` and
//! the three bytes that follow the instruction. Those stay as they are, so the place where the jump lands is given; the
//! rewriter maps a page there, if it is free, and writes a stub into it:
//!
//! ```text
//! site:  0f 05  48 3d 00 f0 ff ff        syscall; cmp $-4096, %rax
//! site:  e9 05  48 3d 00 f0 ff ff        jmp site + 5 + 0x003d4805
//! stub:  lea site+2(%rip), %rcx; jmp *%gs:8
//! ```
//!
//! Why not `call *%rax` and a page at address 0:
//!
//! - a call would overwrite 8 bytes of the red zone of a leaf function;
//! - address 0 needs privileges, and hides calls through null pointers;
//! - two bytes must be written at once; they may cross a cache line or the processor's fetch window.
//!
//! Other threads may execute the site meanwhile. They see the old or the new first byte, and both sequences are
//! complete: the stub is written before. A thread that waits behind the instruction finds the bytes that it expects.
//!
//! Pages never become writable and executable: the host's kernel writes through `/proc/self/mem`, into the process's
//! private copy of the page. If it refuses (a shared mapping, a hardened kernel), or if the landing place is taken, the
//! site keeps raising SIGSYS.

use crate::host;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

const PAGE: u64 = 4096;
const SYSCALL: [u8; 2] = [0x0f, 0x05];
const JUMP: u8 = 0xe9;
/// Bytes of a stub.
const STUB: usize = 15;
/// `jmp *%gs:8`.
const JUMP_GATE: [u8; 8] = [0x65, 0xff, 0x24, 0x25, 0x08, 0x00, 0x00, 0x00];

struct Patcher {
    memory: File,
    /// Which bytes of the pages of stubs are taken, by address of the page.
    pages: HashMap<u64, [bool; PAGE as usize]>,
    /// Sites that cannot be rewritten.
    refused: HashSet<u64>,
}

static PATCHER: OnceLock<Mutex<Patcher>> = OnceLock::new();
/// A forked process has its parent's file, which would write to the parent.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Allows rewriting. Without this, every system call of the program raises SIGSYS.
pub fn enable() -> std::io::Result<()> {
    let memory = OpenOptions::new().read(true).write(true).open("/proc/self/mem")?;
    PATCHER.get_or_init(|| {
        Mutex::new(Patcher { memory, pages: HashMap::new(), refused: HashSet::new() })
    });
    Ok(())
}

/// This process was forked: its system calls that are not rewritten yet stay so.
pub fn disable() {
    FORKED.store(true, Ordering::Relaxed);
}

/// Rewrites the `syscall` instruction at `site`, if that is possible.
pub fn rewrite(site: u64) {
    if let Some(patcher) = PATCHER.get() {
        if !FORKED.load(Ordering::Relaxed) {
            let mut patcher = patcher.lock().expect("no panic while locked");
            if !patcher.refused.contains(&site) && patcher.rewrite(site).is_none() {
                patcher.refused.insert(site);
            }
        }
    }
}

/// Where the jump lands, and the stub that belongs there.
fn stub(site: u64, bytes: [u8; 5]) -> Option<(u64, [u8; STUB])> {
    let displacement = i32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]);
    let landing = (site + 5).checked_add_signed(i64::from(displacement))?;
    if bytes[..2] != SYSCALL || landing < 16 * PAGE || landing + STUB as u64 >= 1 << 47 {
        return None;
    }
    // lea displacement(%rip), %rcx: 7 bytes.
    let back = i32::try_from((site + 2).wrapping_sub(landing + 7) as i64).ok()?;
    let mut stub = [0x48, 0x8d, 0x0d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    stub[3..7].copy_from_slice(&back.to_le_bytes());
    stub[7..].copy_from_slice(&JUMP_GATE);
    Some((landing, stub))
}

impl Patcher {
    fn rewrite(&mut self, site: u64) -> Option<()> {
        let mut bytes = [0; 5];
        self.memory.read_exact_at(&mut bytes, site).ok()?;
        let (landing, stub) = stub(site, bytes)?;
        let range = landing..landing + STUB as u64;
        let (first, last) = (range.start / PAGE * PAGE, (range.end - 1) / PAGE * PAGE);
        for page in [first, last] {
            if let Entry::Vacant(entry) = self.pages.entry(page) {
                map(page)?;
                entry.insert([false; PAGE as usize]);
            }
        }
        let place = |address: u64| (address / PAGE * PAGE, (address % PAGE) as usize);
        let taken = |address| {
            let (page, offset) = place(address);
            self.pages[&page][offset]
        };
        // A site that was rewritten before, unmapped, and mapped again needs a stub with the same bytes.
        if range.clone().any(taken) {
            let mut old = [0; STUB];
            self.memory.read_exact_at(&mut old, landing).ok()?;
            if old != stub {
                return None;
            }
        } else {
            self.memory.write_all_at(&stub, landing).ok()?;
            for address in range {
                let (page, offset) = place(address);
                self.pages.get_mut(&page)?[offset] = true;
            }
        }
        self.memory.write_all_at(&[JUMP], site).ok()
    }
}

/// Maps a page for stubs, unless something is there.
fn map(page: u64) -> Option<()> {
    let protection = (libc::PROT_READ | libc::PROT_EXEC) as u64;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let at = host::call(libc::SYS_mmap, &[page, PAGE, protection, flags as u64, u64::MAX, 0]);
    (at as u64 == page).then_some(())
}

#[cfg(test)]
mod tests;
