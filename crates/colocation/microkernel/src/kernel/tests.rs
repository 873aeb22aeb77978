//! The kernel's tests: invariants and shared helpers; calls, notifications and scheduling.

use super::*;
use crate::fake::System;
use std::collections::BTreeSet;

mod faults;
mod random;
mod services;
mod supervision;
mod transfers;

/// Threads of tasks 0, 1 and 2 that run first.
const DRIVER: u8 = 0;
const SERVER: u8 = 4;
const OTHER: u8 = 8;
const TO_SERVER: u64 = HANDLE_TASKS + 1;
const WORDS: [u64; 6] = [1, 2, 3, 4, 5, 6];
const NONE: [u64; 6] = [0; 6];

/// Asserts the crate's invariants on queues, states and callers.
pub(crate) fn check(kernel: &Kernel) {
    let mut seen = BTreeSet::new();
    let mut walk = |queue: &Queue, right: &dyn Fn(&Thread) -> bool| {
        let mut links = Threads(kernel.threads.0);
        let mut queue = *queue;
        while let Some(t) = queue.pop(&mut links) {
            assert!(seen.insert(t), "thread {t} is in two queues");
            assert!(right(&kernel.threads[t]), "thread {t} is {:?}", kernel.threads[t].state);
        }
    };
    for (i, e) in kernel.endpoints.iter().enumerate() {
        let state = |s: &Thread| match e.receiving {
            true => s.state == State::Receiving(i as u8),
            false => s.state == State::Sending(i as u8),
        };
        assert!(e.alive || e.queue.is_empty());
        walk(&e.queue, &state);
    }
    for (i, n) in kernel.notifications.iter().enumerate() {
        assert!(n.queue.is_empty() || n.alive && n.bits == 0);
        walk(&n.queue, &|s| s.state == State::Waiting(i as u8));
    }
    walk(&kernel.tick_waiters, &|s| s.state == State::Tick);
    for t in 0..THREADS as ThreadId {
        let thread = &kernel.threads[t];
        let queued = matches!(
            thread.state,
            State::Sending(_) | State::Receiving(_) | State::Waiting(_) | State::Tick
        );
        assert!(!queued || seen.contains(&t), "thread {t} is lost: {:?}", thread.state);
        if let State::Replying(server) = thread.state {
            assert_eq!(kernel.threads[server].caller, t, "thread {t} is not its server's caller");
        }
        if thread.caller != NO_THREAD {
            assert_eq!(kernel.threads[thread.caller].state, State::Replying(t));
        }
        assert_eq!(
            thread.state != State::None,
            thread.state != State::None && kernel.tasks[usize::from(thread.task)].alive
        );
    }
    assert_eq!(kernel.threads[kernel.current].state, State::Ready);
    assert!(!kernel.ready.has_above(kernel.threads[kernel.current].priority));
}

/// A system whose other tasks wait for messages while the driver runs.
fn served(tasks: usize) -> System {
    let mut s = System::new(tasks);
    assert_eq!(s.runs(), DRIVER);
    s.call(WAIT_TICK, 0, NONE);
    for task in 1..tasks as u8 {
        assert_eq!(s.runs(), task * 4);
        if task + 1 == tasks as u8 {
            s.tick(7);
        }
        s.call(RECEIVE, HANDLE_OWN, NONE);
    }
    assert_eq!((s.runs(), s.answer()), (DRIVER, 0));
    s
}

#[test]
fn call_and_reply_carry_words() {
    let mut s = served(2);
    (s.frame.rbx, s.frame.rip, s.frame.rsp) = (11, 12, 13);
    s.call(CALL, TO_SERVER, WORDS);
    assert_eq!((s.runs(), s.answer(), s.words()), (SERVER, 0, WORDS));
    assert_eq!(
        (s.frame.rdi, s.frame.rcx, s.frame.rbx),
        (0, 0, 0),
        "only the badge: no register of the caller"
    );
    s.call(REPLY_RECEIVE, HANDLE_OWN, [9; 6]);
    assert_eq!((s.runs(), s.answer(), s.words()), (DRIVER, 0, [9; 6]));
    assert_eq!((s.frame.rbx, s.frame.rip, s.frame.rsp), (11, 12, 13));
    assert_eq!(s.kernel.threads[SERVER].state, State::Receiving(9));
}

#[test]
fn senders_wait_their_turn() {
    let mut s = System::new(3);
    // The driver calls before a receiver waits; the server receives the message later.
    s.call(CALL, TO_SERVER, WORDS);
    assert_eq!(s.runs(), SERVER);
    s.call(RECEIVE, HANDLE_OWN, NONE);
    assert_eq!((s.runs(), s.words(), s.frame.rdi), (SERVER, WORDS, 0));
    s.call(REPLY, 0, [2; 6]);
    assert_eq!((s.runs(), s.words()), (DRIVER, [2; 6]), "the driver precedes the server");
    // A call of task 2 to the driver carries its badge.
    s.call(RECEIVE, HANDLE_OWN, NONE);
    assert_eq!(s.runs(), SERVER);
    s.call(RECEIVE, HANDLE_OWN, NONE);
    assert_eq!(s.runs(), OTHER);
    s.call(CALL, HANDLE_TASKS, WORDS);
    assert_eq!((s.runs(), s.words(), s.frame.rdi), (DRIVER, WORDS, 2));
}

#[test]
fn reply_receive_takes_the_next_message() {
    let mut s = served(2);
    // A second thread of the driver, of a higher priority, calls while the server works for the first.
    s.call(THREAD, 0x1234, [77, 25, 0, 0, 0, 0]);
    assert_eq!((s.runs(), s.frame.rip, s.frame.rdi), (1, 0x1234, 77));
    assert_eq!(s.frame.rsp, TASK_STACK_TOP - TASK_STACK_STRIDE - 8);
    s.call(CALL, TO_SERVER, [1; 6]);
    // The first driver thread runs: it precedes the server.
    assert_eq!((s.runs(), s.answer()), (DRIVER, 1));
    s.call(CALL, TO_SERVER, [2; 6]);
    assert_eq!((s.runs(), s.words()), (SERVER, [1; 6]));
    s.call(REPLY_RECEIVE, HANDLE_OWN, [3; 6]);
    assert_eq!((s.runs(), s.words()), (1, [3; 6]));
    s.call(EXIT_THREAD, 0, NONE);
    assert_eq!((s.runs(), s.words()), (SERVER, [2; 6]));
    // A server that receives again without a reply releases its caller.
    s.call(RECEIVE, HANDLE_OWN, NONE);
    assert_eq!((s.runs(), s.answer()), (DRIVER, E_GONE));
}

#[test]
fn bad_handles_and_rights_are_refused() {
    let mut s = served(2);
    for (number, handle, answer) in [
        (CALL, 31, E_HANDLE),
        (CALL, 32, E_HANDLE),
        (CALL, u64::MAX, E_HANDLE),
        (RECEIVE, TO_SERVER, E_RIGHT),
        (REPLY_RECEIVE, TO_SERVER, E_RIGHT),
        (MINT, TO_SERVER, E_RIGHT),
        (SIGNAL, TO_SERVER, E_HANDLE),
        (REPLY, 0, E_NO_CALLER),
        (0, 0, E_CALL),
        (u64::MAX, 0, E_CALL),
        (FAULT_HANDLER, 6, E_ARGUMENT),
        (STOP, u64::MAX, E_ARGUMENT),
        (ACCEPT, 8, E_ADDRESS),
        (UNMAP, TASK_BASE, E_ADDRESS),
        (PRIORITY, 32, E_ARGUMENT),
        (CLOSE, 31, E_HANDLE),
    ] {
        s.call(number, handle, NONE);
        assert_eq!((s.runs(), s.answer()), (DRIVER, answer), "{number} {handle}");
    }
    // The server has no rights.
    s.call(CALL, TO_SERVER, NONE);
    let lines = [REPORT, PUBLISH, REPAIR, WINDOW, REGISTERS, WATCH, WRITES];
    for number in lines.into_iter().chain([WAIT_TICK, RESET, STOP, GIVE_RIGHTS]) {
        s.call(number, 0, NONE);
        assert_eq!((s.runs(), s.answer()), (SERVER, E_RIGHT), "{number}");
    }
    assert_eq!(s.fake.resets, 0);
}

#[test]
fn ticks_wake_waiters_and_count_misses() {
    let mut s = served(2);
    s.tick(8);
    s.call(WAIT_TICK, 0, NONE);
    assert_eq!((s.runs(), s.words()[..4].to_vec()), (DRIVER, vec![8, 0, 80, 0]));
    // Two ticks pass without a waiter; the third wakes it.
    s.tick(11);
    s.call(WAIT_TICK, 0, NONE);
    assert_eq!(s.words()[..2], [11, 2]);
    assert_eq!(s.fake.idles, 3);
}

#[test]
fn ticks_preempt_and_equal_priorities_alternate() {
    let mut s = System::new(3);
    s.call(WAIT_TICK, 0, NONE);
    assert_eq!(s.runs(), SERVER);
    s.frame.rax = 4711;
    s.interrupt(2);
    assert_eq!(s.runs(), OTHER, "equal priorities alternate");
    s.fake.due = Some(TickEvent { number: 3, ..TickEvent::default() });
    s.interrupt(2);
    assert_eq!((s.runs(), s.words()[0]), (DRIVER, 3));
    s.call(WAIT_TICK, 0, NONE);
    assert_eq!((s.runs(), s.frame.rax), (SERVER, 4711), "its registers are unchanged");
    s.call(YIELD, 0, NONE);
    assert_eq!(s.runs(), OTHER);
    s.call(NO_OPERATION, 0, NONE);
    assert_eq!((s.runs(), s.answer()), (OTHER, 0));
}

#[test]
fn notification_bits_stay_until_taken() {
    let mut s = served(2);
    s.call(NOTIFICATION, 0, NONE);
    let n = s.answer() as u64;
    s.call(POLL, n, [9; 6]);
    assert_eq!((s.answer(), s.words()[0]), (0, 0));
    s.call(SIGNAL, n, [5, 0, 0, 0, 0, 0]).call(SIGNAL, n, [2, 0, 0, 0, 0, 0]);
    s.call(WAIT, n, NONE);
    assert_eq!((s.answer(), s.words()[0]), (0, 7));
    // A waiter is woken with the bits.
    s.call(THREAD, 0x1000, [0, 30, 0, 0, 0, 0]);
    assert_eq!(s.runs(), 1);
    s.call(WAIT, n, NONE);
    assert_eq!(s.runs(), DRIVER);
    s.call(SIGNAL, n, [0; 6]);
    assert_eq!(s.runs(), DRIVER, "a signal without bits wakes no thread");
    s.call(SIGNAL, n, [4; 6]);
    assert_eq!((s.runs(), s.words()[0]), (1, 4));
}

#[test]
fn objects_and_handles_run_out() {
    let mut s = served(2);
    for number in [ENDPOINT, NOTIFICATION] {
        for _ in 0..TASK_OBJECTS {
            s.call(number, 0, NONE);
            assert!(s.answer() >= 0);
        }
        s.call(number, 0, NONE);
        assert_eq!(s.answer(), E_FULL);
    }
    let mut minted = 0;
    while s.call(MINT, HANDLE_OWN, [5, HANDLE_SEND, 0, 0, 0, 0]).answer() >= 0 {
        minted += 1;
    }
    assert_eq!((s.answer(), minted), (E_FULL, TASK_HANDLES - 2 - 2 * TASK_OBJECTS));
    s.call(CLOSE, 31, NONE).call(CLOSE, 31, NONE);
    assert_eq!(s.answer(), E_HANDLE);
    s.call(MINT, HANDLE_OWN, [BADGE_FAULT, 1, 0, 0, 0, 0]);
    assert_eq!(s.answer(), E_ARGUMENT);
    for _ in 1..TASK_THREADS {
        assert!(s.call(THREAD, 0x1000, [0, 1, 0, 0, 0, 0]).answer() > 0);
    }
    assert_eq!(s.call(THREAD, 0x1000, [0, 1, 0, 0, 0, 0]).answer(), E_FULL);
}
