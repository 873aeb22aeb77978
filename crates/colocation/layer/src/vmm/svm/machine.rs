//! What all CPUs share.

use super::cpu::Cpu;
use super::trip::Cokernel;
use super::vmcb::msr_bit;
use crate::arch::x86_64::{self as arch, svm};
use crate::events::Events;
use crate::frames::Frames;
use crate::line::Line;
use crate::owned::Owned;
use crate::serial;
use crate::vmm::flood::{Flood, Say};
use crate::vmm::nested::{Nested, Rights, PAGE};
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use kyozon_abi::events::EVENT_WALL;
use kyozon_abi::layer::{Range, Trip};
use kyozon_abi::vmm::*;

/// Physical address `address`, in the hypervisor's window.
pub fn at<T>(address: u64) -> *mut T {
    (HOST_WINDOW_BASE + address) as *mut T
}

/// Memory that one CPU at a time uses.
pub struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `taken` lets one in.
unsafe impl<T> Sync for Lock<T> {}

/// The right to use it.
pub struct Guard<'a, T>(&'a Lock<T>);

impl<T> Lock<T> {
    /// Nobody has it.
    pub const fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for it. Who has it is in the host, and does not wait for anything there.
    pub fn lock(&self) -> Guard<'_, T> {
        while self.taken.swap(true, Acquire) {
            core::hint::spin_loop();
        }
        Guard(self)
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the lock is ours.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is ours.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.taken.store(false, Release);
    }
}

/// Free pages of the reserve; and tables, wherever they are.
pub struct Pool {
    next: usize,
    used: u64,
    pages: u64,
}

impl Frames for Pool {
    fn page(&mut self) -> Option<u64> {
        let e = entry();
        while self.next < e.pool_count as usize {
            let range = e.pool[self.next];
            if self.used < range.bytes {
                let page = range.base + self.used;
                self.used += PAGE;
                self.pages += 1;
                // SAFETY: free memory of the hypervisor's.
                unsafe { at::<u8>(page).write_bytes(0, PAGE as usize) };
                return Some(page);
            }
            (self.next, self.used) = (self.next + 1, 0);
        }
        None
    }

    fn entry(&mut self, table: u64, index: usize) -> &mut u64 {
        // SAFETY: a table from `page`, and one of its 512 entries.
        unsafe { &mut *at::<u64>(table).add(index & 511) }
    }
}

static ENTRY: AtomicPtr<HostEntry> = AtomicPtr::new(ptr::null_mut());
/// Pages, and the right to change nested tables.
pub static POOL: Lock<Pool> = Lock::new(Pool { next: 0, used: 0, pages: 0 });
static EVENTS: Lock<Events> = Lock::new(Events::none());
/// Written by the first CPU before there is another.
static TABLES: Owned<Option<Tables>> = Owned::new(None);
/// Each is its CPU's, and made by it.
static CPUS: [Owned<Option<Cpu>>; HOST_MAX_CPUS] = [const { Owned::new(None) }; HOST_MAX_CPUS];
/// The cokernel's CPU's, and made by the first one.
static COKERNEL: Owned<Option<Cokernel>> = Owned::new(None);
/// Lines of the wall: who makes many attempts must not push everything else out of the ring.
static FLOOD: Lock<Flood> = Lock::new(Flood::new());
/// No tick from here on.
pub static SILENT: AtomicBool = AtomicBool::new(true);

/// What the guests see of memory, and may do.
pub struct Tables {
    /// Linux's, before it is sealed and after it is opened.
    pub open: Nested,
    /// Linux's.
    pub sealed: Nested,
    /// The cokernel's.
    pub cokernel: Nested,
    /// Physical address of the pages of 1s: no port is the cokernel's.
    pub ports: u64,
    /// Physical address of the registers that Linux may not write.
    pub linux_registers: u64,
    /// Physical address of the registers that the cokernel may use.
    pub cokernel_registers: u64,
}

/// What the module said.
pub fn entry() -> &'static HostEntry {
    // SAFETY: set before anything else. The module writes it only in entries, which it makes one after the other.
    unsafe { &*ENTRY.load(Relaxed) }
}

/// A list of ranges of the entry.
pub fn list(ranges: &'static [Range], count: u32) -> &'static [Range] {
    &ranges[..(count as usize).min(ranges.len())]
}

/// Whether `address` lies in one of them.
pub fn lies_in(ranges: &[Range], address: u64) -> bool {
    ranges.iter().any(|r| address.wrapping_sub(r.base) < r.bytes)
}

/// The registers of each IOMMU that is driven.
pub fn iommus() -> impl Iterator<Item = Range> {
    let registers = entry().iommu.registers.into_iter().take_while(|registers| *registers != 0);
    registers.map(|base| Range { base, bytes: HOST_IOMMU_BYTES })
}

/// The tables.
pub fn tables() -> &'static Tables {
    // SAFETY: written once, before there is a second CPU.
    unsafe { TABLES.get() }.as_ref().expect("made at the first launch")
}

/// CPU `index`'s own.
///
/// # Safety
///
/// Only on this CPU, which holds no other reference.
pub unsafe fn cpu(index: usize) -> &'static mut Option<Cpu> {
    // SAFETY: the caller's promise.
    unsafe { CPUS[index].get() }
}

/// The cokernel.
///
/// # Safety
///
/// Only on the cokernel's CPU, which holds no other reference; or while no CPU is a guest.
pub unsafe fn cokernel() -> &'static mut Option<Cokernel> {
    // SAFETY: the caller's promise.
    unsafe { COKERNEL.get() }
}

/// The trip that layer and hypervisor share.
pub fn trip() -> *mut Trip {
    at(entry().trip)
}

/// What Linux may read of us. Its fields are written one by one.
pub fn status() -> *mut HostStatus {
    at(entry().status)
}

/// Counts an exit.
pub fn count(reason: usize) {
    // SAFETY: a field of the status, which is accessed by atomics only.
    unsafe { AtomicU64::from_ptr(&raw mut (*status()).exits[reason]) }.fetch_add(1, Relaxed);
}

/// Counts an NMI of which nobody knows whose it is.
pub fn doubt() {
    // SAFETY: as above.
    unsafe { AtomicU64::from_ptr(&raw mut (*status()).extra_nmis) }.fetch_add(1, Relaxed);
}

/// An attempt of Linux was stopped.
pub fn report(arguments: core::fmt::Arguments<'_>) {
    // SAFETY: as in `count`.
    unsafe { AtomicU64::from_ptr(&raw mut (*status()).findings) }.fetch_add(1, Relaxed);
    match FLOOD.lock().next(arch::tsc(), entry().tsc_khz * 1000) {
        Say::Nothing => return,
        Say::Line => {}
        Say::AndMissed(lines) => {
            let line = Line::new(format_args!("wall: {lines} more attempts in a second"));
            write(EVENT_WALL, 0, line.bytes());
        }
    }
    write(EVENT_WALL, 0, Line::new(arguments).bytes());
}

/// A line for the event ring and the serial line, from any CPU.
pub fn write(kind: u32, code: u32, line: &[u8]) {
    // SAFETY: a field of the trip.
    let tick = unsafe { (&raw const (*trip()).event.number).read_volatile() };
    let mut events = EVENTS.lock();
    events.write(kind, code, arch::tsc(), tick, line);
    if SILENT.load(Relaxed) {
        if let Some(port) = port() {
            serial::last_words(&mut events, port, entry().tsc_khz);
        }
    }
}

/// The ring and the serial line.
pub fn events() -> Guard<'static, Events> {
    EVENTS.lock()
}

fn port() -> Option<u16> {
    u16::try_from(entry().serial_port).ok().filter(|port| *port != 0)
}

/// Lets the serial line go on.
pub fn say() {
    if let Some(port) = port() {
        serial::say(&mut EVENTS.lock(), port);
    }
}

/// Lets the serial line say all that it can in a few milliseconds.
pub fn last_words() {
    if let Some(port) = port() {
        serial::last_words(&mut EVENTS.lock(), port, entry().tsc_khz);
    }
}

/// The hypervisor itself failed: this CPU stands still, and says why where it can. `frame`: what the exception pushed last.
pub extern "C" fn fault(vector: u64, frame: &[u64; 2]) -> ! {
    let [first, second] = *frame;
    failed(format_args!(
        "hypervisor failed: vector {vector}, {first:#x} {second:#x}, cr2 {:#x}",
        svm::cr2()
    ))
}

/// The same.
pub fn failed(arguments: core::fmt::Arguments<'_>) -> ! {
    if let Some(port) = port() {
        for byte in Line::new(arguments).bytes().iter().chain(b"\n") {
            // SAFETY: the operator gave this port to the cokernel. Its buffer may overflow: nothing can be waited for.
            unsafe { arch::out8(port, *byte) };
        }
    }
    // SAFETY: there is nothing to go on with.
    unsafe { svm::halt_forever() }
}

/// Everything that is made once. None where memory ran out.
pub fn make(from: *mut HostEntry) -> Option<()> {
    ENTRY.store(from, Relaxed);
    let e = entry();
    let mut pool = POOL.lock();
    let nested = |pool: &mut Pool| Nested::new(pool, e.paging_levels, e.largest_leaf);
    let (open, sealed, cokernel) = (nested(&mut pool)?, nested(&mut pool)?, nested(&mut pool)?);
    let ram = list(&e.ram, e.ram_count);
    let end = ram.iter().map(|r| r.base + r.bytes).max()?.max(4 << 30);
    let all = Range { base: 0, bytes: end.next_multiple_of(1 << 30) };
    open.map(&mut *pool, all, Some(Rights::ALL))?;
    sealed.map(&mut *pool, all, Some(Rights::ALL))?;
    for range in list(&e.guest, e.guest_count).iter().chain(list(&e.host, e.host_count)) {
        sealed.map(&mut *pool, *range, None)?;
    }
    for range in iommus() {
        sealed.map(&mut *pool, range, None)?;
    }
    for range in list(&e.read_only, e.read_only_count) {
        sealed.map(&mut *pool, *range, Some(Rights::READ))?;
    }
    let page = |address: u64| Range { base: address & !(PAGE - 1), bytes: PAGE };
    for device in [e.timer.registers, e.timer.ioapic] {
        if device != 0 {
            sealed.map(&mut *pool, page(device), Some(Rights::READ))?;
        }
    }
    for range in ram {
        cokernel.map(&mut *pool, *range, Some(Rights::READ))?;
    }
    for range in list(&e.guest, e.guest_count) {
        cokernel.map(&mut *pool, *range, Some(Rights::ALL))?;
    }
    cokernel.map(&mut *pool, page(e.timer.registers), Some(Rights::DATA))?;
    let tables = Tables {
        open,
        sealed,
        cokernel,
        ports: e.permissions,
        linux_registers: e.permissions + 3 * PAGE,
        cokernel_registers: e.permissions + 5 * PAGE,
    };
    fill_permissions(&tables);
    // SAFETY: the first CPU's first entry: nobody else is here. The ring is the module's, and Linux may only read it.
    unsafe {
        *TABLES.get() = Some(tables);
        *EVENTS.lock() = Events::new(e.events as *mut u8, e.events_bytes);
        (&raw mut (*status()).version).write_volatile(VMM_VERSION);
        (&raw mut (*status()).nested_bytes).write_volatile(pool.pages * PAGE);
        *cokernel_slot() = Some(Cokernel::make(&mut *pool)?);
    }
    Some(())
}

fn cokernel_slot() -> &'static mut Option<Cokernel> {
    // SAFETY: called by `make` only.
    unsafe { COKERNEL.get() }
}

/// Registers whose writes could undo the isolation. APM 2, appendix A.
pub const GUARDED: [u32; 14] = [
    APIC_BASE,
    EFER,
    0xc001_0010, // SYSCFG
    0xc001_0015, // HWCR
    0xc001_0016, // IORRBase0, IORRMask0, IORRBase1, IORRMask1
    0xc001_0017,
    0xc001_0018,
    0xc001_0019,
    0xc001_001a, // TOP_MEM
    0xc001_001d, // TOP_MEM2
    0xc001_0112, // SMM_ADDR, SMM_MASK
    0xc001_0113,
    VM_CR,
    VM_HSAVE_PA,
];
#[allow(missing_docs)]
pub const APIC_BASE: u32 = 0x1b;
#[allow(missing_docs)]
pub const EFER: u32 = 0xc000_0080;
#[allow(missing_docs)]
pub const VM_CR: u32 = 0xc001_0114;
#[allow(missing_docs)]
pub const VM_HSAVE_PA: u32 = 0xc001_0117;

/// FS, GS and KernelGS base: switched with the guest.
const COKERNELS: [u32; 3] = [0xc000_0100, 0xc000_0101, 0xc000_0102];

fn fill_permissions(tables: &Tables) {
    let map = |address: u64, pages: usize| {
        // SAFETY: the module's seven pages in a row.
        unsafe { core::slice::from_raw_parts_mut(at::<u8>(address), pages * PAGE as usize) }
    };
    map(tables.ports, 3).fill(0xff);
    let linux = map(tables.linux_registers, 2);
    linux.fill(0);
    for bit in GUARDED.iter().filter_map(|msr| msr_bit(*msr)) {
        linux[(bit + 1) / 8] |= 1 << ((bit + 1) % 8);
    }
    let cokernel = map(tables.cokernel_registers, 2);
    cokernel.fill(0xff);
    for bit in COKERNELS.iter().filter_map(|msr| msr_bit(*msr)) {
        cokernel[bit / 8] &= !(3 << (bit % 8));
    }
}
