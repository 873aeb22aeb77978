//! The scripts of the test cokernel, by number.

use crate::events;
use crate::latency;
use crate::layer::*;
use crate::user;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::events::{CheckStatus, StatusWords, MONITOR_INDEX, STATUS_WORDS};
use kyozon_abi::layer::*;

/// A script. The low 8 bits of the parameter choose it; the rest is its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Script {
    /// Counts ticks and reports their latency every 1000 ticks.
    Count = 0,
    /// Never idles, in kernel mode.
    SpinKernel = 1,
    /// Exceeds the budget threefold in kernel mode, then idles.
    SpinOnce = 2,
    /// Never idles, in user mode.
    SpinUser = 3,
    /// Executes an invalid instruction.
    InvalidInstruction = 4,
    /// Writes to an unmapped address.
    WildWrite = 5,
    /// Calls each service with invalid arguments.
    HostileArguments = 6,
    /// Executes forbidden instructions in user mode.
    HostileUser = 7,
    /// Overflows its stack.
    StackOverflow = 8,
    /// Returns from `start`.
    Return = 9,
    /// Finds a pattern in Linux's memory and repairs it.
    Repair = 10,
    /// Measures tick latency; the argument is the number of samples.
    Latency = 11,
    /// Reports lines of every kind, then a line every 50 ticks, and publishes two checks.
    Events = 12,
    /// Reports the loader's data.
    Data = 13,
    /// Reports more lines than a reader can follow: the argument's number at once, again every tenth tick.
    Flood = 14,
    /// Changes a register of Linux that no trip restores, at every tick.
    Damage = 15,
    /// Keeps words in the first page of its memory, checks them at every tick, and reports changes. It publishes a
    /// check that counts the passes. With an argument, it also reports the number of ticks, after that many each time.
    Keep = 16,
    /// Never idles, with its own interrupt table instead of the layer's. With argument 0 its handlers return; otherwise
    /// they never do, and the processor holds back NMIs from then on.
    Deaf = 17,
}

static TICKS: AtomicU64 = AtomicU64::new(0);
static MISSED: AtomicU64 = AtomicU64::new(0);
static LAST: AtomicU64 = AtomicU64::new(0);
static GAPS: AtomicU64 = AtomicU64::new(0);
/// The last gap: the numbers before and after it (24 bits each), and the reported `missed`.
static GAP: AtomicU64 = AtomicU64::new(0);
// In time-stamp ticks: T1 - T0, and T1 - entry of the module's handler.
static LATEST: AtomicU64 = AtomicU64::new(0);
static EARLIEST: AtomicU64 = AtomicU64::new(u64::MAX);
static PATH_MIN: AtomicU64 = AtomicU64::new(u64::MAX);
static PATH_MAX: AtomicU64 = AtomicU64::new(0);

extern "C" fn on_tick(event: *const TickEvent) {
    let now = tsc();
    // SAFETY: the layer's event is valid while the handler runs.
    let event = unsafe { event.read() };
    latency::take(&event, now);
    let late = now.saturating_sub(event.scheduled_tsc);
    let path = now - event.entered_tsc;
    TICKS.fetch_add(1, Relaxed);
    MISSED.fetch_add(event.missed, Relaxed);
    LATEST.fetch_max(late, Relaxed);
    EARLIEST.fetch_min(late, Relaxed);
    PATH_MIN.fetch_min(path, Relaxed);
    PATH_MAX.fetch_max(path, Relaxed);
    // Numbers must be consecutive, including missed ticks.
    let last = LAST.swap(event.number, Relaxed);
    if last != 0 && last + 1 + event.missed != event.number {
        GAPS.fetch_add(1, Relaxed);
        GAP.store(last << 40 | event.number << 16 | event.missed, Relaxed);
    }
}

fn say_ticks() {
    print(format_args!(
        "test count: ticks {} missed {} gaps {} last {}-{}-{} late {}..{} path {}..{}",
        TICKS.load(Relaxed),
        MISSED.load(Relaxed),
        GAPS.load(Relaxed),
        GAP.load(Relaxed) >> 40,
        GAP.load(Relaxed) >> 16 & 0xff_ffff,
        GAP.load(Relaxed) & 0xffff,
        EARLIEST.swap(u64::MAX, Relaxed),
        LATEST.swap(0, Relaxed),
        PATH_MIN.swap(u64::MAX, Relaxed),
        PATH_MAX.swap(0, Relaxed)
    ));
}

fn idle_forever() -> ! {
    loop {
        idle();
        if TICKS.load(Relaxed).is_multiple_of(1000) {
            say_ticks();
        }
    }
}

/// Runs the script that the boot block names.
pub fn run(boot: &BootBlock) {
    let wanted = Handlers {
        tick: on_tick as *const () as u64,
        user: user::on_user as *const () as u64,
        user_stack: user::stack_top(),
        typed: Range::default(),
    };
    let answer = handlers(&wanted);
    print(format_args!(
        "test start: mode {} memory {} tick_hz {} levels {} pieces {} handlers {answer}",
        boot.mode, boot.memory_bytes, boot.tick_hz, boot.paging_levels, boot.piece_count
    ));
    let argument = boot.parameter >> 8;
    match boot.parameter as u8 {
        x if x == Script::Count as u8 => count(),
        x if x == Script::SpinKernel as u8 => loop {
            core::hint::spin_loop();
        },
        x if x == Script::SpinOnce as u8 => spin_once(boot),
        x if x == Script::SpinUser as u8 => user::spin(),
        x if x == Script::InvalidInstruction as u8 => {
            // SAFETY: faults, and the layer ends the cokernel.
            unsafe { core::arch::asm!("ud2") }
        }
        x if x == Script::WildWrite as u8 => {
            // SAFETY: faults, and the layer ends the cokernel.
            unsafe { black_box(0x7000_0000_0000 as *mut u64).write_volatile(1) }
        }
        x if x == Script::HostileArguments as u8 => hostile(boot),
        x if x == Script::HostileUser as u8 => user::hostile(),
        x if x == Script::StackOverflow as u8 => print(format_args!("{}", deeper(1))),
        x if x == Script::Return as u8 => return,
        x if x == Script::Repair as u8 => repair(argument),
        x if x == Script::Latency as u8 => latency::run(argument),
        x if x == Script::Events as u8 => events::every_kind(),
        x if x == Script::Data as u8 => events::data(boot),
        x if x == Script::Flood as u8 => events::flood(argument),
        x if x == Script::Damage as u8 => damage(),
        x if x == Script::Keep as u8 => keep(boot, argument),
        x if x == Script::Deaf as u8 => deaf(argument != 0),
        x => print(format_args!("test unknown: script {x}")),
    }
    idle_forever()
}

extern "C" {
    fn deaf_returns();
    fn deaf_stays();
}

core::arch::global_asm!(
    ".globl deaf_returns, deaf_stays",
    "deaf_returns: iretq",
    "deaf_stays: jmp deaf_stays",
);

static mut DEAF: [[u64; 2]; 32] = [[0; 2]; 32];

/// Never idles, with an interrupt table that drops all interrupts; only a wall survives it.
fn deaf(stays: bool) -> ! {
    const INTERRUPT_GATE: u64 = 0x8e00 << 32;
    #[repr(C, packed)]
    struct Table {
        limit: u16,
        base: u64,
    }
    let handler = if stays { deaf_stays } else { deaf_returns } as *const () as u64;
    let table = Table { limit: 32 * 16 - 1, base: (&raw const DEAF) as u64 };
    // SAFETY: no other code uses this table, and the layer's is not needed any more.
    unsafe {
        let code: u64;
        core::arch::asm!("mov {}, cs", out(reg) code, options(nomem, nostack, preserves_flags));
        let low = handler & 0xffff | code << 16 | INTERRUPT_GATE | (handler >> 16 & 0xffff) << 48;
        (&raw mut DEAF).write([[low, handler >> 32]; 32]);
        core::arch::asm!("lidt [{}]", in(reg) &table, options(nostack, preserves_flags));
    }
    loop {
        core::hint::spin_loop();
    }
}

/// Changes the address of a disabled breakpoint.
fn damage() -> ! {
    loop {
        idle();
        let value = TICKS.load(Relaxed);
        // SAFETY: changes only this register of Linux, on purpose.
        unsafe {
            core::arch::asm!("mov dr0, {}", in(reg) value, options(nostack, preserves_flags))
        };
    }
}

/// Checks that the boot block's memory is zeroed and keeps its content, then counts ticks.
fn count() {
    let boot = boot();
    let words = boot.memory_bytes / 8;
    // SAFETY: the cokernel's memory.
    let at = |i: u64| unsafe { &mut *((boot.memory + i * 8) as *mut u64) };
    let mut dirty = 0;
    for i in (0..words).step_by(512) {
        dirty += u64::from(*at(i) != 0);
        *at(i) = i;
    }
    let wrong = (0..words).step_by(512).filter(|&i| *at(i) != i).count();
    print(format_args!("test memory: dirty {dirty} wrong {wrong}"));
    idle_forever()
}

/// "KEEP"; the word's number is added.
const KEPT: u64 = 0x5045_454b << 32;

/// Reports and restores changed words.
fn keep(boot: &BootBlock, interval: u64) -> ! {
    let at = |number: u64| (boot.memory + 8 * number) as *mut u64;
    // SAFETY: here and below, the first page of the cokernel's memory.
    (0..512).for_each(|number| unsafe { at(number).write_volatile(KEPT | number) });
    print(format_args!("test keep: begin"));
    let mut status = CheckStatus::named("keep");
    loop {
        status.passes += 1;
        status.last_tsc = tsc();
        publish(0, &status.to_words());
        idle();
        let ticks = TICKS.load(Relaxed);
        if interval != 0 && ticks.is_multiple_of(interval) {
            print(format_args!("test keep: tick {ticks}"));
        }
        for number in 0..512 {
            // SAFETY: as above.
            let found = unsafe { at(number).read_volatile() };
            if found != KEPT | number {
                print(format_args!("test keep: word {number} was changed to {found:#x}"));
                // SAFETY: as above.
                unsafe { at(number).write_volatile(KEPT | number) };
            }
        }
    }
}

fn spin_once(boot: &BootBlock) {
    idle();
    let before = TICKS.load(Relaxed);
    let end = tsc() + 3 * u64::from(boot.budget_us) * boot.tsc_khz / 1000;
    while tsc() < end {
        core::hint::spin_loop();
    }
    idle();
    print(format_args!("test spin_once: back, ticks {}", TICKS.load(Relaxed) - before));
}

#[inline(never)]
fn deeper(n: u64) -> u64 {
    let here = black_box([n; 64]);
    if n == u64::MAX {
        return 0;
    }
    deeper(n + 1) + here[3]
}

/// Static, so that it lies in the cokernel's data.
static mut WINDOW: Window = Window { count: 0, ram: [Range { base: 0, bytes: 0 }; MAX_RANGES] };

fn window() -> Window {
    let mut w = Window { count: 0, ram: [Range::default(); MAX_RANGES] };
    let answer = linux_window(&mut w);
    let bytes: u64 = w.ram[..w.count as usize].iter().map(|r| r.bytes).sum();
    print(format_args!("test window: answer {answer} ranges {} bytes {bytes}", w.count));
    w
}

fn hostile(boot: &BootBlock) {
    let bad: [u64; 6] =
        [0, 8, LAYER_BASE, u64::MAX - 7, WINDOW_BASE, boot.memory + boot.memory_bytes - 4];
    let mut accepted = 0;
    let mut calls = 0;
    for address in bad {
        for answer in [
            linux_window(address as *mut Window),
            linux_registers(address as *mut LinuxRegisters),
            linux_repair(address as *const RepairRequest),
            handlers(address as *const Handlers),
            enter_user(address as *mut Frame),
            report(address as *const Report),
            report(&Report { text: address, bytes: 64, ..Report::default() }),
            publish(0, address as *const StatusWords),
        ] {
            calls += 1;
            accepted += u32::from(answer != SERVICE_BAD_ADDRESS);
        }
    }
    let text = run as *const () as u64;
    for answer in [
        linux_window(text as *mut Window),
        report(&Report { text: boot.memory, bytes: u64::MAX, ..Report::default() }),
        report(&Report { text: boot.memory, bytes: 257, ..Report::default() }),
        publish(MONITOR_INDEX as u64 + 1, &[0; STATUS_WORDS]),
        publish(u64::MAX, &[0; STATUS_WORDS]),
        handlers(&Handlers { tick: LAYER_BASE, ..Handlers::default() }),
        handlers(&Handlers { user: text, user_stack: 16, ..Handlers::default() }),
        handlers(&Handlers { user: text, user_stack: WINDOW_BASE, ..Handlers::default() }),
        handlers(&Handlers { typed: Range { base: 0, bytes: 4096 }, ..Handlers::default() }),
    ] {
        calls += 1;
        accepted += u32::from(answer != SERVICE_BAD_ADDRESS);
    }
    // SAFETY: no other code uses it.
    let good = linux_window(&raw mut WINDOW);
    // SAFETY: as above.
    let ram = unsafe { WINDOW.ram[0] };
    let word = |address| RepairWord { address, expected: 0, value: 0 };
    let mut repairs = 0;
    for (count, addresses) in [
        (0, [ram.base, ram.base]),
        (17, [ram.base, ram.base]),
        (u64::MAX, [ram.base, ram.base]),
        (2, [ram.base, ram.base]),
        (1, [ram.base + 4, 0]),
        (1, [0xfed0_0000, 0]),
        (1, [u64::MAX - 7, 0]),
        (1, [own_piece(boot), 0]),
    ] {
        let mut r = RepairRequest { count, words: [RepairWord::default(); MAX_REPAIR_WORDS] };
        r.words[0] = word(addresses[0]);
        r.words[1] = word(addresses[1]);
        repairs += u32::from(linux_repair(&r) == REPAIR_INVALID);
    }
    print(format_args!(
        "test hostile: calls {calls} accepted {accepted} good {good} invalid repairs {repairs} of 8"
    ));
}

fn own_piece(boot: &BootBlock) -> u64 {
    // SAFETY: the boot block's list has at least one piece.
    unsafe { (*(boot.pieces as *const Range)).base }
}

/// A test program writes eight words to a page of its own: each is the previous one times this, plus one.
const PATTERN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Finds the pattern that begins with `PATTERN ^ argument`, and "repairs" each word to its complement.
fn repair(argument: u64) {
    let w = window();
    let first = PATTERN ^ argument;
    let mut found = 0;
    let mut last = 0;
    for r in &w.ram[..w.count as usize] {
        for page in (r.base..r.base + r.bytes).step_by(4096) {
            // SAFETY: the window maps System RAM.
            let at =
                |i: u64| unsafe { ((WINDOW_BASE + page + 8 * i) as *const u64).read_volatile() };
            if page >> 12 & 127 == 0 {
                idle();
            }
            if at(0) == first && (1..8).all(|i| at(i) == at(i - 1).wrapping_mul(PATTERN) + 1) {
                found += 1;
                last = page;
            }
        }
    }
    if found == 0 {
        print(format_args!("test repair: found 0"));
        return;
    }
    let mut request = RepairRequest { count: 8, words: [RepairWord::default(); MAX_REPAIR_WORDS] };
    for (i, w) in request.words[..8].iter_mut().enumerate() {
        let address = last + 8 * i as u64;
        // SAFETY: the window maps System RAM.
        let value = unsafe { ((WINDOW_BASE + address) as *const u64).read_volatile() };
        *w = RepairWord { address, expected: value, value: !value };
    }
    let mut wrong = request;
    wrong.words[7].expected ^= 1;
    let (changed, _) = repair_with_retries(&wrong);
    let (done, tries) = repair_with_retries(&request);
    print(format_args!("test repair: found {found} changed {changed} done {done} tries {tries}"));
}

/// Retries at the next tick, up to 200 times, while the other CPUs are not parked in time.
fn repair_with_retries(request: &RepairRequest) -> (i64, u32) {
    let mut tries = 1;
    loop {
        let answer = linux_repair(request);
        if answer != REPAIR_BUSY || tries == 200 {
            return (answer, tries);
        }
        tries += 1;
        idle();
    }
}
