//! The layer of mode vmm, in the cokernel's guest. Only the hypervisor can write to Linux's memory and to the event
//! ring, so the layer calls it for both. A trip, a tick and every other service are the same as in mode none.

use crate::cokernel::services::{
    checked_report, checked_status, end, linux_window, no_other_registers, registers_with,
    repair_with, wait_for_tick, Services,
};
use crate::cokernel::state::{entry, space};
use core::arch::asm;
use kyozon_abi::events::StatusWords;
use kyozon_abi::layer::{
    LinuxRegisters, RepairRequest, Report, Writes, SERVICE_BAD_ADDRESS, SERVICE_UNAVAILABLE,
    TRIP_CUT_OFF,
};
use kyozon_abi::vmm::{
    Mailbox, CALL_PUBLISH, CALL_REGISTERS, CALL_REPORT, CALL_RESET, CALL_WATCH, CALL_WRITE,
    CALL_WRITES, RESET_WAITS,
};

/// The services of mode vmm. The hypervisor switches the user state with the guest.
pub(crate) static SERVICES: Services = Services {
    window: linux_window,
    registers,
    repair,
    report,
    publish,
    reset,
    watch,
    writes,
    other_registers: no_other_registers,
    user_state: None,
};

fn call(number: u64, first: u64, second: u64) -> u64 {
    call_with(number, [first, second, 0])
}

fn call_with(number: u64, [first, second, third]: [u64; 3]) -> u64 {
    let result;
    // SAFETY: the hypervisor changes no register but this one. AMD APM 3, VMMCALL.
    unsafe {
        asm!("vmmcall", inout("rax") number => result, in("rdi") first, in("rsi") second,
             in("rdx") third, options(nostack));
    }
    result
}

fn write(address: u64, value: u64) {
    call(CALL_WRITE, address, value);
}

extern "C" fn repair(request: *const RepairRequest) -> i64 {
    repair_with(write, request)
}

extern "C" fn registers(to: *mut LinuxRegisters) -> i64 {
    registers_with(read_registers, to)
}

fn read_registers() -> LinuxRegisters {
    call(CALL_REGISTERS, 0, 0);
    // SAFETY: the page that is shared with the hypervisor, which writes it only during a call.
    unsafe { (*mailbox()).registers }
}

fn mailbox() -> *mut Mailbox {
    entry().mailbox as *mut Mailbox
}

extern "C" fn report(from: *const Report) -> i64 {
    let Some((report, line)) = checked_report(from) else { return SERVICE_BAD_ADDRESS };
    // SAFETY: the page that is shared with the hypervisor, which reads it only during a call.
    unsafe {
        let to = &mut *mailbox();
        (to.kind, to.code, to.bytes) = (report.kind, report.code, report.bytes);
        to.text[..line.len()].copy_from_slice(line);
    }
    call(CALL_REPORT, 0, 0);
    end()
}

extern "C" fn reset(how: u64) -> i64 {
    while call(CALL_RESET, how, 0) == RESET_WAITS {
        wait_for_tick(TRIP_CUT_OFF);
    }
    SERVICE_UNAVAILABLE
}

extern "C" fn watch(base: u64, bytes: u64, space: u64) -> i64 {
    match call_with(CALL_WATCH, [base, bytes, space]) {
        0 => end(),
        _ => SERVICE_UNAVAILABLE,
    }
}

extern "C" fn writes(to: *mut Writes) -> i64 {
    if !space().can_write::<Writes>(to as u64) {
        return SERVICE_BAD_ADDRESS;
    }
    call(CALL_WRITES, 0, 0);
    // SAFETY: as above; the cokernel's writable memory, aligned.
    unsafe { to.write((*mailbox()).writes) };
    end()
}

extern "C" fn publish(index: u64, status: *const StatusWords) -> i64 {
    let Some(status) = checked_status(index, status) else { return SERVICE_BAD_ADDRESS };
    // SAFETY: as above.
    unsafe { (*mailbox()).status = status };
    call(CALL_PUBLISH, index, 0);
    end()
}
