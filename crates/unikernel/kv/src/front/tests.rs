use super::*;
use crate::command::Store;
use crate::table::Table;
use crate::{work, RING};
use kyozon_portable::machine;
use kyozon_portable::Rings;
use std::string::String;
use std::thread;

/// Runs `test` with a store of `workers` workers and eight clients.
fn with_store<R>(
    workers: usize,
    test: impl FnOnce(&mut Front<'_, &Control, kyozon_channel::border::Bytes<'_>, machine::Member>) -> R,
) -> R {
    let store = Store { table: Table::new(8 << 20, [3, 4]), debug: true };
    let rings = Rings::new(2 * workers, RING);
    let me = machine::member();
    let bell = work::Bell::new(kyozon_channel::park::Park::me(&me).number());
    thread::scope(|scope| {
        let mut ends = Vec::new();
        for worker in 0..workers {
            let (to, from) = (rings.ring(2 * worker), rings.ring(2 * worker + 1));
            ends.push((
                Writer::attach(to.0, to.1, &me).unwrap(),
                Reader::attach(from.0, from.1, &me).unwrap(),
            ));
            let (store, bell) = (&store, &bell);
            scope.spawn(move || {
                let body = || {
                    let me = machine::member();
                    let batches = Reader::attach(to.0, to.1, &me).unwrap();
                    let answers = Writer::attach(from.0, from.1, &me).unwrap();
                    work::work(batches, answers, store, bell, &me).unwrap();
                };
                // A worker that panics counts as dead; the test goes on.
                drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)));
            });
        }
        let mut front = Front::new(8, ends, &me);
        assert_eq!(front.meet(), workers);
        let result = test(&mut front);
        front.close();
        result
    })
}

/// Sends `bytes` in pieces, and returns the answers when there are `wanted`.
fn exchange<C, D>(
    front: &mut Front<'_, C, D, machine::Member>,
    client: usize,
    bytes: &[u8],
    piece: usize,
    wanted: usize,
) -> Vec<u8>
where
    C: Deref<Target = Control>,
    D: Data,
{
    let (mut got, mut rest) = (Vec::new(), bytes);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while resp::answers(&got) != Some(wanted) || !rest.is_empty() {
        assert!(std::time::Instant::now() < end, "answers are missing");
        let count = front.take(client, &rest[..piece.min(rest.len())]);
        rest = &rest[count..];
        front.dispatch(client);
        front.notify();
        if !front.collect() {
            front.check_workers();
        }
        // The client reads slowly.
        let output = front.output(client);
        let read = output.len().min(3000);
        got.extend(&output[..read]);
        front.sent(client, read);
        assert!(resp::answers(&got).is_none_or(|answers| answers <= wanted));
    }
    got
}

#[test]
fn answers_are_in_order_for_all_piece_sizes() {
    let count = 3000;
    let bytes: String =
        (0..count).map(|n| std::format!("SET k{} {n}\r\nGET k{}\r\n", n % 7, n % 7)).collect();
    let answers: String = (0..count)
        .map(|n: usize| std::format!("+OK\r\n${}\r\n{n}\r\n", std::format!("{n}").len()))
        .collect();
    for (workers, piece) in [(1, 100_000), (2, 1000), (3, 17)] {
        with_store(workers, |front| {
            let got = exchange(front, 0, bytes.as_bytes(), piece, 2 * count);
            assert_eq!(String::from_utf8(got).unwrap(), answers, "{workers} {piece}");
            assert!(front.is_done(0));
        });
    }
}

#[test]
fn a_second_worker_is_used_when_the_first_is_busy() {
    let long =
        [&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\n"[..], &[b'v'; 60_000], b"\r\n"].concat();
    for (bytes, first) in [(b"GET k\r\n".to_vec(), 8), (b"GET k\r\n".repeat(20), 4), (long, 4)] {
        with_store(2, |front| {
            for client in 0..8 {
                front.take(client, &bytes);
                assert!(front.dispatch(client));
            }
            let has = [0, 1].map(|worker: usize| front.workers[worker].pending.len());
            assert_eq!(has, [first, 8 - first]);
            front.notify();
            let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
            while front.waits() && std::time::Instant::now() < end {
                front.collect();
            }
            assert_eq!([0, 1].map(|worker: usize| front.workers[worker].work), [0, 0]);
        });
    }
}

#[test]
fn long_values_are_split_and_delay_no_client() {
    let value = std::vec![b'v'; 60_000];
    let set = [&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\n"[..], &value, b"\r\n"].concat();
    with_store(1, |front| {
        assert_eq!(exchange(front, 0, &set, 5000, 1), b"+OK\r\n");
        // The first client does not read.
        front.take(0, "GET k\r\n".repeat(100).as_bytes());
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while front.output(0).is_empty() && std::time::Instant::now() < end {
            front.dispatch(0);
            front.notify();
            front.collect();
        }
        for _ in 0..10 {
            assert_eq!(exchange(front, 1, b"PING\r\n", 10, 1), b"+PONG\r\n");
            assert!(!front.dispatch(0), "it was not read");
        }
        let output = front.output(0).len();
        assert!((60_000..work::ANSWERS + 61_000).contains(&output), "{output}");
        let got = exchange(front, 0, b"", 1, 100);
        assert_eq!(got.len(), 100 * (60_000 + 10));
    });
}

#[test]
fn invalid_commands_end_client_after_earlier_answers() {
    with_store(1, |front| {
        let got = exchange(front, 0, b"PING\r\n*1\r\n:1\r\nPING\r\n", 100, 2);
        assert_eq!(got, b"+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n");
        assert!(front.is_done(0) && front.is_closing(0) && front.room(0) == 0);
        front.forget(0);
        assert_eq!(exchange(front, 0, b"PING\r\n", 100, 1), b"+PONG\r\n");
        assert_eq!(exchange(front, 0, b"QUIT\r\nPING\r\n", 100, 1), b"+OK\r\n");
        assert!(front.is_closing(0) && !front.is_over());
        front.take(1, b"SHUTDOWN\r\n");
        while !front.is_over() {
            front.dispatch(1);
            front.notify();
            front.collect();
        }
    });
}

#[test]
fn answers_to_a_gone_client_are_dropped() {
    with_store(1, |front| {
        front.take(0, b"SET a 1\r\n");
        assert!(front.dispatch(0));
        front.forget(0);
        assert_eq!(exchange(front, 0, b"GET b\r\n", 100, 1), b"$-1\r\n");
        assert!(!front.waits());
    });
}

#[test]
fn commands_of_a_dead_worker_get_errors() {
    with_store(2, |front| {
        let died = "-ERR the worker that had this command died\r\n";
        for left in [1, 0] {
            let got = exchange(front, 0, b"SET a 1\r\nDEBUG PANIC\r\nGET a\r\n", 100, 3);
            assert_eq!(String::from_utf8(got).unwrap(), died.repeat(3));
            let got = exchange(front, 1, b"PING\r\n", 100, 1);
            let wanted = if left > 0 { "+PONG\r\n" } else { "-ERR no worker is left\r\n" };
            assert_eq!(String::from_utf8(got).unwrap(), wanted);
        }
    });
}

#[test]
fn a_worker_with_a_full_ring_ends_with_the_front() {
    let value = std::vec![b'v'; 60_000];
    let set = [&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\n"[..], &value, b"\r\n"].concat();
    with_store(1, |front| {
        assert_eq!(exchange(front, 0, &set, 100_000, 1), b"+OK\r\n");
        // More than the ring of answers holds. The test ends only if the worker notices that the front has closed it.
        for client in 0..8 {
            front.take(client, b"GET k\r\n");
            assert!(front.dispatch(client));
        }
        front.notify();
        thread::sleep(std::time::Duration::from_millis(50));
    });
}

#[test]
fn a_partial_command_is_parsed_once() {
    with_store(1, |front| {
        front.take(0, &std::vec![b'x'; 60_000]);
        assert!(!front.dispatch(0));
        let found = front.clients[0].found;
        assert_eq!(found, Some((60_000, 0, 0)));
        assert!(!front.dispatch(0) && front.clients[0].found == found);
        front.take(0, b"\r\n");
        assert!(front.dispatch(0));
    });
}

#[test]
fn a_batch_has_a_maximum_of_commands() {
    let bytes = "a\n".repeat(2 * COMMANDS + 1);
    with_store(1, |front| {
        front.take(0, bytes.as_bytes());
        assert!(front.dispatch(0));
        assert_eq!(front.clients[0].batch.map(|batch| batch.commands), Some(COMMANDS));
        let answers = exchange(front, 0, b"", 1, 2 * COMMANDS + 1);
        assert_eq!(resp::answers(&answers), Some(2 * COMMANDS + 1));
    });
}
