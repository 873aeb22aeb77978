//! All tasks except the first: carry out requests and answer.

use crate::faults;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::task::TASK_SHARE_BASE;
use kyozon_task::ipc::{self, Endpoint, Transfer, Words};
use kyozon_task::notification::Notification;
use kyozon_task::{task, thread};

/// Answers with each word plus one.
pub const ECHO: u64 = 0;
/// With a page: answers with its first word, and sets that to word 1 if the page is writable.
pub const PAGE: u64 = 1;
/// Signals the bits of word 1 to the notification of the received handle, or of handle word 2. Answers with the handle.
pub const SIGNAL: u64 = 2;
/// A new thread carries out action word 1 of [`faults`].
pub const FAULT: u64 = 3;
/// The first thread carries out action word 1 of [`faults`], without an answer.
pub const FAULT_SELF: u64 = 4;
/// Starts a thread that never ends.
pub const SPIN: u64 = 5;
/// Starts a thread that calls an endpoint without end: of the received handle, or of handle word 1.
pub const STORM: u64 = 6;
/// Makes system call word 1 with arguments words 2 to 4, and answers with its answer.
pub const ANY: u64 = 7;
/// Starts three threads that make random system calls, with the seed in word 1. Answers with the number started.
pub const FUZZ: u64 = 8;
/// Ends without an answer.
pub const EXIT: u64 = 9;
/// Echoes messages like a server of words only, until one begins with [`EXIT`].
pub const SERVE: u64 = 10;
/// Priority of the peers' threads.
const PRIORITY: u64 = 8;

/// Address of the received page.
const PLACE: *mut u64 = TASK_SHARE_BASE as *mut u64;

/// Serves requests until an error.
pub fn serve() {
    let _ = ipc::accept(Some(0), true);
    let mut next = Endpoint::OWN.receive();
    while let Ok(message) = next {
        let answer = execute(message.words, message.transfer);
        let _ = ipc::accept(Some(0), true);
        next = Endpoint::OWN.reply_receive(answer);
    }
}

fn execute(words: Words, transfer: Transfer) -> Words {
    let [what, a, b, c, d, _] = words;
    let start = |body, argument| match thread::start(body, argument, PRIORITY) {
        Ok(number) => [number, 0, 0, 0, 0, 0],
        Err(_) => [u64::MAX; 6],
    };
    let handle = |otherwise| match transfer {
        Transfer::Handle { number, .. } => number,
        _ => otherwise,
    };
    match what {
        ECHO => words.map(|word| word + 1),
        PAGE => page(a, transfer),
        SIGNAL => {
            let number = handle(b);
            let done = Notification(number).signal(a).is_ok();
            [number, u64::from(done), 0, 0, 0, 0]
        }
        FAULT => start(faults::fault, a),
        FAULT_SELF => faults::fault(a),
        SPIN => start(spin, 0),
        STORM => start(storm, handle(a)),
        // SAFETY: the driver requests no call that affects memory.
        ANY => [unsafe { task::any_call(a, b, 0, [c, d, 0, 0, 0, 0]) } as u64, 0, 0, 0, 0, 0],
        FUZZ => {
            let started = (1..4).map(|n| thread::start(crate::hostile::fuzz, a * n, PRIORITY));
            [started.filter(|t| t.is_ok()).count() as u64, 0, 0, 0, 0, 0]
        }
        EXIT => task::exit(0),
        SERVE => {
            let mut next = Endpoint::OWN.reply_receive([0; 6]);
            while let Ok(message) = next {
                if message.words[0] == EXIT {
                    break;
                }
                next = Endpoint::OWN.reply_receive(message.words);
            }
            [0; 6]
        }
        _ => [u64::MAX; 6],
    }
}

fn page(value: u64, transfer: Transfer) -> Words {
    let Transfer::Page { address, write } = transfer else { return [u64::MAX; 6] };
    if address != PLACE as u64 {
        return [u64::MAX; 6];
    }
    // SAFETY: the kernel mapped a page there, which stays until it is unmapped here. Words are always valid.
    unsafe {
        let had = PLACE.read_volatile();
        if write {
            PLACE.write_volatile(value);
        }
        let gone = ipc::unmap(PLACE as u64).is_ok();
        [had, u64::from(write), u64::from(gone), 0, 0, 0]
    }
}

static SPINS: AtomicU64 = AtomicU64::new(0);

extern "C" fn spin(_: u64) -> ! {
    loop {
        SPINS.fetch_add(1, Relaxed);
    }
}

extern "C" fn storm(handle: u64) -> ! {
    while let Ok(answer) = Endpoint(handle).call([ECHO, 1, 2, 3, 4, 5]) {
        if answer.words != [1, 2, 3, 4, 5, 6] {
            faults::fault(faults::INVALID);
        }
    }
    thread::exit()
}
