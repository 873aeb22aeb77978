//! Cases of guests that spawn others: threads that are virtual machines, or processes.

use crate::Case;
use alloc::{format, string::String, vec, vec::Vec};
use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use kyozon_abi::unikernel::*;
use kyozon_channel::border::Mutex;
use kyozon_channel::park::{Life, Park, Peers};
use kyozon_unikernel::block::{Disk, SECTOR};
use kyozon_unikernel::region::{self, PeerState};
use kyozon_unikernel::thread::{self, Builder, Ended};
use kyozon_unikernel::vm::Vm;
use kyozon_unikernel::{boot, clock, me, peers, println, sleep, Error};

pub const CASES: &[Case] = &[
    ("thread", one),
    ("thread-shared", shared),
    ("thread-private", own),
    ("thread-scope", scope),
    ("thread-heap", heap),
    ("thread-heap-back", heap_back),
    ("thread-locks", locks),
    ("thread-regions", regions),
    ("thread-nested", nested),
    ("thread-limit", limit),
    ("thread-storm", storm),
    ("thread-panic", panics),
    ("thread-scope-panic", scope_panics),
    ("thread-crash", crash),
    ("thread-exit", exit),
    ("thread-end", end),
    ("thread-end-at-once", end_at_once),
    ("thread-heap-death", heap_death),
    ("thread-poison", poison),
    ("thread-guard", guard),
    ("thread-overflow", || drop(thread::spawn(|| deep(1)).join())),
    ("thread-orphans", orphans),
    ("thread-endless", endless),
    ("thread-killed", killed),
    ("thread-bound", bound),
    ("thread-grandchild", grandchild),
    ("thread-spawn-hostile", hostile),
    ("thread-wild-code", || wild_start(crate::run as *const () as u64 + 1)),
    ("thread-wild-stack", wild_stack),
    ("thread-start", start),
    ("thread-devices", devices),
    ("thread-none", none),
];

static COUNT: AtomicU64 = AtomicU64::new(0);
static WORDS: Mutex<Vec<String>> = Mutex::new(Vec::new());

kyozon_unikernel::private! {
    /// Each machine's own.
    static MINE: u64 = 40;
}

/// Waits until something holds, asleep, for ten seconds.
fn wait(what: &str, holds: impl Fn() -> bool) {
    let end = clock::now() + 10_000_000_000;
    while !holds() {
        assert!(clock::now() < end, "{what} did not come");
        sleep::park(Some(clock::now() + 5_000_000));
    }
}

/// Devices are of the guest that was there at the start; it uses them while its threads run.
fn devices() {
    let mut disk = Disk::open("disk").unwrap();
    let thread = thread::spawn(|| {
        let asked = crate::hostile::ask(ASK_QUEUE_STOP, [0; 6]);
        (Disk::open("disk").err(), asked)
    });
    disk.write(0, &[7; SECTOR]).unwrap();
    assert_eq!(thread.join(), Ok((Some(Error::Name), ERROR_NAME)));
    let mut back = [0; SECTOR];
    disk.read(0, &mut back).unwrap();
    assert_eq!(back, [7; SECTOR]);
}

/// Where there can be none, that is an answer.
fn none() {
    assert_eq!(boot().features & FEATURE_SPAWN, 0);
    assert_eq!(Builder::new().spawn(|| ()).err(), Some(Error::Unsupported));
}

fn one() {
    let before = clock::now();
    let thread = thread::spawn(|| (me(), boot().generation));
    let peer = thread.peer();
    let began = thread.began();
    assert!(began.is_none_or(|began| began > before && began < clock::now()));
    assert_eq!(thread.join(), Ok((usize::from(peer.number()), 1)));
    wait("its end", || Vm.life(peer.number()) == Life::Dead);
    assert!(!Vm.alive(peer));
    // Its number is used again, by another generation.
    let next = thread::spawn(|| boot().generation);
    assert_eq!((next.peer().number(), next.peer().generation()), (peer.number(), 2));
    assert_eq!(next.join(), Ok(2));
}

/// Statics, the heap and stacks are the same memory at the same addresses.
fn shared() {
    static mut TABLE: [u64; 1000] = [1; 1000];
    let mut local = vec![7_u64; 100];
    let (on_stack, on_heap) = (&raw mut local as u64, local.as_mut_ptr() as u64);
    let table = &raw mut TABLE as u64;
    let child = thread::spawn(move || {
        // SAFETY: the other waits for this thread, and touches nothing meanwhile.
        unsafe {
            assert!((*(table as *const [u64; 1000])).iter().all(|word| *word == 1));
            (*(table as *mut [u64; 1000]))[999] = 2;
            *(on_heap as *mut u64) = 8;
            (*(on_stack as *mut Vec<u64>)).push(9);
        }
        let here = 5_u64;
        assert!(&raw const here as u64 >= boot().heap.base, "its stack is of the heap");
        assert_eq!(boot().stack.base % 4096, 0);
        vec![1, 2, 3]
    });
    assert_eq!(child.join().unwrap(), [1, 2, 3]);
    assert_eq!((local[0], local[100], local.len()), (8, 9, 101));
    // SAFETY: nobody else is left.
    assert_eq!(unsafe { (table as *const u64).add(999).read_volatile() }, 2);
}

/// Private statics and thread-local data begin as in the image, in each.
fn own() {
    MINE.set(MINE.get() + 2);
    // SAFETY: a word behind the thread pointer, which is nobody's here.
    unsafe { asm!("mov qword ptr fs:[16], 77", options(nostack)) };
    let work = || {
        let before = MINE.replace(99);
        let (thread, word): (u64, u64);
        // SAFETY: words at and behind the thread pointer are mapped.
        unsafe {
            asm!("mov {}, fs:[0]", "mov {}, fs:[16]", out(reg) thread, out(reg) word, options(nostack))
        };
        (before, thread, word, MINE.get())
    };
    for _ in 0..3 {
        assert_eq!(thread::spawn(work).join(), Ok((40, boot().thread, 0, 99)));
    }
    assert_eq!(MINE.get(), 42);
}

fn scope() {
    let data: Vec<u64> = (0..1000).collect();
    let sum = AtomicU64::new(0);
    let parts = thread::scope(|scope| {
        let parts: Vec<_> =
            data.chunks(250).map(|part| scope.spawn(|| part.iter().sum::<u64>())).collect();
        scope.spawn(|| sum.fetch_add(1, Ordering::Relaxed));
        scope.spawn(|| {
            // It is the scope's, and outlives who started it.
            scope.spawn(|| {
                sleep::sleep(Duration::from_millis(20));
                sum.fetch_add(2, Ordering::Relaxed)
            });
        });
        parts.into_iter().map(|part| part.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(parts.iter().sum::<u64>(), 499_500);
    assert_eq!(sum.load(Ordering::Relaxed), 3);
}

/// Allocations of several machines at once.
fn heap() {
    let work = |seed: u64| {
        let mut state = seed;
        let mut all: Vec<Vec<u64>> = Vec::new();
        for _ in 0..3000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let size = (state >> 33) as usize % 500;
            match all.len() {
                50.. => drop(all.swap_remove(size % 50)),
                _ => all.push(vec![seed; size]),
            }
        }
        assert!(all.iter().flatten().all(|word| *word == seed));
    };
    thread::scope(|scope| {
        for seed in 1..4 {
            scope.spawn(move || work(seed));
        }
        work(9);
    });
}

/// What machines keep of the heap comes back: when they end, also at the same time, and when all of it is wanted.
fn heap_back() {
    for round in 0..30_u8 {
        let outer = thread::spawn(move || {
            thread::scope(|scope| {
                scope.spawn(|| {
                    drop((1..60).map(|size| vec![round; 30 * size]).collect::<Vec<_>>());
                });
            });
        });
        outer.join().unwrap();
    }
    // All of it in small pieces, of which one from the middle comes back first, and is kept.
    let mut all: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut piece = Vec::new();
        if piece.try_reserve_exact(2000).is_err() || all.try_reserve(1).is_err() {
            break;
        }
        all.push(piece);
    }
    assert!(all.len() > 10_000, "{}", all.len());
    drop(all.swap_remove(all.len() / 2));
    drop(all);
    let mut most: Vec<u8> = Vec::new();
    most.try_reserve_exact(boot().heap.bytes as usize / 10 * 9).unwrap();
}

fn locks() {
    thread::scope(|scope| {
        for number in 0..3 {
            scope.spawn(move || {
                for i in 0..200 {
                    let mut words = WORDS.lock(&Vm, None).unwrap();
                    words.push(format!("{number}:{i}"));
                    COUNT.store(COUNT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(COUNT.load(Ordering::Relaxed), 600);
    assert_eq!(WORDS.lock(&Vm, None).unwrap().len(), 600);
}

/// A thread has the regions of who spawned it.
fn regions() {
    let board = region::find("board").expect("kyozon run --region name=board,size=1M");
    board.words().unwrap()[5].store(6, Ordering::Release);
    let child = thread::spawn(|| {
        let board = region::find("board").unwrap();
        assert!(region::find("read").unwrap().words().is_err());
        let seen = board.words().unwrap()[5].swap(7, Ordering::AcqRel);
        (me(), seen, board.peer(me()))
    });
    let (number, seen, state) = child.join().unwrap();
    assert_eq!((seen, state), (6, (PeerState::Present, 1)));
    assert_eq!(board.load(5), Some(7));
    wait("its leave", || board.peer(number).0 == PeerState::Left);
}

fn nested() {
    fn tree(depth: u32) -> u64 {
        if depth == 0 {
            return 1;
        }
        let child = thread::spawn(move || tree(depth - 1));
        child.join().unwrap() + 1
    }
    assert_eq!(tree(6), 7);
}

/// As many as there can be, then an error, then again as many.
fn limit() {
    let (limit, before) = (boot().limit as usize, peers());
    for _ in 0..2 {
        let go = AtomicBool::new(false);
        thread::scope(|scope| {
            let wait = || wait("the signal", || go.load(Ordering::Acquire));
            let made: Vec<_> = (before..limit).map(|_| scope.spawn(wait)).collect();
            let more = Builder::new().spawn(|| ()).map(drop);
            assert_eq!(more, Err(Error::Full));
            go.store(true, Ordering::Release);
            made.iter().for_each(|thread| sleep::unpark(thread.peer().number().into()));
        });
    }
}

/// Many, one after the other and side by side, some of whom nobody waits for.
fn storm() {
    static DONE: AtomicU64 = AtomicU64::new(0);
    let mut handles = Vec::new();
    for i in 0..150 {
        let thread = thread::spawn(move || DONE.fetch_add(1, Ordering::SeqCst));
        match i % 3 {
            0 => drop(thread),
            1 => assert!(thread.join().unwrap() < 150),
            _ => handles.push(thread),
        }
        if handles.len() == 10 {
            handles.drain(..).for_each(|thread| assert!(thread.join().unwrap() < 150));
        }
    }
    wait("all of them", || DONE.load(Ordering::SeqCst) == 150);
    assert_eq!(Builder::new().stack_size(usize::MAX).spawn(|| ()).map(drop), Err(Error::Argument));
    assert_eq!(Builder::new().stack_size(1 << 40).spawn(|| ()).map(drop), Err(Error::Full));
}

/// The words of a panic come to who joins.
fn panics() {
    let child = thread::spawn(|| -> u32 { panic!("no {}", "value") });
    let Err(Ended::Panicked(words)) = child.join() else { panic!("it had a result") };
    assert!(words.starts_with("no value, at ") && words.contains("threads.rs:"), "{words}");
}

fn scope_panics() {
    let joined = thread::scope(|scope| scope.spawn(|| -> u32 { panic!("seen") }).join());
    assert!(matches!(joined, Err(Ended::Panicked(words)) if words.starts_with("seen")));
    thread::scope(|scope| {
        scope.spawn(|| panic!("not seen"));
    });
}

fn crash() {
    let child = thread::spawn(|| {
        // SAFETY: none; that is the point.
        unsafe { core::ptr::null_mut::<u8>().write_volatile(1) };
    });
    assert_eq!(child.join(), Err(Ended::Died));
}

fn exit() {
    let child = thread::spawn(|| -> u32 { kyozon_unikernel::exit(9) });
    let peer = child.peer();
    assert_eq!(child.join(), Err(Ended::Died));
    assert_eq!(kyozon_unikernel::vm::Vm.life(peer.number()), Life::Dead);
}

/// Ended wherever it is: computing, asleep.
fn end() {
    static RUNS: AtomicBool = AtomicBool::new(false);
    let busy = thread::spawn(|| loop {
        RUNS.store(true, Ordering::Relaxed);
        core::hint::spin_loop();
    });
    let asleep = thread::spawn(|| loop {
        sleep::park(None);
    });
    wait("the busy one", || RUNS.load(Ordering::Relaxed));
    busy.end();
    asleep.end();
    let (first, second) = (busy.peer(), asleep.peer());
    assert_eq!(
        (busy.join(), asleep.join()),
        (Err::<(), _>(Ended::Died), Err::<(), _>(Ended::Died))
    );
    assert!(!Vm.alive(first) && !Vm.alive(second));
}

/// Ended at whatever step of its beginning it is.
fn end_at_once() {
    for i in 0..30 {
        let child = thread::spawn(move || sleep::sleep(Duration::from_secs(100)));
        for _ in 0..i * 1000 {
            core::hint::spin_loop();
        }
        child.end();
        assert_eq!(child.join(), Err(Ended::Died));
    }
}

/// Who dies inside the heap leaves no heap, and nobody waits for it.
fn heap_death() {
    let (stop, ready) = (AtomicBool::new(false), AtomicU64::new(0));
    let before = vec![1_u8; 100];
    let ended = thread::scope(|scope| {
        let busy = scope.spawn(|| loop {
            ready.fetch_add(1, Ordering::Relaxed);
            // More than a machine keeps for itself.
            drop(vec![2_u8; 4000]);
            if stop.load(Ordering::Relaxed) {
                break;
            }
        });
        wait("the busy one", || ready.load(Ordering::Relaxed) > 100);
        busy.end();
        busy.join()
    });
    assert_eq!(ended, Err(Ended::Died));
    // Whether it died inside is chance; either way this ends.
    let mut more: Vec<u8> = Vec::new();
    let _ = more.try_reserve_exact(5000);
    assert!(before.iter().all(|byte| *byte == 1));
    core::mem::forget((before, more));
}

fn poison() {
    let child = thread::spawn(|| {
        let _held = WORDS.lock(&Vm, None).unwrap();
        panic!("with a lock");
    });
    assert!(child.join().is_err());
    assert!(matches!(WORDS.lock(&Vm, None), Err(kyozon_channel::border::LockError::Poisoned(_))));
}

/// Below its stack a thread has nothing, where another has memory.
fn guard() {
    let child = thread::spawn(|| {
        let below = boot().stack.base - 8;
        // SAFETY: none; that is the point.
        unsafe { (below as *mut u64).write_volatile(1) };
    });
    assert_eq!(child.join(), Err(Ended::Died));
}

#[inline(never)]
#[allow(unconditional_recursion)]
fn deep(depth: u64) -> u64 {
    let mut frame = [depth; 64];
    core::hint::black_box(&mut frame);
    deep(depth + 1) + frame[7]
}

/// The first ends before the others, which end with it, whatever they do.
fn orphans() {
    for i in 0..6 {
        let work = move || loop {
            if i % 2 == 0 {
                sleep::park(None);
            }
            core::hint::spin_loop();
        };
        drop(thread::spawn(work));
    }
}

/// Nobody ends, until the tender ends all.
fn endless() {
    thread::scope(|scope| {
        scope.spawn(|| loop {
            core::hint::spin_loop();
        });
        scope.spawn(|| loop {
            sleep::park(None);
        });
    });
}

/// Somebody outside kills it.
fn killed() {
    let child = thread::spawn(|| loop {
        sleep::park(None);
    });
    assert_eq!(child.join(), Err::<(), _>(Ended::Died));
}

/// Threads of a scope do not outlive who started them, however that ends: what they borrow is there until then.
fn bound() {
    static SEEN: AtomicU64 = AtomicU64::new(0);
    static INNER: AtomicU64 = AtomicU64::new(u64::MAX);
    let word = AtomicU64::new(0);
    let outer = thread::scope(|scope| {
        let outer = scope.spawn(|| {
            let mine = AtomicU64::new(0);
            thread::scope(|scope| {
                let inner = scope.spawn(|| loop {
                    word.fetch_add(1, Ordering::Relaxed);
                    SEEN.store(mine.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
                });
                INNER.store(inner.peer().word(), Ordering::Relaxed);
                wait("the inner one", || SEEN.load(Ordering::Relaxed) > 10);
                panic!("the outer one");
            });
        });
        outer.join().map(drop)
    });
    assert!(matches!(outer, Err(Ended::Panicked(_))));
    let last = word.load(Ordering::Relaxed);
    let inner = kyozon_channel::park::Peer::from_word(INNER.load(Ordering::Relaxed)).unwrap();
    assert!(!Vm.alive(inner), "who borrowed is gone first");
    sleep::sleep(Duration::from_millis(20));
    assert_eq!(word.load(Ordering::Relaxed), last);
}

/// Who was not borrowed from may end before those whom it spawned.
fn grandchild() {
    static GO: AtomicBool = AtomicBool::new(false);
    static WENT: AtomicBool = AtomicBool::new(false);
    let child = thread::spawn(|| {
        drop(thread::spawn(|| {
            wait("the signal", || GO.load(Ordering::Acquire));
            WENT.store(true, Ordering::Release);
        }));
    });
    let peer = child.peer();
    child.join().unwrap();
    wait("its end", || !Vm.alive(peer));
    GO.store(true, Ordering::Release);
    wait("the grandchild", || WENT.load(Ordering::Acquire));
}

fn ask(number: u64, arguments: &[u64]) -> Result<u64, i64> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    match crate::hostile::ask(number, all) {
        answer @ 0.. => Ok(answer as u64),
        error => Err(error),
    }
}

/// Code and stacks that cannot be are refused, whatever they are.
fn hostile() {
    let boot = boot();
    let code = crate::run as *const () as u64;
    let data = &raw const COUNT as u64;
    let area = vec![0_u8; 128 << 10];
    let stack = (area.as_ptr() as u64).next_multiple_of(4096);
    let no_code =
        [0, 1, data, stack, boot.hypercall, boot.call, boot.image.base - 1, 1 << 47, u64::MAX];
    for entry in no_code {
        assert_eq!(ask(ASK_SPAWN, &[entry, 0, stack, 65536]), Err(ERROR_ADDRESS), "{entry:#x}");
    }
    let no_stacks = [
        (0, 65536),
        (1, 65536),
        (stack + 8, 65536),
        (stack, 0),
        (stack, 4096),
        (stack, 65536 + 1),
        (stack, u64::MAX),
        (stack, !4095),
        (stack, 1 << 63),
        (code & !4095, 65536),
        (boot.heap.base - 4096, 65536),
        (boot.heap.base + boot.heap.bytes - 4096, 8192),
        (boot.heap.base + boot.heap.bytes, 8192),
        (boot.tls.base, 8192),
        (GUEST_SYSTEM_BASE, 8192),
        (boot.call & !4095, 8192),
        (boot.regions[0].address + 4096, 65536),
        (!4095, 4096),
        (!4095, 8192),
    ];
    for (stack, bytes) in no_stacks {
        assert_eq!(
            ask(ASK_SPAWN, &[code, 0, stack, bytes]),
            Err(ERROR_ADDRESS),
            "{stack:#x} {bytes:#x}"
        );
    }
    for bound in [2, 64, 65, 1 << 32, 1 << 63, u64::MAX] {
        assert_eq!(ask(ASK_SPAWN, &[code, 0, stack, 65536, bound]), Err(ERROR_NAME), "{bound}");
    }
    assert_eq!(ask(ASK_SPAWN, &[code, 0, stack, 65536, 0, 1]), Err(ERROR_ARGUMENT));
    for number in [0, 1, 63, 64, u64::MAX] {
        for generation in [0, 2, 1 << 32, u64::MAX] {
            let name = Err(ERROR_NAME);
            assert_eq!(ask(ASK_END, &[number, generation]), name, "{number} {generation}");
        }
    }
    // Nobody ends who was there at the start.
    assert_eq!(ask(ASK_END, &[me() as u64, 1]), Err(ERROR_RIGHT));
    // Without the library: whatever the argument is, it comes as it is.
    static GOT: AtomicU64 = AtomicU64::new(0);
    extern "C" fn bare(boot: &'static GuestBoot, argument: u64) -> ! {
        let mut at: u64;
        // SAFETY: reads a register.
        unsafe { asm!("mov {}, rsp", out(reg) at, options(nomem, nostack)) };
        assert!(at < boot.stack.base + boot.stack.bytes && at > boot.stack.base);
        assert_eq!(argument, boot.argument);
        GOT.store(argument, Ordering::Release);
        kyozon_unikernel::exit(0)
    }
    for argument in [0, 1, u64::MAX, 0x1234_0000_0000_0000] {
        let name = ask(ASK_SPAWN, &[bare as *const () as u64, argument, stack, 65536]).unwrap();
        let (number, generation) = (name & 63, name >> 32);
        wait("its end", || Vm.life(number as u8) == Life::Dead);
        assert_eq!(GOT.load(Ordering::Acquire), argument);
        assert_eq!(ask(ASK_END, &[number, generation]), Ok(0));
    }
}

/// A thread that begins in the middle of something crashes, or not; nobody else does.
fn wild_start(entry: u64) {
    let area = vec![0_u8; 128 << 10];
    let stack = (area.as_ptr() as u64).next_multiple_of(4096);
    core::mem::forget(area);
    let middle = entry + (0..64).find(|i| i % 7 == 3).unwrap_or(0);
    if let Ok(name) = ask(ASK_SPAWN, &[middle, u64::MAX, stack, 65536]) {
        sleep::sleep(Duration::from_millis(30));
        let _ = ask(ASK_END, &[name & 63, name >> 32]);
        wait("its end", || Vm.life((name & 63) as u8) == Life::Dead);
    }
}

/// The stack of one is the stack of another, too: both are lost, nobody else.
fn wild_stack() {
    let area = vec![0_u8; 64 << 10];
    let stack = (area.as_ptr() as u64).next_multiple_of(4096);
    core::mem::forget(area);
    extern "C" fn recurse() -> ! {
        deep(1);
        kyozon_unikernel::exit(1)
    }
    let entry = recurse as *const () as u64;
    let names: Vec<_> =
        (0..3).map(|_| ask(ASK_SPAWN, &[entry, 0, stack, 32768]).unwrap()).collect();
    for name in names {
        wait("its end", || {
            let _ = ask(ASK_END, &[name & 63, name >> 32]);
            !Vm.alive(kyozon_channel::park::Peer::new(name as u8, (name >> 32) as u32).unwrap())
        });
    }
}

/// Times from the call to the first instruction, of a hundred: median, least and most, in microseconds.
fn start() {
    let mut times: Vec<u64> = (0..100)
        .filter_map(|_| {
            let before = Vm.now();
            let thread = thread::spawn(|| ());
            let peer = thread.peer();
            while thread.began().is_none() {
                core::hint::spin_loop();
            }
            let began = thread.began();
            thread.join().unwrap();
            wait("its end", || !Vm.alive(peer));
            began.map(|began| (began - before) / 1000)
        })
        .collect();
    times.sort_unstable();
    if times.len() == 100 {
        println!("median {} us, least {}, most {}", times[50], times[0], times[99]);
    }
}
