//! Mode none: nothing stands between Linux and the cokernel. The layer itself writes Linux's memory and the event ring.

use crate::arch::x86_64::{self as arch, user_state::Saved};
use crate::cokernel::services::{
    end, linux_window, no_watch, no_writes, publish, registers_with, repair_with, report,
    wait_for_tick, Services,
};
use crate::cokernel::state::{entry, look, space, trip};
use crate::cokernel::{reports, user_mode};
use crate::reset;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use kyozon_abi::layer::{
    LinuxRegisters, RepairRequest, LOOK_ASKED, LOOK_NONE, LOOK_SHOWN, LOOK_STATE, LOOK_WANTED,
    SERVICE_BAD_ADDRESS, SERVICE_UNAVAILABLE, TRIP_CRASH,
};
use kyozon_abi::task::RESET_ONLY;

/// The services of mode none.
pub(crate) static SERVICES: Services = Services {
    window: linux_window,
    registers,
    repair,
    report,
    publish,
    reset,
    watch: no_watch,
    writes: no_writes,
    other_registers,
    user_state: Some(Saved::NONE),
};

extern "C" fn registers(to: *mut LinuxRegisters) -> i64 {
    registers_with(read_registers, to)
}

/// The trampoline has saved the descriptor tables, and `user_state` what it switched; a trip changes no other.
fn read_registers() -> LinuxRegisters {
    let (gdt, idt) = (trip!(linux_gdtr), trip!(linux_idtr));
    let table = |[low, high]: [u64; 2]| (low >> 16 | high << 48, low & 0xffff);
    let ((gdt_base, gdt_limit), (idt_base, idt_limit)) = (table(gdt), table(idt));
    // SAFETY: a service of a mode with a place for the user state.
    let others = unsafe { user_mode::linux_registers() };
    LinuxRegisters { gdt_base, gdt_limit, idt_base, idt_limit, ..others }
}

/// Another CPU's registers, which it stores in its handler of non-maskable interrupts (`look.c` of the module).
extern "C" fn other_registers(to: *mut LinuxRegisters) -> i64 {
    if !space().can_write::<LinuxRegisters>(to as u64) {
        return SERVICE_BAD_ADDRESS;
    }
    let word = look().load(Acquire);
    let is_shown = match word & LOOK_STATE {
        LOOK_SHOWN => {
            let shown = trip!(shown);
            // SAFETY: the cokernel's writable memory, aligned.
            unsafe { to.write(shown) };
            look().store(LOOK_WANTED, Release);
            true
        }
        LOOK_NONE => {
            look().store(LOOK_WANTED, Release);
            false
        }
        LOOK_ASKED if arch::tsc().wrapping_sub(trip!(look_until_tsc)) as i64 >= 0 => {
            // It went offline, or is late: then it finds another word, and stores nothing.
            let _ = look().compare_exchange(word, LOOK_WANTED, AcqRel, Relaxed);
            false
        }
        _ => false,
    };
    let answer = end();
    if is_shown {
        answer
    } else {
        SERVICE_UNAVAILABLE
    }
}

extern "C" fn repair(request: *const RepairRequest) -> i64 {
    repair_with(write, request)
}

/// Linux's other CPUs run on until the machine resets.
extern "C" fn reset(how: u64) -> i64 {
    // SAFETY: a service.
    unsafe { reports::flush_serial() };
    if how != RESET_ONLY {
        // If Linux has a crash kernel, there is no next trip.
        wait_for_tick(TRIP_CRASH);
    }
    reset::machine()
}

/// Writes the word at physical address `address`, in System RAM, through the repair slot.
fn write(address: u64, value: u64) {
    const PAGE: u64 = 0xfff;
    /// Present, writable, accessed, dirty, no execution.
    const FLAGS: u64 = 1 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 63;
    let e = entry();
    // SAFETY: the repair slot is ours alone; it maps the page of this word for this write.
    unsafe {
        (e.poke_entry as *mut u64).write_volatile(address & !PAGE | FLAGS);
        arch::forget_translation(e.poke);
        ((e.poke | address & PAGE) as *mut u64).write_volatile(value);
        (e.poke_entry as *mut u64).write_volatile(0);
    }
    arch::forget_translation(e.poke);
}
