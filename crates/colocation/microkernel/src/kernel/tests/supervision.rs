//! Supervised tasks fail, and start again.

use super::*;
use kyozon_abi::events::{MonitorStatus, MONITOR_ENDED, MONITOR_INDEX, MONITOR_RUNNING};

/// A system whose first task is the monitor, at 100 ticks a second, and supervised with a patience of 50 ticks.
fn supervised() -> System {
    let mut s = System::new(2);
    s.kernel.tasks[0].supervision.is_monitor = true;
    s.call(SUPERVISE, 50, NONE);
    assert_eq!(s.answer(), 0);
    s
}

fn ended(s: &System) -> MonitorStatus {
    let (index, words) = s.fake.published.last().expect("a status was published");
    assert_eq!(*index, MONITOR_INDEX as u64);
    MonitorStatus::from_words(words)
}

/// Delivers `count` ticks to whatever runs.
fn ticks(s: &mut System, count: u64) {
    for _ in 0..count {
        let number = s.kernel.seen_ticks + 1;
        s.fake.due = Some(TickEvent { number, ..TickEvent::default() });
        s.interrupt(2);
    }
}

#[test]
fn a_fault_is_published_and_the_task_starts_again() {
    let mut s = supervised();
    let space = s.kernel.tasks[0].space;
    let kept = TASK_KEPT + 0x800;
    assert!(space.write(&mut s.fake, kept, &[0x1234]));
    s.call(ENDPOINT, 0, NONE);
    s.frame.rip = 0x77;
    s.interrupt(14);
    let status = ended(&s);
    assert_eq!((status.state, status.restarts), (MONITOR_ENDED, 0));
    assert!(status.reason.starts_with(b"task 0 stopped: vector 14 error 0x0 rip 0x77"));
    assert_eq!(s.runs(), SERVER);
    ticks(&mut s, 1);
    assert_eq!((s.runs(), s.frame.rdi, s.kernel.tasks[0].alive), (DRIVER, TASK_INFO, true));
    let mut words = [0];
    assert!(space.read(&mut s.fake, kept, &mut words) && words == [0x1234], "kept memory");
    assert!(space.read(&mut s.fake, TASK_INFO + 88, &mut words) && words == [1], "restarts");
    // The handles of the first start, and none more.
    assert_eq!(s.call(CLOSE, 31, NONE).answer(), E_HANDLE);
    assert_eq!(s.call(ENDPOINT, 0, NONE).answer(), 1);
}

#[test]
fn a_task_that_waits_for_no_tick_is_stuck() {
    let mut s = supervised();
    s.call(WAIT_TICK, 0, NONE);
    ticks(&mut s, 1);
    assert_eq!(s.runs(), DRIVER);
    ticks(&mut s, 40);
    assert!(s.fake.published.is_empty());
    ticks(&mut s, 70);
    assert!(ended(&s).reason.starts_with(b"task 0 stopped: it has not waited for a tick for "));
    assert_eq!((s.runs(), s.frame.rdi, s.kernel.tasks[0].alive), (DRIVER, TASK_INFO, true));
}

#[test]
fn a_pause_of_the_machine_does_not_count() {
    let mut s = supervised();
    s.call(WAIT_TICK, 0, NONE);
    ticks(&mut s, 1);
    for number in [100_000, 100_001, 100_200] {
        s.fake.due = Some(TickEvent { number, ..TickEvent::default() });
        s.interrupt(2);
    }
    assert!(s.kernel.tasks[0].alive && s.fake.published.is_empty());
}

#[test]
fn a_task_that_fails_at_once_waits_longer_and_longer() {
    let mut s = supervised();
    let mut waits = Vec::new();
    for _ in 0..8 {
        s.call(EXIT, EXIT_PANICKED, NONE);
        let mut wait = 0;
        while !s.kernel.tasks[0].alive && wait < 20_000 {
            ticks(&mut s, 1);
            wait += 1;
        }
        waits.push(wait);
        s.call(SUPERVISE, 50, NONE);
    }
    assert_eq!(waits, [1, 100, 200, 400, 800, 1600, 3200, 6400]);
    s.call(EXIT, EXIT_PANICKED, NONE);
    ticks(&mut s, 30_000);
    assert!(!s.kernel.tasks[0].alive);
    assert!(s.fake.lines.iter().any(|line| line.ends_with("it is not started again")));
    assert_eq!(ended(&s).restarts, 8);
}

#[test]
fn only_failures_of_a_supervised_task_start_it_again() {
    let mut s = supervised();
    s.call(EXIT, 0, NONE);
    ticks(&mut s, 1000);
    assert!(!s.kernel.tasks[0].alive);
    let mut s = System::new(2);
    s.kernel.tasks[0].supervision.is_monitor = true;
    s.call(EXIT, EXIT_VERSION, NONE);
    ticks(&mut s, 1000);
    assert!(!s.kernel.tasks[0].alive, "it did not ask for supervision");
    let reason = ended(&s).reason;
    assert!(reason.starts_with(b"task 0 ended: code 2, it was built for another version"));
}

#[test]
fn the_tasks_own_reason_is_kept() {
    let mut s = supervised();
    let at = TASK_HEAP_BASE + 0xf00;
    let space = s.kernel.tasks[0].space;
    for state in [MONITOR_RUNNING, MONITOR_ENDED] {
        let status = MonitorStatus { state, ..MonitorStatus::default() };
        assert!(space.write(&mut s.fake, at, &status.to_words()));
        s.call(PUBLISH, MONITOR_INDEX as u64, [at, 0, 0, 0, 0, 0]);
    }
    let before = s.fake.published.len();
    s.call(EXIT, EXIT_FAILED, NONE);
    assert_eq!(s.fake.published.len(), before);
}
