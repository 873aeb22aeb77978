//! One trip: the worlds are switched, the cokernel runs, the worlds are switched back.

use super::{Frame, LinuxRegisters, TickEvent};
use crate::assert_size;

/// [`Trip::result`]: the cokernel is idle.
pub const TRIP_IDLE: u32 = 0;
/// [`Trip::result`]: the budget is spent. The layer cut the cokernel off; it continues at the next tick.
pub const TRIP_CUT_OFF: u32 = 1;
/// [`Trip::result`]: the cokernel is stopped for good; [`Trip::fault`] says why.
pub const TRIP_STOPPED: u32 = 2;
/// [`Trip::result`]: the layer asks the module to park the other CPUs and to enter it again at once.
pub const TRIP_PARK: u32 = 3;
/// [`Trip::result`]: a machine check arrived, which Linux must handle.
pub const TRIP_MACHINE_CHECK: u32 = 4;
/// [`Trip::result`]: the layer asks Linux to start its crash kernel. If there is none, the trip continues at the next
/// tick.
pub const TRIP_CRASH: u32 = 5;

/// [`Trip::slack_tsc`]: the constant part, in microseconds.
pub const SLACK_US: u64 = 2;
/// [`Trip::slack_tsc`]: the part of a period. Linux's calibration of the time-stamp counter is good to 500 ppm; a
/// larger slack would take Linux's NMIs for the guard's when budgets are short.
pub const SLACK_DIVISOR: u64 = 1024;

/// [`Trip::parked`]: the other CPUs run, or may continue.
pub const PARKED_FREE: u32 = 0;
/// [`Trip::parked`]: the other CPUs are parked, until the state becomes [`PARKED_FREE`]. A parked CPU that has waited
/// too long sets that state itself.
pub const PARKED_STANDING: u32 = 1;
/// [`Trip::parked`]: the layer exchanged [`PARKED_STANDING`] for this and is writing; the other CPUs stay parked.
pub const PARKED_WRITING: u32 = 2;
/// [`Trip::parked`]: mask of the state's bits.
pub const PARKED_STATE: u32 = 3;

/// [`Fault::reason`]: an exception that the cokernel did not handle; `frame.vector` holds its number.
pub const FAULT_EXCEPTION: u32 = 1;
/// [`Fault::reason`]: the cokernel ran away: it was cut off too many times in a row without becoming idle.
pub const FAULT_RUNAWAY: u32 = 2;
/// [`Fault::reason`]: the cokernel returned from its `start`.
pub const FAULT_RETURNED: u32 = 3;
/// [`Fault::reason`]: the layer itself failed.
pub const FAULT_LAYER: u32 = 5;
/// [`Fault::reason`], mode vmm: the cokernel accessed memory that is not its own, or its CPU shut down. `frame.vector`
/// is the hypervisor's exit code, `frame.error` and `cr2` are the exit's information.
pub const FAULT_WALL: u32 = 6;
/// [`Fault::reason`], mode vmm: an exit stored the hypervisor's state in place of the cokernel's, which is lost. No
/// processor does this; an emulator may.
pub const FAULT_PROCESSOR: u32 = 7;

/// [`Fault::reason`], mode vmm: a call from Linux stopped the ticks. A call can start them again.
pub const FAULT_CALL: u32 = 8;
/// [`Fault::reason`], mode vmm: the hypervisor can no longer enter Linux on the cokernel's CPU. `frame.vector` is the
/// exit code.
pub const FAULT_LOST_CPU: u32 = 9;

/// Why the cokernel was stopped, or the registers of the last cut-off.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fault {
    /// `FAULT_*`, 0 for none.
    pub reason: u32,
    /// Zero.
    pub reserved: u32,
    /// CR2 at that time.
    pub cr2: u64,
    /// CR3 at that time.
    pub cr3: u64,
    /// The registers at that time.
    pub frame: Frame,
}
assert_size!(Fault, 200);

/// [`Trip::look`]: nobody wants to look.
pub const LOOK_NONE: u32 = 0;
/// [`Trip::look`]: the module asks the next CPU at a trip's end, once it is time for that.
pub const LOOK_WANTED: u32 = 1;
/// [`Trip::look`]: a CPU was asked.
pub const LOOK_ASKED: u32 = 2;
/// [`Trip::look`]: it stores its registers.
pub const LOOK_STORING: u32 = 3;
/// [`Trip::look`]: it has stored them.
pub const LOOK_SHOWN: u32 = 4;
/// Bits of [`Trip::look`] that hold the state.
pub const LOOK_STATE: u32 = 7;
/// Bits of [`Trip::look`] below the CPU's number.
pub const LOOK_CPU_SHIFT: u32 = 3;

/// [`UserState::switched`]: the CPU holds the cokernel's user state.
pub const USER_SWITCHED: u32 = 1;
/// [`UserState::switched`]: the trip ended in an interrupt gate, which may have changed SS.
pub const USER_GATE: u32 = 2;

/// The part of Linux's state that changes only when the cokernel enters user mode.
///
/// The layer saves it before the first entry to user mode in a trip. The layer and the trampoline restore it at the
/// trip's end.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserState {
    /// FS base.
    pub fs_base: u64,
    /// GS base.
    pub gs_base: u64,
    /// DS selector.
    pub ds: u16,
    /// ES selector.
    pub es: u16,
    /// FS selector.
    pub fs: u16,
    /// GS selector.
    pub gs: u16,
    /// Zero.
    pub reserved: u16,
    /// Selector of the local descriptor table.
    pub ldt: u16,
    /// `USER_*`: what the trampoline has to restore.
    pub switched: u32,
}
assert_size!(UserState, 32);

/// One trip, that is one interruption of Linux: the values that module, trampoline and layer pass to each other on the
/// way in and out.
///
/// It lies in the module's data and is mapped at the same address in both worlds. Each field names its writer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Trip {
    /// Module: the tick that caused this trip. The layer passes it unchanged to the cokernel's tick handler.
    pub event: TickEvent,
    /// Module: time-stamp counter at which the budget is spent.
    pub deadline_tsc: u64,
    /// Module, then layer: time-stamp counter at which the guard interrupts.
    pub guard_tsc: u64,
    /// Module, then layer: time-stamp counter of the next tick.
    pub next_tsc: u64,
    /// Module: time-stamp counter ticks per period.
    pub period_tsc: u64,
    /// Layer: `TRIP_*`. The module sets [`TRIP_IDLE`] before it enters the layer.
    pub result: u32,
    /// Layer: number of ticks that it delivered while the cokernel ran.
    pub ticks_inside: u32,
    /// Module: number of guard interrupts that may still arrive although they were raised before the guard was armed
    /// for this trip.
    pub stale: u32,
    /// Module and layer: whether the other CPUs are parked: `PARKED_*` in the low 2 bits, the number of the round in
    /// the other bits.
    pub parked: u32,
    /// Layer: number of non-maskable interrupts that arrived while the cokernel ran and came from neither tick nor
    /// guard.
    pub foreign: u32,
    /// Trampoline: number of non-maskable interrupts that arrived during a world switch.
    pub in_transit: u32,
    /// Trampoline: 1 while the cokernel's world is complete, so that the layer's code may run.
    pub inside: u32,
    /// Trampoline: 1 after a machine check.
    pub machine_check: u32,
    /// Layer: address of its handler of non-maskable interrupts, entered as from the gate.
    pub nmi_entry: u64,
    /// Layer: address of its machine-check handler, entered as from the gate.
    pub machine_check_entry: u64,
    /// Layer: why it stopped the cokernel, or the registers of the last cut-off.
    pub fault: Fault,
    /// Layer: what has to be restored before Linux continues.
    pub user: UserState,
    /// Module: time-stamp counter ticks by which the timer's clock and the time-stamp counter may disagree over a
    /// period: [`SLACK_US`] plus the period divided by [`SLACK_DIVISOR`].
    pub slack_tsc: u64,
    /// Trampoline: Linux's global descriptor table, as SGDT stores it: 2 bytes of limit, 8 bytes of address.
    pub linux_gdtr: [u64; 2],
    /// Trampoline: Linux's interrupt descriptor table, as SIDT stores it.
    pub linux_idtr: [u64; 2],
    /// Module: time-stamp counter until which a CPU may still answer to [`LOOK_ASKED`].
    pub look_until_tsc: u64,
    /// Module, CPU that was asked, and layer: the look at another CPU's registers: `LOOK_*` in the low 3 bits, Linux's
    /// number of the CPU in the other bits.
    pub look: u32,
    /// Zero.
    pub reserved: u32,
    /// CPU that was asked: its registers, complete in [`LOOK_SHOWN`].
    pub shown: LinuxRegisters,
}
assert_size!(Trip, 560);
