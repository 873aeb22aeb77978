//! Threads that serve the devices while they wait.

use super::{attach, two, Two};
use crate::ping::ping;
use kyozon_devices::net::backend::pair;
use liblinux::calls::Fd;
use liblinux::socket::Sockets;
use liblinux::{Errno, Thread};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Threads that wait at the same time.
const WAITERS: u16 = 8;
/// Far more than any answer takes.
const LONG: Duration = Duration::from_secs(10);

fn setting() -> Two {
    let two = two(1500, pair().expect("a pair"));
    // Neighbours know each other.
    ping(&two.b.1, "10.0.0.1".parse().expect("an address"), 56).expect("an echo");
    two
}

fn first(port: u16) -> SocketAddr {
    ([10, 0, 0, 1], port).into()
}

/// Answers datagrams until an empty one. `pause` says how long it computes after each.
fn answer(thread: &Thread, socket: Fd, pause: impl Fn(u32) -> Duration) {
    let mut bytes = [0; 4];
    for count in 0.. {
        let (length, from) = thread.receive_from(socket, &mut bytes).expect("receive");
        if length == 0 {
            return;
        }
        thread.send_to(socket, &bytes[..length], from).expect("send");
        std::thread::sleep(pause(count));
    }
}

#[test]
fn each_of_many_waiting_threads_gets_its_packets() {
    let two = setting();
    std::thread::scope(|scope| {
        for port in 0..WAITERS {
            let socket = two.a.1.udp(first(4000 + port)).expect("bind");
            let attach = attach(&two.a.0);
            // Some come back at once; some compute for longer than the device's thread waits for them.
            let pause = move |count| match (count + u32::from(port)) % 3 {
                0 => Duration::from_millis(2),
                _ => Duration::ZERO,
            };
            scope.spawn(move || answer(&attach(), socket, pause));
        }
        let client = two.b.1.udp(([10, 0, 0, 2], 0).into()).expect("bind");
        two.b.1.set_receive_limit(client, LONG).expect("an option");
        for round in 0..400_u32 {
            // One at a time, and all at once.
            let ports: Vec<_> = if round % 8 == 0 {
                (0..WAITERS).collect()
            } else {
                vec![(round * 5) as u16 % WAITERS]
            };
            for port in &ports {
                let sent = two.b.1.send_to(client, &round.to_le_bytes(), first(4000 + port));
                assert_eq!(sent, Ok(4));
            }
            for _ in &ports {
                let mut back = [0; 4];
                assert_eq!(two.b.1.receive(client, &mut back, 0), Ok(4), "round {round}");
                assert_eq!(u32::from_le_bytes(back), round);
            }
        }
        for port in 0..WAITERS {
            two.b.1.send_to(client, &[], first(4000 + port)).expect("send");
        }
    });
    two.halt();
}

#[test]
fn the_devices_thread_serves_while_no_thread_waits() {
    let two = setting();
    let socket = two.a.1.udp(first(4000)).expect("bind");
    two.b.1.send_to(socket_of(&two.b.1), b"x", first(4000)).expect("send");
    assert_eq!(two.a.1.receive(socket, &mut [0; 4], 0), Ok(1));
    // This thread is in no call of the first kernel, which answers all the same.
    for _ in 0..100 {
        ping(&two.b.1, "10.0.0.1".parse().expect("an address"), 56).expect("an echo");
    }
    two.halt();
}

fn socket_of(thread: &Thread) -> Fd {
    thread.udp(([10, 0, 0, 2], 0).into()).expect("bind")
}

/// Sends datagrams to a port that nobody reads, until the end.
fn flood(thread: &Thread, over: &AtomicBool) {
    let socket = socket_of(thread);
    while !over.load(SeqCst) {
        // The receiver's refusals are errors of this socket.
        let _ = thread.send_to(socket, &[7; 1000], first(9));
    }
}

#[test]
fn a_flood_delays_no_deadline_and_no_other_packet() {
    let (two, over) = (setting(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| flood(&two.b.0.attach().expect("attach"), &over));
        let silent = two.a.1.udp(first(4001)).expect("bind");
        two.a.1.set_receive_limit(silent, Duration::from_millis(50)).expect("an option");
        for _ in 0..10 {
            let start = Instant::now();
            assert_eq!(two.a.1.receive(silent, &mut [0; 4], 0), Err(Errno(libc::EAGAIN)));
            assert!(start.elapsed() < LONG, "{:?}", start.elapsed());
        }
        over.store(true, SeqCst);
    });
    two.halt();
}

#[test]
fn halting_ends_the_calls_of_all_who_wait_during_a_flood() {
    let (Two { a, b, .. }, over) = (setting(), AtomicBool::new(false));
    let (ready, waiting) = channel();
    std::thread::scope(|scope| {
        scope.spawn(|| flood(&b.0.attach().expect("attach"), &over));
        for port in 0..WAITERS {
            let socket = a.1.udp(first(4000 + port)).expect("bind");
            let (attach, ready) = (attach(&a.0), ready.clone());
            scope.spawn(move || {
                let thread = attach();
                ready.send(()).expect("the test waits");
                let result = thread.receive(socket, &mut [0; 4], 0);
                assert_eq!(result, Err(Errno(libc::ESHUTDOWN)));
            });
        }
        (0..WAITERS).for_each(|_| waiting.recv().expect("a thread"));
        std::thread::sleep(Duration::from_millis(50));
        a.0.clone().halt(a.1).expect("halt");
        over.store(true, SeqCst);
    });
    b.0.halt(b.1).expect("halt");
}
