//! The monitor as a task of the microkernel.
//!
//! The loader passes the operator's policy and the profile of the running Linux as data, and the `MONITOR_*` flags as
//! parameter.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod image {
    use core::cell::Cell;
    use kyozon_abi::events::{
        CheckStatus, MonitorStatus, MONITOR_ENDED, MONITOR_INDEX, MONITOR_RUNNING, MONITOR_STARTING,
    };
    use kyozon_abi::layer::{LinuxRegisters, Range, RepairRequest, Writes};
    use kyozon_abi::task::{
        EXIT_FAILED, MONITOR_REPORT_ONLY, MONITOR_TEST_BROKEN, MONITOR_TEST_LOOP,
        MONITOR_TEST_PANIC,
    };
    use kyozon_monitor::check::Watched;
    use kyozon_monitor::kernel::Kernel;
    use kyozon_monitor::memory::{KernelMemory, Page};
    use kyozon_monitor::policy::Policy;
    use kyozon_monitor::profile::Profile;
    use kyozon_monitor::registry;
    use kyozon_monitor_task::{Server, Slice, System};
    use kyozon_task::data::{self, LinuxMemory};
    use kyozon_task::{clock, linux, report, task, StartInfo};

    /// Milliseconds from one heartbeat to the next, and after which a monitor without one counts as stopped: while its
    /// checks run, and while it reads its profile.
    const BEAT_MS: u64 = 1000;
    const PATIENCE_MS: u64 = 30_000;
    const START_PATIENCE_MS: u64 = 120_000;
    /// Seconds without a wait for a tick, after which the microkernel starts the monitor again.
    const STUCK_SECONDS: u64 = 10;

    kyozon_task::main!(run);

    struct Memory {
        pages: LinuxMemory,
        /// The registers of the cokernel's CPU at this tick, and what another one has shown for it.
        registers: Cell<Option<LinuxRegisters>>,
        other: Cell<Option<LinuxRegisters>>,
    }

    impl KernelMemory for Memory {
        fn page(&self, physical: u64) -> Option<&Page> {
            self.pages.page(physical)
        }
        fn differs(&self, physical: u64, copy: &[u64; 512]) -> Option<bool> {
            self.pages.differs(physical, copy)
        }
        fn differing_blocks(&self, physical: u64, copy: &[u64; 512]) -> Option<u64> {
            self.pages.differing_blocks(physical, copy)
        }
        fn other_registers(&self) -> Option<LinuxRegisters> {
            self.other.get()
        }
        fn registers(&self) -> Option<LinuxRegisters> {
            self.registers.get()
        }
    }

    struct Microkernel;

    impl System for Microkernel {
        fn now(&self) -> u64 {
            clock::tsc()
        }
        fn report(&mut self, kind: u32, code: u32, line: &str) {
            let _ = linux::report(kind, code, line.as_bytes());
        }
        fn publish(&mut self, check: usize, status: &CheckStatus) {
            let _ = linux::publish(check, &status.to_words());
        }
        fn publish_monitor(&mut self, status: &MonitorStatus) {
            let _ = linux::publish(MONITOR_INDEX, &status.to_words());
        }
        fn repair(&mut self, request: &RepairRequest) -> i64 {
            linux::repair(request).unwrap_or(kyozon_abi::layer::REPAIR_INVALID)
        }
        fn watch(&mut self, watched: &Watched) -> bool {
            let base = watched.range.start;
            let range = Range { base, bytes: watched.range.end - base };
            linux::watch(range, watched.space).is_ok()
        }
        fn writes(&mut self) -> Writes {
            linux::writes().unwrap_or(Writes::NONE)
        }
        fn restart(&mut self, uses_crash_kernel: bool) {
            let _ = linux::reset(uses_crash_kernel);
        }
    }

    fn run(info: &'static StartInfo) {
        let _ = task::supervise(STUCK_SECONDS * u64::from(info.tick_hz));
        let status = MonitorStatus {
            state: MONITOR_STARTING,
            beat_tsc: clock::tsc(),
            patience_tsc: info.tsc_khz * START_PATIENCE_MS,
            restarts: info.restarts,
            ..MonitorStatus::default()
        };
        Microkernel.publish_monitor(&status);
        assert!(info.parameter & MONITOR_TEST_BROKEN == 0, "the parameter asks for it");
        if let Err(error) = watch(info) {
            let _ = report!("monitoring stopped: {error}");
            let mut status = MonitorStatus { state: MONITOR_ENDED, ..status };
            status.set_reason(error.as_bytes());
            Microkernel.publish_monitor(&status);
            task::exit(EXIT_FAILED);
        }
    }

    /// Fails after the first finding as the parameter says.
    #[cold]
    fn test_failure(info: &StartInfo) {
        assert!(info.parameter & MONITOR_TEST_PANIC == 0, "the parameter asks for it");
        while info.parameter & MONITOR_TEST_LOOP != 0 {
            core::hint::spin_loop();
        }
    }

    fn watch(info: &'static StartInfo) -> Result<(), alloc::string::String> {
        use alloc::string::ToString;
        let pages = LinuxMemory::open().map_err(|error| error.to_string())?;
        let memory = Memory { pages, registers: Cell::new(None), other: Cell::new(None) };
        let budget = u64::from(info.budget_us) * info.tsc_khz / 1000;
        // It takes many slices, of which most would be cut off.
        let mut entered = linux::wait_tick().map_err(|error| error.to_string())?.entered_tsc;
        let mut pause = || {
            if clock::tsc().wrapping_sub(entered) > budget / 4 * 3 {
                entered = linux::wait_tick().map_or(clock::tsc(), |tick| tick.entered_tsc);
            }
        };
        let (policy, profile) =
            Policy::decode(data::loaded(info)).map_err(|error| error.to_string())?;
        let profile =
            Profile::decode_in_parts(profile, &mut pause).map_err(|error| error.to_string())?;
        let kernel = Kernel::new(&profile, &memory);
        let reports_only = info.parameter & MONITOR_REPORT_ONLY != 0;
        let policy = if reports_only { Policy::REPORT } else { policy };
        let mut server = Server::new(policy, info.tsc_khz, data::kept(info));
        for check in registry::make(&profile, clock::tsc()).map_err(|error| error.to_string())? {
            server.add(check).map_err(|error| error.to_string())?;
        }
        let mut slice = Slice::new(budget);
        let status = MonitorStatus {
            state: MONITOR_RUNNING,
            patience_tsc: info.tsc_khz * PATIENCE_MS,
            restarts: info.restarts,
            ..MonitorStatus::default()
        };
        let mut next_beat = clock::tsc();
        let away = (info.tsc_khz * 1000 / u64::from(info.tick_hz.max(1))).saturating_sub(budget);
        let _ = report!("learning Linux {}", profile.release());
        server.start(&mut Microkernel);
        loop {
            let tick = linux::wait_tick().map_err(|error| error.to_string())?;
            // A step that outlasted its budget was cut off and resumed at the next tick.
            server.exclude_time_away(tick.missed.saturating_mul(away));
            memory.registers.set(linux::registers().ok());
            memory.other.set(linux::other_registers().ok());
            server.tick(&kernel, &mut Microkernel, tick.entered_tsc, slice.length());
            let now = clock::tsc();
            slice.ended(now.wrapping_sub(tick.entered_tsc));
            if now.wrapping_sub(next_beat) as i64 >= 0 {
                next_beat = now + info.tsc_khz * BEAT_MS;
                let status = MonitorStatus { slice_tsc: slice.length(), ..status };
                server.beat(&mut Microkernel, &status);
            }
            if server.findings() > 0 && info.restarts == 0 {
                test_failure(info);
            }
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("monitor: an image for the bare machine; build it for x86_64-unknown-none");
}
