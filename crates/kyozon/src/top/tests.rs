use super::*;
use kyozon_abi::device::Status;
use kyozon_abi::events::{CheckStatus, CHECK_WATCHING};
use ratatui::backend::TestBackend;
use ratatui::Terminal;

fn check(name: &str, counts: CheckStatus) -> Check {
    Check {
        name: name.into(),
        counts,
        pass_ns: 0,
        cpu_percent: 0.25,
        items_per_second: 0.0,
        wall_ns: 960_000_000,
        age_ns: (counts.passes > 0).then_some(120_000_000),
    }
}

/// The screen of this size, a string for each line, and the color of the first character of each.
fn screen(width: u16, height: u16, events: &str) -> Vec<(String, Color)> {
    let watching = CheckStatus {
        state: CHECK_WATCHING,
        passes: 4,
        items: 6824,
        findings: 2,
        open: 1,
        ..CheckStatus::default()
    };
    let learning = CheckStatus { state: CHECK_LEARNING, learned: 42, ..CheckStatus::default() };
    let snapshot = Snapshot {
        status: Status { ticks: 12, ..crate::report::tests::status() },
        checks: vec![check("text", watching), check("hooks", learning)],
        monitor: None,
    };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, &snapshot, events)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| {
        let text: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        (text.trim_end().to_owned(), buffer[(0, y)].fg)
    };
    (0..height).map(line).collect()
}

#[test]
fn the_screen_has_status_checks_and_the_last_events() {
    let events = "12:00 note    one\n12:01 FINDING two\n12:02 REPAIR  three\n";
    let lines = screen(100, 11, events);
    let text: Vec<&str> = lines.iter().map(|(text, _)| text.as_str()).collect();
    assert!(text[0].starts_with("state    running on CPU 1"), "{text:?}");
    assert!(text[1].starts_with("ticks    12 at 100 Hz"));
    assert_eq!(
        text[5],
        "CHECK        STATE       ITEMS      PASS      AGE      CPU %  FINDINGS OPEN   NOT JUDGED"
    );
    assert_eq!(
        text[6],
        "text         watches     6824       0.96 s    0.12 s   0.25   2        1      0"
    );
    assert_eq!(
        text[7],
        "hooks        learns 42 % 0          -         -        0.25   0        0      0"
    );
    assert_eq!(text[9..], ["12:01 FINDING two", "12:02 REPAIR  three"]);
    assert_eq!(
        [6, 7, 9, 10].map(|line: usize| lines[line].1),
        [Color::Red, Color::Reset, Color::Red, Color::Green]
    );
}

#[test]
fn any_size_has_room() {
    for (width, height) in [(1, 1), (5, 3), (300, 80)] {
        screen(width, height, &"x FINDING y\n".repeat(500));
    }
}

#[test]
fn keys_end_it() {
    let key = |code, modifiers| KeyEvent::new(code, modifiers);
    assert!(ends(key(KeyCode::Char('q'), KeyModifiers::NONE)));
    assert!(ends(key(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    assert!(ends(key(KeyCode::Esc, KeyModifiers::NONE)));
    assert!(!ends(key(KeyCode::Char('c'), KeyModifiers::NONE)));
}
