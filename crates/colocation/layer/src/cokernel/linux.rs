//! The Linux beside the cokernel: its memory is mapped, and the module, or the hypervisor, parks its other CPUs.

use super::guard::{acknowledge, arm_guard, times};
use super::state::{entry, parked, trip};
use crate::arch::x86_64::entry::layer_yield;
use crate::interrupt::guard_at;
use crate::linux::Linux;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use kyozon_abi::layer::{
    Range, MAX_RANGES, PARKED_STANDING, PARKED_STATE, PARKED_WRITING, TRIP_PARK, WINDOW_BASE,
};

/// The Linux beside the cokernel.
pub(crate) struct Beside {
    /// Writes a word, as [`Linux::write`]. The modes differ in it.
    pub(crate) write: fn(address: u64, value: u64),
}

impl Linux for Beside {
    fn ram(&self) -> &[Range] {
        let e = entry();
        &e.ram[..(e.ram_count as usize).min(MAX_RANGES)]
    }

    fn read(&mut self, address: u64) -> u64 {
        // SAFETY: System RAM, which the window maps.
        unsafe { ((WINDOW_BASE + address) as *const u64).read_volatile() }
    }

    fn write(&mut self, address: u64, value: u64) {
        (self.write)(address, value);
    }

    fn park(&mut self) -> bool {
        trip!(result = TRIP_PARK);
        // SAFETY: a service, on the cokernel's stack; the module enters again at once.
        unsafe { layer_yield() };
        // While the module waited for the other CPUs, NMIs went to Linux: the guard's may have been one of them.
        acknowledge();
        arm_guard(guard_at(&times()));
        // Firmware may have held this CPU for so long that the others have given up.
        let parked = parked();
        let round = parked.load(Relaxed) & !PARKED_STATE;
        let (from, to) = (round | PARKED_STANDING, round | PARKED_WRITING);
        parked.compare_exchange(from, to, SeqCst, Relaxed).is_ok()
    }

    fn release(&mut self) {
        parked().fetch_and(!PARKED_STATE, SeqCst);
    }
}
