use super::*;
use liblinux::calls::Arg;
use std::cell::{Cell, RefCell};

/// A kernel that counts.
#[derive(Default)]
struct Fake {
    closed: RefCell<Vec<u64>>,
}

impl Calls for Fake {
    fn call(&self, number: i64, arguments: &mut [Arg<'_>]) -> Result<u64> {
        assert_eq!(number, libc::SYS_close);
        let Arg::Number(fd) = arguments[0] else { panic!("no descriptor") };
        self.closed.borrow_mut().push(fd);
        Ok(0)
    }
}

const FULL: Errno = Errno(libc::ENOSPC);

#[test]
fn a_write_gets_the_room_of_a_deleted_file() {
    let (kernel, closing) = (Fake::default(), Arc::new(Closing::default()));
    drop(closing.hold(Fd(7)));
    let write = || if kernel.closed.borrow().contains(&7) { Ok(5) } else { Err(FULL) };
    assert_eq!(closing.with_room(&kernel, write), Ok(5));
}

#[test]
fn a_write_gets_the_room_of_a_file_that_another_thread_still_gives_back() {
    let (kernel, closing) = (Fake::default(), Arc::new(Closing::default()));
    let held = RefCell::new(Some(closing.hold(Fd(7))));
    let tries = Cell::new(0);
    let write = || {
        tries.set(tries.get() + 1);
        if tries.get() == 3 {
            held.borrow_mut().take();
        }
        if kernel.closed.borrow().contains(&7) {
            Ok(5)
        } else {
            Err(FULL)
        }
    };
    assert_eq!(closing.with_room(&kernel, write), Ok(5));
    assert_eq!(tries.get(), 4);
}

#[test]
fn a_full_disk_is_an_error() {
    let (kernel, closing) = (Fake::default(), Closing::default());
    let tries = Cell::new(0);
    let write = || -> Result<()> {
        tries.set(tries.get() + 1);
        Err(FULL)
    };
    assert_eq!(closing.with_room(&kernel, write), Err(FULL));
    assert_eq!(tries.get(), PATIENCE.len() + 1);
}

#[test]
fn other_errors_are_told_at_once() {
    let (kernel, closing) = (Fake::default(), Closing::default());
    let tries = Cell::new(0);
    let write = || -> Result<()> {
        tries.set(tries.get() + 1);
        Err(Errno(libc::EIO))
    };
    assert_eq!(closing.with_room(&kernel, write), Err(Errno(libc::EIO)));
    assert_eq!(tries.get(), 1);
}
