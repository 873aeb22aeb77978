//! Threads that die inside a method of a collection that they borrow. Without unwinding, the collection may own an
//! element twice, so the thread that lent it must never see it again.

use super::wait;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BinaryHeap, VecDeque};
use alloc::{string::String, vec::Vec};
use core::cmp::Ordering;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU8, Ordering::SeqCst};
use kyozon_unikernel::println;
use kyozon_unikernel::thread::{self, Builder, JoinHandle};

/// How a thread dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    Panic,
    Exit(u8),
    Crash,
}

/// Deaths, and the calls of user code after which they come; 0 for never.
const DEATHS: [(Death, u32); 5] = [
    (Death::Panic, 0),
    (Death::Panic, 9),
    (Death::Exit(0), 2),
    (Death::Exit(3), 9),
    (Death::Crash, 2),
];

/// Bytes of a stack. Those of dead threads are never freed.
const STACK: usize = 32 << 10;

const ELEMENTS: usize = 24;

/// How often each element was dropped.
static DROPS: [AtomicU8; ELEMENTS] = [const { AtomicU8::new(0) }; ELEMENTS];
/// Calls of user code until the thread dies; 0 for never.
static LEFT: AtomicU32 = AtomicU32::new(0);

/// The thread that lends a collection has nothing to do but to join the other.
static JOINS: AtomicBool = AtomicBool::new(false);

/// What user code does that a collection calls: dies at its turn.
fn step(death: Death) {
    let mine = LEFT.load(SeqCst);
    LEFT.store(mine.saturating_sub(1), SeqCst);
    if mine != 1 {
        return;
    }
    match death {
        Death::Panic => panic!("inside"),
        Death::Exit(status) => kyozon_unikernel::exit(status),
        // SAFETY: none: the tender must stop this write.
        Death::Crash => unsafe { core::ptr::null_mut::<u8>().write_volatile(1) },
    }
}

/// An element whose order, copying and dropping are user code.
struct Element {
    id: u8,
    key: u8,
    death: Death,
}

impl Drop for Element {
    fn drop(&mut self) {
        DROPS[usize::from(self.id)].fetch_add(1, SeqCst);
        step(self.death);
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        step(self.death);
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

fn element(id: usize, death: Death) -> Element {
    Element { id: id as u8, key: (id * 7 % 13) as u8, death }
}

fn elements<C: FromIterator<Element>>(death: Death, count: usize) -> C {
    (0..count).map(|id| element(id, death)).collect()
}

/// One collection, and whether it is valid after a method that user code may have left in the middle.
trait Case: Send {
    fn work(&mut self, death: Death);
    /// Whether every element is there at most once. Takes them without dropping them.
    fn is_whole(&mut self) -> bool;
}

/// Whether no element is there twice, or there and dropped.
fn once(elements: impl Iterator<Item = Element>) -> bool {
    let mut seen = DROPS.each_ref().map(|drops| drops.load(SeqCst));
    elements.for_each(|element| {
        seen[usize::from(element.id)] += 1;
        core::mem::forget(element);
    });
    seen.iter().all(|count| *count <= 1)
}

macro_rules! cases {
    ($($name:ident($of:ty): $made:expr, $whole:expr;)*) => {$(
        struct $name($of, fn(&mut $of, Death));

        impl $name {
            fn make(count: usize, death: Death, work: fn(&mut $of, Death)) -> Box<dyn Case> {
                let made: fn(Death, usize) -> $of = $made;
                Box::new(Self(made(death, count), work))
            }
        }

        impl Case for $name {
            fn work(&mut self, death: Death) {
                (self.1)(&mut self.0, death);
            }

            fn is_whole(&mut self) -> bool {
                let whole: fn($of) -> bool = $whole;
                whole(core::mem::take(&mut self.0))
            }
        }
    )*};
}
cases! {
    OnVec(Vec<Element>): elements, |vec| once(vec.into_iter());
    OnDeque(VecDeque<Element>): elements, |deque| once(deque.into_iter());
    OnHeap(BinaryHeap<Element>): elements, |heap| once(heap.into_iter());
    OnMap(BTreeMap<Element, Element>): |_, _| BTreeMap::new(), |map| {
        once(map.into_iter().flat_map(|(key, value)| [key, value]))
    };
    OnText(String): |_, _| String::new(), |text| core::str::from_utf8(text.as_bytes()).is_ok();
}

/// Names methods, and the functions that make their cases.
macro_rules! table {
    ($($name:literal: $case:ident($count:expr), $work:expr;)*) => {
        [$(($name, |death| $case::make($count, death, $work))),*]
    };
}

type Make = (&'static str, fn(Death) -> Box<dyn Case>);

/// Methods of `alloc` and `core` whose own tests are about panics inside them.
const METHODS: [Make; 20] = table! {
    "sort_by": OnVec(20), |v, _| v.sort_by(|a, b| b.cmp(a));
    "sort_unstable_by": OnVec(20), |v, _| v.sort_unstable_by(|a, b| b.cmp(a));
    "sort_by_cached_key": OnVec(20), |v, death| v.sort_by_cached_key(|e| { step(death); e.key });
    "select_nth_unstable": OnVec(20), |v, _| { v.select_nth_unstable(9); };
    "retain": OnVec(20), |v, death| v.retain(|e| { step(death); e.id % 2 == 0 });
    "dedup_by": OnVec(20), |v, death| v.dedup_by(|a, b| { step(death); (a.key ^ b.key) & 2 == 0 });
    "drain": OnVec(20), |v, _| v.drain(3..15).for_each(drop);
    "truncate": OnVec(20), |v, _| v.truncate(2);
    "extend": OnVec(4), |v, death| v.extend((4..20).map(|id| { step(death); element(id, death) }));
    "splice": OnVec(16), |v, death| {
        drop(v.splice(2..6, (16..23).map(|id| { step(death); element(id, death) })));
    };
    "resize_with": OnVec(2), |v, death| {
        let mut id = 1;
        v.resize_with(20, || { step(death); id += 1; element(id, death) });
    };
    "fill_with": OnVec(10), |v, death| {
        let mut id = 9;
        v.fill_with(|| { step(death); id += 1; element(id, death) });
    };
    "rotate and swap": OnVec(20), |v, death| for i in 0..19 {
        v.rotate_left(1);
        v.swap(i, 19);
        step(death);
    };
    "VecDeque::retain": OnDeque(20), |v, death| v.retain(|e| { step(death); e.id % 3 == 0 });
    "VecDeque::drain": OnDeque(20), |v, _| v.drain(5..18).for_each(drop);
    "BinaryHeap::push": OnHeap(8), |heap, death| for id in 8..20 { heap.push(element(id, death)) };
    "BinaryHeap::pop": OnHeap(20), |heap, _| while let Some(top) = heap.pop() { core::mem::forget(top) };
    "BinaryHeap::retain": OnHeap(20), |heap, death| heap.retain(|e| { step(death); e.id % 2 == 0 });
    "BTreeMap::insert": OnMap(0), |map, death| for id in 0..10 {
        drop(map.insert(element(id, death), element(id + 10, death)));
    };
    "String::retain": OnText(0), |text, death| {
        text.push_str("\u{e4}a\u{1f980}b\u{20ac}c\u{e4}a\u{1f980}b\u{20ac}c");
        text.retain(|c| { step(death); !c.is_ascii() });
    };
};

/// Starts a thread that lends a collection to another one, which dies inside a method.
fn lend(make: fn(Death) -> Box<dyn Case>, death: Death, moment: u32) -> JoinHandle<bool> {
    let work = move || {
        let mut case = make(death);
        thread::scope(|scope| {
            let work = || {
                // Not while the other thread is in the heap, with which it would end.
                wait("the other one", || JOINS.load(SeqCst));
                LEFT.store(moment, SeqCst);
                case.work(death);
            };
            let thread = Builder::new().stack_size(STACK).spawn_scoped(scope, work).unwrap();
            JOINS.store(true, SeqCst);
            drop(thread.join());
        });
        LEFT.store(0, SeqCst);
        case.is_whole()
    };
    Builder::new().stack_size(STACK).spawn(work).unwrap()
}

/// Nobody sees a collection that a thread left in the middle of a method. A method that was not left is seen.
pub fn torn() {
    for (name, make) in METHODS {
        for (death, moment) in DEATHS {
            DROPS.iter().for_each(|drops| drops.store(0, SeqCst));
            LEFT.store(0, SeqCst);
            JOINS.store(false, SeqCst);
            let seen = lend(make, death, moment).join();
            let what = format_args!("{name}, {death:?} at call {moment}");
            match (moment, seen) {
                (0, Ok(true)) | (1.., Err(_)) => {}
                (0, other) => panic!("torn without a death: {what}: {other:?}"),
                (_, Ok(whole)) => panic!("seen: {what}, whole: {whole}"),
            }
        }
    }
    println!("{} methods, none seen", METHODS.len());
}
