//! Every system call with valid arguments.

use crate::check::Checks;
use crate::peer;
use alloc::{boxed::Box, vec, vec::Vec};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::events::{CheckStatus, MONITOR_INDEX};
use kyozon_abi::layer::*;
use kyozon_abi::task::*;
use kyozon_task::data::{self, LinuxMemory};
use kyozon_task::ipc::{self, Endpoint, Transfer};
use kyozon_task::notification::Notification;
use kyozon_task::{linux, task, thread, Error, StartInfo};

#[repr(C, align(4096))]
struct Page([u64; 512]);

/// Makes every call, with task 1 as the peer.
pub fn run(info: &'static StartInfo) {
    let mut c = Checks::new("calls");
    // At the start nearly the whole heap is one free block.
    let words = info.heap_bytes as usize / 8 - 2048;
    let all: Vec<u64> = vec![3; words];
    c.same("whole heap", all.iter().sum::<u64>(), 3 * words as u64);
    drop(all);
    messages(&mut c);
    pages(&mut c);
    handles(&mut c);
    threads(&mut c);
    around_linux(&mut c, info);
    heap(&mut c, info);
    ends(&mut c);
    c.end();
}

fn messages(c: &mut Checks) {
    let peer = Endpoint::of_task(1);
    c.same("nothing", task::nothing(), Ok(()));
    for n in 0..1000 {
        let words = [peer::ECHO, n, 2, 3, 4, u64::MAX - 1];
        let answer = peer.call(words).map(|m| (m.badge, m.words, m.transfer));
        c.same("echo", answer, Ok((0, words.map(|w| w + 1), Transfer::None)));
    }
    c.same("nobody", ipc::reply([0; 6]), Err(Error::NoCaller));
}

fn pages(c: &mut Checks) {
    let peer = Endpoint::of_task(1);
    let mut page = Box::new(Page([7; 512]));
    let address = (&raw mut *page) as u64;
    let share = |write| Transfer::Page { address, write };
    let answer = peer.call_with([peer::PAGE, 9, 0, 0, 0, 0], share(false));
    c.same("page", answer.map(|m| m.words), Ok([7, 0, 1, 0, 0, 0]));
    let answer = peer.call_with([peer::PAGE, 9, 0, 0, 0, 0], share(true));
    c.same("page", answer.map(|m| m.words), Ok([7, 1, 1, 0, 0, 0]));
    // SAFETY: this task's page; the peer has unmapped it.
    c.same("written", unsafe { (&raw const page.0[0]).read_volatile() }, 9);
    let text = Transfer::Page { address: TASK_BASE, write: true };
    c.same("text", peer.call_with([peer::PAGE; 6], text).map(drop), Err(Error::Address));
    // A granted page is no longer mapped here, so its Box is leaked.
    let granted = Box::leak(Box::new(Page([5; 512])));
    // SAFETY: the page is not used any more.
    let answer = unsafe {
        peer.call_granting([peer::PAGE, 1, 0, 0, 0, 0], (&raw mut *granted) as u64, true)
    };
    c.same("granted", answer.map(|m| m.words), Ok([5, 1, 1, 0, 0, 0]));
    let gone = Transfer::Page { address: (&raw const *granted) as u64, write: false };
    c.same("gone", peer.call_with([peer::PAGE; 6], gone).map(drop), Err(Error::Address));
}

fn handles(c: &mut Checks) {
    let peer = Endpoint::of_task(1);
    let Ok(n) = Notification::new() else { return c.same("notification", false, true) };
    c.same("poll", n.poll(), Ok(0));
    c.same("signal", n.signal(5), Ok(()));
    c.same("wait", n.wait(), Ok(5));
    // A copy without the right to signal, and one with it.
    let copy = |rights| Transfer::Handle { number: n.0, rights };
    let answer = peer.call_with([peer::SIGNAL, 3, 0, 0, 0, 0], copy(HANDLE_RECEIVE));
    c.same("handle", answer.map(|m| m.words[1]), Ok(0));
    c.same("poll", n.poll(), Ok(0));
    let answer = peer.call_with([peer::SIGNAL, 3, 0, 0, 0, 0], copy(HANDLE_SEND));
    c.same("handle", answer.map(|m| m.words[1]), Ok(1));
    c.same("poll", n.poll(), Ok(3));
    c.same("endpoint as notification", Notification(peer.0).signal(1), Err(Error::Handle));
    c.same("notification as endpoint", Endpoint(n.0).call([0; 6]).map(drop), Err(Error::Handle));
    c.same("send only", peer.receive().map(drop), Err(Error::Right));
    c.same("mint", Endpoint(n.0).mint(1, HANDLE_SEND), Err(Error::Handle));
    c.same("mint", peer.mint(1, HANDLE_SEND), Err(Error::Right));
    c.same("mint", Endpoint::OWN.mint(BADGE_FAULT, HANDLE_SEND), Err(Error::Argument));
    c.same("close", ipc::close(n.0), Ok(()));
    c.same("close", ipc::close(n.0), Err(Error::Handle));
    // The numbers of objects and handles are limited.
    let made: Vec<_> = core::iter::from_fn(|| Endpoint::new().ok()).collect();
    c.same("endpoints", made.len() as u64, TASK_OBJECTS);
    let minted: Vec<_> = core::iter::from_fn(|| Endpoint::OWN.mint(1, HANDLE_SEND).ok()).collect();
    c.same("handles", Endpoint::OWN.mint(1, HANDLE_SEND), Err(Error::Full));
    for e in made.iter().skip(1).chain(&minted) {
        c.same("close", ipc::close(e.0), Ok(()));
    }
    // A thread of this task calls with a badge, and this thread receives it.
    let Some(e) = made.first() else { return };
    let Ok(badged) = e.mint(77, HANDLE_SEND) else { return c.same("mint", false, true) };
    c.same("thread", thread::start(caller, badged.0, 30).is_ok(), true);
    let message = e.receive().map(|m| (m.badge, m.words[0]));
    c.same("badge", message, Ok((77, 1234)));
    c.same("reply", ipc::reply([4321, 0, 0, 0, 0, 0]), Ok(()));
    wait_until(|| ANSWER.load(Relaxed) != 0);
    c.same("answer", ANSWER.load(Relaxed), 4321);
}

static ANSWER: AtomicU64 = AtomicU64::new(0);

extern "C" fn caller(handle: u64) -> ! {
    let answer = Endpoint(handle).call([1234, 0, 0, 0, 0, 0]).map_or(1, |m| m.words[0]);
    ANSWER.store(answer, Relaxed);
    thread::exit()
}

fn wait_until(done: impl Fn() -> bool) {
    for _ in 0..200 {
        if done() {
            return;
        }
        let _ = linux::wait_tick();
    }
}

static ORDER: AtomicU64 = AtomicU64::new(0);

extern "C" fn append(digit: u64) -> ! {
    ORDER.store(ORDER.load(Relaxed) * 10 + digit, Relaxed);
    thread::exit()
}

extern "C" fn allocate(seed: u64) -> ! {
    let mut kept = Vec::new();
    for i in 0..300u64 {
        kept.push(vec![seed; 1 + (i * 37 % 500) as usize]);
        if i % 3 == 0 {
            kept.swap_remove((i / 3) as usize % kept.len());
        }
        if i % 10 == 0 {
            let _ = thread::yield_now();
        }
    }
    let good = kept.iter().flatten().all(|word| *word == seed);
    GOOD.fetch_add(u64::from(good), Relaxed);
    thread::exit()
}

static GOOD: AtomicU64 = AtomicU64::new(0);

fn threads(c: &mut Checks) {
    // Three threads: a higher priority runs at once, a lower one when this thread waits.
    c.same("thread", thread::start(append, 3, 23), Ok(1));
    c.same("thread", thread::start(append, 2, 25), Ok(2));
    c.same("thread", thread::start(append, 1, 26), Ok(2));
    wait_until(|| ORDER.load(Relaxed) > 100);
    c.same("order", ORDER.load(Relaxed), 213);
    c.same("priority", thread::start(append, 0, 32), Err(Error::Argument));
    // The number of threads is limited; they share a heap.
    let started = (1..=4).map_while(|seed| thread::start(allocate, seed, 20).ok()).count() as u64;
    c.same("threads", started, TASK_THREADS - 1);
    wait_until(|| GOOD.load(Relaxed) == started);
    c.same("heap of threads", GOOD.load(Relaxed), started);
    c.same("priority", thread::set_priority(32), Err(Error::Argument));
    c.same("priority", thread::set_priority(24), Ok(()));
    c.same("yield", thread::yield_now(), Ok(()));
}

fn around_linux(c: &mut Checks, info: &StartInfo) {
    let first = linux::wait_tick();
    let second = linux::wait_tick();
    let (Ok(first), Ok(second)) = (first, second) else { return c.same("ticks", false, true) };
    c.same("ticks", second.number, first.number + 1 + second.missed);
    c.same("ticks", second.scheduled_tsc > first.scheduled_tsc, true);
    let status = CheckStatus { passes: 3, ..CheckStatus::named("test") }.to_words();
    c.same("publish", linux::publish(0, &status), Ok(()));
    c.same("publish", linux::publish(MONITOR_INDEX + 1, &status), Err(Error::Argument));
    let mut request = RepairRequest { count: 0, words: [RepairWord::default(); MAX_REPAIR_WORDS] };
    if info.mode == MODE_ALONE {
        c.same("window", linux::window().map(drop), Err(Error::Unavailable));
        c.same("repair", linux::repair(&request), Err(Error::Unavailable));
        return;
    }
    c.same("repair", linux::repair(&request), Ok(REPAIR_INVALID));
    let Ok(memory) = LinuxMemory::open() else { return c.same("window", false, true) };
    let Some(range) = memory.ram().last() else { return c.same("ram", false, true) };
    let last = range.base + range.bytes - 8;
    let Some(word) = memory.word(last) else { return c.same("word", false, true) };
    request.words[0] = RepairWord { address: last, expected: !word, value: 0 };
    request.count = 1;
    c.same("repair", linux::repair(&request), Ok(REPAIR_CHANGED));
    let mut bytes = [0; 13];
    c.same("beyond", memory.read(last, &mut bytes), false);
    c.same("word", memory.word(last + 8), None);
    c.same("word", memory.word(last + 1), None);
    let mut sum = 0u64;
    for range in memory.ram() {
        for page in (range.base..range.base + range.bytes).step_by(1 << 20) {
            c.same("read", memory.read(page + 3, &mut bytes), true);
            let word = u64::from_le_bytes(bytes[5..].try_into().unwrap_or([0; 8]));
            sum += u64::from(Some(word) == memory.word(page + 8));
        }
    }
    // The values agree, since Linux stands still on its only CPU.
    c.same("window", sum > 0, true);
}

fn heap(c: &mut Checks, info: &'static StartInfo) {
    // A quarter of the heap is one free block after all earlier allocations.
    let words = info.heap_bytes as usize / 32;
    let big: Vec<u64> = vec![3; words];
    c.same("heap", big.iter().sum::<u64>(), 3 * words as u64);
    drop(big);
    let sum = data::loaded(info).iter().map(|b| u64::from(*b)).sum::<u64>();
    let _ = kyozon_task::report!("test data: bytes {} sum {sum}", info.data_bytes);
}

fn ends(c: &mut Checks) {
    let peer = Endpoint::of_task(1);
    c.same("exit", peer.call([peer::EXIT, 0, 0, 0, 0, 0]).map(drop), Err(Error::Gone));
    c.same("exit", peer.call([0; 6]).map(drop), Err(Error::Gone));
}
