//! Limits devices to the memory that Linux can reach.
//!
//! An IOMMU that Linux does not use gets Linux's nested tables for every device. The hypervisor drives it while the
//! reserve is hidden, and switches it off when the wall opens. Its registers are hidden, too.
//!
//! Reference: AMD I/O Virtualization Technology (IOMMU) Specification, 48882.

use super::entry::{self, at, entry, lies_in, list};
use super::log;
use super::memory::Lock;
use super::tables::tables;
use crate::arch::x86_64 as arch;
use crate::vmm::device_event::DeviceEvent;
use crate::vmm::nested::PAGE;
use kyozon_abi::vmm::{HOST_IOMMU_BYTES, HOST_MAX_IOMMUS};

/// Offsets of registers, 3.4.
const DEVICE_TABLE: u64 = 0;
const COMMANDS: u64 = 0x8;
const EVENTS: u64 = 0x10;
const CONTROL: u64 = 0x18;
const COMMAND_HEAD: u64 = 0x2000;
const COMMAND_TAIL: u64 = 0x2008;
const EVENT_HEAD: u64 = 0x2010;
const EVENT_TAIL: u64 = 0x2018;
const STATUS: u64 = 0x2020;

const CONTROL_ON: u64 = 1;
const CONTROL_EVENTS: u64 = 1 << 2;
const CONTROL_COHERENT: u64 = 1 << 10;
const CONTROL_COMMANDS: u64 = 1 << 12;
const STATUS_OVERFLOW: u64 = 1;
const STATUS_EVENTS_RUN: u64 = 1 << 3;

/// Length of a buffer of one page: 2^8 entries of 16 bytes.
const PAGE_OF_ENTRIES: u64 = 8 << 56;
const ENTRIES: usize = 256;
const ENTRY_BYTES: usize = 16;

/// A device table entry, 2.2.2.1: valid, with valid tables of `levels` levels, for reading and writing.
const DEVICE_VALID: u64 = 3;
const DEVICE_LEVELS: u32 = 9;
const DEVICE_RIGHTS: u64 = 3 << 61;
const DOMAIN: u64 = 1;
/// Interrupts pass unchanged, since their map is not valid (IV is 0). NMIs pass too, since a timer's NMI is the tick.
const DEVICE_INTERRUPTS: u64 = 1 << 57 | 1 << 58 | 3 << 62;

const COMMAND_WAIT: u64 = 1 << 60 | 1;
const COMMAND_FORGET_ALL: u64 = 8 << 60;
/// Maximum time for an answer.
const PATIENCE_MS: u64 = 20;

/// Control bits of a driven IOMMU, without its log.
const CONTROL_DRIVEN: u64 = CONTROL_ON | CONTROL_COHERENT | CONTROL_COMMANDS;
/// Registers that are restored when it is no longer driven. They are written in reverse, the control register last.
const KEPT: [u64; 4] = [CONTROL, DEVICE_TABLE, COMMANDS, EVENTS];

#[derive(Clone, Copy)]
struct State {
    /// The next event.
    next: usize,
    /// The values of the registers in [`KEPT`] when the hypervisor took over.
    kept: [u64; KEPT.len()],
}

static STATES: Lock<[State; HOST_MAX_IOMMUS]> =
    Lock::new([State { next: 0, kept: [0; KEPT.len()] }; HOST_MAX_IOMMUS]);

#[derive(Clone, Copy)]
struct Iommu {
    registers: u64,
    commands: u64,
    events: u64,
}

fn iommus() -> impl Iterator<Item = (usize, Iommu)> {
    let e = &entry().iommu;
    entry::iommus().enumerate().map(|(i, registers)| {
        let commands = e.buffers + 2 * i as u64 * PAGE;
        (i, Iommu { registers: registers.base, commands, events: commands + PAGE })
    })
}

/// The value of [`DEVICE_TABLE`] for the table at `address`: its size is in pages, less one.
fn table(address: u64) -> u64 {
    address | (entry().iommu.devices_bytes / PAGE - 1)
}

impl Iommu {
    fn read(self, register: u64) -> u64 {
        debug_assert!(register < HOST_IOMMU_BYTES);
        // SAFETY: its registers, which the window maps.
        unsafe { at::<u64>(self.registers + register).read_volatile() }
    }

    fn write(self, register: u64, value: u64) {
        debug_assert!(register < HOST_IOMMU_BYTES);
        // SAFETY: as above; the values limit devices to Linux's memory.
        unsafe { at::<u64>(self.registers + register).write_volatile(value) }
    }

    fn start(self) {
        self.write(DEVICE_TABLE, table(entry().iommu.devices));
        self.write(COMMANDS, self.commands | PAGE_OF_ENTRIES);
        self.write(COMMAND_HEAD, 0);
        self.write(COMMAND_TAIL, 0);
        self.write(CONTROL, CONTROL_DRIVEN);
        self.reset_log();
        self.invalidate();
    }

    fn stop(self, kept: [u64; KEPT.len()]) {
        // Disabled before its tables are replaced.
        self.write(CONTROL, 0);
        for (register, value) in KEPT.into_iter().zip(kept).rev() {
            let none = register == DEVICE_TABLE && value == 0;
            self.write(register, if none { table(entry().iommu.idle) } else { value });
        }
    }

    /// Empties the log of events and switches it on.
    fn reset_log(self) {
        self.write(CONTROL, CONTROL_DRIVEN);
        wait(|| self.read(STATUS) & STATUS_EVENTS_RUN == 0);
        // SAFETY: its page.
        unsafe { at::<u8>(self.events).write_bytes(0, PAGE as usize) };
        self.write(EVENTS, self.events | PAGE_OF_ENTRIES);
        self.write(EVENT_HEAD, 0);
        self.write(EVENT_TAIL, 0);
        self.write(STATUS, STATUS_OVERFLOW);
        self.write(CONTROL, CONTROL_DRIVEN | CONTROL_EVENTS);
    }

    /// Invalidates its cache of earlier tables.
    fn invalidate(self) {
        // The IOMMU writes its answer behind the commands.
        let answer = self.commands + PAGE - 8;
        let commands = [[COMMAND_FORGET_ALL, 0], [COMMAND_WAIT | answer, 1]];
        // SAFETY: its page.
        unsafe {
            at::<u64>(answer).write_volatile(0);
            at::<[[u64; 2]; 2]>(self.commands).write_volatile(commands);
        }
        self.write(COMMAND_TAIL, (commands.len() * ENTRY_BYTES) as u64);
        // SAFETY: as above.
        if !wait(|| unsafe { at::<u64>(answer).read_volatile() } == 1) {
            log::report(format_args!(
                "wall: the IOMMU at {:#x} does not answer: devices may reach the cokernel's memory",
                self.registers
            ));
        }
    }
}

fn wait(done: impl Fn() -> bool) -> bool {
    let end = arch::tsc() + PATIENCE_MS * entry().tsc_khz;
    while !done() {
        if arch::tsc() >= end {
            return false;
        }
        core::hint::spin_loop();
    }
    true
}

/// Limits devices to the memory that Linux reaches.
pub fn start() {
    let sealed = &tables().sealed;
    let e = &entry().iommu;
    let levels = u64::from(sealed.levels()) << DEVICE_LEVELS;
    let device =
        [DEVICE_VALID | levels | sealed.root() | DEVICE_RIGHTS, DOMAIN, DEVICE_INTERRUPTS, 0];
    for i in 0..e.devices_bytes as usize / size_of_val(&device) {
        // SAFETY: an entry of the module's table, which no IOMMU uses yet.
        unsafe { at::<[u64; 4]>(e.devices).add(i).write_volatile(device) };
    }
    let mut states = STATES.lock();
    for (i, iommu) in iommus() {
        states[i] = State { next: 0, kept: KEPT.map(|register| iommu.read(register)) };
        iommu.start();
    }
}

/// Restores the IOMMUs: devices can reach all memory again.
pub fn stop() {
    let states = STATES.lock();
    iommus().for_each(|(i, iommu)| iommu.stop(states[i].kept));
}

/// Reports stopped accesses of devices. Only reads memory if there are none.
pub fn check_log() {
    let mut states = STATES.lock();
    for (i, iommu) in iommus() {
        let next = &mut states[i].next;
        let first = *next;
        while *next < ENTRIES {
            // SAFETY: its page.
            let event = unsafe { at::<[u64; 2]>(iommu.events).add(*next).read_volatile() };
            if event == [0; 2] {
                break;
            }
            report(DeviceEvent(event));
            *next += 1;
        }
        if *next != first {
            *next = 0;
            iommu.reset_log();
        }
    }
}

fn report(event: DeviceEvent) {
    let e = entry();
    let hidden =
        |at| lies_in(list(&e.guest, e.guest_count), at) || lies_in(list(&e.host, e.host_count), at);
    let of = match event.stopped_at() {
        Some(at) if hidden(at) => ": the cokernel's memory",
        _ => "",
    };
    log::report(format_args!("wall: {event}{of}"));
}
