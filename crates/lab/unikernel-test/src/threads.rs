//! Cases of guests that spawn others: threads that are virtual machines, or processes.

mod ends;
mod hostile;
mod idle;
mod memory;
mod spawn;
mod torn;

use crate::Case;
use alloc::{string::String, vec::Vec};
use core::sync::atomic::AtomicU64;
use kyozon_channel::border::Mutex;
use kyozon_unikernel::{clock, sleep};

pub const CASES: &[Case] = &[
    ("thread", spawn::one),
    ("thread-shared", memory::shared),
    ("thread-private", memory::private),
    ("thread-scope", spawn::scope),
    ("thread-heap", memory::heap),
    ("thread-heap-back", memory::heap_back),
    ("thread-locks", memory::locks),
    ("thread-regions", memory::regions),
    ("thread-nested", spawn::nested),
    ("thread-limit", spawn::limit),
    ("thread-storm", spawn::storm),
    ("thread-panic", ends::panics),
    ("thread-scope-panic", ends::scope_panics),
    ("thread-scope-crash", ends::scope_crash),
    ("thread-scope-exit", ends::scope_exit),
    ("thread-scope-ended", ends::scope_ended),
    ("thread-scope-nested", ends::scope_nested),
    ("thread-crash", ends::crash),
    ("thread-exit", ends::exit),
    ("thread-end", ends::end),
    ("thread-end-at-once", ends::end_at_once),
    ("thread-heap-death", ends::heap_death),
    ("thread-poison", ends::poison),
    ("thread-guard", ends::guard),
    ("thread-overflow", ends::overflow),
    ("thread-orphans", ends::orphans),
    ("thread-endless", ends::endless),
    ("thread-killed", ends::killed),
    ("thread-bound", ends::bound),
    ("thread-grandchild", ends::grandchild),
    ("thread-spawn-hostile", hostile::arguments),
    ("thread-wild-code", hostile::wild_code),
    ("thread-wild-stack", hostile::wild_stack),
    ("thread-lost-wake", ends::lost_wake),
    ("thread-torn", torn::torn),
    ("thread-start", spawn::start),
    ("thread-idle", idle::idle),
    ("thread-devices", memory::devices),
    ("thread-none", spawn::none),
];

static COUNT: AtomicU64 = AtomicU64::new(0);
static WORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Sleeps until a condition holds, for at most ten seconds.
fn wait(what: &str, holds: impl Fn() -> bool) {
    let end = clock::now() + 10_000_000_000;
    while !holds() {
        assert!(clock::now() < end, "{what} did not come");
        sleep::park(Some(clock::now() + 5_000_000));
    }
}
