use super::*;
use crate::fake::System;
use kyozon_abi::events::CheckStatus;
use kyozon_abi::layer::{RepairRequest, RepairWord, MAX_REPAIR_WORDS};
use std::collections::BTreeSet;

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
    for number in [WAIT_TICK, REPORT, PUBLISH, REPAIR, WINDOW, STOP, GIVE_RIGHTS] {
        s.call(number, 0, NONE);
        assert_eq!((s.runs(), s.answer()), (SERVER, E_RIGHT), "{number}");
    }
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

#[test]
fn pages_are_transferred_only_if_accepted() {
    let place = TASK_SHARE_BASE + 0x3000;
    let page = TASK_HEAP_BASE;
    let mut s = served(2);
    s.call_with(CALL, TO_SERVER, page | TRANSFER_PAGE | TRANSFER_WRITE, WORDS);
    assert_eq!((s.runs(), s.answer()), (DRIVER, E_REFUSED), "the server accepts nothing");
    s.call(CALL, TO_SERVER, NONE).call(ACCEPT, place, NONE);
    s.call(REPLY_RECEIVE, HANDLE_OWN, NONE);
    s.call_with(CALL, TO_SERVER, TASK_BASE | TRANSFER_PAGE | TRANSFER_WRITE, WORDS);
    assert_eq!((s.runs(), s.answer()), (DRIVER, E_ADDRESS), "text cannot be shared for writing");
    s.call_with(CALL, TO_SERVER, page | TRANSFER_PAGE | TRANSFER_WRITE, WORDS);
    assert_eq!((s.runs(), s.words(), s.frame.rcx), (SERVER, WORDS, place | 5));
    let (driver, server) = (s.kernel.tasks[0].space, s.kernel.tasks[1].space);
    assert!(server.write(&mut s.fake, place, &[99]));
    let mut word = [0];
    assert!(driver.read(&mut s.fake, page, &mut word) && word == [99]);
    // ACCEPT holds for one page: the next is refused, and so is one at a mapped address.
    s.call(REPLY_RECEIVE, HANDLE_OWN, NONE);
    s.call_with(CALL, TO_SERVER, page | TRANSFER_PAGE, WORDS);
    assert_eq!(s.answer(), E_REFUSED);
    s.call(CALL, TO_SERVER, NONE).call(ACCEPT, place, NONE).call(REPLY_RECEIVE, HANDLE_OWN, NONE);
    s.call_with(CALL, TO_SERVER, page | TRANSFER_PAGE, WORDS);
    assert_eq!(s.answer(), E_REFUSED);
    s.call(CALL, TO_SERVER, NONE).call(UNMAP, place, NONE).call(REPLY_RECEIVE, HANDLE_OWN, NONE);
    assert!(!server.read(&mut s.fake, place, &mut word));
    // A granted page belongs to the receiver only.
    s.call_with(CALL, TO_SERVER, page | TRANSFER_GRANT, WORDS);
    assert_eq!((s.runs(), s.frame.rcx), (SERVER, place | TRANSFER_GRANT));
    assert!(server.read(&mut s.fake, place, &mut word) && word == [99]);
    assert!(!server.write(&mut s.fake, place, &word) && !driver.read(&mut s.fake, page, &mut word));
}

#[test]
fn handles_are_transferred_with_reduced_rights() {
    let mut s = served(2);
    s.call(NOTIFICATION, 0, NONE);
    let n = s.answer() as u64;
    s.call(CALL, TO_SERVER, NONE).call(ACCEPT, ACCEPT_HANDLE, NONE);
    s.call(REPLY_RECEIVE, HANDLE_OWN, NONE);
    s.call_with(CALL, TO_SERVER, 31 << 12 | TRANSFER_HANDLE, WORDS);
    assert_eq!(s.answer(), E_HANDLE);
    s.call_with(CALL, TO_SERVER, n << 12 | HANDLE_SEND << 4 | TRANSFER_HANDLE, WORDS);
    assert_eq!((s.runs(), s.frame.rcx & 0xfff), (SERVER, TRANSFER_HANDLE));
    let copy = s.frame.rcx >> 12;
    s.call(WAIT, copy, NONE);
    assert_eq!(s.answer(), E_RIGHT, "only the rights of the mask");
    s.call(SIGNAL, copy, [6; 6]);
    assert_eq!(s.answer(), 0);
    s.call(REPLY_RECEIVE, HANDLE_OWN, NONE).call(POLL, n, NONE);
    assert_eq!(s.words()[0], 6);
}

#[test]
fn unhandled_fault_ends_the_task() {
    let mut s = served(3);
    s.call(CALL, TO_SERVER, NONE);
    (s.frame.rip, s.frame.rbx, s.fake.cr2) = (0x8000_0000, 0x1234, 0xdead);
    s.interrupt(14);
    assert_eq!((s.runs(), s.answer()), (DRIVER, E_GONE));
    assert!(s.fake.lines[0]
        .starts_with("task 1 stopped: vector 14 error 0x0 rip 0x80000000 cr2 0xdead "));
    assert!(s.fake.lines[1].contains("rbx 0x1234 ") && s.fake.lines.len() == 3);
    s.call(CALL, TO_SERVER, NONE);
    assert_eq!(s.answer(), E_GONE);
    s.call(CALL, HANDLE_TASKS + 2, NONE);
    assert_eq!(s.runs(), OTHER, "other tasks continue");
}

/// Task 1 faults, and the driver receives the fault message.
fn faulted(handle: u64, s: &mut System) {
    s.call(FAULT_HANDLER, 1, [handle, 0, 0, 0, 0, 0]);
    assert_eq!(s.answer(), 0);
    s.call(RECEIVE, handle, NONE);
    assert_eq!(s.runs(), SERVER);
    (s.frame.rip, s.frame.rbx, s.frame.rsi, s.frame.error, s.fake.cr2) = (0x5000, 3, 4, 6, 0xbad);
    s.interrupt(14);
    assert_eq!((s.runs(), s.frame.rdi), (DRIVER, BADGE_FAULT | 1));
    assert_eq!(s.words(), [14, 6, 0x5000, 0xbad, s.kernel.threads[SERVER].frame.rsp, 0]);
}

#[test]
fn fault_handler_resumes_or_stops_a_thread() {
    let mut s = System::new(2);
    s.call(ENDPOINT, 0, NONE);
    let handle = s.answer() as u64;
    faulted(handle, &mut s);
    s.call(REPLY, 0, [FAULT_RESUME, 0x5002, 0, 0, 0, 0]).call(RECEIVE, handle, NONE);
    assert_eq!((s.runs(), s.frame.rip, s.frame.rbx, s.frame.rsi), (SERVER, 0x5002, 3, 4));
    s.interrupt(13);
    assert_eq!((s.runs(), s.words()[0]), (DRIVER, 13));
    s.call(REPLY, 0, [FAULT_STOP; 6]);
    assert_eq!((s.runs(), s.kernel.tasks[1].alive), (DRIVER, false), "its last thread was stopped");
    assert!(s.fake.lines.is_empty(), "handled faults are not reported");
}

#[test]
fn handler_receiving_again_stops_the_thread() {
    let mut s = System::new(3);
    s.call(ENDPOINT, 0, NONE);
    let handle = s.answer() as u64;
    faulted(handle, &mut s);
    s.call(RECEIVE, handle, NONE);
    assert!(!s.kernel.tasks[1].alive);
    assert_eq!(s.runs(), OTHER);
}

#[test]
fn end_of_a_handler_ends_the_faulting_task() {
    // Task 2 gets the right to handle faults, becomes the handler of task 1, and ends while it handles one.
    let mut s = served(3);
    s.call(GIVE_RIGHTS, 2, [RIGHT_MANAGE; 6]).call(CALL, HANDLE_TASKS + 2, NONE);
    assert_eq!(s.runs(), OTHER);
    s.call(FAULT_HANDLER, 1, [HANDLE_OWN; 6]);
    assert_eq!(s.answer(), 0);
    s.call(REPLY_RECEIVE, HANDLE_OWN, NONE).call(CALL, TO_SERVER, NONE);
    s.interrupt(6);
    assert_eq!((s.runs(), s.frame.rdi), (OTHER, BADGE_FAULT | 1));
    s.call(EXIT, 0, NONE);
    assert_eq!((s.runs(), s.answer()), (DRIVER, E_GONE), "the caller of task 1 is released");
    assert!(!s.kernel.tasks[1].alive && !s.kernel.tasks[2].alive);
    assert!(s.fake.lines[0].starts_with("task 1 stopped: vector 6 "));
}

#[test]
fn end_of_a_task_releases_all_waiters() {
    let mut s = served(3);
    // Task 2 handles nothing, task 1 ends while the driver waits for its reply, with a second thread in its queue.
    s.call(THREAD, 0x1000, [0, 25, 0, 0, 0, 0]);
    s.call(CALL, TO_SERVER, NONE);
    assert_eq!(s.runs(), DRIVER);
    s.call(CALL, TO_SERVER, NONE);
    assert_eq!(s.runs(), SERVER);
    s.call(EXIT, 0, NONE);
    assert_eq!((s.runs(), s.answer()), (1, E_GONE));
    s.call(EXIT_THREAD, 0, NONE);
    assert_eq!((s.runs(), s.answer()), (DRIVER, E_GONE));
    s.call(STOP, 2, NONE);
    assert_eq!((s.answer(), s.kernel.tasks[2].alive), (0, false));
    assert_eq!(s.call(STOP, 2, NONE).answer(), E_ARGUMENT);
}

#[test]
fn layer_calls_get_the_tasks_structures() {
    let mut s = served(2);
    let space = s.kernel.tasks[0].space;
    let at = TASK_HEAP_BASE + 0xf00;
    let status = CheckStatus {
        name: *b"a name of thirty-two characters.",
        passes: 1,
        findings: 2,
        repairs: 3,
        retries: 4,
        pass_tsc: 5,
        total_tsc: 6,
        last_tsc: 7,
        items: 8,
        sequence: 9,
        reserved: [0; 3],
    };
    let mut words: Vec<u64> =
        status.name.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect();
    words.extend([9, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0]);
    assert!(space.write(&mut s.fake, at, &words));
    assert_eq!(s.call(PUBLISH, 3, [at, 0, 0, 0, 0, 0]).answer(), 0);
    assert_eq!(s.fake.published, [(3, status)]);
    assert_eq!(s.call(PUBLISH, 8, [at, 0, 0, 0, 0, 0]).answer(), E_ARGUMENT);
    // A report across two pages.
    assert!(space.write(&mut s.fake, at, &[1 | 5 << 32, at + 0xfe, 5]));
    assert!(space.write(&mut s.fake, at + 0xf8, &[0x6568_0000_0000_0000, 0x6f_6c6c]));
    assert_eq!(s.call(REPORT, at, NONE).answer(), 0);
    assert_eq!(s.fake.lines, ["hello"]);
    assert!(space.write(&mut s.fake, at, &[1, at, 257]));
    assert_eq!(s.call(REPORT, at, NONE).answer(), E_ARGUMENT);
    // A repair, and the layer's answer.
    let mut words = [0; 49];
    words[..7].copy_from_slice(&[2, 0x1000, 1, 2, 0x2000, 3, 4]);
    assert!(space.write(&mut s.fake, at, &words));
    s.fake.answer = -3;
    assert_eq!(s.call(REPAIR, at, NONE).answer(), 3);
    let mut wanted = RepairRequest { count: 2, words: [RepairWord::default(); MAX_REPAIR_WORDS] };
    wanted.words[0] = RepairWord { address: 0x1000, expected: 1, value: 2 };
    wanted.words[1] = RepairWord { address: 0x2000, expected: 3, value: 4 };
    assert_eq!((s.fake.repairs[0].count, s.fake.repairs[0].words), (2, wanted.words));
    s.fake.answer = -5;
    assert_eq!(s.call(REPAIR, at, NONE).answer(), E_UNAVAILABLE);
    s.fake.answer = 0;
    assert_eq!(s.call(WINDOW, at, NONE).answer(), 0);
    let mut window = [0; 3];
    assert!(space.read(&mut s.fake, at, &mut window) && window == [1, 0x1000, 0x2000]);
    assert_eq!(s.call(WINDOW, TASK_INFO, NONE).answer(), E_ADDRESS);
}

/// For any sequence of calls the invariants hold, and a thread runs or waits for a tick.
#[test]
fn random_calls_keep_the_invariants() {
    for seed in 1..30u64 {
        let mut s = System::new(3);
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for n in 1..3000 {
            if s.fake.ticks.is_empty() {
                s.tick(n);
            }
            let mut value = || match random(8) {
                0 => TASK_SHARE_BASE + random(3) * 4096,
                1 => TASK_HEAP_BASE + random(4) * 4096,
                2 => u64::MAX >> random(64),
                _ => random(12),
            };
            let words = [value(), value(), value(), value(), value(), value()];
            let (rdi, rcx, kind) = (value(), value() | value() & 7, random(40));
            // A system in which all threads wait for messages stands still correctly; so the driver keeps waiting for
            // ticks.
            let driver = s.kernel.current_task() == 0;
            let number = match kind {
                EXIT | EXIT_THREAD | STOP if driver || random(30) != 0 => NO_OPERATION,
                RECEIVE | CALL | WAIT | REPLY_RECEIVE if s.runs() == DRIVER => WAIT_TICK,
                other => other,
            };
            if number > 35 {
                let vector = if driver { 2 } else { [2, 14][random(2) as usize] };
                s.interrupt(vector);
            } else if driver && number == GIVE_RIGHTS {
                s.call(GIVE_RIGHTS, 1 + rdi % 2, words);
            } else {
                s.call_with(number, rdi, rcx, words);
            }
        }
    }
}
