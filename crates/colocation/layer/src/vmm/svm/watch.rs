//! Watched memory: Linux may write it, and the cokernel learns of each write.
//!
//! The memory is read-only in the guest's tables. A write faults, and its instruction runs once on the real page, in a
//! view that only its CPU has. What it changed goes into a queue. One CPU at a time does this: another one that faults
//! meanwhile is sent back to its instruction, and faults again until it is its turn. In between it takes interrupts, so
//! nothing is lost but time. The same happens while the queue is full, as long as the cokernel empties it.

use super::access::Access;
use super::cpu::Cpu;
use super::entry::{at, entry, lies_in, list};
use super::memory::{Lock, POOL};
use super::park;
use super::tables::tables;
use crate::arch::x86_64 as arch;
use crate::vmm::nested::{Rights, ADDRESS, PAGE};
use crate::vmm::watched::{Page, Queue};
use core::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use kyozon_abi::layer::{Range, Write, Writes, WRITE_MEMORY};

/// Maximum number of watched ranges.
const MAX_RANGES: usize = 16;
/// Time without a fetch after which the cokernel counts as gone, and no CPU waits for it.
const PATIENCE_MS: u64 = 100;

/// First address and end of each range, and the address space in which Linux patches it, or 0.
static RANGES: [[AtomicU64; 3]; MAX_RANGES] =
    [const { [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)] }; MAX_RANGES];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Changes of the tables: a CPU that has not seen the last one flushes its guest.
static CHANGES: AtomicU64 = AtomicU64::new(0);
/// The CPU that steps over a write, plus 1, or 0.
static STEPPER: AtomicU32 = AtomicU32::new(0);
static QUEUE: Lock<Queue> = Lock::new(Queue::EMPTY);

/// The address space in which Linux patches the watched range around `gpa`, 0 for none; `None` if it is not watched.
fn space(gpa: u64) -> Option<u64> {
    RANGES[..COUNT.load(Acquire)].iter().find_map(|[start, end, space]| {
        let inside = (start.load(Relaxed)..end.load(Relaxed)).contains(&gpa);
        inside.then(|| space.load(Relaxed))
    })
}

/// Whether writes to `gpa` are watched.
pub fn covers(gpa: u64) -> bool {
    space(gpa).is_some()
}

/// Number of changes of the tables so far.
pub fn changed() -> u64 {
    CHANGES.load(Relaxed)
}

/// Watches `range`, which Linux patches in `space`, from now on; called in a trip on CPU `own`. False if it does not
/// consist of whole pages of System RAM, or there is no room.
pub fn add(own: u32, range: Range, space: u64) -> bool {
    let e = entry();
    let Some(end) = range.base.checked_add(range.bytes) else { return false };
    let is_ram = |ram: &Range| lies_in(&[*ram], range.base) && end <= ram.base + ram.bytes;
    let read_only = list(&e.read_only, e.read_only_count);
    let is_apart = |other: &Range| end <= other.base || other.base + other.bytes <= range.base;
    if range.bytes == 0
        || !(range.base | end).is_multiple_of(PAGE)
        || !list(&e.ram, e.ram_count).iter().any(is_ram)
        || !read_only.iter().all(is_apart)
    {
        return false;
    }
    if covers(range.base) && covers(end - 1) {
        return true;
    }
    let mut pool = POOL.lock();
    let count = COUNT.load(Relaxed);
    let Some(entry) = RANGES.get(count) else { return false };
    for (to, value) in entry.iter().zip([range.base, end, space]) {
        to.store(value, Relaxed);
    }
    // First the list: a page that is read-only and not in it could never be written.
    COUNT.store(count + 1, Release);
    let mapped = tables().sealed.map(&mut *pool, range, Some(Rights::TEXT)).is_some();
    drop(pool);
    CHANGES.fetch_add(1, SeqCst);
    park::interrupt_others(own);
    mapped
}

/// Whether the address space with this CR3 is the one in which Linux patches the watched memory around `gpa`.
fn patches(gpa: u64, cr3: u64) -> bool {
    space(gpa).is_some_and(|space| space != 0 && space == cr3 & ADDRESS)
}

/// Whether `cpu` may step over a write to `gpa` now. If not, it tries again.
pub fn begin(cpu: &Cpu, gpa: u64) -> bool {
    let own = cpu.index + 1;
    if STEPPER.load(Relaxed) == own {
        return true;
    }
    if !patches(gpa, cpu.vmcb().cr3) && is_busy() {
        return false;
    }
    STEPPER.compare_exchange(0, own, Acquire, Relaxed).is_ok()
}

/// Whether a write is to wait, unless it is a patch, since there is no room for it.
pub fn is_busy() -> bool {
    QUEUE.lock().is_busy(arch::tsc(), PATIENCE_MS * entry().tsc_khz)
}

/// Queues what `access` has changed in watched pages, and lets other CPUs write.
pub fn end(access: &Access, cpu: &Cpu) {
    if access.watched == Access::NOTHING {
        return;
    }
    let write = Write {
        kind: WRITE_MEMORY,
        cpu: cpu.index,
        rip: access.rip,
        cr3: access.cr3,
        ..Write::default()
    };
    for (decoy, page) in cpu.decoys.iter().zip(access.watched).filter(|(_, page)| *page != 0) {
        let patches = patches(page, access.cr3);
        // SAFETY: a page of this CPU, with the contents before the step; and Linux's, which no other CPU writes now.
        let page = unsafe {
            Page {
                address: page,
                before: &*at(*decoy),
                after: &*at(page),
                ahead: covers(page.wrapping_sub(8)).then(|| at::<u64>(page - 8).read()),
                behind: covers(page + PAGE).then(|| at::<[u64; 2]>(page + PAGE).read()),
            }
        };
        QUEUE.lock().push_page(&page, patches, &write);
    }
    give_up(cpu.index);
}

/// Lets other CPUs write, if CPU `index` held them off.
pub fn give_up(index: u32) {
    let _ = STEPPER.compare_exchange(index + 1, 0, Release, Relaxed);
}

/// Queues a register's write by the instruction at `rip` on CPU `cpu`.
pub fn register(cpu: &Cpu, kind: u32, number: u32, rip: u64, before: [u64; 2], after: [u64; 2]) {
    let words = |[first, second]: [u64; 2]| [first, second, 0, 0];
    QUEUE.lock().push(Write {
        kind,
        cpu: cpu.index,
        address: number.into(),
        before: words(before),
        after: words(after),
        rip,
        cr3: cpu.vmcb().cr3,
    });
}

/// Moves the oldest writes to `to`.
pub fn fetch(to: &mut Writes) {
    QUEUE.lock().fetch(to, arch::tsc());
}
