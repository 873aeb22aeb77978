//! The monitor as a task of the microkernel.
//!
//! The loader passes the profile of the running Linux as data and the `MONITOR_*` flags as parameter.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod image {
    use alloc::boxed::Box;
    use kyozon_abi::events::CheckStatus;
    use kyozon_abi::layer::RepairRequest;
    use kyozon_abi::task::MONITOR_REPORT_ONLY;
    use kyozon_monitor::check::Check;
    use kyozon_monitor::kernel::Kernel;
    use kyozon_monitor::memory::{KernelMemory, Page};
    use kyozon_monitor::profile::{Profile, ProfileError};
    use kyozon_monitor::{tasks::TaskCheck, text::TextCheck};
    use kyozon_monitor_task::{Server, System};
    use kyozon_task::data::{self, LinuxMemory};
    use kyozon_task::{clock, linux, report, StartInfo};

    /// Percentage of the budget that a slice takes; the rest covers entry, exit and the page being compared at the end.
    const SLICE: u64 = 90;
    /// Percentage of a slice for the check `tasks`; `text` gets the rest.
    const TASKS_SHARE: u64 = 25;

    kyozon_task::main!(run);

    struct Memory(LinuxMemory);

    impl KernelMemory for Memory {
        fn page(&self, physical: u64) -> Option<&Page> {
            self.0.page(physical)
        }
    }

    struct Microkernel;

    impl System for Microkernel {
        fn now(&self) -> u64 {
            clock::tsc()
        }
        fn report(&mut self, kind: u32, check: u32, line: &str) {
            let _ = linux::report(kind, check, line.as_bytes());
        }
        fn publish(&mut self, check: usize, status: &CheckStatus) {
            let _ = linux::publish(check, status);
        }
        fn repair(&mut self, request: &RepairRequest) -> i64 {
            linux::repair(request).unwrap_or(kyozon_abi::layer::REPAIR_INVALID)
        }
    }

    fn run(info: &'static StartInfo) {
        if let Err(error) = watch(info) {
            let _ = report!("monitoring stopped: {error}");
        }
    }

    fn watch(info: &'static StartInfo) -> Result<(), alloc::string::String> {
        use alloc::string::ToString;
        let memory = Memory(LinuxMemory::open().map_err(|error| error.to_string())?);
        let profile = Profile::decode(data::loaded(info)).map_err(|error| error.to_string())?;
        let kernel = Kernel::new(&profile, &memory);
        let mut server = Server::new(info.parameter & MONITOR_REPORT_ONLY == 0);
        for (check, share) in checks(&profile).map_err(|error| error.to_string())? {
            server.add(check, share);
        }
        let budget = u64::from(info.budget_us) * info.tsc_khz / 1000;
        let slice = budget * SLICE / 100;
        let away = (info.tsc_khz * 1000 / u64::from(info.tick_hz.max(1))).saturating_sub(budget);
        let _ = report!("monitoring Linux {}", profile.release());
        loop {
            let tick = linux::wait_tick().map_err(|error| error.to_string())?;
            // A step that outlasted its budget was cut off and resumed at the next tick.
            server.exclude_time_away(tick.missed.saturating_mul(away));
            server.tick(&kernel, &mut Microkernel, tick.entered_tsc, slice);
        }
    }

    type Checks = [(Box<dyn Check<Memory>>, u64); 2];

    fn checks(profile: &Profile<'_>) -> Result<Checks, ProfileError> {
        Ok([
            (Box::new(TaskCheck::new(profile)?), TASKS_SHARE),
            (Box::new(TextCheck::new(profile)?), 100 - TASKS_SHARE),
        ])
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("monitor: an image for the bare machine; build it for x86_64-unknown-none");
}
