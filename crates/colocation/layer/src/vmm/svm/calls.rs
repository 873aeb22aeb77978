//! Calls of the module in Linux's guest.

use super::cpu::Cpu;
use super::entry::{count, entry};
use super::names::{self, Or};
use super::vmcb::*;
use super::{iommu, launch, log, trip, wall};
use crate::line::Line;
use crate::vmm::key::Key;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use kyozon_abi::events::EVENT_NOTE;
use kyozon_abi::layer::COKERNEL_BASE;
use kyozon_abi::vmm::*;

/// Whether the wall is open: its opening is reported once.
static OPEN: AtomicBool = AtomicBool::new(true);

impl Cpu {
    /// A call of Linux. One that is refused is an invalid instruction, as without a hypervisor.
    #[cold]
    pub fn on_call(&mut self) {
        if !self.serve_call() {
            return self.give(exception(INVALID_OPCODE, 0));
        }
        count(EXIT_CALL);
        let vmcb = self.vmcb();
        vmcb.rax = 0;
        vmcb.rip += VMMCALL_BYTES;
    }

    fn serve_call(&mut self) -> bool {
        let vmcb = self.vmcb();
        if vmcb.cpl != 0 {
            return false;
        }
        match vmcb.rax {
            CALL_SEAL => {
                self.sealed = true;
                if OPEN.swap(false, Relaxed) {
                    iommu::start();
                }
                self.show_shared();
                wall::close_routes();
            }
            CALL_CHECK_TICK => trip::check_tick(self.index),
            CALL_LEAVE if !self.sealed && vmcb.rip < COKERNEL_BASE => launch::give_back(self),
            CALL_OPEN | CALL_START | CALL_STOP => return self.serve_keyed_call(vmcb.rax),
            _ => return false,
        }
        true
    }

    fn serve_keyed_call(&mut self, number: u64) -> bool {
        let cokernels = self.index == entry().cokernel_cpu;
        if !Key(entry().key).is([self.registers.rdi, self.registers.rsi]) {
            self.refuse(format_args!("wall: call {number:#x} without the key from"));
            return false;
        }
        match number {
            CALL_OPEN => self.open(),
            CALL_STOP => {
                if trip::stop(cokernels) {
                    self.note(format_args!("wall: ticks stopped from"));
                }
                log::drain_serial();
            }
            _ => match trip::start(cokernels) {
                Ok(trip::Start::First) => {}
                Ok(trip::Start::Again) => self.note(format_args!("wall: ticks started again from")),
                Err(trip::Running) => {
                    self.refuse(format_args!("wall: start of ticks that run, from"));
                    return false;
                }
            },
        }
        true
    }

    /// Linux sees all memory of this CPU from now on. What was reported before is sent first.
    fn open(&mut self) {
        if !OPEN.swap(true, Relaxed) {
            iommu::stop();
            self.note(format_args!("wall: opened for the unload from"));
        }
        log::flush_serial();
        self.sealed = false;
        self.show_shared();
    }

    fn note(&mut self, what: core::fmt::Arguments<'_>) {
        let task = names::current(self);
        let line = Line::new(format_args!("{what} CPU {}, task {}", self.index, Or(task)));
        log::write(EVENT_NOTE, 0, line.bytes());
    }

    /// Reports what Linux tried, with its place.
    #[cold]
    pub fn refuse(&mut self, what: core::fmt::Arguments<'_>) {
        let (task, rip) = (names::current(self), self.vmcb().rip);
        log::report(format_args!("{what} CPU {}, rip {rip:#x}, task {}", self.index, Or(task)));
    }
}
