use super::*;
use crate::fake::Ring;
use kyozon_abi::device::STATE_STOPPED;
use kyozon_abi::events::{CheckStatus, CHECK_WATCHING, MONITOR_INDEX, MONITOR_RUNNING};
use kyozon_channel::events::EventWriter;

/// A running monitor whose heart beat at 1,000,000 and may be silent for 5 s (1000 ticks are a millisecond).
fn running() -> MonitorStatus {
    MonitorStatus {
        state: MONITOR_RUNNING,
        beat_tsc: 1_000_000,
        patience_tsc: 5_000_000,
        ..MonitorStatus::default()
    }
}

fn seen(counts: &MonitorStatus, change: impl Fn(&mut Status), tsc: u64, text: u64) -> Monitor {
    let ring = Ring::new(8);
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    writer.publish(MONITOR_INDEX, &counts.to_words());
    for (index, (name, state)) in [("tasks", CHECK_WATCHING), ("text", text)].iter().enumerate() {
        let check = CheckStatus { state: *state, ..CheckStatus::named(name) };
        writer.publish(index, &check.to_words());
    }
    let now = Now { tsc, unix_ms: 0 };
    let mut status = crate::report::tests::status();
    change(&mut status);
    let checks = crate::checks::read(ring.clone(), now).unwrap();
    read(ring, now, &status, &checks).unwrap()
}

fn nothing(_: &mut Status) {}

#[test]
fn a_monitor_that_does_not_progress_is_blind() {
    let now = |tsc| seen(&running(), nothing, tsc, CHECK_WATCHING);
    assert_eq!(now(5_900_000).state, State::Watching);
    assert_eq!(now(8_000_000).state, State::Blind("it has not progressed for 7 s".into()));
    assert_eq!(text(&now(8_000_000)), "monitor  blind: it has not progressed for 7 s");
    let starting = MonitorStatus { state: MONITOR_STARTING, ..running() };
    assert_eq!(seen(&starting, nothing, 1_000_001, CHECK_WATCHING).state, State::Starting);
    let late = seen(&starting, nothing, 7_000_000, CHECK_WATCHING);
    assert_eq!(late.state, State::Blind("it has not begun to watch for 6 s".into()));
}

#[test]
fn an_ended_monitor_is_blind_with_its_reason() {
    let mut ended = MonitorStatus { state: MONITOR_ENDED, restarts: 2, ..running() };
    ended.set_reason(b"task 0 stopped: vector 14\x1b[2J");
    let monitor = seen(&ended, nothing, 1_000_001, CHECK_WATCHING);
    assert!(monitor.is_blind());
    let line = text(&monitor);
    assert_eq!(line, "monitor  blind: task 0 stopped: vector 14?[2J; started again 2 times");
    assert_eq!(json(&Some(monitor))["state"], "blind");
    let stopped = |status: &mut Status| status.state = STATE_STOPPED;
    assert!(seen(&running(), stopped, 1_000_001, CHECK_WATCHING).is_blind());
}

#[test]
fn a_check_that_learns_is_named() {
    let monitor = seen(&running(), nothing, 1_000_001, CHECK_LEARNING);
    assert_eq!(monitor.state, State::Learning(vec!["text".into()]));
    assert_eq!(text(&monitor), "monitor  learning: text");
}

#[test]
fn another_cokernel_has_no_monitor() {
    let none = read(Ring::new(8), Now::default(), &crate::report::tests::status(), &[]);
    assert!(none.is_none());
    assert_eq!(json(&None), Value::Null);
}
