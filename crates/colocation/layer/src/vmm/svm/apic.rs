//! The local APIC of the CPU that runs.
//!
//! Linux has its registers. In xAPIC mode its ID is one of them: whoever rewrites it leads every message astray that
//! names this CPU. Messages to all other CPUs name none. In x2APIC mode the ID cannot be written. AMD APM 2, 16.

use super::entry::{at, entry};
use crate::arch::x86_64::svm;
use crate::vmm::registers::APIC_BASE;

const X2APIC: u64 = 1 << 10;
const X2APIC_ICR: u32 = 0x830;
const ID: u64 = 0x20;
const ICR: u64 = 0x300;
const ICR_HIGH: u64 = 0x310;
const BUSY: u32 = 1 << 12;
const DELIVER_NMI: u32 = 4 << 8 | 1 << 14;
const TO_OTHERS: u32 = 3 << 18;

/// Whether the registers are MSRs.
pub fn is_x2apic() -> bool {
    // SAFETY: every CPU with a local APIC has this register.
    unsafe { svm::rdmsr(APIC_BASE) & X2APIC != 0 }
}

fn register(offset: u64) -> *mut u32 {
    at(entry().local_apic + offset)
}

fn wait() {
    // SAFETY: a register of the local APIC, in the window; reading it changes nothing.
    let is_busy = || unsafe { register(ICR).read_volatile() } & BUSY != 0;
    let _ = (0..1000).any(|_| !is_busy());
}

fn send(command: u32, id: u32) {
    // SAFETY: the local APIC's registers; Linux's command register is put back. APM 2 16.5.
    unsafe {
        if is_x2apic() {
            return svm::wrmsr(X2APIC_ICR, u64::from(id) << 32 | u64::from(command));
        }
        wait();
        let high = register(ICR_HIGH).read_volatile();
        register(ICR_HIGH).write_volatile(id << 24);
        register(ICR).write_volatile(command);
        wait();
        register(ICR_HIGH).write_volatile(high);
    }
}

/// Sends an NMI to CPU `index`.
pub fn send_nmi(index: u32) {
    send(DELIVER_NMI, entry().apic_ids[index as usize]);
}

/// Sends an NMI to every other CPU.
pub fn send_nmi_to_others() {
    if entry().cpu_count > 1 {
        send(DELIVER_NMI | TO_OTHERS, 0);
    }
}

/// Restores the ID of this CPU, `index`. Returns the one that it had instead.
pub fn restore_id(index: u32) -> Option<u32> {
    if is_x2apic() {
        return None;
    }
    let own = entry().apic_ids[index as usize];
    // SAFETY: a register of the local APIC, in the window. Linux never changes it.
    unsafe {
        let id = register(ID).read_volatile() >> 24;
        if id == own {
            return None;
        }
        register(ID).write_volatile(own << 24);
        Some(id)
    }
}
