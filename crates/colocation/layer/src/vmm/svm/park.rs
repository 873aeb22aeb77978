//! Parks the other CPUs, in the host, while the layer repairs.
//!
//! The same word and the same rules as in the module's park.c: every wait is bounded, and a CPU that has waited too
//! long takes the word back; once the layer writes, no CPU leaves.

use super::entry::{at, count, entry, trip};
use crate::arch::x86_64::{self as arch, svm};
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use kyozon_abi::layer::{PARKED_FREE, PARKED_STANDING, PARKED_STATE, PARKED_WRITING};
use kyozon_abi::vmm::EXIT_PARK;

const ARRIVE_US: u64 = 500;
const STAND_US: u64 = 5000;
/// Time in which an NMI may still belong to the last round.
const LATE_US: u64 = 20_000;
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

/// Sends an NMI to CPU `index`.
pub fn send_nmi(index: u32) {
    const APIC_BASE: u32 = 0x1b;
    const X2APIC: u64 = 1 << 10;
    const X2APIC_ICR: u32 = 0x830;
    const ICR: u64 = 0x300;
    const ICR_HIGH: u64 = 0x310;
    const BUSY: u32 = 1 << 12;
    const DELIVER_NMI: u32 = 4 << 8 | 1 << 14;
    let id = entry().apic_ids[index as usize];
    // SAFETY: the local APIC's registers; Linux's command register is put back. APM 2 16.5.
    unsafe {
        if svm::rdmsr(APIC_BASE) & X2APIC != 0 {
            svm::wrmsr(X2APIC_ICR, u64::from(id) << 32 | u64::from(DELIVER_NMI));
            return;
        }
        let register = |offset| at::<u32>(entry().local_apic + offset);
        let wait = || (0..1000).any(|_| register(ICR).read_volatile() & BUSY == 0);
        wait();
        let high = register(ICR_HIGH).read_volatile();
        register(ICR_HIGH).write_volatile(id << 24);
        register(ICR).write_volatile(DELIVER_NMI);
        wait();
        register(ICR_HIGH).write_volatile(high);
    }
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
    others(own).for_each(send_nmi);
    while ARRIVED.load(SeqCst) < entry().cpu_count - 1 {
        if arch::tsc() >= end {
            // Parked CPUs go on; late ones do not park.
            word().store(round | PARKED_FREE, SeqCst);
            return;
        }
        core::hint::spin_loop();
    }
}

/// Handles an NMI on CPU `index`. False if it does not ask the CPU to park.
pub fn stand(index: u32) -> bool {
    let bit = 1 << index;
    if WANTED.load(SeqCst) & bit == 0 {
        // One NMI may have served two rounds: the other is late.
        let round = ROUND_TSC.load(Relaxed);
        let late = round != 0 && arch::tsc().wrapping_sub(round) < us(LATE_US);
        if late {
            count(EXIT_PARK);
        }
        return late;
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

/// Lets the other CPUs continue, in whatever state the layer left the word.
pub fn release() {
    word().fetch_and(!PARKED_STATE, SeqCst);
}
