//! A task that uses, and misuses, everything the microkernel offers.
//!
//! What it does is chosen by the number that `kyozon load` passes on, and by which task it is. It tells what happened
//! through `report`, one line a finding, in the form `test NAME: WORD WORD ...`, so that a test greps for it.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod image {
    use kyozon_task::{linux, report, StartInfo};

    kyozon_task::main!(run);

    fn run(info: &'static StartInfo) {
        let _ = report!(
            "test start: task {} of {} rights {} mode {} hz {} heap {} data {}",
            info.task,
            info.tasks,
            info.rights,
            info.mode,
            info.tick_hz,
            info.heap_bytes,
            info.data_bytes
        );
        loop {
            match linux::wait_tick() {
                Ok(tick) if tick.number % 100 == 0 => {
                    let _ = report!("test tick: number {} missed {}", tick.number, tick.missed);
                }
                Ok(_) => {}
                Err(error) => {
                    let _ = report!("test tick: {error}");
                    return;
                }
            }
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("task-test: an image for the bare machine; build it for x86_64-unknown-none");
}
