//! The events in an image of a machine's memory, such as the one that a crash kernel saves.
//!
//! The pages of the ring lie anywhere in memory. The first one and those with records are known by their contents; any
//! program can have pages that look like them. If there are several rings, or several records with one number, all are
//! printed, up to a maximum, and the result says so.

use super::{Format, Origin, Printer};
use crate::inspect::dump::Dump;
use anyhow::{ensure, Result};
use kyozon_abi::events::*;
use kyozon_channel::events::printable;
use kyozon_monitor::memory::{KernelMemory, PAGE_BYTES};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

const RECORD: usize = size_of::<EventRecord>();
/// Records in a page: the first one's number is a multiple of it.
const RECORDS: u64 = PAGE_BYTES / RECORD as u64;
/// Bytes of a ring's head before its statuses, and where the reserved ones begin.
const HEAD: usize = core::mem::offset_of!(EventRing, checks);
const RESERVED: usize = core::mem::offset_of!(EventRing, reserved);
/// Maximum number of rings that are printed, of pages that look like a ring's first one, and of records.
const MAX_RINGS: usize = 64;
const MAX_HEADS: usize = 1 << 16;
const MAX_RECORDS: usize = 1 << 18;
/// Rates of time-stamp counters that exist, in kHz.
const RATES: std::ops::Range<u64> = 100_000..100_000_000;

/// What an image had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Number of records that the printed rings had and the image has not.
    pub missing: u64,
    /// Number of rings with records.
    pub rings: usize,
    /// Number of records that have the number of another one.
    pub contradicted: u64,
    /// Whether there was more than is printed.
    pub is_cut: bool,
}

impl Saved {
    /// Whether programs may have made some of what was printed.
    pub fn is_doubtful(&self) -> bool {
        self.rings > 1 || self.contradicted > 0 || self.is_cut
    }

    /// What is wrong with the events, a line for each.
    pub fn warnings(&self) -> Vec<String> {
        let Self { missing, rings, contradicted, is_cut } = *self;
        let lines = [
            (missing > 0, format!("it lacks {missing} records")),
            (
                rings > 1,
                format!("it has {rings} rings of events: all but one were made by programs, or by earlier loads"),
            ),
            (contradicted > 0, format!("{contradicted} records have the number of another: programs made them")),
            (is_cut, "it has more that looks like events than is printed".into()),
        ];
        lines.into_iter().filter(|(is_so, _)| *is_so).map(|(_, line)| line).collect()
    }
}

/// Prints the events in the image at `path`.
///
/// # Errors
///
/// The file is no image, or has no events.
pub fn print(path: &Path, out: &mut impl Write, format: Format) -> Result<Saved> {
    let shown = || path.display().to_string();
    ensure!(
        format != Format::Journal,
        "events of an image have no place in this machine's journal"
    );
    let dump = Dump::open(path)?;
    let (heads, heads_cut) = first(rings(&dump), MAX_HEADS);
    let (all, records_cut) = first(records(&dump), MAX_RECORDS);
    let mut known: BTreeMap<u64, Vec<EventRecord>> = BTreeMap::new();
    for record in all {
        known.entry(record.sequence).or_default().push(record);
    }
    let with_records = heads.into_iter().map(|ring| {
        let records = of_ring(&known, &ring);
        (ring, records)
    });
    let mut rings: Vec<_> = with_records.filter(|(_, records)| !records.is_empty()).collect();
    ensure!(
        !rings.is_empty(),
        "{}: it has no events: no cokernel was loaded, or the image lacks its pages",
        shown()
    );
    let count = rings.len();
    let mut saved = Saved {
        rings: count,
        is_cut: heads_cut || records_cut || count > MAX_RINGS,
        ..Saved::default()
    };
    // A ring that is complete is more likely the cokernel's.
    rings.sort_by_key(|(_, records)| std::cmp::Reverse(records.len()));
    rings.truncate(MAX_RINGS);
    rings.sort_by_key(|(ring, _)| ring.loaded_tsc);
    for (ring, records) in rings {
        if count > 1 && format == Format::Text {
            writeln!(out, "-- a ring of the load at time-stamp counter {}", ring.loaded_tsc)?;
        }
        let numbers: BTreeSet<u64> = records.iter().map(|record| record.sequence).collect();
        let had = ring.next.min(ring.records.into());
        saved.missing += had - numbers.len() as u64;
        saved.contradicted += (records.len() - numbers.len()) as u64;
        let origin = Origin { loaded_tsc: ring.loaded_tsc, ..Origin::default() };
        let khz = ring.tsc_khz;
        let mut printer = Printer::new(out, format, origin, khz, None);
        for record in records {
            printer.record(record)?;
        }
        printer.finish_line()?;
    }
    Ok(saved)
}

/// At most `max` of `all`, and whether there are more.
fn first<T>(all: impl Iterator<Item = T>, max: usize) -> (Vec<T>, bool) {
    let mut all = all.fuse();
    let list: Vec<T> = all.by_ref().take(max).collect();
    (list, all.next().is_some())
}

/// What the first page of a ring says.
struct Ring {
    records: u32,
    next: u64,
    tsc_khz: u64,
    loaded_tsc: u64,
}

/// The pages that can be a ring's first one.
fn rings(dump: &Dump) -> impl Iterator<Item = Ring> + '_ {
    dump.pages().filter_map(|at| {
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
    })
}

/// All that can be records.
fn records(dump: &Dump) -> impl Iterator<Item = EventRecord> + '_ {
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
    pages.flat_map(of_page)
}

/// Those of the `known` records that `ring` can have, in the order of their numbers.
fn of_ring(known: &BTreeMap<u64, Vec<EventRecord>>, ring: &Ring) -> Vec<EventRecord> {
    let oldest = ring.next.saturating_sub(ring.records.into());
    let records = known.range(oldest..ring.next).flat_map(|(_, records)| records);
    records.filter(|record| record.tsc >= ring.loaded_tsc).copied().collect()
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
    fn printed(pages: &[Vec<u8>], format: Format) -> Result<(Saved, String)> {
        let mut file = tempfile::NamedTempFile::new()?;
        file.write_all(&pages.concat())?;
        let mut out = Vec::new();
        let saved = print(file.path(), &mut out, format)?;
        Ok((saved, String::from_utf8(out)?))
    }

    #[test]
    fn events_are_found_wherever_their_pages_lie() {
        let long = "x".repeat(EVENT_TEXT_BYTES + 4);
        let mut memory = pages(10_000_000_000, &["one", &long, "three"]);
        let (before, noise) = (pages(3, &["of a load before"]), vec![0xa5; PAGE]);
        memory.extend([noise, before[4].clone()]);
        memory.reverse();
        let (saved, text) = printed(&memory, Format::Text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((saved, saved.warnings().len()), (Saved { rings: 1, ..Saved::default() }, 0));
        assert!(!saved.is_doubtful());
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
        let (saved, text) = printed(&memory, Format::Text).unwrap();
        assert_eq!((saved.missing, text.lines().count()), (0, 32));
        assert!(text.contains("line 8\n") && text.ends_with("line 39\n"));
        // The page with the records 8 to 15 and 32 to 39.
        memory.remove(4);
        let (saved, text) = printed(&memory, Format::Text).unwrap();
        assert_eq!((saved.missing, text.lines().count()), (16, 16));
        assert_eq!(
            (saved.warnings(), saved.is_doubtful()),
            (vec!["it lacks 16 records".into()], false)
        );
    }

    #[test]
    fn forged_rings_are_printed_beside_the_true_one() {
        // Heads before the true one, and a ring of a later load.
        let forged = pages(20_000_000_000, &["nothing happened"]);
        let mut memory = vec![forged[0].clone(); 100];
        memory.extend(pages(10_000_000_000, &["one", "two"]));
        memory.extend(forged);
        let (saved, text) = printed(&memory, Format::Text).unwrap();
        assert!(saved.is_doubtful() && saved.is_cut && saved.rings == 102, "{saved:?}");
        assert!(text.contains("note    one\n") && text.contains("note    two\n"), "{text}");
        // Records with the numbers of others.
        let doubled: Vec<_> =
            [&["one", "two"], &["no", "lie"]].iter().flat_map(|lines| pages(7, *lines)).collect();
        let (saved, text) = printed(&doubled, Format::Text).unwrap();
        assert_eq!((saved.rings, saved.contradicted), (2, 4));
        assert!(["one", "two", "no", "lie"].iter().all(|word| text.contains(word)), "{text}");
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
