//! The task behind page tables.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod image {
    use core::fmt;
    use core::sync::atomic::AtomicU64;
    use kyozon_task::data::LinuxMemory;
    use kyozon_task::{clock, linux, task, StartInfo};

    kyozon_task::main!(run);

    struct Calls {
        memory: LinuxMemory,
        parameter: u64,
    }

    impl kyozon_text_sum::Kernel for Calls {
        fn parameter(&self) -> u64 {
            self.parameter
        }
        fn nothing(&self) {
            let _ = task::nothing();
        }
        fn clock(&self) -> u64 {
            clock::tsc()
        }
        fn wait_tick(&self) {
            let _ = linux::wait_tick();
        }
        fn page(&mut self, physical: u64) -> Option<&[AtomicU64; 512]> {
            self.memory.page(physical)
        }
        fn report(&self, line: fmt::Arguments<'_>) {
            let _ = linux::report_fmt(linux::EVENT_NOTE, 0, line);
        }
    }

    fn run(info: &'static StartInfo) {
        if let Ok(memory) = LinuxMemory::open() {
            kyozon_text_sum::run(&mut Calls { memory, parameter: info.parameter });
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("text-sum: an image for the bare machine; build it for x86_64-unknown-none");
}
