//! The event ring, and the serial line that repeats it.
//!
//! The ring is `kyozon_channel`'s. The serial line is slower than the ring: it follows as a reader of its own, a few
//! bytes at a time, so that no trip waits for it.

use core::sync::atomic::AtomicU64;
use kyozon_abi::events::{CheckStatus, EventRecord, EVENT_TEXT_BYTES};
use kyozon_channel::events::{printable, EventReader, EventWriter};
use kyozon_channel::memory::shared;
use kyozon_channel::ring::Outcome;

/// Memory of the ring, mapped as long as the layer runs.
type Memory = &'static [AtomicU64];

/// Writer of an event ring.
pub struct Events(Option<Ring>);

struct Ring {
    writer: EventWriter<Memory>,
    /// The serial line's. It trusts the writer's `next`, since Linux may change the ring's own.
    reader: EventReader<Memory>,
    line: Line,
}

/// The record that the serial line is sending.
struct Line {
    text: [u8; EVENT_TEXT_BYTES + 1],
    sent: usize,
    bytes: usize,
}

impl Line {
    const EMPTY: Self = Self { text: [0; EVENT_TEXT_BYTES + 1], sent: 0, bytes: 0 };

    fn set(&mut self, record: &EventRecord) {
        let bytes = (record.text_bytes as usize).min(EVENT_TEXT_BYTES);
        for (to, from) in self.text.iter_mut().zip(&record.text[..bytes]) {
            *to = printable(*from);
        }
        self.text[bytes] = b'\n';
        self.sent = 0;
        self.bytes = bytes + usize::from(record.continues == 0);
    }
}

impl Events {
    /// A ring that discards everything.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Writes to the ring in the `bytes` bytes at `ring`. An invalid header gives [`Events::none`].
    ///
    /// # Safety
    ///
    /// `ring` must be null, or valid for `bytes` bytes with no other writer as long as the layer runs.
    pub unsafe fn new(ring: *mut u8, bytes: u64) -> Self {
        // SAFETY: as the caller promised.
        let Some(memory) = (unsafe { shared(ring, bytes) }) else {
            return Self::none();
        };
        let both = EventWriter::new(memory).and_then(|writer| {
            let reader = EventReader::from(memory, writer.next())?;
            Ok(Ring { writer, reader, line: Line::EMPTY })
        });
        Self(both.ok())
    }

    /// Writes one line, in as many records as it takes. Bytes that are not printable ASCII are written as `?`.
    pub fn write(&mut self, kind: u32, code: u32, tsc: u64, tick: u64, line: &[u8]) {
        if let Some(ring) = &mut self.0 {
            ring.writer.write(kind, code, tsc, tick, line);
        }
    }

    /// Publishes the status of check number `check`. The writer sets its `sequence`.
    pub fn publish(&mut self, check: usize, status: &CheckStatus) {
        if let Some(ring) = &mut self.0 {
            ring.writer.publish(check, status);
        }
    }

    /// Whether [`Events::serial`] may have a byte.
    pub fn has_serial(&self) -> bool {
        self.0.as_ref().is_some_and(|ring| {
            ring.line.sent < ring.line.bytes || ring.reader.cursor() != ring.writer.next()
        })
    }

    /// The next byte for the serial line; lines end with a line feed. Records that the ring has overwritten are
    /// skipped. `None` if there is none, and [`Events::has_serial`] is false from then on.
    pub fn serial(&mut self) -> Option<u8> {
        let ring = self.0.as_mut()?;
        while ring.line.sent >= ring.line.bytes {
            match ring.reader.read(ring.writer.next()) {
                Outcome::Record(record) => ring.line.set(&record),
                Outcome::Lost(_) => {}
                Outcome::Empty | Outcome::Backwards => return None,
            }
        }
        ring.line.sent += 1;
        Some(ring.line.text[ring.line.sent - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kyozon_abi::events::{EventRing, EVENTS_VERSION, EVENT_NOTE, MAX_CHECKS, RECORDS_OFFSET};

    const RECORDS: usize = 4;

    #[repr(C, align(8))]
    struct Memory {
        ring: EventRing,
        gap: [u8; RECORDS_OFFSET as usize - size_of::<EventRing>()],
        records: [EventRecord; RECORDS],
    }

    fn memory(records: u32) -> Box<Memory> {
        let empty = EventRecord {
            sequence: 0,
            tsc: 0,
            tick: 0,
            kind: 0,
            code: 0,
            text_bytes: 0,
            continues: 0,
            text: [0; EVENT_TEXT_BYTES],
        };
        Box::new(Memory {
            ring: EventRing {
                version: EVENTS_VERSION,
                records,
                next: 0,
                tsc_khz: 1000,
                loaded_tsc: 0,
                reserved: [0; 4],
                checks: [CheckStatus::default(); MAX_CHECKS],
            },
            gap: [0; RECORDS_OFFSET as usize - size_of::<EventRing>()],
            records: [empty; RECORDS],
        })
    }

    fn events(m: &mut Memory) -> Events {
        // SAFETY: the memory outlives the writer in each test.
        unsafe { Events::new((&raw mut *m).cast(), size_of::<Memory>() as u64) }
    }

    fn note(e: &mut Events, tsc: u64, tick: u64, line: &[u8]) {
        e.write(EVENT_NOTE, 0, tsc, tick, line);
    }

    fn sent(e: &mut Events) -> String {
        let mut out = String::new();
        while let Some(b) = e.serial() {
            out.push(b as char);
        }
        out
    }

    #[test]
    fn lines_reach_ring_and_serial_line() {
        let mut m = memory(RECORDS as u32);
        let mut e = events(&mut m);
        note(&mut e, 5, 6, b"one\x1b");
        note(&mut e, 7, 8, b"two");
        assert_eq!(sent(&mut e), "one?\ntwo\n");
        assert_eq!(m.ring.next, 2);
        assert_eq!((m.records[1].sequence, m.records[1].tsc), (1, 7));
        assert_eq!(&m.records[0].text[..4], b"one?");
    }

    #[test]
    fn long_lines_continue() {
        let mut m = memory(RECORDS as u32);
        let mut e = events(&mut m);
        note(&mut e, 0, 0, &[b'x'; EVENT_TEXT_BYTES + 10]);
        assert_eq!((m.records[0].continues, m.records[1].continues), (1, 0));
        assert_eq!(m.records[1].text_bytes, 10);
        assert_eq!(sent(&mut e).len(), EVENT_TEXT_BYTES + 11);
    }

    #[test]
    fn slow_serial_line_loses_the_oldest() {
        let mut m = memory(RECORDS as u32);
        let mut e = events(&mut m);
        for i in 0..10u8 {
            note(&mut e, 0, 0, &[b'0' + i]);
        }
        assert_eq!(sent(&mut e), "6\n7\n8\n9\n");
    }

    #[test]
    fn invalid_rings_discard() {
        for records in [0, 3, 8, u32::MAX] {
            let mut m = memory(records);
            let mut e = events(&mut m);
            note(&mut e, 0, 0, b"lost");
            assert_eq!(sent(&mut e), "");
            assert_eq!(m.ring.next, 0);
        }
    }

    #[test]
    fn empty_lines_are_sent() {
        let mut m = memory(RECORDS as u32);
        let mut e = events(&mut m);
        note(&mut e, 0, 0, b"");
        assert_eq!(sent(&mut e), "\n");
    }

    #[test]
    fn sequence_is_even_after_a_publish() {
        let mut m = memory(RECORDS as u32);
        let mut e = events(&mut m);
        for passes in 1..=3 {
            e.publish(2, &CheckStatus { passes, sequence: 99, ..CheckStatus::default() });
            e.publish(MAX_CHECKS, &CheckStatus::default());
        }
        assert_eq!((m.ring.checks[2].passes, m.ring.checks[2].sequence), (3, 6));
        assert_eq!(m.ring.checks[1], CheckStatus::default());
    }
}
