//! The services that the server needs from its surroundings.

use kyozon_abi::events::{CheckStatus, MonitorStatus};
use kyozon_abi::layer::{RepairRequest, Writes};
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
