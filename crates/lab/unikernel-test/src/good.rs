//! Cases of valid use.

use crate::Case;
use alloc::{collections::BTreeMap, format, string::String, vec, vec::Vec};
use core::arch::asm;
use core::time::Duration;
use kyozon_abi::unikernel::{FEATURE_AVX2, FEATURE_FSGSBASE};
use kyozon_unikernel::{arguments, boot, clock, console, println, sleep, system};

pub const CASES: &[Case] = &[
    ("boot", boot_block),
    ("heap", heap),
    ("all-memory", all_memory),
    ("clock", time),
    ("memory", memory),
    ("floats", floats),
    ("random", random),
    ("registers", registers),
    ("big-output", big_output),
    ("arguments", words),
    ("panic", panic),
    ("deep-panic", deep_panic),
];

static mut DATA: [u64; 1024] = [7; 1024];
static mut BSS: [u64; 8192] = [0; 8192];

/// The boot block is right.
fn boot_block() {
    let boot = boot();
    for area in [boot.image, boot.stack, boot.tls, boot.heap, boot.arguments] {
        assert!(area.base % 4096 == 0 && area.base + area.bytes <= 1 << 39);
    }
    let here = &raw const DATA as u64;
    assert!(here >= boot.image.base && here < boot.image.base + boot.image.bytes);
    let local = 0_u64;
    let at = &raw const local as u64;
    assert!(at > boot.stack.base && at < boot.stack.base + boot.stack.bytes);
    let thread: u64;
    // SAFETY: the word at the thread pointer is mapped; no code has written to the two statics.
    unsafe {
        asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, readonly));
        assert!((&raw const DATA).read_volatile().iter().all(|word| *word == 7));
        assert!((&raw const BSS).read_volatile().iter().all(|word| *word == 0));
    }
    assert_eq!(thread, boot.thread);
}

fn heap() {
    let mut map = BTreeMap::new();
    for i in 0..5000_u64 {
        map.insert(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), format!("entry {i}"));
        if i % 3 == 0 {
            map.pop_first();
        }
    }
    let bytes: usize = map.values().map(String::len).sum();
    assert!(bytes > 10_000);
    let big = vec![0x5a_u8; 8 << 20];
    assert!(big.iter().all(|byte| *byte == 0x5a));
}

/// Every page of the heap can be used, and is zero when the host gave it back.
fn all_memory() {
    let heap = boot().heap;
    let mut blocks: Vec<Vec<u64>> = Vec::new();
    let mut sum = 0;
    // The allocator needs some memory itself; nothing else uses the heap.
    while sum + (2 << 20) < heap.bytes {
        let mut block: Vec<u64> = Vec::new();
        if block.try_reserve_exact((1 << 20) / 8).is_err() {
            break;
        }
        block.resize((1 << 20) / 8, sum);
        blocks.push(block);
        sum += 1 << 20;
    }
    assert!(sum + (4 << 20) > heap.bytes, "{sum} of {}", heap.bytes);
    assert!(blocks
        .iter()
        .enumerate()
        .all(|(i, block)| block.iter().all(|w| *w == (i as u64) << 20)));
    // A page that was returned to the host reads as zero.
    let page = (blocks[0].as_ptr() as usize).next_multiple_of(4096);
    // SAFETY: a page inside the block, on whose numbers no code relies.
    unsafe {
        system::discard(page, 4096).unwrap();
        assert_eq!((page as *const u64).read_volatile(), 0);
    }
}

fn time() {
    let before = clock::now();
    let mut last = before;
    for _ in 0..10_000 {
        let now = clock::now();
        assert!(now >= last);
        last = now;
    }
    sleep::sleep(Duration::from_millis(20));
    let slept = clock::now() - last;
    assert!((20_000_000..5_000_000_000).contains(&slept), "{slept}");
    // A token that was given before, and a deadline that has passed.
    sleep::unpark(kyozon_unikernel::me());
    sleep::park(None);
    sleep::park(Some(0));
    let (first, second) = (clock::time_of_day(), clock::time_of_day());
    assert!(first > 1_700_000_000_000_000_000 && second - first < 5_000_000_000);
    assert!(clock::first_instruction().is_none_or(|first| first < before && first > 0));
}

/// Copying, filling and comparing, of all lengths and overlaps, against loops over bytes.
fn memory() {
    const ROOM: usize = 200;
    let mut state = 1_u32;
    let mut fill = |bytes: &mut [u8]| {
        for byte in bytes {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *byte = (state >> 24) as u8;
        }
    };
    let by_byte = |to: &mut [u8], from: &[u8]| {
        for (to, from) in to.iter_mut().zip(from) {
            // SAFETY: a byte of the slice; volatile, so that the compiler does not call the tested functions here.
            unsafe { core::ptr::from_mut(to).write_volatile(*from) };
        }
    };
    let (mut ours, mut want, mut copy) = ([0_u8; ROOM], [0_u8; ROOM], [0_u8; ROOM]);
    for length in 0..70 {
        for distance in 0..70_usize {
            fill(&mut ours);
            by_byte(&mut want, &ours);
            by_byte(&mut copy, &ours);
            let (from, to) =
                if length % 2 == 0 { (60, 60 + distance) } else { (60 + distance, 60) };
            by_byte(&mut want[to..to + length], &copy[from..from + length]);
            ours.copy_within(from..from + length, to);
            assert!(ours.iter().eq(want.iter()), "copy {length} {distance}");
            assert_eq!(ours, want);
        }
        ours[10..10 + length].fill(length as u8);
        assert!(ours[10..10 + length].iter().all(|byte| *byte == length as u8));
        let mut other = ours;
        for at in 0..length {
            other[10 + at] = other[10 + at].wrapping_add(1);
            let (a, b) = (&ours[10..10 + length], &other[10..10 + length]);
            assert!(a != b && a.cmp(b) == a[at].cmp(&b[at]), "compare {length} {at}");
            other[10 + at] = ours[10 + at];
        }
        assert_eq!(ours, other);
    }
    let big: Vec<u8> = (0..1_000_003_u32).map(|i| (i % 251) as u8).collect();
    let copy = big.clone();
    assert!(copy.iter().enumerate().all(|(i, byte)| usize::from(*byte) == i % 251));
}

/// Floating point, also around hypercalls.
fn floats() {
    let mut sum = 0.0_f64;
    for i in 1..=10_000_u32 {
        sum += 1.0 / f64::from(core::hint::black_box(i));
        if i % 1000 == 0 {
            let _ = clock::time_of_day();
        }
    }
    // The 10000th harmonic number.
    assert!((sum - 9.787_606_036_044_348).abs() < 1e-10, "{sum}");
    assert_eq!(format!("{sum:.6} {:e}", 1.5e300_f64), "9.787606 1.5e300");
    // Floating-point exceptions are masked, as at the start of any program.
    assert!((core::hint::black_box(1.0_f64) / core::hint::black_box(0.0)).is_infinite());
}

fn random() {
    let mut bytes = [0_u8; 10_000];
    system::random(&mut bytes).unwrap();
    let mut seen = [0_u32; 256];
    bytes.iter().for_each(|byte| seen[usize::from(*byte)] += 1);
    // 39 of each are expected; none, or 100, are practically impossible.
    assert!(seen.iter().all(|count| (1..100).contains(count)));
}

/// Vector registers and segment bases survive hypercalls.
fn registers() {
    let features = boot().features;
    let ones = [0x1111_2222_3333_4444_u64; 4];
    let mut back = [0_u64; 4];
    for _ in 0..50 {
        // SAFETY: nothing here relies on this vector register; the memory is this function's variable.
        unsafe {
            if features & FEATURE_AVX2 != 0 {
                asm!("vmovdqu ymm7, [{}]", in(reg) &raw const ones, options(nostack));
            } else {
                asm!("movdqu xmm7, [{}]", in(reg) &raw const ones, options(nostack));
            }
        }
        sleep::park(Some(clock::now() + 1000));
        let width = if features & FEATURE_AVX2 != 0 { 4 } else { 2 };
        // SAFETY: as above.
        unsafe {
            if width == 4 {
                asm!("vmovdqu [{}], ymm7", in(reg) &raw mut back, options(nostack));
            } else {
                asm!("movdqu [{}], xmm7", in(reg) &raw mut back, options(nostack));
            }
            back = (&raw const back).read_volatile();
        }
        assert_eq!(back[..width], ones[..width]);
    }
    if features & FEATURE_FSGSBASE != 0 {
        let base: u64;
        // SAFETY: nothing uses GS.
        unsafe {
            asm!("wrgsbase {}", in(reg) 0x12_3456_7890_u64, options(nostack));
            let _ = clock::time_of_day();
            asm!("rdgsbase {}", out(reg) base, options(nostack));
        }
        assert_eq!(base, 0x12_3456_7890);
    }
}

fn big_output() {
    let line = [b'x'; 99];
    for _ in 0..3000 {
        console::write(&line);
        console::write(b"\n");
    }
    console::write(&vec![b'y'; 300_000]);
    println!();
}

fn words() {
    for word in arguments::strings().skip(1) {
        println!("<{word}>");
    }
}

fn panic() {
    panic!("of its own will: {}", 6 * 7);
}

#[inline(never)]
fn deeper(left: u32) -> u32 {
    assert!(left != 0, "at the bottom");
    core::hint::black_box(deeper(core::hint::black_box(left - 1))) + 1
}

fn deep_panic() {
    println!("{}", deeper(5));
}
