//! The events in an image of a machine's memory, such as the one that a crash kernel saves.
//!
//! The pages of the ring lie anywhere in memory. The first one and those with records are known by their contents; any
//! program can have pages that look like them.

use super::{Format, Origin, Printer};
use crate::inspect::dump::Dump;
use anyhow::{ensure, Context, Result};
use kyozon_abi::events::*;
use kyozon_channel::events::printable;
use kyozon_monitor::memory::{KernelMemory, PAGE_BYTES};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

const RECORD: usize = size_of::<EventRecord>();
/// Records in a page: the first one's number is a multiple of it.
const RECORDS: u64 = PAGE_BYTES / RECORD as u64;
/// Bytes of a ring's head before its statuses, and where the reserved ones begin.
const HEAD: usize = core::mem::offset_of!(EventRing, checks);
const RESERVED: usize = core::mem::offset_of!(EventRing, reserved);
/// Maximum number of rings and of records that an image is believed to have.
const MAX_RINGS: usize = 64;
const MAX_RECORDS: usize = 1 << 18;
/// Rates of time-stamp counters that exist, in kHz.
const RATES: std::ops::Range<u64> = 100_000..100_000_000;

/// Prints the events in the image at `path`. Returns the number of records that the ring had and the image has not.
///
/// # Errors
///
/// The file is no image, or has no events.
pub fn print(path: &Path, out: &mut impl Write, format: Format) -> Result<u64> {
    let shown = || path.display().to_string();
    ensure!(
        format != Format::Journal,
        "events of an image have no place in this machine's journal"
    );
    let dump = Dump::open(path)?;
    let all = records(&dump);
    let (ring, records) = rings(&dump)
        .into_iter()
        .map(|ring| {
            let records = of_ring(&all, &ring);
            (ring, records)
        })
        .filter(|(_, records)| !records.is_empty())
        .max_by_key(|(ring, _)| ring.loaded_tsc)
        .context("it has no events: no cokernel was loaded, or the image lacks its pages")
        .with_context(shown)?;
    let missing = ring.next.min(ring.records.into()) - records.len() as u64;
    let origin = Origin { loaded_tsc: ring.loaded_tsc, ..Origin::default() };
    let mut printer = Printer { out, format, origin, khz: ring.tsc_khz, now: None, partial: None };
    for record in records.into_values() {
        printer.record(record)?;
    }
    printer.finish_line()?;
    Ok(missing)
}

/// What the first page of a ring says.
struct Ring {
    records: u32,
    next: u64,
    tsc_khz: u64,
    loaded_tsc: u64,
}

/// The pages that can be a ring's first one.
fn rings(dump: &Dump) -> Vec<Ring> {
    let rings = dump.pages().filter_map(|at| {
        let head: [u8; HEAD] = dump.peek(at)?;
        let word = |at: usize| Some(u64::from_le_bytes(*head.get(at..)?.first_chunk()?));
        let first = word(0)?;
        let ring = Ring {
            records: (first >> 32) as u32,
            next: word(8)?,
            tsc_khz: word(16)?,
            loaded_tsc: word(24)?,
        };
        let is_one = first as u32 == EVENTS_VERSION
            && ring.records.is_power_of_two()
            && u64::from(ring.records) >= RECORDS
            && ring.next > 0
            && RATES.contains(&ring.tsc_khz)
            && head.iter().skip(RESERVED).all(|byte| *byte == 0);
        is_one.then_some(ring)
    });
    rings.take(MAX_RINGS).collect()
}

/// All that can be records.
fn records(dump: &Dump) -> Vec<EventRecord> {
    let pages = dump.pages().filter_map(|at| {
        let first = record(&dump.peek(at)?)?;
        let page = first.sequence.is_multiple_of(RECORDS).then(|| dump.page(at))??;
        Some(page.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect::<Vec<u8>>())
    });
    let of_page = |page: Vec<u8>| {
        let slots = (0..).zip(page.as_chunks::<RECORD>().0.to_vec());
        slots.filter_map(|(slot, bytes)| {
            record(&bytes).filter(|record| record.sequence % RECORDS == slot)
        })
    };
    pages.flat_map(of_page).take(MAX_RECORDS).collect()
}

/// Those of `all` that `ring` has, by their numbers.
fn of_ring(all: &[EventRecord], ring: &Ring) -> BTreeMap<u64, EventRecord> {
    let oldest = ring.next.saturating_sub(ring.records.into());
    let is_its = |record: &&EventRecord| {
        (oldest..ring.next).contains(&record.sequence) && record.tsc >= ring.loaded_tsc
    };
    all.iter().filter(is_its).map(|record| (record.sequence, *record)).collect()
}

/// The record with these bytes, if it can be one.
fn record(bytes: &[u8; RECORD]) -> Option<EventRecord> {
    let long = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let record = EventRecord {
        sequence: long(0)?,
        tsc: long(8)?,
        tick: long(16)?,
        kind: word(24)?,
        code: word(28)?,
        text_bytes: word(32)?,
        continues: word(36)?,
        text: *bytes.get(40..)?.first_chunk()?,
    };
    let text = record.text.get(..record.text_bytes as usize)?;
    let is_one = (EVENT_NOTE..=EVENT_RESTART).contains(&record.kind)
        && !text.is_empty()
        && record.continues <= 1
        && text.iter().all(|byte| printable(*byte) == *byte);
    is_one.then_some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Ring as FakeRing;
    use kyozon_channel::events::EventWriter;
    use kyozon_channel::memory::Load;

    const PAGE: usize = PAGE_BYTES as usize;

    /// The pages of a ring of 32 records with `lines`, loaded at `tsc`.
    fn pages(tsc: u64, lines: &[&str]) -> Vec<Vec<u8>> {
        let ring = FakeRing::new(32);
        ring.set_khz(1_000_000);
        ring.set(3, tsc);
        let mut writer = EventWriter::new(ring.clone()).unwrap();
        for (number, line) in (1..).zip(lines) {
            writer.write(EVENT_NOTE, 0, tsc + 500_000_000 * number, number, line.as_bytes());
        }
        let bytes: Vec<u8> =
            (0..ring.words()).flat_map(|word| ring.load(word).to_le_bytes()).collect();
        bytes.chunks_exact(PAGE).map(<[u8]>::to_vec).collect()
    }

    /// The result for plain memory with these pages.
    fn printed(pages: &[Vec<u8>], format: Format) -> Result<(u64, String)> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(&pages.concat())?;
        let mut out = Vec::new();
        let missing = print(file.path(), &mut out, format)?;
        Ok((missing, String::from_utf8(out)?))
    }

    #[test]
    fn events_are_found_wherever_their_pages_lie() {
        let long = "x".repeat(EVENT_TEXT_BYTES + 4);
        let mut memory = pages(10_000_000_000, &["one", &long, "three"]);
        let (before, noise) = (pages(3, &["of a load before"]), vec![0xa5; PAGE]);
        memory.extend([noise, before[4].clone()]);
        memory.reverse();
        let (missing, text) = printed(&memory, Format::Text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(missing, 0);
        assert_eq!(lines.len(), 3, "{text}");
        assert_eq!(lines[0], "      0.500 s note    one");
        assert!(lines[1].ends_with(&long) && lines[2] == "      1.500 s note    three", "{text}");
        let (_, json) = printed(&memory, Format::Json).unwrap();
        assert!(json.contains("\"since_load_ms\":500") && !json.contains("age_ms"), "{json}");
    }

    #[test]
    fn records_that_the_image_lacks_are_counted() {
        let lines: Vec<String> = (0..40).map(|number| format!("line {number}")).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut memory = pages(7, &lines);
        let (missing, text) = printed(&memory, Format::Text).unwrap();
        assert_eq!((missing, text.lines().count()), (0, 32));
        assert!(text.contains("line 8\n") && text.ends_with("line 39\n"));
        // The page with the records 8 to 15 and 32 to 39.
        memory.remove(4);
        let (missing, text) = printed(&memory, Format::Text).unwrap();
        assert_eq!((missing, text.lines().count()), (16, 16));
    }

    #[test]
    fn memory_without_a_ring_is_an_error() {
        let error = printed(&[vec![0; PAGE], vec![4; PAGE]], Format::Text).unwrap_err();
        assert!(format!("{error:#}").contains("it has no events"), "{error:#}");
        let error = printed(&pages(7, &["one"]), Format::Journal).unwrap_err();
        assert!(error.to_string().contains("journal"), "{error}");
        // Whatever the pages hold, it ends.
        let mut random = kyozon_monitor::random::Random::new(5);
        for _ in 0..200 {
            let mut memory = pages(7, &["one", "two"]);
            for _ in 0..20 {
                let (page, at) = (random.below(2) as usize * 4, random.below(64) as usize);
                memory[page][at] = random.number() as u8;
            }
            let _ = printed(&memory, Format::Text);
        }
    }
}
