//! Rings under a model checker: every record arrives once, whole and in order; no wake-up is lost; and a peer that
//! waits for one that left learns of it.

mod model_support;

use kyozon_channel::error::Error;
use kyozon_channel::{mpmc, spsc};
use loom::sync::Arc;
use loom::thread;
use model_support::{check, deadlocks, model_peer, ModelGroup, ModelPeer, Payload, Strong, Weak};

/// A record so long that two of them fill the ring.
fn record(number: u64) -> [u8; 24] {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().unwrap())
}

type Writer<W> = spsc::Writer<Arc<spsc::Control<W>>, Payload>;
type Reader<W> = spsc::Reader<Arc<spsc::Control<W>>, Payload>;

fn pair<W: kyozon_channel::word::Word + 'static>(
    write: impl FnOnce(Writer<W>, ModelPeer) + 'static,
    read: impl FnOnce(Reader<W>, ModelPeer),
) {
    let group = ModelGroup::new(2);
    let control = Arc::new(spsc::Control::<W>::default());
    let data = Payload::new(8);
    let (one, other) = (model_peer(&group, 0), model_peer(&group, 1));
    let writer = Writer::attach(control.clone(), data.clone(), &one).unwrap();
    let reader = Reader::attach(control, data, &other).unwrap();
    let thread = thread::spawn(move || write(writer, one));
    read(reader, other);
    thread.join().unwrap();
}

fn three<W: kyozon_channel::word::Word + 'static>() {
    pair::<W>(
        |mut writer, me| {
            for number in 1..=3 {
                writer.send(&record(number), &me, None).unwrap();
            }
        },
        |mut reader, me| {
            for expected in 1..=3 {
                let mut found = [0; 24];
                assert_eq!(reader.recv(&mut found, &me, None), Ok(24));
                assert_eq!(number(&found), expected);
            }
        },
    );
}

#[test]
fn each_side_waits_for_the_other() {
    check(3, three::<Strong>);
}

#[test]
#[ignore = "minutes"]
fn each_side_waits_for_the_other_deep() {
    check(5, three::<Strong>);
}

/// The checker finds the error: without the full fences, a wake-up is lost.
#[test]
fn without_fences_a_wake_up_is_lost() {
    deadlocks("without_fences_a_wake_up_is_lost", || check(3, three::<Weak>));
}

/// Records of different lengths, some of which do not fit before the end.
#[test]
fn records_that_skip_the_end_arrive() {
    check(3, || {
        let lengths = [8, 24, 24];
        pair::<Strong>(
            move |mut writer, me| {
                for (number, len) in lengths.into_iter().enumerate() {
                    writer.send(&record(number as u64)[..len], &me, None).unwrap();
                }
            },
            move |mut reader, me| {
                for (expected, len) in lengths.into_iter().enumerate() {
                    let view = reader.peek(&me, None).unwrap();
                    let mut found = [0; 24];
                    assert_eq!((view.read(&mut found), number(&found)), (Ok(len), expected as u64));
                    view.release(&me);
                }
            },
        );
    });
}

#[test]
fn a_time_out_loses_no_record() {
    check(4, || {
        pair::<Strong>(
            |mut writer, me| {
                writer.send(&record(1), &me, None).unwrap();
                writer.send(&record(2), &me, None).unwrap();
            },
            |mut reader, me| {
                let mut found = [0; 24];
                let first = reader.recv(&mut found, &me, Some(10));
                let expected = match first {
                    Ok(_) => 2,
                    Err(error) => {
                        assert_eq!(error, Error::TimedOut);
                        1
                    }
                };
                reader.recv(&mut found, &me, None).unwrap();
                assert_eq!(number(&found), expected);
            },
        );
    });
}

#[test]
fn records_sent_before_closing_arrive() {
    check(4, || {
        pair::<Strong>(
            |mut writer, me| {
                writer.send(&record(1), &me, None).unwrap();
                writer.close(&me);
            },
            |mut reader, me| {
                let mut found = [0; 24];
                assert_eq!(reader.recv(&mut found, &me, None), Ok(24));
                assert_eq!(reader.recv(&mut found, &me, None), Err(Error::Closed));
            },
        );
    });
    check(4, || {
        pair::<Strong>(
            |mut writer, me| {
                writer.send(&record(1), &me, None).unwrap();
                me.die();
            },
            |mut reader, me| {
                let mut found = [0; 24];
                assert_eq!(reader.recv(&mut found, &me, None), Ok(24));
                assert_eq!(reader.recv(&mut found, &me, None), Err(Error::PeerDied));
            },
        );
    });
}

#[test]
fn a_writer_does_not_wait_for_a_dead_reader() {
    check(3, || {
        pair::<Strong>(
            |mut writer, me| {
                let mut results = (0..4).map(|number| writer.send(&record(number), &me, None));
                let failed = results.find(Result::is_err);
                assert_eq!(failed, Some(Err(Error::PeerDied)));
            },
            |mut reader, me| {
                reader.recv(&mut [0; 24], &me, None).unwrap();
                me.die();
            },
        );
    });
}

type Shared = mpmc::Ring<Box<mpmc::Control<Strong>>, Vec<mpmc::Slot<Strong>>, Payload>;

/// A ring of two slots, and each of `bodies` in a thread of its own, as peer 0, 1 and so on.
fn group(bodies: &[fn(&Shared, ModelPeer)]) {
    let group = ModelGroup::new(bodies.len());
    let slots = (0..2).map(|_| Default::default()).collect();
    let ring = Arc::new(Shared::new(Default::default(), slots, Payload::new(2)).unwrap());
    let threads: Vec<_> = bodies
        .iter()
        .enumerate()
        .map(|(number, body)| {
            let (ring, body, me) = (ring.clone(), *body, model_peer(&group, number as u8));
            thread::spawn(move || body(&ring, me))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn send(ring: &Shared, me: &ModelPeer, number: u64) {
    ring.send(&number.to_le_bytes(), me, None).unwrap();
}

fn recv(ring: &Shared, me: &ModelPeer) -> u64 {
    let mut found = [0; 8];
    assert_eq!(ring.recv(&mut found, me, None), Ok(8));
    u64::from_le_bytes(found)
}

#[test]
fn one_writes_and_one_reads() {
    check(3, || {
        group(&[
            |ring, me| (1..=3).for_each(|number| send(ring, &me, number)),
            |ring, me| (1..=3).for_each(|number| assert_eq!(recv(ring, &me), number)),
        ]);
    });
}

#[test]
fn two_write_and_one_reads() {
    check(2, || {
        group(&[
            |ring, me| send(ring, &me, 1),
            |ring, me| send(ring, &me, 2),
            |ring, me| {
                let (first, second) = (recv(ring, &me), recv(ring, &me));
                assert!(matches!((first, second), (1, 2) | (2, 1)), "{first} {second}");
            },
        ]);
    });
}

#[test]
fn one_writes_and_two_read() {
    check(2, || {
        group(&[
            |ring, me| {
                send(ring, &me, 1);
                send(ring, &me, 2);
            },
            |ring, me| assert!(recv(ring, &me) <= 2),
            |ring, me| assert!(recv(ring, &me) <= 2),
        ]);
    });
}

#[test]
fn a_ring_time_out_passes_the_wake_up_on() {
    check(2, || {
        group(&[
            |ring, me| send(ring, &me, 1),
            |ring, me| {
                if ring.recv(&mut [0; 8], &me, Some(10)).is_ok() {
                    send(ring, &me, 2);
                }
            },
            |ring, me| assert!(recv(ring, &me) <= 2),
        ]);
    });
}

#[test]
#[ignore = "minutes"]
fn two_write_and_one_reads_deep() {
    check(2, || {
        group(&[
            |ring, me| (1..=2).for_each(|number| send(ring, &me, number)),
            |ring, me| send(ring, &me, 3),
            |ring, me| {
                let mut sum = 0;
                (0..3).for_each(|_| sum += recv(ring, &me));
                assert_eq!(sum, 6);
            },
        ]);
    });
}
