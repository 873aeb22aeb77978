use super::*;
use crate::fake::Ring;
use kyozon_channel::events::EventWriter;

#[test]
fn each_named_check_is_one_line() {
    let ring = Ring::new(8); // 1000 ticks a millisecond, loaded at 1000
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    let busy = CheckStatus {
        passes: 3,
        findings: 2,
        repairs: 1,
        pass_tsc: 250,
        total_tsc: 1000,
        last_tsc: 3000,
        items: 44,
        ..CheckStatus::named("hidden\x1b[2Jtask")
    };
    writer.publish(1, &busy.to_words());
    writer.publish(3, &CheckStatus { learned: 42, ..CheckStatus::named("text") }.to_words());
    let checks = read(ring, Now { tsc: 501_000, unix_ms: 0 }).unwrap();
    let lines: Vec<_> = checks.iter().map(text).collect();
    assert_eq!(
        lines,
        [
            "check    hidden?[2Jtask: 3 passes, 2 findings, 1 repairs, last pass 250.0 us, 0.20 % of a CPU, 0.5 s ago",
            "check    text: learning, 42 % done, 0.00 % of a CPU"
        ]
    );
    let value = json(&checks[0]);
    assert_eq!((&value["pass_ns"], &value["age_ns"]), (&json!(250_000), &json!(498_000_000)));
    assert_eq!((&value["items"], &value["cpu_percent"]), (&json!(44), &json!(0.2)));
    assert_eq!(json(&checks[1])["age_ns"], Value::Null);
    assert_eq!(json(&checks[0])["learned_percent"], 100);
    assert_eq!(json(&checks[1])["learned_percent"], 42);
}

#[test]
fn coverage_is_shown_per_second() {
    let ring = Ring::new(8); // 1000 ticks a millisecond
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    let pages = CheckStatus {
        passes: 1,
        items: 6400,
        item_bytes: 4096,
        wall_tsc: 2_000_000,
        open: 3,
        dropped: 1,
        ..CheckStatus::named("text")
    };
    let tasks = CheckStatus { item_bytes: 0, ..CheckStatus { ..pages } };
    writer.publish(0, &pages.to_words());
    writer.publish(1, &CheckStatus { name: CheckStatus::named("tasks").name, ..tasks }.to_words());
    let checks = read(ring, Now { tsc: 3_000_000, unix_ms: 0 }).unwrap();
    let end = |check: &Check| text(check).split_once(" s ago, ").unwrap().1.to_string();
    let rest = "2.0 s from begin to end, 3 open, 1 suspects dropped";
    assert_eq!(end(&checks[0]), format!("12.5 MiB a second, {rest}"));
    assert_eq!(end(&checks[1]), format!("3200 tasks a second, {rest}"));
    assert_eq!(json(&checks[0])["items_per_second"], json!(3200.0));
}

#[test]
fn hostile_times_do_not_overflow() {
    let ring = Ring::new(8);
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    let most = u64::MAX;
    let status = CheckStatus::named(&"x".repeat(32));
    writer.publish(
        0,
        &CheckStatus {
            passes: most,
            pass_tsc: most,
            total_tsc: most,
            last_tsc: most,
            items: most,
            item_bytes: most,
            wall_tsc: most,
            ..status
        }
        .to_words(),
    );
    for khz in [0, 1, most] {
        ring.set_khz(khz);
        for tsc in [0, most] {
            let checks = read(ring.clone(), Now { tsc, unix_ms: 0 }).unwrap();
            assert!(text(&checks[0]).contains(&"x".repeat(32)));
            assert!(json(&checks[0])["cpu_percent"].is_number());
        }
    }
}
