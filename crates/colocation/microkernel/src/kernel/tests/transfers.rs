//! Pages and handles that accompany messages.

use super::*;

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
