//! The event ring, and the serial line that repeats it.
//!
//! The ring is `kyozon_channel`'s. The serial line is slower than the ring: it follows from a copy of its own, a few
//! bytes at a time, so that no trip waits for it. It never reads the ring, which Linux may have changed.

use crate::backlog::Backlog;
use core::sync::atomic::AtomicU64;
use kyozon_abi::events::StatusWords;
use kyozon_channel::events::EventWriter;
use kyozon_channel::memory::shared;

/// Memory of the ring, mapped as long as the layer runs.
type Memory = &'static [AtomicU64];

/// Number of pieces of lines that may wait for the serial line.
const BACKLOG: usize = 256;

/// Writer of an event ring. It is large: it lies in a static, and is opened there.
pub struct Events {
    ring: Option<EventWriter<Memory>>,
    backlog: Backlog<BACKLOG>,
}

impl Events {
    /// A ring that discards everything.
    pub const fn none() -> Self {
        Self { ring: None, backlog: Backlog::new() }
    }

    /// Writes to the ring in the `bytes` bytes at `ring` from now on. An invalid header changes nothing.
    ///
    /// # Safety
    ///
    /// `ring` must be null, or valid for `bytes` bytes with no other writer as long as the layer runs.
    pub unsafe fn open(&mut self, ring: *mut u8, bytes: u64) {
        // SAFETY: as the caller promised.
        let memory = unsafe { shared(ring, bytes) };
        self.ring = memory.and_then(|memory| EventWriter::new(memory).ok());
    }

    /// Writes one line, in as many records as it takes. Bytes that are not printable ASCII are written as `?`.
    pub fn write(&mut self, kind: u32, code: u32, tsc: u64, tick: u64, line: &[u8]) {
        if let Some(ring) = &mut self.ring {
            ring.write(kind, code, tsc, tick, line);
            self.backlog.push(line);
        }
    }

    /// Publishes the status with `index`. The writer sets its sequence.
    pub fn publish(&mut self, index: usize, status: &StatusWords) {
        if let Some(ring) = &mut self.ring {
            ring.publish(index, status);
        }
    }

    /// Whether the serial line has a byte to send.
    pub fn has_serial(&self) -> bool {
        self.backlog.is_waiting()
    }

    /// The next byte for the serial line; lines end with a line feed.
    pub fn serial(&mut self) -> Option<u8> {
        self.backlog.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kyozon_abi::events::{
        CheckStatus, EventRecord, EventRing, MonitorStatus, EVENTS_VERSION, EVENT_NOTE,
        EVENT_TEXT_BYTES, MAX_CHECKS, MONITOR_INDEX, RECORDS_OFFSET,
    };

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
                monitor: MonitorStatus::default(),
            },
            gap: [0; RECORDS_OFFSET as usize - size_of::<EventRing>()],
            records: [empty; RECORDS],
        })
    }

    fn events(m: &mut Memory) -> Events {
        let mut events = Events::none();
        // SAFETY: the memory outlives the writer in each test.
        unsafe { events.open((&raw mut *m).cast(), size_of::<Memory>() as u64) };
        events
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
    fn changes_of_the_ring_do_not_reach_the_serial_line() {
        let mut m = memory(RECORDS as u32);
        let mut e = events(&mut m);
        note(&mut e, 0, 0, b"true");
        note(&mut e, 0, 0, b"too");
        m.records[0].text[..4].copy_from_slice(b"lies");
        m.records[1].sequence = u64::MAX;
        assert_eq!(sent(&mut e), "true\ntoo\n");
    }

    #[test]
    fn serial_line_has_lines_that_the_ring_lost() {
        let mut m = memory(RECORDS as u32);
        let mut e = events(&mut m);
        for i in 0..10u8 {
            note(&mut e, 0, 0, &[b'0' + i]);
        }
        assert_eq!(sent(&mut e).lines().count(), 10);
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
            let status = CheckStatus { passes, sequence: 99, ..CheckStatus::default() };
            e.publish(2, &status.to_words());
            e.publish(MONITOR_INDEX + 1, &status.to_words());
        }
        assert_eq!((m.ring.checks[2].passes, m.ring.checks[2].sequence), (3, 6));
        assert_eq!(m.ring.checks[1], CheckStatus::default());
    }
}
