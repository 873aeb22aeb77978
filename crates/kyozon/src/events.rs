//! The event ring as text and as JSON.

use crate::checks::nanoseconds;
use crate::colocation::loaded;
use crate::machine::{Machine, Now};
use anyhow::{bail, Result};
use kyozon_abi::events::{
    EventRecord, EVENT_FAULT, EVENT_FINDING, EVENT_NOTE, EVENT_REPAIR, EVENT_TEXT_BYTES, EVENT_WALL,
};
use kyozon_channel::events::{printable, EventReader, Unusable};
use kyozon_channel::memory::Load;
use kyozon_channel::ring::Outcome;
use serde_json::json;
use std::io::{self, Write};
use std::process::ExitCode;

/// Maximum length of a joined line; the layer's lines are shorter.
const LINE_BYTES: usize = 4 * EVENT_TEXT_BYTES;

/// Prints the ring; with `follow` continues until the cokernel is unloaded or the reader of `out` is gone.
pub fn print<M: Machine>(
    machine: &mut M,
    out: &mut impl Write,
    follow: bool,
    json: bool,
) -> Result<ExitCode> {
    match print_to(machine, out, follow, json) {
        Err(error) => match error.downcast_ref::<io::Error>() {
            Some(gone) if gone.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            _ => Err(error),
        },
        done => done,
    }
}

fn print_to<M: Machine>(
    machine: &mut M,
    out: &mut impl Write,
    follow: bool,
    json: bool,
) -> Result<ExitCode> {
    let Some(mut ring) = open(machine)? else {
        eprintln!("kyozon: nothing is loaded");
        return Ok(ExitCode::from(3));
    };
    let mut printer = Printer { out, json, khz: ring.tsc_khz(), now: machine.now(), partial: None };
    loop {
        // Checked before draining, so that the last records are printed.
        let continues = follow && ring.is_open();
        printer.now = machine.now();
        printer.drain(&mut ring)?;
        if !continues {
            printer.finish_line()?;
            if follow {
                printer.remark("the cokernel was unloaded", json!({ "kind": "unloaded" }))?;
            }
        }
        printer.out.flush()?;
        if !continues || !machine.pause() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// `None` if nothing is loaded.
fn open<M: Machine>(machine: &mut M) -> Result<Option<EventReader<M::Ring>>> {
    let Some(status) = loaded(machine)? else { return Ok(None) };
    let Some(ring) = machine.events(status.events_bytes)? else { return Ok(None) };
    match EventReader::new(ring) {
        Ok(ring) => Ok(Some(ring)),
        Err(Unusable::Version(0)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

struct Printer<'a, W> {
    out: &'a mut W,
    json: bool,
    khz: u64,
    now: Now,
    /// An incomplete line and its first record.
    partial: Option<(EventRecord, String)>,
}

impl<W: Write> Printer<'_, W> {
    /// Prints the ring's records. Bounded even if the writer never pauses: reads at most twice the ring's size.
    fn drain(&mut self, ring: &mut EventReader<impl Load>) -> Result<()> {
        let mut lost = 0u64;
        let mut end = ring.end();
        for _ in 0..2 * ring.records() {
            match ring.read(end) {
                Outcome::Record(record) => {
                    self.lost(std::mem::take(&mut lost))?;
                    self.record(record)?;
                }
                Outcome::Lost(records) => lost = lost.saturating_add(records),
                Outcome::Empty => match ring.end() {
                    same if same == end => break,
                    later => end = later,
                },
                Outcome::Backwards => bail!(
                    "the event ring went backwards: it was tampered with; trust only the serial copy"
                ),
            }
        }
        self.lost(lost)
    }

    fn lost(&mut self, records: u64) -> Result<()> {
        if records == 0 {
            return Ok(());
        }
        self.finish_line()?;
        self.remark(
            &format!("{records} records lost: overwritten before they were read"),
            json!({ "kind": "lost", "records": records }),
        )
    }

    fn record(&mut self, record: EventRecord) -> Result<()> {
        let bytes = &record.text[..(record.text_bytes as usize).min(EVENT_TEXT_BYTES)];
        let (_, text) = self.partial.get_or_insert_with(|| (record, String::new()));
        text.extend(bytes.iter().map(|byte| char::from(printable(*byte))));
        if record.continues == 0 || text.len() >= LINE_BYTES {
            self.finish_line()?;
        }
        Ok(())
    }

    fn finish_line(&mut self) -> Result<()> {
        let Some((record, text)) = self.partial.take() else { return Ok(()) };
        let age_ms = nanoseconds(self.now.tsc.saturating_sub(record.tsc), self.khz) / 1_000_000;
        let time = utc(self.now.unix_ms.saturating_sub(age_ms));
        if self.json {
            let line = json!({
                "sequence": record.sequence,
                "tsc": record.tsc,
                "tick": record.tick,
                "time": time,
                "age_ms": age_ms,
                "kind": kind(record.kind),
                "code": record.code,
                "text": text,
            });
            writeln!(self.out, "{line}")?;
        } else {
            let word = match record.kind {
                EVENT_NOTE => "note".into(),
                known => kind(known).to_uppercase(),
            };
            writeln!(self.out, "{time} {word:7} {text}")?;
        }
        Ok(())
    }

    /// Prints a line that is not an event of the ring.
    fn remark(&mut self, text: &str, value: serde_json::Value) -> Result<()> {
        if self.json {
            writeln!(self.out, "{value}")?;
        } else {
            writeln!(self.out, "-- {text}")?;
        }
        Ok(())
    }
}

fn kind(number: u32) -> String {
    match number {
        EVENT_NOTE => "note".into(),
        EVENT_FINDING => "finding".into(),
        EVENT_REPAIR => "repair".into(),
        EVENT_FAULT => "fault".into(),
        EVENT_WALL => "wall".into(),
        _ => format!("kind {number}"),
    }
}

/// A time in RFC 3339, UTC. The date follows H. Hinnant, chrono-Compatible Low-Level Date Algorithms,
/// `civil_from_days`.
fn utc(unix_ms: u64) -> String {
    let (days, ms) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let shifted = days + 719_468; // from 1 March of the year 0
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let from_march = (5 * day + 2) / 153;
    let day = day - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year + 400 * era + u64::from(month <= 2);
    let (seconds, ms) = (ms / 1000, ms % 1000);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{ms:03}Z",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{Fake, Ring};
    use kyozon_channel::events::EventWriter;

    /// For [`Ring`]: the 1 MHz time-stamp counter stands at 61 s; wall-clock time is 09:30.
    const NOW: Now = Now { tsc: 61_000_000, unix_ms: 1_700_040_600_000 };

    fn machine(ring: &Ring) -> Fake {
        Fake { module: true, loaded: true, ring: ring.clone(), now: NOW, ..Fake::default() }
    }

    fn printed(machine: &mut Fake, follow: bool, json: bool) -> Vec<String> {
        let mut out = Vec::new();
        print(machine, &mut out, follow, json).unwrap();
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
            printed(&mut machine(&ring), false, false),
            [
                "2023-11-15T09:29:00.000Z note    one".to_owned(),
                format!("2023-11-15T09:29:59.999Z FINDING {}", "x".repeat(230)),
                "2023-11-15T09:30:00.000Z REPAIR  from the future".to_owned(),
                "2023-11-15T09:30:00.000Z FAULT   end".to_owned(),
                "2023-11-15T09:30:00.000Z KIND 77 what".to_owned(),
            ]
        );
        let lines = printed(&mut machine(&ring), false, true);
        let value: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
        assert_eq!(
            value,
            json!({
                "sequence": 1, "tsc": 60_999_000, "tick": 2, "time": "2023-11-15T09:29:59.999Z", "age_ms": 1,
                "kind": "finding", "code": 7, "text": "x".repeat(230),
            })
        );
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn terminal_control_bytes_are_not_printed() {
        let ring = Ring::new(8);
        EventWriter::new(ring.clone()).unwrap().write(EVENT_NOTE, 0, 0, 0, b"abcdefgh");
        ring.set(512 + 5, u64::from_le_bytes(*b"\x1b[2J\r\n\x9b\0"));
        for json in [false, true] {
            let lines = printed(&mut machine(&ring), false, json);
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
        let lines = printed(&mut machine, false, false);
        assert_eq!(lines[0], "-- 1 records lost: overwritten before they were read");
        assert_eq!(lines.len(), 5);
        let lines = printed(&mut machine, false, true);
        assert_eq!(lines[0], r#"{"kind":"lost","records":1}"#);
        // A line that never ends is cut.
        for slot in 0..4 {
            ring.set(512 + 32 * slot + 4, 1 << 32 | 216);
        }
        let lines = printed(&mut machine, false, false);
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
        let mut printer = Printer { out: &mut out, json: false, khz: 1, now: NOW, partial: None };
        let mut ring = EventReader::new(Busy(Ring::new(4))).unwrap();
        printer.drain(&mut ring).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!((5..=8).contains(&text.lines().count()), "{text}");
        assert!(text.starts_with("-- 2 records lost"), "{text}");
    }

    #[test]
    fn following_ends_at_unload() {
        for json in [false, true] {
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
            let lines = printed(&mut machine, true, json);
            assert_eq!(lines.len(), 4, "{lines:?}");
            assert!(lines[1].contains("second") && lines[2].contains("third"));
            let last = if json { r#"{"kind":"unloaded"}"# } else { "-- the cokernel was unloaded" };
            assert_eq!(lines[3], last);
        }
    }

    #[test]
    fn following_ends_without_a_reader() {
        let ring = Ring::new(8);
        let mut machine = machine(&ring);
        machine.script = vec![Box::new(|_| ())];
        assert!(printed(&mut machine, true, false).is_empty());
        assert_eq!(machine.pauses, 2);
    }

    #[test]
    fn without_a_cokernel_the_status_is_3() {
        let code = |machine: &mut Fake| {
            let mut out = Vec::new();
            let code = print(machine, &mut out, true, false).unwrap();
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
        let error = print(&mut machine, &mut Vec::new(), true, false).unwrap_err();
        assert!(error.to_string().contains("backwards"));
        let ring = Ring::new(8);
        ring.set(0, 9);
        let error = print(&mut self::machine(&ring), &mut Vec::new(), true, false).unwrap_err();
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
}
