use super::*;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::events::{EVENT_FINDING, EVENT_NOTE, MONITOR_ENDED};

fn memory(records: u64) -> Vec<AtomicU64> {
    let words = RECORDS_OFFSET / 8 + records * RECORD as u64;
    let memory: Vec<_> = (0..words).map(|_| AtomicU64::new(0)).collect();
    memory[0].store(records << 32 | u64::from(EVENTS_VERSION), Relaxed);
    memory[TSC_KHZ].store(1000, Relaxed);
    memory[LOADED_TSC].store(77, Relaxed);
    memory
}

fn text(outcome: Outcome<EventRecord>) -> String {
    match outcome {
        Outcome::Record(r) => {
            String::from_utf8_lossy(&r.text[..r.text_bytes as usize]).into_owned()
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn a_line_arrives_whole() {
    let memory = memory(4);
    let mut writer = EventWriter::new(&memory[..]).unwrap();
    let mut reader = EventReader::new(&memory[..]).unwrap();
    assert_eq!(reader.read(reader.end()), Outcome::Empty);
    writer.write(EVENT_FINDING, 5, 6, 7, b"line one\x1b[2J\xff");
    let mut expected = [0; EVENT_TEXT_BYTES];
    expected[..13].copy_from_slice(b"line one?[2J?");
    let record = EventRecord {
        sequence: 0,
        tsc: 6,
        tick: 7,
        kind: EVENT_FINDING,
        code: 5,
        text_bytes: 13,
        continues: 0,
        text: expected,
    };
    assert_eq!(reader.read(reader.end()), Outcome::Record(record));
    assert_eq!(reader.read(reader.end()), Outcome::Empty);
    assert_eq!((reader.tsc_khz(), reader.loaded_tsc(), reader.records()), (1000, 77, 4));
}

#[test]
fn records_have_the_layout_of_the_structures() {
    // The other side reads them as structures.
    let memory = memory(4);
    let mut writer = EventWriter::new(&memory[..]).unwrap();
    writer.write(0x0102_0304, 0x0506_0708, 9, 10, b"abcdefghij");
    let bytes: Vec<u8> = memory.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
    let record = &bytes[RECORDS_OFFSET as usize..];
    let at = |offset: usize, n: usize| &record[offset..offset + n];
    assert_eq!(at(offset_of!(EventRecord, kind), 4), 0x0102_0304u32.to_le_bytes());
    assert_eq!(at(offset_of!(EventRecord, code), 4), 0x0506_0708u32.to_le_bytes());
    assert_eq!(at(offset_of!(EventRecord, tick), 8), 10u64.to_le_bytes());
    assert_eq!(at(offset_of!(EventRecord, text_bytes), 4), 10u32.to_le_bytes());
    assert_eq!(at(offset_of!(EventRecord, text), 11), b"abcdefghij\0");
    assert_eq!(bytes[offset_of!(EventRing, next)], 1);
}

#[test]
fn long_lines_continue() {
    let memory = memory(4);
    let mut writer = EventWriter::new(&memory[..]).unwrap();
    let mut reader = EventReader::new(&memory[..]).unwrap();
    for bytes in [0, EVENT_TEXT_BYTES, EVENT_TEXT_BYTES + 10] {
        writer.write(EVENT_NOTE, 0, 0, 0, &vec![b'x'; bytes]);
    }
    let mut seen = Vec::new();
    while let Outcome::Record(r) = reader.read(writer.next()) {
        seen.push((r.text_bytes, r.continues));
    }
    assert_eq!(seen, [(0, 0), (216, 0), (216, 1), (10, 0)]);
}

#[test]
fn slow_reader_learns_number_of_lost_records() {
    let memory = memory(4);
    let mut writer = EventWriter::new(&memory[..]).unwrap();
    let mut reader = EventReader::new(&memory[..]).unwrap();
    for line in ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"] {
        writer.write(EVENT_NOTE, 0, 0, 0, line.as_bytes());
    }
    let seen: Vec<_> = (0..6).map(|_| text(reader.read(reader.end()))).collect();
    assert_eq!(seen, ["Lost(6)", "6", "7", "8", "9", "Empty"]);
    // A record that is being overwritten while all four are unread, as the writer leaves it halfway.
    for _ in 0..4 {
        writer.write(EVENT_NOTE, 0, 0, 0, b"x");
    }
    memory[RECORDS_OFFSET as usize / 8 + 2 * RECORD].store(u64::MAX, Relaxed);
    let seen: Vec<_> = (0..5).map(|_| text(reader.read(reader.end()))).collect();
    assert_eq!(seen, ["Lost(1)", "x", "x", "x", "Empty"]);
    memory[NEXT].store(3, Relaxed);
    assert_eq!(reader.read(reader.end()), Outcome::Backwards);
    assert_eq!(reader.read(writer.next()), Outcome::Empty);
}

#[test]
fn a_status_is_read_as_published() {
    let memory = memory(4);
    let mut writer = EventWriter::new(&memory[..]).unwrap();
    let reader = EventReader::new(&memory[..]).unwrap();
    let mut status = CheckStatus {
        name: *b"0123456789abcdefghijklmnopqrstuv",
        sequence: 99,
        passes: 1,
        findings: 2,
        repairs: 3,
        retries: 4,
        pass_tsc: 5,
        total_tsc: 6,
        last_tsc: 7,
        items: 8,
        state: 9,
        wall_tsc: 10,
        item_bytes: 11,
        open: 12,
        unlisted: 13,
        unjudged: 14,
        restarts: 15,
        dropped: 16,
        learned: 17,
        reserved: [0; 10],
    };
    for turn in 1..=3 {
        writer.publish(2, &status.to_words());
        status.sequence = 2 * turn;
        assert_eq!(reader.check(2), Some(status));
    }
    writer.publish(MAX_CHECKS + 1, &status.to_words());
    assert_eq!((reader.check(3), reader.check(MAX_CHECKS)), (Some(CheckStatus::default()), None));
    assert_eq!(reader.monitor(), Some(MonitorStatus::default()));
    let mut monitor = MonitorStatus {
        state: MONITOR_ENDED,
        beat_tsc: 1,
        patience_tsc: 2,
        restarts: 3,
        full_slices: 4,
        slices: 5,
        slice_tsc: 6,
        ..MonitorStatus::default()
    };
    monitor.set_reason(&[b'x'; 200]);
    writer.publish(MONITOR_INDEX, &monitor.to_words());
    assert_eq!(reader.monitor(), Some(MonitorStatus { sequence: 2, ..monitor }));
    assert_eq!(reader.check(MAX_CHECKS - 1), Some(CheckStatus::default()));
    // A writer that stopped halfway.
    memory[status_slot(2).number].store(7, Relaxed);
    assert_eq!(reader.check(2), None);
    writer.publish(2, &status.to_words());
    assert_eq!(reader.check(2).unwrap().sequence, 8);
}

#[test]
fn bad_shapes_are_refused() {
    let version = u64::from(EVENTS_VERSION);
    for (first, wanted) in [
        (0, Unusable::Version(0)),
        (1 | 4 << 32, Unusable::Version(1)),
        (version, Unusable::Records(0)),
        (version | 3 << 32, Unusable::Records(3)),
        (version | 8 << 32, Unusable::Records(8)),
        (version | 1 << 63, Unusable::Records(1 << 31)),
        (u64::MAX << 32 | version, Unusable::Records(u32::MAX)),
    ] {
        let memory = memory(4);
        memory[0].store(first, Relaxed);
        assert_eq!(EventReader::new(&memory[..]).unwrap_err(), wanted);
        assert_eq!(EventWriter::new(&memory[..]).unwrap_err(), wanted);
    }
    for words in [0, 1, 511, 512] {
        assert!(EventReader::new(&memory(4)[..words]).is_err(), "{words}");
    }
}

#[test]
fn an_unloaded_ring_is_closed() {
    let memory = memory(4);
    let reader = EventReader::new(&memory[..]).unwrap();
    assert!(reader.is_open());
    memory[0].store(4 << 32, Relaxed);
    assert!(!reader.is_open());
}
