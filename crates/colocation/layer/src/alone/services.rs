//! The services of a cokernel without Linux: the event ring and the serial line are the layer's own.

use crate::arch::x86_64::user_state::Saved;
use crate::cokernel::services::{
    no_other_registers, no_watch, no_writes, publish, report, Services,
};
use crate::cokernel::state::space;
use kyozon_abi::layer::{
    LinuxRegisters, RepairRequest, Window, SERVICE_BAD_ADDRESS, SERVICE_UNAVAILABLE,
};

/// The services of mode alone.
pub(crate) static SERVICES: Services = Services {
    window,
    registers,
    repair,
    report,
    publish,
    reset,
    watch: no_watch,
    writes: no_writes,
    other_registers: no_other_registers,
    user_state: Some(Saved::NONE),
};

extern "C" fn window(window: *mut Window) -> i64 {
    if space().can_write::<Window>(window as u64) {
        SERVICE_UNAVAILABLE
    } else {
        SERVICE_BAD_ADDRESS
    }
}

extern "C" fn registers(to: *mut LinuxRegisters) -> i64 {
    if space().can_write::<LinuxRegisters>(to as u64) {
        SERVICE_UNAVAILABLE
    } else {
        SERVICE_BAD_ADDRESS
    }
}

extern "C" fn reset(_how: u64) -> i64 {
    SERVICE_UNAVAILABLE
}

extern "C" fn repair(request: *const RepairRequest) -> i64 {
    if space().can_read::<RepairRequest>(request as u64) {
        SERVICE_UNAVAILABLE
    } else {
        SERVICE_BAD_ADDRESS
    }
}
