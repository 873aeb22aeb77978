//! Tasks that never idle: an endless loop and a storm of messages. A thread that waits for ticks is not delayed.

use crate::check::Checks;
use crate::peer;
use kyozon_abi::task::{HANDLE_SEND, HANDLE_TASKS};
use kyozon_task::ipc::{Endpoint, Transfer};
use kyozon_task::{linux, report, task, StartInfo};

/// At 100 ticks per second, more consecutive cut-offs than the layer allows a kernel that never finishes.
const STORM_TICKS: u64 = 500;
const SPIN_TICKS: u64 = 150;

/// Task 1 and task 2 loop; then, alone with the driver, they call each other.
pub fn run(info: &'static StartInfo) {
    let mut c = Checks::new("load");
    let (one, two) = (Endpoint::of_task(1), Endpoint::of_task(2));
    // A storm between two tasks, with a second calling thread.
    let to_two = Transfer::Handle { number: HANDLE_TASKS + 2, rights: HANDLE_SEND };
    for _ in 0..2 {
        let started = one.call_with([peer::STORM, 0, 0, 0, 0, 0], to_two);
        c.same("storm", started.is_ok(), true);
    }
    watch(&mut c, "storm", STORM_TICKS);
    c.same("stop", task::stop(2), Ok(()));
    // Its callers get an error and end, so that their slots are free again.
    let _ = linux::wait_tick();
    let _ = linux::wait_tick();
    c.same("alive", one.call([0; 6]).map(|m| m.words), Ok([1; 6]));
    c.same("gone", two.call([0; 6]).is_err(), true);
    for _ in 0..3 {
        c.same("spin", one.call([peer::SPIN, 0, 0, 0, 0, 0]).map(|m| m.words[0] < 4), Ok(true));
    }
    watch(&mut c, "spin", SPIN_TICKS);
    // It spins at its server's priority; the server still answers, since equal priorities alternate at every tick.
    c.same("alive", one.call([0; 6]).map(|m| m.words), Ok([1; 6]));
    c.same("stop", task::stop(1), Ok(()));
    let _ = report!("test load: task {} of {} continues", info.task, info.tasks);
    c.end();
}

fn watch(c: &mut Checks, name: &str, ticks: u64) {
    let mut missed = 0;
    let mut last = linux::wait_tick().map_or(0, |tick| tick.number);
    for _ in 0..ticks {
        let Ok(tick) = linux::wait_tick() else { return c.same(name, false, true) };
        c.same(name, tick.number, last + 1 + tick.missed);
        missed += tick.missed;
        last = tick.number;
    }
    let _ = report!("test {name}: ticks {ticks} missed {missed}");
    c.same(name, missed <= ticks / 10, true);
}
