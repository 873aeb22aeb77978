//! Every task but the first: does what messages say, and answers.

use crate::faults;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::task::TASK_SHARE_BASE;
use kyozon_task::ipc::{self, Endpoint, Transfer, Words};
use kyozon_task::notification::Notification;
use kyozon_task::{task, thread};

/// Answers with every word plus one.
pub const ECHO: u64 = 0;
/// A page came: its first word is answered, and set to word 1 where it came to be written.
pub const PAGE: u64 = 1;
/// A handle of a notification came, or word 2 says which: bits of word 1 are set. Answers with its number.
pub const SIGNAL: u64 = 2;
/// A thread does what [`faults`] says of word 1.
pub const FAULT: u64 = 3;
/// The first thread does so: there will be no answer.
pub const FAULT_SELF: u64 = 4;
/// A thread that never ends is started.
pub const SPIN: u64 = 5;
/// A thread that calls the endpoint of handle word 1, or whose handle came, for ever, is started.
pub const STORM: u64 = 6;
/// System call word 1 with arguments words 2 to 4: answers with its answer.
pub const ANY: u64 = 7;
/// Three threads that make system calls at random, with the seed in word 1, are started. Answers with their number.
pub const FUZZ: u64 = 8;
/// Ends without an answer.
pub const EXIT: u64 = 9;
/// From then on only answers, as a server does that takes nothing but words, until a message begins with [`EXIT`].
pub const SERVE: u64 = 10;
/// Which priority threads of peers have.
const PRIORITY: u64 = 8;

/// The page that came last.
const PLACE: *mut u64 = TASK_SHARE_BASE as *mut u64;

/// Serves for ever.
pub fn serve() {
    let _ = ipc::accept(Some(0), true);
    let mut next = Endpoint::OWN.receive();
    while let Ok(message) = next {
        let answer = obey(message.words, message.transfer);
        let _ = ipc::accept(Some(0), true);
        next = Endpoint::OWN.reply_receive(answer);
    }
}

fn obey(words: Words, came: Transfer) -> Words {
    let [what, a, b, c, d, _] = words;
    let start = |body, argument| match thread::start(body, argument, PRIORITY) {
        Ok(number) => [number, 0, 0, 0, 0, 0],
        Err(_) => [u64::MAX; 6],
    };
    let handle = |otherwise| match came {
        Transfer::Handle { number, .. } => number,
        _ => otherwise,
    };
    match what {
        ECHO => words.map(|word| word + 1),
        PAGE => page(a, came),
        SIGNAL => {
            let number = handle(b);
            let done = Notification(number).signal(a).is_ok();
            [number, u64::from(done), 0, 0, 0, 0]
        }
        FAULT => start(faults::fault, a),
        FAULT_SELF => faults::fault(a),
        SPIN => start(spin, 0),
        STORM => start(storm, handle(a)),
        // SAFETY: the driver asks for nothing that touches memory.
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

fn page(value: u64, came: Transfer) -> Words {
    let Transfer::Page { address, write } = came else { return [u64::MAX; 6] };
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
