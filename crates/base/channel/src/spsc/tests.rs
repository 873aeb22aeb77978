//! The spsc ring in raw memory, as programs use it.

use super::*;
use crate::border::{Bytes, Region};
use crate::fuzz::{FakeGroup, FakePeer};
use crate::park::{Life, Park, Peer, Peers};
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::boxed::Box;
use std::vec::Vec;

/// Memory for a ring, aligned to a page.
#[repr(C, align(4096))]
struct Memory([AtomicU64; 32 + 64]);

impl Memory {
    fn new() -> Box<Self> {
        Box::new(Self([const { AtomicU64::new(0) }; 96]))
    }

    #[allow(unsafe_code)]
    fn ring(&self) -> (&Control, Bytes<'_>) {
        // SAFETY: this structure, atomically.
        let region = unsafe { Region::new(self as *const Self as *mut u8, size_of::<Self>()) };
        assert!(region.spsc(64, 512).is_none() && region.spsc(0, 4096).is_none());
        region.spsc(0, 512).unwrap()
    }

    fn pair<'a>(
        &'a self,
        world: &FakeGroup,
    ) -> (Writer<&'a Control, Bytes<'a>>, Reader<&'a Control, Bytes<'a>>) {
        let (control, data) = self.ring();
        sides(control, data, world)
    }
}

/// Both sides of a ring: peer 0 writes, peer 1 reads.
fn sides<'a, D: Data + Copy>(
    control: &'a Control,
    data: D,
    world: &FakeGroup,
) -> (Writer<&'a Control, D>, Reader<&'a Control, D>) {
    let writer = Writer::attach(control, data, &world.peer(0)).unwrap();
    (writer, Reader::attach(control, data, &world.peer(1)).unwrap())
}

#[test]
fn records_of_all_lengths_arrive_in_order() {
    let (memory, world) = (Memory::new(), FakeGroup::new());
    let (mut writer, mut reader) = memory.pair(&world);
    let (one, other) = (world.peer(0), world.peer(1));
    assert_eq!(writer.limit(), 248);
    let text: Vec<u8> = (0..=255).collect();
    let mut buffer = [0; 248];
    let lengths = (0..=248).step_by(if cfg!(miri) { 23 } else { 1 });
    for len in lengths.chain([1, 248, 3, 248, 248]) {
        assert_eq!(writer.try_send(&text[..len], &one), Ok(true));
        assert_eq!(reader.try_recv(&mut buffer, &other), Ok(Some(len)));
        assert_eq!(buffer[..len], text[..len]);
    }
    assert_eq!(reader.try_recv(&mut buffer, &other), Ok(None));
    assert_eq!(writer.try_send(&[0; 249], &one), Err(Error::RecordTooLong { limit: 248 }));
}

#[test]
fn a_full_ring_accepts_nothing() {
    let (memory, world) = (Memory::new(), FakeGroup::new());
    let (mut writer, mut reader) = memory.pair(&world);
    let (one, other) = (world.peer(0), world.peer(1));
    let mut sent = 0u8;
    while writer.try_send(&[sent; 56], &one).unwrap() {
        sent += 1;
    }
    assert_eq!(sent, 8);
    assert_eq!(writer.send(&[sent; 56], &one, Some(one_later(&one))), Err(Error::TimedOut));
    let mut buffer = [0; 56];
    for number in 0..sent {
        assert_eq!(reader.try_recv(&mut buffer, &other), Ok(Some(56)));
        assert_eq!(buffer, [number; 56]);
        assert_eq!(writer.try_send(&[sent + number; 56], &one), Ok(true));
        assert_eq!(writer.try_send(&[sent + number; 56], &one), Ok(false));
    }
}

fn one_later(peer: &FakePeer<'_>) -> u64 {
    use crate::park::Park;
    peer.now() + 1
}

#[test]
fn records_are_written_and_read_in_place() {
    let (memory, world) = (Memory::new(), FakeGroup::new());
    let (mut writer, mut reader) = memory.pair(&world);
    let (one, other) = (world.peer(0), world.peer(1));
    assert_eq!(writer.try_reserve(100).unwrap().unwrap().limit(), 100, "and no more of it");
    assert!(reader.try_peek().unwrap().is_none());
    let grant = writer.try_reserve(100).unwrap().unwrap();
    let (data, at) = grant.place();
    data.write(at, b"in place, ");
    grant.write(10, b"and shorter").unwrap();
    assert_eq!(grant.write(95, b"beyond"), Err(Error::RecordTooLong { limit: 100 }));
    grant.commit(21, &one);
    let view = reader.try_peek().unwrap().unwrap();
    assert_eq!((view.len(), view.is_empty()), (21, false));
    assert_eq!(view.read(&mut [0; 20]), Err(Error::BufferTooShort { needed: 21 }));
    let view = reader.peek(&other, None).unwrap();
    let mut text = [0; 21];
    let (data, at) = view.place();
    data.read(at, &mut text);
    assert_eq!(&text, b"in place, and shorter");
    view.release(&other);
    assert!(reader.try_peek().unwrap().is_none());
}

#[test]
fn only_a_sleeper_is_woken_and_once_per_sleep() {
    let (memory, world) = (Memory::new(), FakeGroup::new());
    let (mut writer, mut reader) = memory.pair(&world);
    let (one, other) = (world.peer(0), world.peer(1));
    let mut buffer = [0; 8];
    assert_eq!(writer.try_send(&[1; 8], &one), Ok(true));
    assert_eq!(reader.recv(&mut buffer, &other, None), Ok(8));
    assert_eq!(world.take_woken(), 0);
    let waits = &control_of(&memory).words()[4];
    waits.store(waits.load(Relaxed) | 1 << 63, Relaxed);
    writer.try_reserve(8).unwrap().unwrap().commit_quietly(8);
    assert_eq!(world.take_woken(), 0);
    writer.notify(&one);
    assert_eq!(world.take_woken(), 1 << 1);
    assert_eq!(writer.try_send(&[1; 8], &one), Ok(true));
    assert_eq!(world.take_woken(), 0, "once is enough");
    waits.store(waits.load(Relaxed) + (1 << 6), Relaxed);
    assert_eq!(writer.try_send(&[1; 8], &one), Ok(true));
    assert_eq!(world.take_woken(), 1 << 1);
}

fn control_of(memory: &Memory) -> &Control {
    memory.ring().0
}

#[test]
fn a_successor_continues_at_the_same_position() {
    let (memory, world) = (Memory::new(), FakeGroup::new());
    let (one, other) = (world.peer(0), world.peer(1));
    let (mut writer, _) = memory.pair(&world);
    for number in 0..5 {
        assert_eq!(writer.try_send(&[number; 40], &one), Ok(true));
    }
    let (mut writer, mut reader) = memory.pair(&world);
    assert_eq!(writer.try_send(&[5; 40], &one), Ok(true));
    let mut buffer = [0; 40];
    for number in 0..6 {
        assert_eq!(reader.try_recv(&mut buffer, &other), Ok(Some(40)));
        assert_eq!(buffer, [number; 40]);
    }
}

#[test]
fn a_closed_or_dead_side_is_reported() {
    let (memory, world) = (Memory::new(), FakeGroup::new());
    let (one, other) = (world.peer(0), world.peer(1));
    let (mut writer, mut reader) = memory.pair(&world);
    assert_eq!(writer.try_send(&[1; 8], &one), Ok(true));
    writer.close(&one);
    let mut buffer = [0; 8];
    assert_eq!(reader.recv(&mut buffer, &other, None), Ok(8));
    assert_eq!(reader.recv(&mut buffer, &other, None), Err(Error::Closed));
    let (mut writer, reader) = memory.pair(&world);
    reader.close(&other);
    let results: Vec<_> = (0..3).map(|_| writer.send(&[1; 200], &one, None)).collect();
    assert_eq!(results, [Ok(()), Ok(()), Err(Error::Closed)]);
    let (mut writer, mut reader) = memory.pair(&world);
    world.set_dead(0b11);
    assert_eq!(writer.send(&[1; 200], &one, None), Err(Error::PeerDied));
    assert_eq!(reader.try_recv(&mut [0; 248], &other), Ok(Some(200)));
    assert_eq!(reader.try_recv(&mut [0; 248], &other), Ok(Some(200)));
    assert_eq!(reader.recv(&mut buffer, &other, None), Err(Error::PeerDied));
}

#[test]
fn bad_shapes_are_refused() {
    let (memory, world) = (Memory::new(), FakeGroup::new());
    let (control, data) = memory.ring();
    let words = [const { AtomicU64::new(0) }; 24];
    for count in [0, 4, 24] {
        let refused = Writer::attach(control, &words[..count], &world.peer(0)).err();
        assert_eq!(refused, Some(Error::Corrupt), "{count} words");
    }
    for (word, value) in [(0, 1), (0, 520), (3, 8), (3, 4), (0, u64::MAX - 7)] {
        control.words()[word].store(value, Relaxed);
        assert!(Writer::attach(control, data, &world.peer(0)).is_err(), "{word} {value}");
        assert!(Reader::attach(control, data, &world.peer(1)).is_err(), "{word} {value}");
        control.words()[word].store(0, Relaxed);
    }
    // Positions wrap at 2^64.
    for word in [0, 3] {
        control.words()[word].store(u64::MAX - 7, Relaxed);
    }
    let (mut writer, mut reader) = memory.pair(&world);
    assert_eq!(writer.try_send(&[3; 100], &world.peer(0)), Ok(true));
    assert_eq!(reader.try_recv(&mut [0; 100], &world.peer(1)), Ok(Some(100)));
}

/// Words that record each [`Data::expect_write`]: offset and bytes.
struct Expecting {
    words: Vec<AtomicU64>,
    expected: RefCell<Vec<(usize, usize)>>,
}

impl Data for Expecting {
    fn bytes(&self) -> usize {
        self.words.bytes()
    }
    fn load_word(&self, at: usize) -> u64 {
        self.words.load_word(at)
    }
    fn store_word(&self, at: usize, value: u64) {
        self.words.store_word(at, value);
    }
    fn read(&self, at: usize, to: &mut [u8]) {
        self.words.read(at, to);
    }
    fn write(&self, at: usize, from: &[u8]) {
        self.words.write(at, from);
    }
    fn expect_write(&self, at: usize, bytes: usize) {
        assert!(crate::data::inside(self.bytes(), at, bytes), "{at} {bytes}");
        self.expected.borrow_mut().push((at, bytes));
    }
}

#[test]
fn free_lines_of_short_records_are_prefetched() {
    let words = (0..2048).map(|_| AtomicU64::new(0)).collect();
    let data = Expecting { words, expected: RefCell::default() };
    let (control, world) = (Control::<AtomicU64>::default(), FakeGroup::new());
    let (one, other) = (world.peer(0), world.peer(1));
    let (mut writer, mut reader) = sides(&control, &data, &world);
    let expected = || data.expected.take();
    const AHEAD: usize = 4608;
    for at in (AHEAD..16384).step_by(64) {
        assert_eq!(writer.try_send(&[1; 56], &one), Ok(true));
        assert_eq!(expected(), [(at, 64)]);
    }
    assert_eq!(writer.try_send(&[1; 56], &one), Ok(true));
    assert_eq!(expected(), [], "the records there were not read");
    for _ in (AHEAD..16384).step_by(64) {
        assert_eq!(reader.try_recv(&mut [0; 56], &other), Ok(Some(56)));
    }
    // The writer knows of no more room than before; it loads the reader's position when it has none.
    for _ in 0..AHEAD / 64 - 1 {
        assert_eq!(writer.try_send(&[1; 56], &one), Ok(true));
        assert_eq!(expected(), []);
    }
    assert_eq!(writer.try_send(&[1; 120], &one), Ok(true));
    assert_eq!(expected(), [(AHEAD, 128)]);
    assert_eq!(writer.try_send(&[1; 512], &one), Ok(true));
    assert_eq!(expected(), [], "it is not short");
}

#[test]
fn nothing_past_the_end_is_prefetched() {
    let words = (0..1024).map(|_| AtomicU64::new(0)).collect();
    let data = Expecting { words, expected: RefCell::default() };
    let (control, world) = (Control::<AtomicU64>::default(), FakeGroup::new());
    let (one, other) = (world.peer(0), world.peer(1));
    let (mut writer, mut reader) = sides(&control, &data, &world);
    for number in 0..2000 {
        let record = &[1; 480][..8 * (number * 7 % 60)];
        assert_eq!(writer.try_send(record, &one), Ok(true));
        assert_eq!(reader.try_recv(&mut [0; 480], &other), Ok(Some(record.len())));
    }
    let fetched = data.expected.take();
    let cut = fetched.iter().filter(|(at, bytes)| at + bytes == 8192).count();
    assert!(fetched.len() > 500 && cut > 3, "{} pieces, {cut} at the end", fetched.len());
}

/// A peer whose spin hints call a function that acts for the other side.
struct Behind<'a, F>(FakePeer<'a>, RefCell<F>);

impl<F: FnMut()> Park for Behind<'_, F> {
    fn me(&self) -> Peer {
        self.0.me()
    }
    fn now(&self) -> u64 {
        self.0.now()
    }
    fn park(&self, deadline: Option<u64>) {
        self.0.park(deadline);
    }
    fn unpark(&self, number: u8) {
        self.0.unpark(number);
    }
    fn spins(&self) -> u32 {
        10_000
    }
    fn spin_hint(&self) {
        (self.1.borrow_mut())();
    }
}

impl<F> Peers for Behind<'_, F> {
    fn life(&self, number: u8) -> Life {
        self.0.life(number)
    }
}

#[test]
fn a_blocked_writer_follows_a_fast_reader() {
    // Bytes of the ring, spin hints per record that is read, number of records that are read, and number of records
    // that are then sent without another load of the reader's position.
    for (bytes, hints, reads, sends) in [
        (32 << 10, 1, 1, 1),
        (32 << 10, 1, 5, 5),
        // A quarter of the ring, then 16 KiB, as a load comes every 64 hints; then as much as 64 loads can find.
        (32 << 10, 1, 1000, 129),
        (128 << 10, 1, 1000, 257),
        (128 << 10, 64, 1000, 65),
    ] {
        let words: Vec<_> = (0..bytes / 8).map(|_| AtomicU64::new(0)).collect();
        let (control, world) = (Control::<AtomicU64>::default(), FakeGroup::new());
        let (one, other) = (world.peer(0), world.peer(1));
        let (mut writer, mut reader) = sides(&control, &words[..], &world);
        while writer.try_send(&[1; 56], &one).unwrap() {}
        let (mut left, mut hint) = (reads, 0);
        let read = move || {
            hint += 1;
            if left > 0 && hint % hints == 0 {
                left -= 1;
                assert_eq!(reader.try_recv(&mut [0; 56], &other), Ok(Some(56)));
            }
        };
        let behind = Behind(one, RefCell::new(read));
        assert_eq!(writer.send(&[2; 56], &behind, None), Ok(()));
        control.words()[3].store(1, Relaxed);
        let known = (1..).take_while(|_| writer.try_send(&[2; 56], &one) == Ok(true)).count();
        assert_eq!(known + 1, sends, "{bytes} {hints} {reads}");
    }
}

#[test]
fn a_writer_without_time_does_not_follow() {
    let words: Vec<_> = (0..4096).map(|_| AtomicU64::new(0)).collect();
    let (control, world) = (Control::<AtomicU64>::default(), FakeGroup::new());
    let (one, other) = (world.peer(0), world.peer(1));
    let (mut writer, mut reader) = sides(&control, &words[..], &world);
    while writer.try_send(&[1; 56], &one).unwrap() {}
    assert_eq!(reader.try_recv(&mut [0; 56], &other), Ok(Some(56)));
    let behind = Behind(one, RefCell::new(|| panic!("the deadline has passed")));
    assert_eq!(writer.send(&[2; 56], &behind, Some(0)), Ok(()));
    // Nor does a writer that shares a processor: it loads the reader's position and does not announce a sleep.
    assert_eq!(reader.try_recv(&mut [0; 56], &other), Ok(Some(56)));
    let waits = || control.words()[1].load(Relaxed);
    let before = waits();
    assert_eq!(writer.send(&[2; 56], &one, None), Ok(()));
    assert_eq!(waits(), before);
}

#[test]
fn a_blocked_reader_lets_short_records_gather() {
    // Bytes of a record, number of records that are sent, one per spin hint, and number of records that are then known
    // without another load of the writer's position.
    for (bytes, sends, knows) in [(56, 1, 1), (56, 5, 5), (56, 1000, 65), (512, 1000, 1)] {
        let words: Vec<_> = (0..4096).map(|_| AtomicU64::new(0)).collect();
        let (control, world) = (Control::<AtomicU64>::default(), FakeGroup::new());
        let (one, other) = (world.peer(0), world.peer(1));
        let (mut writer, mut reader) = sides(&control, &words[..], &world);
        let mut left = sends;
        let send = move || {
            if left > 0 {
                left -= 1;
                assert_eq!(writer.try_send(&vec![1; bytes], &one), Ok(true));
            }
        };
        let behind = Behind(other, RefCell::new(send));
        assert_eq!(reader.recv(&mut [0; 512], &behind, None), Ok(bytes));
        control.words()[0].store(1, Relaxed);
        let known = (1..).take_while(|_| reader.try_recv(&mut [0; 512], &other).is_ok()).count();
        assert_eq!(known + 1, knows, "{sends} of {bytes} bytes");
    }
}

#[test]
fn single_records_are_seldom_delayed() {
    let words: Vec<_> = (0..4096).map(|_| AtomicU64::new(0)).collect();
    let (control, world) = (Control::<AtomicU64>::default(), FakeGroup::new());
    let (one, other) = (world.peer(0), world.peer(1));
    let (mut writer, mut reader) = sides(&control, &words[..], &world);
    let (sent, hints) = (Cell::new(0), Cell::new(0));
    let send = || {
        hints.set(hints.get() + 1);
        if sent.replace(1) == 0 {
            assert_eq!(writer.try_send(&[1; 56], &one), Ok(true));
        }
    };
    let behind = Behind(other, RefCell::new(send));
    let mut waits = || {
        sent.set(0);
        hints.set(0);
        assert_eq!(reader.recv(&mut [0; 56], &behind, None), Ok(56));
        hints.get()
    };
    for pause in [64, 128, 256, 512, 1024, 2048, 4096, 4096] {
        assert_eq!(waits(), 65, "it looked once more");
        assert!((0..pause).all(|_| waits() == 1), "within {pause}");
    }
}
