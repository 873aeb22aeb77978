//! The services that the server needs from its surroundings.

use kyozon_abi::events::{CheckStatus, MonitorStatus};
use kyozon_abi::layer::{RepairRequest, Writes, REPAIR_BUSY};
use kyozon_monitor::check::Watched;
#[cfg(doc)]
use kyozon_monitor::class::Class;

/// The microkernel, or a test.
pub trait System {
    /// The time-stamp counter.
    fn now(&self) -> u64;
    /// Reports `line`, of kind `EVENT_*`, with the code of [`Class::event_code`].
    fn report(&mut self, kind: u32, code: u32, line: &str);
    /// Publishes the status of check number `check`.
    fn publish(&mut self, check: usize, status: &CheckStatus);
    /// Publishes the status of the monitor itself.
    fn publish_monitor(&mut self, status: &MonitorStatus);
    /// Runs a transaction and returns its result, `REPAIR_*`.
    fn repair(&mut self, request: &RepairRequest) -> i64;
    /// Watches Linux's writes to this memory from now on. False if that is impossible.
    fn watch(&mut self, watched: &Watched) -> bool;
    /// Fetches watched writes, with the number of those that nobody fetched in time.
    fn writes(&mut self) -> Writes;
    /// Restarts the machine, by its crash kernel if there is one and it `uses_crash_kernel`. Returns only if that is
    /// impossible.
    fn restart(&mut self, uses_crash_kernel: bool);
}

/// A system that is asked for no more transactions once the other CPUs did not stand still for one: that takes longer
/// than all checks of a tick together.
pub(crate) struct Patient<'a, S> {
    system: &'a mut S,
    /// They did not stand still.
    pub is_busy: bool,
}

impl<'a, S: System> Patient<'a, S> {
    /// `system`, before the first transaction.
    pub fn new(system: &'a mut S) -> Self {
        Self { system, is_busy: false }
    }
}

impl<S: System> System for Patient<'_, S> {
    fn now(&self) -> u64 {
        self.system.now()
    }
    fn report(&mut self, kind: u32, code: u32, line: &str) {
        self.system.report(kind, code, line);
    }
    fn publish(&mut self, check: usize, status: &CheckStatus) {
        self.system.publish(check, status);
    }
    fn publish_monitor(&mut self, status: &MonitorStatus) {
        self.system.publish_monitor(status);
    }
    fn repair(&mut self, request: &RepairRequest) -> i64 {
        if self.is_busy {
            return REPAIR_BUSY;
        }
        let result = self.system.repair(request);
        self.is_busy = result == REPAIR_BUSY;
        result
    }
    fn watch(&mut self, watched: &Watched) -> bool {
        self.system.watch(watched)
    }
    fn writes(&mut self) -> Writes {
        self.system.writes()
    }
    fn restart(&mut self, uses_crash_kernel: bool) {
        self.system.restart(uses_crash_kernel);
    }
}
