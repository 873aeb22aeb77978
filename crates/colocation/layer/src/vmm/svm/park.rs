//! Parks the other CPUs, in the host, while the layer repairs.
//!
//! The same word and the same rules as in the module's park.c: every wait is bounded, and a CPU that has waited too
//! long takes the word back; once the layer writes, no CPU leaves.

use super::apic;
use super::cpu::casts_doubt;
use super::entry::{count, entry, trip};
use super::log;
use crate::arch::x86_64::{self as arch, svm};
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use kyozon_abi::layer::{PARKED_FREE, PARKED_STANDING, PARKED_STATE, PARKED_WRITING};
use kyozon_abi::vmm::{EXIT_INIT, EXIT_PARK};

const ARRIVE_US: u64 = 500;
const STAND_US: u64 = 5000;
/// Maximum time of a repair.
const WRITE_US: u64 = 1_000_000;

static WANTED: AtomicU64 = AtomicU64::new(0);
static ARRIVED: AtomicU32 = AtomicU32::new(0);
static ROUND_TSC: AtomicU64 = AtomicU64::new(0);

fn word() -> &'static AtomicU32 {
    // SAFETY: a field of the trip that is accessed by atomics only.
    unsafe { AtomicU32::from_ptr(&raw mut (*trip()).parked) }
}

fn us(us: u64) -> u64 {
    us * entry().tsc_khz / 1000
}

fn others(own: u32) -> impl Iterator<Item = u32> {
    (0..entry().cpu_count).filter(move |cpu| *cpu != own)
}

/// Takes the INIT that ended a guest's run on CPU `index`, and reports it. In the host it becomes an exception, which
/// does nothing: see `launch`.
#[cold]
pub fn take_init(index: u32) {
    count(EXIT_INIT);
    log::report(format_args!("wall: INIT to CPU {index}"));
    // SAFETY: the hypervisor's tables are live.
    unsafe { svm::take_nmi() };
}

/// Asks every other CPU to park; the word shows whether all did.
pub fn park(own: u32) {
    let end = arch::tsc() + us(ARRIVE_US);
    let round = (word().load(Relaxed) | PARKED_STATE).wrapping_add(1);
    ARRIVED.store(0, Relaxed);
    ROUND_TSC.store(arch::tsc(), Relaxed);
    word().store(round | PARKED_STANDING, SeqCst);
    let mask = others(own).fold(0, |mask, cpu| mask | 1 << cpu);
    WANTED.fetch_or(mask, SeqCst);
    // An ID that Linux has rewritten keeps no CPU from parking.
    apic::send_nmi_to_others();
    while ARRIVED.load(SeqCst) < entry().cpu_count - 1 {
        if arch::tsc() >= end {
            // Parked CPUs go on; late ones do not park.
            word().store(round | PARKED_FREE, SeqCst);
            return;
        }
        core::hint::spin_loop();
    }
}

/// Makes every other CPU leave its guest once, soon.
pub fn interrupt_others(own: u32) {
    ROUND_TSC.store(arch::tsc(), Relaxed);
    let mask = others(own).fold(0, |mask, cpu| mask | 1 << cpu);
    WANTED.fetch_or(mask, SeqCst);
    apic::send_nmi_to_others();
}

/// Handles an NMI on CPU `index`. False if it does not ask the CPU to park.
pub fn stand(index: u32) -> bool {
    let bit = 1 << index;
    if WANTED.load(SeqCst) & bit == 0 {
        // One NMI may have served two rounds, and this is the other: see `was_recent`.
        return false;
    }
    count(EXIT_PARK);
    WANTED.fetch_and(!bit, SeqCst);
    let mine = word().load(SeqCst);
    if mine & PARKED_STATE != PARKED_STANDING {
        return true;
    }
    let round = mine & !PARKED_STATE;
    let mut end = arch::tsc() + us(STAND_US);
    let mut patient = false;
    ARRIVED.fetch_add(1, SeqCst);
    loop {
        let now = word().load(SeqCst);
        if now != mine && now != round | PARKED_WRITING {
            return true;
        }
        if arch::tsc() < end {
            core::hint::spin_loop();
            continue;
        }
        // If the layer wins this exchange, this CPU waits for it.
        let free = round | PARKED_FREE;
        if patient || word().compare_exchange(mine, free, SeqCst, SeqCst).is_ok() {
            return true;
        }
        patient = true;
        end = arch::tsc() + us(WRITE_US);
    }
}

/// Whether an NMI at `now` may still belong to a round.
pub fn was_recent(now: u64) -> bool {
    casts_doubt(ROUND_TSC.load(Relaxed), now)
}

/// Lets the other CPUs continue, in whatever state the layer left the word.
pub fn release() {
    word().fetch_and(!PARKED_STATE, SeqCst);
}
