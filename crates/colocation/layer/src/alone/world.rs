//! The cokernel's world: page tables and descriptor tables, at the same addresses as beside Linux.

use super::image::Images;
use super::memory::{Free, Ranges};
use super::tables::{self, DATA, DEVICE, RODATA, TEXT};
use crate::arch::x86_64::alone as stub;
use crate::frames::Frames;
use crate::owned::Owned;
use core::arch::asm;
use kyozon_abi::layer::{LAYER_BASE, MEMORY_BASE, TASKS_BASE};

/// The top page table, read-only.
pub const TABLES: u64 = LAYER_BASE + 0x0810_0000;
/// The registers of the tick's timer.
pub const TIMER: u64 = LAYER_BASE + 0x0820_0000;

const PAGE: u64 = 4096;
const TSS_BYTES: usize = 104;
/// Stacks of the interrupt stack table, as Linux numbers the first two.
const DOUBLE_FAULT_STACK: usize = 1;
const NMI_STACK: usize = 2;
const MACHINE_CHECK_STACK: usize = 3;
const NMI: usize = 2;
const MACHINE_CHECK: usize = 18;
const KERNEL_CODE: u16 = 0x10;
const TSS_SELECTOR: u16 = 0x40;

/// Page-aligned, so that no table crosses into another page.
#[repr(C, align(4096))]
struct Descriptors {
    idt: [[u64; 2]; 256],
    gdt: [u64; 16],
    tss: [u32; TSS_BYTES / 4],
}

static DESCRIPTORS: Owned<Descriptors> =
    Owned::new(Descriptors { idt: [[0; 2]; 256], gdt: [0; 16], tss: [0; TSS_BYTES / 4] });

extern "C" {
    static __image_start: u8;
    static __rodata_start: u8;
    static __data_start: u8;
    static __image_end: u8;
}

/// This image: start, read-only data, data, end. It runs at the address at which it was loaded.
pub fn image() -> [u64; 4] {
    [
        &raw const __image_start,
        &raw const __rodata_start,
        &raw const __data_start,
        &raw const __image_end,
    ]
    .map(|at| at as u64)
}

/// Addresses of the task state segment and of the interrupt descriptor table.
pub fn descriptors() -> (u64, u64) {
    // SAFETY: addresses only.
    let d = unsafe { DESCRIPTORS.get() };
    ((&raw const d.tss) as u64, (&raw const d.idt) as u64)
}

/// Free memory, readable and writable at its physical address until the world is live.
pub struct Pages(pub Free);

impl Frames for Pages {
    fn page(&mut self) -> Option<u64> {
        let page = self.0.page()?;
        // SAFETY: free RAM, mapped at its physical address.
        unsafe { (page as *mut u8).write_bytes(0, PAGE as usize) };
        Some(page)
    }

    fn entry(&mut self, table: u64, index: usize) -> &mut u64 {
        // SAFETY: a page of ours, mapped at its physical address; 512 entries.
        unsafe { &mut *(table as *mut u64).add(index) }
    }

    fn copy(&mut self, to: u64, from: u64) {
        // SAFETY: two pages of ours, mapped at their physical addresses.
        unsafe { (to as *mut [u64; 512]).copy_from(from as *const [u64; 512], 1) };
    }
}

/// The addresses of the tasks' images, which follow each other, each on a page boundary.
pub fn tasks<'a>(images: &'a Images<'_>) -> impl Iterator<Item = (u64, &'a [u8])> {
    images.tasks().iter().scan(TASKS_BASE, |next, task| {
        let base = *next;
        *next += (task.len() as u64).next_multiple_of(PAGE);
        Some((base, *task))
    })
}

/// Maps a new page at `va` that begins with `bytes`, at most a page.
fn map_copy(pages: &mut Pages, top: u64, va: u64, bytes: &[u8], flags: u64) -> Option<()> {
    let page = pages.page()?;
    let bytes = &bytes[..bytes.len().min(PAGE as usize)];
    // SAFETY: a page of ours, mapped at its physical address; the source is no longer than it.
    unsafe { (page as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    tables::map(pages, top, va, page, flags)
}

/// Maps everything. Returns CR3 and the pieces of the cokernel's memory; `None` if memory or pieces ran out.
pub fn make(
    pages: &mut Pages,
    images: &Images<'_>,
    memory_bytes: u64,
    timer: u64,
) -> Option<(u64, Ranges)> {
    let header = &images.header;
    let top = pages.page()?;
    let own = self::image();
    for (part, flags) in [(0, TEXT), (1, RODATA), (2, DATA)] {
        for at in (own[part]..own[part + 1]).step_by(PAGE as usize) {
            tables::map(pages, top, at, at, flags)?;
        }
    }
    let constant = header.text_bytes + header.rodata_bytes;
    let file = &images.cokernel[..(constant + header.data_bytes) as usize];
    for at in (0..constant + header.memory_bytes).step_by(PAGE as usize) {
        let flags = match at {
            _ if at < header.text_bytes => TEXT,
            _ if at < constant => RODATA,
            _ => DATA,
        };
        let bytes = file.get(at as usize..).unwrap_or(&[]);
        map_copy(pages, top, header.base + at, bytes, flags)?;
    }
    for (base, task) in tasks(images) {
        for at in (0..task.len()).step_by(PAGE as usize) {
            map_copy(pages, top, base + at as u64, &task[at..], RODATA)?;
        }
    }
    // The pages come first, so that no page table lies between them.
    let mut pieces = Ranges::default();
    for _ in (0..memory_bytes).step_by(PAGE as usize) {
        pieces.push_page(pages.page()?).then_some(())?;
    }
    let mut va = MEMORY_BASE;
    for piece in pieces.as_slice() {
        for at in (piece.base..piece.base + piece.bytes).step_by(PAGE as usize) {
            tables::map(pages, top, va, at, DATA)?;
            va += PAGE;
        }
    }
    tables::map(pages, top, TIMER, timer, DEVICE)?;
    tables::map(pages, top, TABLES, top, RODATA)?;
    let level3 = *pages.entry(top, 0) & tables::ADDRESS;
    tables::map(pages, top, TABLES + PAGE, level3, RODATA)?;
    Some((top, pieces))
}

fn gate(handler: unsafe extern "C" fn(), stack: usize) -> [u64; 2] {
    let at = handler as *const () as u64;
    // Present, DPL 0, interrupt gate. Intel SDM 3A 6.14.1.
    let kind = 0x8e00 | stack as u64;
    [at & 0xffff | u64::from(KERNEL_CODE) << 16 | kind << 32 | (at >> 16 & 0xffff) << 48, at >> 32]
}

fn make_descriptors(d: &mut Descriptors) {
    // The selectors are Linux's, as in every mode: kernel code and data 0x10 and 0x18, user data and code 0x2b, 0x33.
    d.gdt[2] = 0x00af_9b00_0000_ffff;
    d.gdt[3] = 0x00cf_9300_0000_ffff;
    d.gdt[5] = 0x00cf_f300_0000_ffff;
    d.gdt[6] = 0x00af_fb00_0000_ffff;
    let tss = (&raw const d.tss) as u64;
    let limit = TSS_BYTES as u64 - 1;
    d.gdt[8] = limit | (tss & 0xff_ffff) << 16 | 0x89 << 40 | (tss >> 24 & 0xff) << 56;
    d.gdt[9] = tss >> 32;
    // Intel SDM 3A 8.7: the stack of IST n is at byte 28 + 8 n; no I/O map.
    for (ist, top) in [
        (DOUBLE_FAULT_STACK, stub::fault_stack_top()),
        (NMI_STACK, stub::nmi_stack_top()),
        (MACHINE_CHECK_STACK, stub::machine_check_stack_top()),
    ] {
        d.tss[7 + 2 * ist] = top as u32;
        d.tss[8 + 2 * ist] = (top >> 32) as u32;
    }
    d.tss[25] = (TSS_BYTES as u32) << 16;
    d.idt[NMI] = gate(stub::alone_nmi, NMI_STACK);
    d.idt[MACHINE_CHECK] = gate(stub::alone_machine_check, MACHINE_CHECK_STACK);
}

#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}

/// Enters the world. No other memory is mapped from then on.
///
/// # Safety
///
/// `page_table` must come from [`make`]; only memory of this image may be used from here on.
pub unsafe fn enter(page_table: u64) {
    // SAFETY: before the first interrupt.
    let d = unsafe { DESCRIPTORS.get() };
    make_descriptors(d);
    let gdt = Pointer { limit: size_of_val(&d.gdt) as u16 - 1, base: (&raw const d.gdt) as u64 };
    let idt = Pointer { limit: size_of_val(&d.idt) as u16 - 1, base: (&raw const d.idt) as u64 };
    // SAFETY: code, stack and these tables lie in this image, which both page tables map at the same addresses; the
    // code selector has the same meaning in both descriptor tables. Intel SDM 3A 2.4, 4.10.
    unsafe {
        asm!(
            "mov cr3, {cr3}",
            "lgdt [{gdt}]",
            "lidt [{idt}]",
            "mov ss, {data:e}",
            "mov ds, {null:e}",
            "mov es, {null:e}",
            "mov fs, {null:e}",
            "mov gs, {null:e}",
            "ltr {tss:x}",
            cr3 = in(reg) page_table,
            gdt = in(reg) &gdt,
            idt = in(reg) &idt,
            data = in(reg) 0x18,
            null = in(reg) 0,
            tss = in(reg) TSS_SELECTOR,
            options(nostack, preserves_flags)
        );
    }
}
