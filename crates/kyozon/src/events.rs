//! The event ring as text, as JSON, and for the logs of systems.

mod format;
pub mod journal;
pub(crate) mod meaning;
mod provenance;
pub mod saved;

use crate::checks::nanoseconds;
use crate::colocation::loaded;
use crate::machine::{Machine, Now};
use anyhow::{bail, Result};
pub use format::Format;
use format::{Event, Line, Origin, When};
use kyozon_abi::events::{EventRecord, EVENT_FINDING, EVENT_TEXT_BYTES};
use kyozon_channel::events::{printable, EventReader, Unusable};
use kyozon_channel::memory::Load;
use kyozon_channel::ring::Outcome;
use kyozon_monitor::class::Class;
use kyozon_monitor::finding::Parts;
use provenance::Modules;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Maximum length of a joined line; the layer's lines are shorter.
const LINE_BYTES: usize = 4 * EVENT_TEXT_BYTES;

/// Maximum number of findings that later lines may be about.
const FINDINGS: usize = 1024;
/// How a line begins that repeats a finding's.
const STILL_OPEN: &str = "still open: ";

/// Prints the ring, an event with each write; with `follow` continues until the cokernel is unloaded or the reader of
/// `out` is gone.
pub fn print<M: Machine>(
    machine: &mut M,
    out: &mut impl Write,
    follow: bool,
    format: Format,
) -> Result<ExitCode> {
    match print_to(machine, out, follow, format) {
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
    format: Format,
) -> Result<ExitCode> {
    let Some(mut ring) = open(machine)? else {
        eprintln!("kyozon: nothing is loaded");
        return Ok(ExitCode::from(3));
    };
    let origin = origin(machine, ring.loaded_tsc());
    let (khz, now) = (ring.tsc_khz(), Some(machine.now()));
    let mut printer = Printer::new(out, format, origin, khz, now);
    loop {
        // Checked before draining, so that the last records are printed.
        let continues = follow && ring.is_open();
        printer.now = Some(machine.now());
        printer.drain(&mut ring)?;
        if !continues {
            printer.finish_line()?;
            if follow {
                printer.write(&Line::Unloaded)?;
            }
        }
        printer.out.flush()?;
        if !continues || !machine.pause() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Where events come from: for people who read those of many machines.
fn origin<M: Machine>(machine: &M, loaded_tsc: u64) -> Origin {
    let line = |path: &str| {
        let bytes = machine.read(Path::new(path)).unwrap_or_default();
        let line: String =
            bytes.iter().take_while(|b| **b != b'\n').map(|b| char::from(*b)).collect();
        line.replace(|c: char| !c.is_ascii_graphic(), "?")
    };
    let [host, boot_id] =
        ["/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id"].map(line);
    let modules = Some(Modules::running(machine.release()));
    Origin { host, boot_id, loaded_tsc, modules }
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

/// A finding that later lines may be about.
struct Known {
    sequence: u64,
    code: u32,
    /// Kind and object.
    name: String,
    address: Option<u64>,
}

/// Whether a line about a finding may end so, behind its kind and object.
fn is_outcome(rest: &str) -> bool {
    const WHOLE: [&str; 4] = [": repaired", ": gone", ": SIGKILL is pending", ": restarting Linux"];
    WHOLE.contains(&rest)
        || [": not repaired: ", ": not restarted: "].iter().any(|it| rest.starts_with(it))
}

struct Printer<'a, W> {
    out: &'a mut W,
    format: Format,
    origin: Origin,
    khz: u64,
    /// `None` if it is not known: times are counted from the load.
    now: Option<Now>,
    /// An incomplete line and its first record.
    partial: Option<(EventRecord, String)>,
    /// The last findings, newest first.
    findings: VecDeque<Known>,
}

impl<'a, W: Write> Printer<'a, W> {
    fn new(out: &'a mut W, format: Format, origin: Origin, khz: u64, now: Option<Now>) -> Self {
        Self { out, format, origin, khz, now, partial: None, findings: VecDeque::new() }
    }

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
        self.write(&Line::Lost(records))
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
        let milliseconds =
            |from: u64, to: u64| nanoseconds(to.saturating_sub(from), self.khz) / 1_000_000;
        let when = match self.now {
            Some(now) => {
                let age_ms = milliseconds(record.tsc, now.tsc);
                When::Utc { time: utc(now.unix_ms.saturating_sub(age_ms)), age_ms }
            }
            None => When::SinceLoad { ms: milliseconds(self.origin.loaded_tsc, record.tsc) },
        };
        let finding = self.finding(&record, &text);
        let (class, code) = Class::of_event(record.code);
        let EventRecord { sequence, kind, tsc, tick, .. } = record;
        let event = Event { sequence, kind, tsc, tick, class, code, when, text, finding };
        self.write(&Line::Event(event))
    }

    /// The number of the finding that the line `text` is about, if it is none itself: the last one of the same check
    /// and class with the kind and the object that the line names. Intruders name objects: if a line can be about
    /// several, it is about none.
    fn finding(&mut self, record: &EventRecord, text: &str) -> Option<u64> {
        if record.kind == EVENT_FINDING {
            if let Some(Parts { what, object, address, .. }) = Parts::of(text) {
                let known = Known {
                    sequence: record.sequence,
                    code: record.code,
                    name: format!("{what}: {object}"),
                    address,
                };
                self.findings.truncate(FINDINGS - 1);
                self.findings.push_front(known);
            }
            return None;
        }
        let again = text.strip_prefix(STILL_OPEN).map(Parts::of);
        let same = self.findings.iter().filter(|known| {
            known.code == record.code
                && match &again {
                    Some(Some(Parts { what, object, address, .. })) => {
                        known.address == *address && known.name == format!("{what}: {object}")
                    }
                    Some(None) => false,
                    None => text.strip_prefix(&known.name).is_some_and(is_outcome),
                }
        });
        let mut names = same.clone().map(|known| &known.name);
        let name = names.next()?;
        names.all(|other| other == name).then(|| same.map(|known| known.sequence).next())?
    }

    fn write(&mut self, line: &Line) -> Result<()> {
        let text = self.format.line(&self.origin, line);
        Ok(self.out.write_all(text.as_bytes())?)
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
mod tests;
