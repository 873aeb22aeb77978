use super::*;
use crate::fake::{Fake, Ring};
use kyozon_abi::events::{EVENT_FAULT, EVENT_FINDING, EVENT_NOTE, EVENT_REPAIR};
use kyozon_channel::events::EventWriter;
use serde_json::json;

/// Words before the first record.
const HEAD: usize = kyozon_abi::events::RECORDS_OFFSET as usize / 8;
/// For [`Ring`]: the 1 MHz time-stamp counter stands at 61 s; wall-clock time is 09:30.
const NOW: Now = Now { tsc: 61_000_000, unix_ms: 1_700_040_600_000 };

fn machine(ring: &Ring) -> Fake {
    let mut machine =
        Fake { module: true, loaded: true, ring: ring.clone(), now: NOW, ..Fake::default() };
    machine.files.put("hostname", b"a host\n".into());
    machine.files.put("boot_id", b"b00t\n".into());
    machine
}

fn printed(machine: &mut Fake, follow: bool, format: Format) -> Vec<String> {
    let mut out = Vec::new();
    print(machine, &mut out, follow, format).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn lines_have_a_time_a_kind_and_a_text() {
    let ring = Ring::new(8);
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    writer.write(EVENT_NOTE, 0, 1_000_000, 1, b"one");
    writer.write(EVENT_FINDING, 7, 60_999_000, 2, &[b'x'; 230]);
    writer.write(EVENT_REPAIR, 0, u64::MAX, 3, b"from the future");
    writer.write(EVENT_FAULT, 0, 61_000_000, 4, b"end");
    writer.write(77, 0, 61_000_000, 5, b"what");
    assert_eq!(
        printed(&mut machine(&ring), false, Format::Text),
        [
            "2023-11-15T09:29:00.000Z note    one".to_owned(),
            format!("2023-11-15T09:29:59.999Z FINDING {}", "x".repeat(230)),
            "2023-11-15T09:30:00.000Z REPAIR  from the future".to_owned(),
            "2023-11-15T09:30:00.000Z FAULT   end".to_owned(),
            "2023-11-15T09:30:00.000Z KIND 77 what".to_owned(),
        ]
    );
    let lines = printed(&mut machine(&ring), false, Format::Json);
    let value: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
    assert_eq!(
        value,
        json!({
            "schema": "kyozon.event/1", "host": "a?host", "boot_id": "b00t", "id": "b00t-1000-1",
            "sequence": 1, "tsc": 60_999_000, "tick": 2, "time": "2023-11-15T09:29:59.999Z", "age_ms": 1,
            "kind": "finding", "severity": "critical", "code": 7, "text": "x".repeat(230),
        })
    );
    assert_eq!(lines.len(), 5);
}

#[test]
fn a_finding_has_the_parts_of_its_line() {
    let ring = Ring::new(8);
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    let line = "hidden process: evil, pid 7 at 0xffff888000010000: expected in a, found only in b";
    writer.write(EVENT_FINDING, 0, 1, 1, line.as_bytes());
    writer.write(EVENT_NOTE, 0, 1, 1, line.as_bytes());
    writer.write(EVENT_FINDING, 0, 1, 1, b"hidden process: x at 0x1: y at 0x2: z");
    let line = "hook: a at 0x1: found b; leads to module not-there";
    writer.write(EVENT_FINDING, 0, 1, 1, line.as_bytes());
    let lines = printed(&mut machine(&ring), false, Format::Json);
    let value = |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let [finding, note, unclear] = [0, 1, 2].map(|at| value(&lines[at]));
    let unknown = json!({
        "name": "not-there", "taint": null, "build_id": null, "file": null, "origin": "unknown",
    });
    assert_eq!(value(&lines[3])["module"], unknown);
    let parts = ["what", "object", "address", "expected", "found", "owner"];
    assert_eq!(
        parts.map(|part| finding[part].clone()),
        [
            json!("hidden process"),
            json!("evil, pid 7"),
            json!("0xffff888000010000"),
            json!("in a"),
            json!("only in b"),
            json!(null),
        ]
    );
    assert!(parts.iter().all(|part| note.get(part).is_none() && unclear.get(part).is_none()));
}

#[test]
fn terminal_control_bytes_are_not_printed() {
    let ring = Ring::new(8);
    EventWriter::new(ring.clone()).unwrap().write(EVENT_NOTE, 0, 0, 0, b"abcdefgh");
    ring.set(HEAD + 5, u64::from_le_bytes(*b"\x1b[2J\r\n\x9b\0"));
    for format in [Format::Text, Format::Json, Format::Syslog] {
        let lines = printed(&mut machine(&ring), false, format);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains("?[2J????"), "{lines:?}");
    }
}

#[test]
fn lost_records_are_counted_and_long_lines_cut() {
    let ring = Ring::new(4);
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    for _ in 0..5 {
        writer.write(EVENT_NOTE, 0, 61_000_000, 0, b"x");
    }
    let mut machine = machine(&ring);
    let lines = printed(&mut machine, false, Format::Text);
    assert_eq!(lines[0], "-- 1 records lost: overwritten before they were read");
    assert_eq!(lines.len(), 5);
    let lines = printed(&mut machine, false, Format::Json);
    assert!(lines[0].contains(r#""kind":"lost","records":1"#), "{lines:?}");
    // A line that never ends is cut.
    for slot in 0..4 {
        ring.set(HEAD + 32 * slot + 4, 1 << 32 | 216);
    }
    let lines = printed(&mut machine, false, Format::Text);
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn draining_is_bounded_under_a_busy_writer() {
    // Each read of the ring's end finds more records than the ring holds.
    struct Busy(Ring);
    impl Load for Busy {
        fn words(&self) -> usize {
            self.0.words()
        }
        fn load(&self, at: usize) -> u64 {
            if at == 1 {
                let mut writer = EventWriter::new(self.0.clone()).unwrap();
                (0..6).for_each(|_| writer.write(EVENT_NOTE, 0, 0, 0, b"x"));
            }
            self.0.load(at)
        }
        fn acquire(&self) {}
    }
    let mut out = Vec::new();
    let (format, origin) = (Format::Text, Origin::default());
    let mut printer = Printer::new(&mut out, format, origin, 1, Some(NOW));
    let mut ring = EventReader::new(Busy(Ring::new(4))).unwrap();
    printer.drain(&mut ring).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!((5..=8).contains(&text.lines().count()), "{text}");
    assert!(text.starts_with("-- 2 records lost"), "{text}");
}

#[test]
fn following_ends_at_unload() {
    for format in [Format::Text, Format::Json] {
        let ring = Ring::new(8);
        let mut machine = machine(&ring);
        let mut writer = EventWriter::new(ring.clone()).unwrap();
        writer.write(EVENT_NOTE, 0, 61_000_000, 0, b"first");
        machine.script = vec![
            Box::new(|_| ()),
            Box::new(move |_| writer.write(EVENT_NOTE, 0, 61_000_000, 0, b"second")),
            Box::new(|_| ()),
            // As the module does: it writes the last line, then closes the ring.
            Box::new(|ring| {
                let mut writer = EventWriter::new(ring.clone()).unwrap();
                writer.write(EVENT_FAULT, 0, 61_000_000, 0, b"third");
                ring.set(0, 8 << 32);
            }),
            Box::new(|_| panic!("polled after the end")),
        ];
        let lines = printed(&mut machine, true, format);
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[1].contains("second") && lines[2].contains("third"));
        let last = match format {
            Format::Json => r#""kind":"unloaded","#,
            _ => "-- the cokernel was unloaded",
        };
        assert!(lines[3].contains(last), "{lines:?}");
    }
}

#[test]
fn following_ends_without_a_reader() {
    let ring = Ring::new(8);
    let mut machine = machine(&ring);
    machine.script = vec![Box::new(|_| ())];
    assert!(printed(&mut machine, true, Format::Text).is_empty());
    assert_eq!(machine.pauses, 2);
}

#[test]
fn without_a_cokernel_the_status_is_3() {
    let code = |machine: &mut Fake| {
        let mut out = Vec::new();
        let code = print(machine, &mut out, true, Format::Text).unwrap();
        assert!(out.is_empty());
        format!("{code:?}")
    };
    let three = format!("{:?}", ExitCode::from(3));
    assert_eq!(code(&mut Fake::default()), three);
    assert_eq!(code(&mut Fake { module: true, ..Fake::default() }), three);
    let closed = Ring::new(8);
    closed.set(0, 0);
    assert_eq!(code(&mut machine(&closed)), three);
}

#[test]
fn a_malformed_ring_is_an_error() {
    let ring = Ring::new(8);
    let mut machine = machine(&ring);
    machine.script = vec![Box::new(|ring| ring.set(1, 3)), Box::new(|ring| ring.set(1, 0))];
    let error = print(&mut machine, &mut Vec::new(), true, Format::Text).unwrap_err();
    assert!(error.to_string().contains("backwards"));
    let ring = Ring::new(8);
    ring.set(0, 9);
    let error = print(&mut self::machine(&ring), &mut Vec::new(), true, Format::Text).unwrap_err();
    assert!(error.to_string().contains("version 9"));
}

#[test]
fn dates_match_the_calendar() {
    for (ms, wanted) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400_001, "2000-02-29T00:00:00.001Z"),
        (1_735_689_599_999, "2024-12-31T23:59:59.999Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
    ] {
        assert_eq!(utc(ms), wanted);
    }
    utc(u64::MAX);
}

#[test]
fn a_line_about_a_finding_has_its_class() {
    let ring = Ring::new(8);
    let code = Class::event_code(Some(Class::HookHidden), 6);
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    writer.write(EVENT_FINDING, code, 0, 0, b"a hook");
    writer.write(EVENT_NOTE, 6, 0, 0, b"a note");
    let lines = printed(&mut machine(&ring), false, Format::Json);
    let value = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let class = |line: &str| (value(line)["class"].clone(), value(line)["code"].clone());
    assert_eq!(class(&lines[0]), (json!("hook.hidden"), json!(6)));
    assert_eq!(class(&lines[1]), (json!(null), json!(6)));
}

#[test]
fn a_line_about_a_finding_names_it() {
    let ring = Ring::new(8);
    let code = Class::event_code(Some(Class::TextModified), 1);
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    let line = b"kernel text changed: vfs_read+0x4 at 0xffffffff81000004: expected 90, found c3";
    writer.write(EVENT_FINDING, code, 0, 0, line);
    writer.write(EVENT_FINDING, code, 0, 0, line);
    writer.write(EVENT_FINDING, code, 0, 0, b"kernel text changed: vfs_read at 0x1: c3");
    for (code, text) in [
        (code, &b"kernel text changed: vfs_read+0x4: repaired"[..]),
        (code, &[b"still open: ", &line[..]].concat()),
        (code, b"kernel text changed: vfs_read: not repaired: no repair is known"),
        (code, b"kernel text changed: vfs_write: repaired"),
        (code + 1, b"kernel text changed: vfs_read: repaired"),
    ] {
        writer.write(EVENT_REPAIR, code, 0, 0, text);
    }
    let lines = printed(&mut machine(&ring), false, Format::Json);
    let value = |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let about: Vec<_> = lines.iter().map(|line| value(line)["finding"].clone()).collect();
    let [first, other] = ["b00t-1000-1", "b00t-1000-2"].map(|id| json!(id));
    let none = json!(null);
    assert_eq!(
        about,
        [none.clone(), none.clone(), none.clone(), first.clone(), first, other, none.clone(), none]
    );
    assert_eq!(value(&lines[0])["confidence"], "high");
    assert_eq!(value(&lines[3]).get("confidence"), None);
    let lines = printed(&mut machine(&ring), false, Format::Syslog);
    assert!(lines[3].contains(r#"id="b00t-1000-3" finding="b00t-1000-1" class="#), "{lines:?}");
}

#[test]
fn a_name_does_not_lead_to_another_finding() {
    let ring = Ring::new(8);
    let code = Class::event_code(Some(Class::ProcessHidden), 1);
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    writer.write(
        EVENT_FINDING,
        code,
        0,
        0,
        b"hidden process: sh, pid 12 at 0x1: expected in a, found in b",
    );
    for line in [
        &b"hidden process: sh, pid 12: ev, pid 77: repaired"[..],
        b"still open: hidden process: sh, pid 12 at 0x2: expected in a, found in b",
        b"still open: hidden process: sh, pid 12 at 0x1: expected in a, found in b",
    ] {
        writer.write(EVENT_NOTE, code, 0, 0, line);
    }
    let lines = printed(&mut machine(&ring), false, Format::Json);
    let about =
        |line: &String| serde_json::from_str::<serde_json::Value>(line).unwrap()["finding"].clone();
    let about: Vec<_> = lines.iter().skip(1).map(about).collect();
    assert_eq!(about, [json!(null), json!(null), json!("b00t-1000-0")]);
}

#[test]
fn systems_get_fields() {
    let ring = Ring::new(8);
    let code = Class::event_code(Some(Class::ProcessHidden), 1);
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    writer.write(EVENT_FINDING, code, 60_999_000, 2, b"hidden: \"a]\"");
    assert_eq!(
        printed(&mut machine(&ring), false, Format::Syslog),
        [concat!(
            r#"<82>1 2023-11-15T09:29:59.999Z a?host kyozon - - [kyozon@32473 kind="finding" id="b00t-1000-0" "#,
            r#"class="process.hidden" attack="T1014,T1564"] hidden: "a]""#
        )]
    );
    assert_eq!(
        printed(&mut machine(&ring), false, Format::Journal),
        [
            "MESSAGE=hidden: \"a]\"",
            "PRIORITY=2",
            "SYSLOG_IDENTIFIER=kyozon",
            "KYOZON_KIND=finding",
            "KYOZON_ID=b00t-1000-0",
            "KYOZON_CLASS=process.hidden",
            "KYOZON_ATTACK=T1014,T1564",
            "KYOZON_TIME=2023-11-15T09:29:59.999Z",
        ]
    );
}

#[test]
fn a_journal_gets_a_message_with_each_write() {
    struct Writes(Vec<String>);
    impl Write for Writes {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(String::from_utf8(bytes.into()).unwrap());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let ring = Ring::new(8);
    let mut writer = EventWriter::new(ring.clone()).unwrap();
    writer.write(EVENT_NOTE, 0, 0, 0, &[b'x'; 230]);
    writer.write(EVENT_NOTE, 0, 0, 0, b"y");
    let mut out = Writes(Vec::new());
    print(&mut machine(&ring), &mut out, false, Format::Journal).unwrap();
    assert_eq!(out.0.len(), 2);
    assert!(out.0.iter().all(|message| message.starts_with("MESSAGE=")), "{:?}", out.0);
}
