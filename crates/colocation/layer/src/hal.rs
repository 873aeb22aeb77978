//! Beside Linux with nothing in between: the layer's services and its interrupts on the bare machine.
//!
//! Two kinds of code run here. *Services* are called by the cokernel, on its stack. *Interrupts* come on stacks of
//! their own and may find a service half done; they then only touch the trip and the atomics, and never call back into
//! service state. What each static belongs to is said where it stands.

use crate::arch::x86_64::{self as arch, entry::*, gates, user_state};
use crate::events::Events;
use crate::interrupt::{decide, guard_at, Action, At, Looks, Times};
use crate::line::Line;
use crate::linux::Linux;
use crate::owned::Owned;
use crate::space::Space;
use crate::{behind, repair, serial, tick, user};
use core::ptr;
use core::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use kyozon_abi::events::{CheckStatus, EVENT_FAULT, MAX_CHECKS};
use kyozon_abi::layer::*;

/// Kernel-mode cut-offs in a row after which a cokernel counts as run away: those of a second, and at least so many.
const LEAST_CUTS: u32 = 64;
/// Microseconds until the first look at the layer's own code.
const LOOK_US: u64 = 20;
/// Microseconds by which the timer's clock and the time-stamp counter may disagree.
const SLACK_US: u64 = 2;
/// How often the guard is armed anew where the moment had passed when it was.
const MOST_TRIES: u32 = 10;

static ENTRY: AtomicPtr<LayerEntry> = AtomicPtr::new(ptr::null_mut());
static TRIP: AtomicPtr<Trip> = AtomicPtr::new(ptr::null_mut());
static USER_STACK: AtomicU64 = AtomicU64::new(0);
/// Interrupts.
static LOOKS: Owned<Looks> = Owned::new(Looks::new());

/// Services; interrupts only when they stop the cokernel for good.
static EVENTS: Owned<Events> = Owned::new(Events::none());
/// Services.
static SPACE: Owned<Option<Space>> = Owned::new(None);
/// Written once, before the cokernel starts.
static BOOT: Owned<Option<BootBlock>> = Owned::new(None);
/// Whoever switches the user state: a service on its way to user mode, or whoever leaves the trip. None where there is
/// nothing to switch.
static SAVED: Owned<Option<user_state::Saved>> = Owned::new(None);
/// The tick that waits. Interrupts write it; services copy it after they have taken its `WORK_TICK`.
static KEPT: Owned<TickEvent> =
    Owned::new(TickEvent { number: 0, missed: 0, scheduled_tsc: 0, entered_tsc: 0 });

pub(crate) fn entry() -> &'static LayerEntry {
    // SAFETY: set before anything else runs, and never written again: the module maps it read-only.
    unsafe { &*ENTRY.load(Relaxed) }
}

/// The trip's fields are read and written one by one: the module and the trampoline have the other end.
macro_rules! trip {
    ($field:ident) => {
        // SAFETY: the module's structure, mapped as long as the layer is.
        unsafe { (&raw const (*TRIP.load(Relaxed)).$field).read_volatile() }
    };
    ($field:ident = $value:expr) => {{
        let value = $value;
        // SAFETY: as above.
        unsafe { (&raw mut (*TRIP.load(Relaxed)).$field).write_volatile(value) }
    }};
}

fn parked() -> &'static AtomicU32 {
    // SAFETY: the module's structure, mapped as long as the layer is; nobody accesses this word but by atomics.
    unsafe { AtomicU32::from_ptr(&raw mut (*TRIP.load(Relaxed)).parked) }
}

fn most_cuts() -> u32 {
    entry().tick_hz.max(LEAST_CUTS)
}

fn us_to_tsc(us: u64) -> u64 {
    us * entry().tsc_khz / 1000
}

// ---------------------------------------------------------------------------------------------------------------------
// The first trip

/// What the machine code calls after the first entry: `start` with `boot`.
#[repr(C)]
pub(crate) struct Start {
    boot: u64,
    start: u64,
}

/// What the cokernel's image says of itself.
fn cokernel_header() -> ImageHeader {
    // SAFETY: the module mapped the image there and compared its hash.
    unsafe { (entry().cokernel as *const ImageHeader).read() }
}

#[no_mangle]
extern "C" fn layer_init(from: *mut LayerEntry, trip: *mut Trip) -> Start {
    // SAFETY: the module's structure.
    let services = match unsafe { (*from).mode } {
        MODE_VMM => &behind::SERVICES,
        _ => &Services { window: linux_window, repair: linux_repair, ..Services::OWN },
    };
    init(from, trip, services)
}

/// What differs from mode to mode.
pub(crate) struct Services {
    pub(crate) window: extern "C" fn(*mut Window) -> i64,
    pub(crate) repair: extern "C" fn(*const RepairRequest) -> i64,
    pub(crate) report: extern "C" fn(*const Report) -> i64,
    pub(crate) publish: extern "C" fn(u64, *const CheckStatus) -> i64,
    /// Whether what user mode can change is in this CPU's registers when a trip begins, and has to be put back.
    pub(crate) keeps_user_state: bool,
}

impl Services {
    /// There is no Linux; the ring and the serial line are ours.
    pub(crate) const OWN: Self =
        Self { window: no_window, repair: no_repair, report, publish, keeps_user_state: true };
}

/// The first trip, in every mode.
pub(crate) fn init(from: *mut LayerEntry, trip: *mut Trip, services: &Services) -> Start {
    ENTRY.store(from, Relaxed);
    TRIP.store(trip, Relaxed);
    let e = entry();
    // SAFETY: the trampoline's table, live, and nobody else writes it.
    unsafe { gates::fill(e.idt as *mut [u64; 2]) };
    trip!(machine_check_entry = gates::layer_machine_check as *const () as u64);
    trip!(nmi_entry = gates::layer_nmi as *const () as u64);
    // An NMI before this moment was only counted, and may have been the guard's.
    arm_guard(guard_at(&times()));
    // SAFETY: an atomic of the entry code.
    unsafe { LAYER_GUARD_SLACK.store(times().slack, Relaxed) };

    let image = cokernel_header();
    let constant = image.text_bytes + image.rodata_bytes;
    let range = |base, bytes| Range { base, bytes };
    let space = Space::new(
        range(image.base, constant),
        [
            range(image.base + constant, image.memory_bytes),
            range(e.memory, e.memory_bytes),
            range((&raw const LAYER_START_STACK) as u64, START_STACK_BYTES as u64),
        ],
    );
    let boot = BootBlock {
        version: LAYER_VERSION,
        mode: e.mode,
        tsc_khz: e.tsc_khz,
        tick_hz: e.tick_hz,
        budget_us: e.budget_us,
        memory: e.memory,
        memory_bytes: e.memory_bytes,
        idle: layer_idle as *const () as u64,
        linux_window: services.window as *const () as u64,
        linux_repair: services.repair as *const () as u64,
        report: services.report as *const () as u64,
        publish: services.publish as *const () as u64,
        handlers: handlers as *const () as u64,
        enter_user: layer_enter_user as *const () as u64,
        page_table: e.page_table,
        tables: e.tables,
        paging_levels: e.paging_levels,
        piece_count: e.piece_count as u32,
        pieces: e.pieces.as_ptr() as u64,
        tasks: e.tasks.as_ptr() as u64,
        task_count: e.task_count,
        parameter: e.parameter,
        data: e.data,
    };
    // SAFETY: the first trip, before any service; interrupts do not use these.
    unsafe {
        *EVENTS.get() = Events::new(e.events as *mut _, e.events_bytes);
        *SPACE.get() = Some(space);
        *SAVED.get() = services.keeps_user_state.then(user_state::Saved::default);
        Start { boot: ptr::from_ref(BOOT.get().insert(boot)) as u64, start: image.entry }
    }
}

#[no_mangle]
extern "C" fn layer_returned() -> ! {
    stop(FAULT_RETURNED, &Frame::default())
}

// ---------------------------------------------------------------------------------------------------------------------
// Services

/// For services: what the cokernel may name.
pub(crate) fn space() -> &'static Space {
    // SAFETY: services own it, and it is not written after the first trip.
    unsafe { SPACE.get() }.as_ref().expect("set before start")
}

extern "C" fn no_window(window: *mut Window) -> i64 {
    if space().can_write::<Window>(window as u64) {
        SERVICE_UNAVAILABLE
    } else {
        SERVICE_BAD_ADDRESS
    }
}

extern "C" fn no_repair(request: *const RepairRequest) -> i64 {
    if space().can_read::<RepairRequest>(request as u64) {
        SERVICE_UNAVAILABLE
    } else {
        SERVICE_BAD_ADDRESS
    }
}

pub(crate) extern "C" fn linux_window(window: *mut Window) -> i64 {
    if !space().can_write::<Window>(window as u64) {
        return SERVICE_BAD_ADDRESS;
    }
    let e = entry();
    // SAFETY: the cokernel's writable memory, aligned.
    unsafe {
        window.write(Window { count: u64::from(e.ram_count), ram: e.ram });
    }
    0
}

/// What a report names, if it is the cokernel's to read.
pub(crate) fn reported(wanted: *const Report) -> Option<(Report, &'static [u8])> {
    if !space().can_read::<Report>(wanted as u64) {
        return None;
    }
    // SAFETY: the cokernel's readable memory, aligned. Copied, so that what is checked is what is done.
    let wanted = unsafe { wanted.read() };
    if wanted.bytes > REPORT_BYTES || !space().can_read_bytes(wanted.text, wanted.bytes) {
        return None;
    }
    // SAFETY: the cokernel's readable memory; nothing of the cokernel runs meanwhile.
    let line =
        unsafe { core::slice::from_raw_parts(wanted.text as *const u8, wanted.bytes as usize) };
    Some((wanted, line))
}

extern "C" fn report(wanted: *const Report) -> i64 {
    let Some((wanted, line)) = reported(wanted) else { return SERVICE_BAD_ADDRESS };
    // SAFETY: a service.
    let events = unsafe { EVENTS.get() };
    events.write(wanted.kind, wanted.code, arch::tsc(), trip!(event).number, line);
    say(events);
    0
}

/// What a check says of itself, if it is the cokernel's to read.
pub(crate) fn published(check: u64, status: *const CheckStatus) -> Option<CheckStatus> {
    let good = check < MAX_CHECKS as u64 && space().can_read::<CheckStatus>(status as u64);
    // SAFETY: the cokernel's readable memory, aligned.
    good.then(|| unsafe { status.read() })
}

extern "C" fn publish(check: u64, status: *const CheckStatus) -> i64 {
    let Some(status) = published(check, status) else { return SERVICE_BAD_ADDRESS };
    // SAFETY: a service.
    unsafe { EVENTS.get() }.publish(check as usize, &status);
    0
}

extern "C" fn handlers(wanted: *const Handlers) -> i64 {
    if !space().can_read::<Handlers>(wanted as u64) {
        return SERVICE_BAD_ADDRESS;
    }
    // SAFETY: the cokernel's readable memory, aligned.
    let wanted = unsafe { wanted.read() };
    let frame = wanted.user_stack.wrapping_sub(size_of::<Frame>() as u64);
    let is_code = |address: u64| address == 0 || in_cokernel(address);
    if !is_code(wanted.tick)
        || !is_code(wanted.user)
        || (wanted.user != 0 && !(wanted.user_stack % 16 == 0 && space().can_write::<Frame>(frame)))
    {
        return SERVICE_BAD_ADDRESS;
    }
    let or = |address: u64, default: u64| if address == 0 { default } else { address };
    // SAFETY: atomics of the entry code.
    unsafe {
        LAYER_TICK.store(or(wanted.tick, layer_nothing as *const () as u64), Relaxed);
        LAYER_USER.store(or(wanted.user, layer_unhandled as *const () as u64), Relaxed);
    }
    USER_STACK.store(if wanted.user == 0 { 0 } else { wanted.user_stack }, Relaxed);
    // Ring 0's stack in a 64-bit task state segment is at byte 4. Intel SDM 3A 8.7.
    // SAFETY: the trampoline's segment, of which this is the layer's part.
    unsafe { ((entry().tss + 4) as *mut u64).write_unaligned(USER_STACK.load(Relaxed)) };
    0
}

/// Repairs in `linux` what the cokernel asks for.
pub(crate) fn repair_in(linux: &mut impl Linux, request: *const RepairRequest) -> i64 {
    if !space().can_read::<RepairRequest>(request as u64) {
        return SERVICE_BAD_ADDRESS;
    }
    // SAFETY: the cokernel's readable memory, aligned. Copied, so that what is checked is what is done.
    let request = unsafe { request.read() };
    repair::repair(&request, linux)
}

extern "C" fn linux_repair(request: *const RepairRequest) -> i64 {
    repair_in(&mut Hal, request)
}

/// Where the frame of user mode has to lie, with the frame there; or why not.
#[no_mangle]
extern "C" fn layer_check_user(frame: *const Frame) -> i64 {
    let top = USER_STACK.load(Relaxed);
    if top == 0 || !space().can_read::<Frame>(frame as u64) {
        return SERVICE_BAD_ADDRESS;
    }
    let to = (top - size_of::<Frame>() as u64) as *mut Frame;
    // SAFETY: `handlers` made sure of the target; they may overlap.
    unsafe { ptr::copy(frame, to, 1) };
    to as i64
}

/// The last call before user mode.
#[no_mangle]
extern "C" fn layer_prepare_user(frame: &mut Frame) {
    user::sanitize(frame, entry().paging_levels);
    // SAFETY: an atomic of the entry code; the state is Linux's as long as it is 0, and we are on the way to user mode.
    unsafe {
        if LAYER_USER_SWITCHED.load(Relaxed) == 0 {
            if let Some(saved) = SAVED.get() {
                user_state::to_cokernel(saved, &mut (*TRIP.load(Relaxed)).user);
                LAYER_USER_SWITCHED.store(1, Relaxed);
            }
        }
    }
}

/// On the way out, after [`layer_prepare_user`] in this trip.
#[no_mangle]
extern "C" fn layer_user_back() {
    // SAFETY: we are leaving: nobody else is on the way to user mode.
    unsafe {
        LAYER_USER_SWITCHED.store(0, Relaxed);
        if let Some(saved) = SAVED.get() {
            user_state::to_linux(saved);
        }
    }
}

/// What `idle` does before it leaves; 1 if it is not to leave.
#[no_mangle]
extern "C" fn layer_work() -> u32 {
    // SAFETY: an atomic of the entry code.
    let work = unsafe { LAYER_WORK.load(Relaxed) };
    if work & WORK_TICK != 0 {
        layer_kept_tick();
        return 1;
    }
    // SAFETY: a service.
    say(unsafe { EVENTS.get() });
    0
}

/// Hands the tick that waits to the cokernel.
#[no_mangle]
extern "C" fn layer_kept_tick() {
    // SAFETY: the handler is the cokernel's, or one that does nothing. An interrupt that writes the event anew while
    // it is copied makes it the newer tick, and sets the bit again.
    unsafe {
        LAYER_WORK.fetch_and(!WORK_TICK, Relaxed);
        let event = (&raw const *KEPT.get()).read_volatile();
        let tick: extern "C" fn(*const TickEvent) = core::mem::transmute(LAYER_TICK.load(Relaxed));
        tick(&event);
    }
}

/// Lets the serial line follow the ring as far as it is ready to.
fn say(events: &mut Events) {
    let Ok(port @ 1..) = u16::try_from(entry().serial_port) else {
        return;
    };
    serial::say(events, port);
    // SAFETY: an atomic of the entry code.
    unsafe {
        if events.has_serial() {
            LAYER_WORK.fetch_or(WORK_SERIAL, Relaxed);
        } else {
            LAYER_WORK.fetch_and(!WORK_SERIAL, Relaxed);
        }
    }
}

/// The Linux beside us: its memory is mapped, its other CPUs are a call of the module away.
pub(crate) struct Hal;

impl Linux for Hal {
    fn ram(&self) -> &[Range] {
        let e = entry();
        &e.ram[..(e.ram_count as usize).min(MAX_RANGES)]
    }

    fn read(&mut self, address: u64) -> u64 {
        // SAFETY: System RAM, which the window maps.
        unsafe { ((WINDOW_BASE + address) as *const u64).read_volatile() }
    }

    fn write(&mut self, address: u64, value: u64) {
        const PAGE: u64 = 0xfff;
        /// Present, writable, accessed, dirty, no execution.
        const FLAGS: u64 = 1 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 63;
        let e = entry();
        // SAFETY: the repair slot is ours alone; it maps the page of this word for this write.
        unsafe {
            (e.poke_entry as *mut u64).write_volatile(address & !PAGE | FLAGS);
            arch::forget_translation(e.poke);
            ((e.poke | address & PAGE) as *mut u64).write_volatile(value);
            (e.poke_entry as *mut u64).write_volatile(0);
        }
        arch::forget_translation(e.poke);
    }

    fn park(&mut self) -> bool {
        trip!(result = TRIP_PARK);
        // SAFETY: a service, on the cokernel's stack; the module enters again at once.
        unsafe { layer_yield() };
        // While the other CPUs were waited for, an NMI was Linux's: the guard may have come and gone.
        acknowledge();
        arm_guard(guard_at(&times()));
        // Somebody may have held this CPU for so long that the others have given up.
        let parked = parked();
        let round = parked.load(Relaxed) & !PARKED_STATE;
        let (from, to) = (round | PARKED_STANDING, round | PARKED_WRITING);
        parked.compare_exchange(from, to, SeqCst, Relaxed).is_ok()
    }

    fn release(&mut self) {
        parked().fetch_and(!PARKED_STATE, SeqCst);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Interrupts and exceptions

fn in_cokernel(address: u64) -> bool {
    let e = entry();
    address.wrapping_sub(e.cokernel) < e.cokernel_text_bytes
}

fn place(frame: &Frame) -> At {
    if user::is_user(frame) {
        At::User
    } else if in_cokernel(frame.rip) {
        At::Cokernel
    } else {
        At::Layer
    }
}

pub(crate) fn times() -> Times {
    Times {
        now: arch::tsc(),
        deadline: trip!(deadline_tsc),
        guard: trip!(guard_tsc),
        next: trip!(next_tsc),
        slack: us_to_tsc(SLACK_US) + (trip!(period_tsc) >> 10),
    }
}

/// The guard interrupts at `at`, or very soon where that has passed.
pub(crate) fn arm_guard(at: u64) {
    let e = entry();
    trip!(guard_tsc = at);
    if e.guard == 0 {
        return;
    }
    let mut ahead = at.saturating_sub(arch::tsc()).max(us_to_tsc(SLACK_US));
    for _ in 0..MOST_TRIES {
        let counts = ((u128::from(ahead) * u128::from(e.guard_per_tsc)) >> 32) as u32;
        // SAFETY: the timer's registers, of which the comparator is ours while the trip lasts.
        let left = unsafe {
            let counter = (e.guard + u64::from(e.guard_counter)) as *const u32;
            let comparator = (e.guard + u64::from(e.guard_comparator)) as *mut u32;
            let then = counter.read_volatile().wrapping_add(counts);
            comparator.write_volatile(then);
            then.wrapping_sub(counter.read_volatile())
        };
        // A comparator that the counter has passed meanwhile is silent until it wraps: firmware held the CPU.
        if (1..=counts).contains(&left) {
            return;
        }
        ahead *= 2;
    }
}

/// Keeps `event` for the cokernel's next `idle`; a tick that waits already falls together with it.
fn keep(event: TickEvent) {
    // SAFETY: interrupts own it, and `layer_keep_trip` runs where nothing else does; an atomic of the entry code.
    unsafe {
        let kept = KEPT.get();
        *kept = if LAYER_WORK.load(Relaxed) & WORK_TICK != 0 {
            tick::together(kept, &event)
        } else {
            event
        };
        LAYER_WORK.fetch_or(WORK_TICK, Relaxed);
    }
}

/// A tick that came while the cokernel ran.
fn keep_tick(now: u64) {
    let inside = trip!(ticks_inside) + 1;
    let due = trip!(next_tsc);
    trip!(ticks_inside = inside);
    trip!(next_tsc = due.wrapping_add(trip!(period_tsc)));
    keep(TickEvent {
        number: trip!(event).number + u64::from(inside),
        missed: 0,
        scheduled_tsc: due,
        entered_tsc: now,
    });
}

/// The tick of a trip that goes on in the middle of the cokernel.
#[no_mangle]
extern "C" fn layer_keep_trip() {
    keep(trip!(event));
}

/// Moves a frame of user mode to where the cokernel's handler expects it.
fn to_user_stack(frame: &Frame) -> u64 {
    let to = USER_STACK.load(Relaxed) - size_of::<Frame>() as u64;
    // SAFETY: `handlers` made sure of it, and user mode was only entered with it set. Nothing lies on that stack while
    // the CPU is in user mode.
    unsafe { (to as *mut Frame).write(*frame) };
    to
}

/// The trip ends in a gate.
fn note_fault(reason: u32, frame: &Frame) {
    // SAFETY: the module's structure, mapped as long as the layer is.
    unsafe { (*TRIP.load(Relaxed)).user.switched |= USER_GATE };
    trip!(fault = Fault { reason, reserved: 0, cr2: arch::cr2(), cr3: arch::cr3(), frame: *frame });
}

/// Gives the CPU back in the middle of the cokernel; the next trip goes on there.
fn cut_off(frame: &Frame, result: u32) {
    note_fault(FAULT_RUNAWAY, frame);
    trip!(result = result);
    // SAFETY: the cokernel was interrupted outside of the layer, so nobody uses these.
    unsafe {
        if user::is_user(frame) {
            LAYER_RESUME_RSP.store(to_user_stack(frame), Relaxed);
            LAYER_RESUME.store(layer_resume_user as *const () as u64, Relaxed);
        } else {
            (&raw mut LAYER_CUT_FRAME).write(*frame);
            LAYER_CUT_CR2.store(arch::cr2(), Relaxed);
            LAYER_RESUME_RSP.store(layer_scratch_top as *const () as u64, Relaxed);
            LAYER_RESUME.store(layer_resume_cut as *const () as u64, Relaxed);
        }
        if LAYER_USER_SWITCHED.load(Relaxed) != 0 {
            layer_user_back();
        }
    }
}

/// Acknowledges the real-time clock where it is the tick's source; whether it had interrupted.
///
/// The module holds Linux's lock of these ports as long as the trip lasts, or says 0.
fn acknowledge() -> bool {
    const INDEX: u16 = 0x70;
    const DATA: u16 = 0x71;
    const REGISTER_C: u8 = 0x0c;
    const PERIODIC: u8 = 1 << 6;
    // SAFETY: the module's page, which it may write between trips; and ports that are ours for this trip.
    unsafe {
        if (&raw const (*ENTRY.load(Relaxed)).acknowledge).read_volatile() == 0 {
            return false;
        }
        arch::out8(INDEX, REGISTER_C);
        arch::in8(DATA) & PERIODIC != 0
    }
}

/// 0: go on where it was. 1: leave the trip. Else: user mode's frame, to which the tick is delivered.
#[no_mangle]
extern "C" fn layer_on_nmi(frame: &mut Frame) -> u64 {
    let t = times();
    let at = place(frame);
    let ours = acknowledge();
    match decide(&t, at) {
        Action::Foreign if ours => {}
        Action::Foreign => {
            not_ours();
            // It may have been the guard by a clock that goes faster than this one.
            arm_guard(guard_at(&t));
        }
        Action::Rearm => arm_guard(guard_at(&t)),
        Action::Keep => {
            keep_tick(t.now);
            arm_guard(guard_at(&times()));
        }
        Action::Deliver => {
            keep_tick(t.now);
            arm_guard(guard_at(&times()));
            return to_user_stack(frame);
        }
        Action::LookAgain => {
            // SAFETY: interrupts own it; a second one is only counted.
            let looks = unsafe { LOOKS.get() };
            match looks.next(trip!(event).number, &t, us_to_tsc(LOOK_US)) {
                Some(due) => arm_guard(due),
                None => stop(FAULT_LAYER, frame),
            }
        }
        Action::CutOff => {
            // SAFETY: an atomic of the entry code.
            if at == At::Cokernel && unsafe { LAYER_CUTS.fetch_add(1, Relaxed) } >= most_cuts() {
                stop(FAULT_RUNAWAY, frame);
            }
            cut_off(frame, TRIP_CUT_OFF);
            return 1;
        }
    }
    0
}

/// An NMI came while another one was looked at, which has delivered a tick since.
#[no_mangle]
extern "C" fn layer_on_second_nmi() {
    let t = times();
    if decide(&t, At::Layer) == Action::Foreign {
        not_ours();
    }
    arm_guard(guard_at(&t));
}

/// An NMI that is neither the tick's nor the guard's, or one of these that was expected earlier.
fn not_ours() {
    match trip!(stale) {
        0 => trip!(foreign = trip!(foreign) + 1),
        n => trip!(stale = n - 1),
    }
}

/// A trip begins whose guard was due before: its NMI was Linux's, or was only counted, or is still on its way.
#[no_mangle]
extern "C" fn layer_guard_passed() {
    trip!(stale = trip!(stale) + 1);
    arm_guard(guard_at(&times()));
}

/// 0: go on where it was, Linux hears of it at the trip's end. 1: leave the trip.
#[no_mangle]
extern "C" fn layer_on_machine_check(frame: &mut Frame) -> u64 {
    if place(frame) == At::Layer {
        return 0;
    }
    cut_off(frame, TRIP_MACHINE_CHECK);
    1
}

/// An exception in kernel mode.
#[no_mangle]
extern "C" fn layer_fault(frame: &Frame) -> ! {
    stop(FAULT_EXCEPTION, frame)
}

/// User mode was interrupted, and the cokernel has no handler for that.
#[no_mangle]
extern "C" fn layer_unhandled(frame: &Frame) -> ! {
    stop(FAULT_EXCEPTION, frame)
}

/// Lets the serial line say what it can before nobody listens. Nothing of the cokernel or of a service runs again.
pub(crate) fn last_words() {
    // SAFETY: nobody else uses them any more.
    let events = unsafe { EVENTS.get() };
    if let Ok(port @ 1..) = u16::try_from(entry().serial_port) {
        serial::last_words(events, port, entry().tsc_khz);
    }
}

/// Ends the cokernel: reports, and gives the CPU back for good.
fn stop(reason: u32, frame: &Frame) -> ! {
    note_fault(reason, frame);
    trip!(result = TRIP_STOPPED);
    let line = Line::of_fault(&trip!(fault));
    // SAFETY: nothing of the cokernel or of a service runs again.
    let events = unsafe { EVENTS.get() };
    events.write(EVENT_FAULT, frame.vector as u32, arch::tsc(), trip!(event).number, line.bytes());
    last_words();
    // SAFETY: atomics of the entry code; Linux goes on from here.
    unsafe {
        if LAYER_USER_SWITCHED.load(Relaxed) != 0 {
            layer_user_back();
        }
        layer_abandon()
    }
}

/// The layer itself failed.
pub fn panicked() -> ! {
    if TRIP.load(Relaxed).is_null() {
        // SAFETY: the trampoline is below us whatever happened.
        unsafe { layer_abandon() }
    }
    stop(FAULT_LAYER, &Frame::default())
}
