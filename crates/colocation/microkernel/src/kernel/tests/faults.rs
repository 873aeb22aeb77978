//! Faults and the end of tasks.

use super::*;

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

#[test]
fn only_the_first_task_has_vector_registers() {
    let mut s = System::new(2);
    let before = s.frame;
    s.interrupt(7);
    assert_eq!((s.runs(), s.fake.vectors_given), (DRIVER, 1));
    assert_eq!(
        (s.frame.rip, s.frame.rax),
        (before.rip, before.rax),
        "the instruction is executed again"
    );
    let mut s = served(2);
    s.call(CALL, TO_SERVER, NONE);
    assert_eq!(s.runs(), SERVER);
    s.interrupt(7);
    assert_eq!((s.runs(), s.answer(), s.fake.vectors_given), (DRIVER, E_GONE, 0));
    assert!(s.fake.lines[0].starts_with("task 1 stopped: vector 7 "));
}

#[test]
fn vector_registers_that_the_layer_refuses_are_a_fault() {
    let mut s = System::new(2);
    s.fake.answer = 1;
    s.interrupt(7);
    assert_eq!((s.runs(), s.fake.vectors_given), (SERVER, 1));
    assert!(s.fake.lines[0].starts_with("task 0 stopped: vector 7 "));
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
