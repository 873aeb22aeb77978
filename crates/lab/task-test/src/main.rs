//! A task that uses and misuses every call of the microkernel.
//!
//! The first task is the driver; `kyozon load --parameter` chooses its test. All others are [`peer`]s that carry out
//! its requests. Results are reported as lines of the form `test NAME: WORD WORD ...`, which scenarios match.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod bench;
#[cfg(target_os = "none")]
mod calls;
#[cfg(target_os = "none")]
mod check;
#[cfg(target_os = "none")]
mod faults;
#[cfg(target_os = "none")]
mod hostile;
#[cfg(target_os = "none")]
mod load;
#[cfg(target_os = "none")]
mod peer;
#[cfg(target_os = "none")]
mod vectors;

#[cfg(target_os = "none")]
mod image {
    use kyozon_task::{linux, report, StartInfo};

    kyozon_task::main!(run);

    fn run(info: &'static StartInfo) {
        if info.task != 0 {
            crate::peer::serve();
            return;
        }
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
        match info.parameter & 0xff {
            0 => {}
            1 => crate::calls::run(info),
            2 => crate::hostile::run(info),
            3 => crate::faults::run(),
            4 => crate::load::run(info),
            5 => crate::bench::run((info.parameter >> 8) as usize),
            6 => crate::vectors::run(info),
            7 => crate::vectors::upper_half(),
            number => {
                let _ = report!("test unknown: script {number}");
            }
        }
        count_ticks();
    }

    /// Waits for ticks without end, and reports every hundredth.
    fn count_ticks() {
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
