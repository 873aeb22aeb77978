//! The unchanged code of the ring under a model checker: every order of two threads with at most three preemptions, and
//! every value that the memory model allows a load to return.
//!
//! Records are shorter than in the event ring, so that the check terminates; nothing depends on their length.

use kyozon_channel::memory::{Load, Store};
use kyozon_channel::ring::{Outcome, Reader, Shape, Writer};
use kyozon_channel::slot::Slot;
use loom::sync::atomic::{fence, AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

/// Memory whose every access the model checker sees.
#[derive(Clone)]
struct Modelled(Arc<Vec<AtomicU64>>);

impl Modelled {
    fn new(words: usize) -> Self {
        Self(Arc::new((0..words).map(|_| AtomicU64::new(0)).collect()))
    }
}

impl Load for Modelled {
    fn words(&self) -> usize {
        self.0.len()
    }
    fn load(&self, at: usize) -> u64 {
        self.0[at].load(Ordering::Relaxed)
    }
    fn acquire(&self) {
        fence(Ordering::Acquire);
    }
}

impl Store for Modelled {
    fn store(&self, at: usize, value: u64) {
        self.0[at].store(value, Ordering::Relaxed);
    }
    fn release(&self) {
        fence(Ordering::Release);
    }
}

fn check(body: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(body);
}

/// The body that record `number` must have.
fn body(number: u64) -> [u64; 3] {
    [0, 2 * number + 1, 3 * number + 1]
}

/// A writer overtakes its reader: the reader gets correct records in order, and learns of each one that it lost.
#[test]
fn a_reader_gets_each_record_or_learns_of_its_loss() {
    const WRITTEN: u64 = 3;
    check(|| {
        let memory = Modelled::new(1 + 2 * 3);
        let shape = Shape::new(&memory, 0, 1, 3, 2).unwrap();
        let mut writer = Writer::new(memory.clone(), shape);
        let mut reader = Reader::new(memory, shape, 0);
        writer.push(&body(0));
        let other = thread::spawn(move || {
            for number in 1..WRITTEN {
                writer.push(&body(number));
            }
        });
        let mut seen = 0;
        let mut read = |reader: &mut Reader<Modelled>, end: u64| {
            let mut found = [0; 3];
            match reader.read(end, &mut found) {
                Outcome::Record(number) => {
                    assert_eq!((number, found[1..].to_vec()), (seen, body(seen)[1..].to_vec()));
                    seen += 1;
                }
                Outcome::Lost(records) => seen += records,
                Outcome::Empty => {}
                Outcome::Backwards => panic!("an honest ring went backwards"),
            }
            assert_eq!(reader.cursor(), seen);
        };
        for _ in 0..2 {
            let end = reader.end();
            read(&mut reader, end);
        }
        other.join().unwrap();
        for _ in 0..WRITTEN {
            let end = reader.end();
            read(&mut reader, end);
        }
        assert_eq!(seen, WRITTEN);
    });
}

/// A writer does not overtake its reader: no record is lost, whatever the reader sees and when.
#[test]
fn a_reader_in_time_loses_nothing() {
    check(|| {
        let memory = Modelled::new(1 + 2 * 3);
        let shape = Shape::new(&memory, 0, 1, 3, 2).unwrap();
        let mut writer = Writer::new(memory.clone(), shape);
        let mut reader = Reader::new(memory, shape, 0);
        let other = thread::spawn(move || {
            for number in 0..2 {
                writer.push(&body(number));
            }
        });
        for _ in 0..2 {
            let (wanted, end) = (reader.cursor(), reader.end());
            let mut found = [0; 3];
            match reader.read(end, &mut found) {
                Outcome::Record(number) => {
                    assert_eq!((number, &found[1..]), (wanted, &body(wanted)[1..]));
                }
                Outcome::Empty => assert_eq!(end, wanted),
                other => panic!("an honest ring that is not full says {other:?}"),
            }
        }
        other.join().unwrap();
    });
}

/// The status of a check: after two published passes, no reader sees parts of both.
#[test]
fn a_status_is_never_torn() {
    check(|| {
        let memory = Modelled::new(4);
        // The number is in the middle, as in a status.
        let slot = Slot { first: 0, words: 4, number: 2 };
        let writing = memory.clone();
        let other = thread::spawn(move || {
            for pass in 1..3 {
                slot.write(&writing, &[pass, 10 * pass, 0, 100 * pass], 2 * pass - 1, 2 * pass);
            }
        });
        let mut found = [0; 4];
        for _ in 0..2 {
            if let Some(number) = slot.read(&memory, &mut found, |number| number % 2 == 0) {
                let pass = number / 2;
                assert_eq!(found, [pass, 10 * pass, number, 100 * pass]);
            }
        }
        other.join().unwrap();
    });
}

/// The checker finds the error: without the writer's fence, the record is torn.
#[test]
#[should_panic(expected = "torn")]
fn a_slot_without_fences_is_torn() {
    check(|| {
        let memory = Modelled::new(3);
        let writing = memory.clone();
        let other = thread::spawn(move || {
            writing.store(0, 1);
            writing.store(1, 7);
            writing.store(2, 7);
            writing.store(0, 2);
        });
        let mut found = [0; 3];
        let slot = Slot { first: 0, words: 3, number: 0 };
        if slot.read(&memory, &mut found, |number| number % 2 == 0).is_some() {
            assert!(found == [0, 0, 0] || found == [2, 7, 7], "torn: {found:?}");
        }
        other.join().unwrap();
    });
}
