//! The event ring, and the serial line that repeats it.
//!
//! The ring has one writer and a reader that cannot be waited for. The serial line is slower than the ring: it follows
//! with a cursor of its own, a few bytes at a time, so that no trip waits for it.

use core::ptr;
use core::sync::atomic::{fence, AtomicU64, Ordering};
use kyozon_abi::events::{
    CheckStatus, EventRecord, EventRing, EVENT_TEXT_BYTES, MAX_CHECKS, RECORDS_OFFSET,
};

/// Writer of an event ring.
pub struct Events {
    ring: *mut EventRing,
    records: u64,
    next: u64,
    cursor: Cursor,
}

/// What the serial line has said so far.
#[derive(Clone, Copy, Default)]
struct Cursor {
    record: u64,
    byte: usize,
}

impl Events {
    /// A ring that swallows everything.
    pub const fn none() -> Self {
        Self { ring: ptr::null_mut(), records: 0, next: 0, cursor: Cursor { record: 0, byte: 0 } }
    }

    /// Writes to the ring in the `bytes` bytes at `ring`; a header that is none gives [`Events::none`].
    ///
    /// # Safety
    ///
    /// `ring` must be null, or valid for `bytes` bytes and written by nobody else as long as the result lives.
    pub unsafe fn new(ring: *mut EventRing, bytes: u64) -> Self {
        if ring.is_null() || bytes < RECORDS_OFFSET {
            return Self::none();
        }
        // SAFETY: valid for at least a header, as the caller promised.
        let header = unsafe { ring.read_volatile() };
        let records = u64::from(header.records);
        let fits = (bytes - RECORDS_OFFSET) / size_of::<EventRecord>() as u64;
        if !records.is_power_of_two() || records > fits {
            return Self::none();
        }
        Self { ring, records, next: header.next, cursor: Cursor { record: header.next, byte: 0 } }
    }

    fn slot(&self, sequence: u64) -> *mut EventRecord {
        // SAFETY: `new` made sure that so many records lie there.
        unsafe {
            self.ring
                .byte_add(RECORDS_OFFSET as usize)
                .cast::<EventRecord>()
                .add((sequence % self.records) as usize)
        }
    }

    /// Writes one line, in as many records as it takes. Bytes that are not UTF-8 text are written as `?`.
    pub fn write(&mut self, kind: u32, code: u32, tsc: u64, tick: u64, line: &[u8]) {
        if self.ring.is_null() {
            return;
        }
        let mut rest = line;
        loop {
            let (now, later) = rest.split_at(rest.len().min(EVENT_TEXT_BYTES));
            let mut text = [0; EVENT_TEXT_BYTES];
            for (to, from) in text.iter_mut().zip(now) {
                *to = if (b' '..0x7f).contains(from) { *from } else { b'?' };
            }
            self.push(EventRecord {
                sequence: self.next,
                tsc,
                tick,
                kind,
                code,
                text_bytes: now.len() as u32,
                continues: u32::from(!later.is_empty()),
                text,
            });
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
    }

    /// Says what check number `check` has done. Its `sequence` is ours to set.
    pub fn publish(&mut self, check: usize, status: &CheckStatus) {
        if self.ring.is_null() || check >= MAX_CHECKS {
            return;
        }
        // SAFETY: `new` made sure of the header. A reader may look at it meanwhile: the number is odd until all of it
        // is written.
        unsafe {
            let slot = (&raw mut (*self.ring).checks).cast::<CheckStatus>().add(check);
            let sequence = &*(&raw mut (*slot).sequence).cast::<AtomicU64>();
            let writing = sequence.load(Ordering::Relaxed) | 1;
            sequence.store(writing, Ordering::Relaxed);
            fence(Ordering::Release);
            slot.write_volatile(CheckStatus { sequence: writing, ..*status });
            sequence.store(writing.wrapping_add(1), Ordering::Release);
        }
    }

    fn push(&mut self, record: EventRecord) {
        let slot = self.slot(self.next);
        // SAFETY: the slot is in the ring. A reader may look at it meanwhile: the sequence number is made one that it
        // does not expect before the body changes, and the right one last.
        unsafe {
            let sequence = &*ptr::addr_of!((*slot).sequence).cast::<AtomicU64>();
            sequence.store(u64::MAX, Ordering::Relaxed);
            fence(Ordering::Release);
            slot.write_volatile(EventRecord { sequence: u64::MAX, ..record });
            fence(Ordering::Release);
            sequence.store(record.sequence, Ordering::Relaxed);
            self.next = self.next.wrapping_add(1);
            let next = &*ptr::addr_of!((*self.ring).next).cast::<AtomicU64>();
            next.store(self.next, Ordering::Release);
        }
    }

    /// Whether [`Events::serial`] has a byte.
    pub fn has_serial(&self) -> bool {
        !self.ring.is_null() && self.cursor.record != self.next
    }

    /// The next byte for the serial line; lines end with a line feed. What the ring has overwritten is left out.
    pub fn serial(&mut self) -> Option<u8> {
        if !self.has_serial() {
            return None;
        }
        if self.next.wrapping_sub(self.cursor.record) > self.records {
            self.cursor = Cursor { record: self.next.wrapping_sub(self.records), byte: 0 };
        }
        // SAFETY: the slot is in the ring, and nobody but us writes to it.
        let record = unsafe { self.slot(self.cursor.record).read_volatile() };
        let bytes = (record.text_bytes as usize).min(EVENT_TEXT_BYTES);
        if self.cursor.byte < bytes {
            self.cursor.byte += 1;
            return Some(record.text[self.cursor.byte - 1]);
        }
        self.cursor = Cursor { record: self.cursor.record.wrapping_add(1), byte: 0 };
        if record.continues != 0 {
            self.serial()
        } else {
            Some(b'\n')
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kyozon_abi::events::{EVENTS_VERSION, EVENT_NOTE};

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
                reserved: [0; 5],
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

    fn said(e: &mut Events) -> String {
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
        assert_eq!(said(&mut e), "one?\ntwo\n");
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
        assert_eq!(said(&mut e).len(), EVENT_TEXT_BYTES + 11);
    }

    #[test]
    fn a_slow_serial_line_loses_the_oldest() {
        let mut m = memory(RECORDS as u32);
        let mut e = events(&mut m);
        for i in 0..10u8 {
            note(&mut e, 0, 0, &[b'0' + i]);
        }
        assert_eq!(said(&mut e), "6\n7\n8\n9\n");
    }

    #[test]
    fn a_ring_that_is_none_swallows() {
        for records in [0, 3, 8, u32::MAX] {
            let mut m = memory(records);
            let mut e = events(&mut m);
            note(&mut e, 0, 0, b"lost");
            assert_eq!(said(&mut e), "");
            assert_eq!(m.ring.next, 0);
        }
    }

    #[test]
    fn an_empty_line_is_a_line() {
        let mut m = memory(RECORDS as u32);
        let mut e = events(&mut m);
        note(&mut e, 0, 0, b"");
        assert_eq!(said(&mut e), "\n");
    }

    #[test]
    fn a_status_is_even_when_it_is_whole() {
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
