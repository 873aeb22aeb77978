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
    writer.publish(1, &busy);
    writer.publish(3, &CheckStatus::named("text"));
    let checks = read(ring, Now { tsc: 501_000, unix_ms: 0 }).unwrap();
    let lines: Vec<_> = checks.iter().map(text).collect();
    assert_eq!(
        lines,
        [
            "check    hidden?[2Jtask: 3 passes, 2 findings, 1 repairs, last pass 250.0 us, 0.20 % of a CPU, 0.5 s ago",
            "check    text: no pass yet, 0.00 % of a CPU"
        ]
    );
    let value = json(&checks[0]);
    assert_eq!((&value["pass_ns"], &value["age_ns"]), (&json!(250_000), &json!(498_000_000)));
    assert_eq!((&value["items"], &value["cpu_percent"]), (&json!(44), &json!(0.2)));
    assert_eq!(json(&checks[1])["age_ns"], Value::Null);
}

#[test]
fn hostile_times_do_not_overflow() {
    let ring = Ring::new(8);
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    let most = u64::MAX;
    let status = CheckStatus::named(&"x".repeat(32));
    writer.publish(
        0,
        &CheckStatus { passes: most, pass_tsc: most, total_tsc: most, last_tsc: most, ..status },
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
