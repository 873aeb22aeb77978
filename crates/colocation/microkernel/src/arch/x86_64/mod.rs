//! x86-64: the image's header, the layer's functions, and the entries from layer and user mode.

mod layer;
mod typed;

use crate::boot::Boot;
use crate::kernel::Kernel;
use crate::machine::{Machine, WORDS};
use crate::memory::{Memory, PAGE};
use crate::space;
use crate::typed::{check, is_program, Accepted, IMAGE};
use core::cell::UnsafeCell;
use core::fmt;
use kyozon_abi::events::{
    MonitorStatus, EVENT_FAULT, EVENT_NOTE, MONITOR_ENDED, MONITOR_INDEX, MONITOR_STARTING,
};
use kyozon_abi::layer::*;
use kyozon_abi::line::Line;
use kyozon_abi::task::{StartInfo, MONITOR_EXPECTED};
use layer::Layer;

kyozon_abi::image_header!(IMAGE_COKERNEL, "cokernel_entry");

/// Milliseconds that the monitor may take until its task publishes a status of its own.
const START_MS: u64 = 120_000;
/// Size of the kernel's stack during entries from user mode.
const STACK_BYTES: usize = 16 << 10;

#[repr(C, align(4096))]
struct Stack(UnsafeCell<[u8; STACK_BYTES]>);

// SAFETY: only the CPU accesses it.
unsafe impl Sync for Stack {}

/// First in the image's data section: an overflow hits read-only data.
#[link_section = ".data.stack"]
static STACK: Stack = Stack(UnsafeCell::new([0; STACK_BYTES]));

/// The kernel and its machine.
struct Cokernel {
    kernel: Kernel,
    layer: Layer,
}

struct Owned(UnsafeCell<Cokernel>);

// SAFETY: one CPU, and kernel code is not preempted: `cokernel_entry` uses it until it enters user mode, `on_user`
// after that, and neither is entered while the other, or itself, runs.
unsafe impl Sync for Owned {}

static COKERNEL: Owned =
    Owned(UnsafeCell::new(Cokernel { kernel: Kernel::EMPTY, layer: Layer::NONE }));

/// The layer calls this for every exit from user mode.
extern "C" fn on_user(frame: &mut Frame) {
    // SAFETY: see `Owned`.
    let cokernel = unsafe { &mut *COKERNEL.0.get() };
    cokernel.kernel.trap(frame, &mut cokernel.layer);
}

#[no_mangle]
extern "C" fn cokernel_entry(boot: *const BootBlock) {
    // SAFETY: the layer's structure, which stays as long as the cokernel runs; and see `Owned`.
    let (boot, cokernel) = unsafe { (&*boot, &mut *COKERNEL.0.get()) };
    // The layer takes this return for the cokernel's end, and reports it. No other field can be trusted.
    if boot.version != LAYER_VERSION {
        return;
    }
    cokernel.layer = Layer::new(boot);
    if boot.parameter & MONITOR_EXPECTED != 0 {
        publish(&mut cokernel.layer, boot, MONITOR_STARTING, b"");
    }
    let handlers = Handlers {
        tick: layer::on_tick as *const () as u64,
        user: on_user as *const () as u64,
        user_stack: STACK.0.get() as u64 + STACK_BYTES as u64,
        typed: IMAGE,
    };
    let answer = cokernel.layer.set_handlers(&handlers);
    if answer != 0 {
        report(
            &mut cokernel.layer,
            EVENT_FAULT,
            format_args!("microkernel: handlers refused: {answer}"),
        );
    } else if start_tasks(boot, cokernel) {
        let first = cokernel.kernel.start(&mut cokernel.layer);
        let answer = cokernel.layer.enter_user(&first);
        report(
            &mut cokernel.layer,
            EVENT_FAULT,
            format_args!("microkernel: user mode refused: {answer}"),
        );
    }
    loop {
        cokernel.layer.idle();
    }
}

/// Makes the tasks. Returns false if one cannot be made, or if there are none.
fn start_tasks(boot: &'static BootBlock, cokernel: &mut Cokernel) -> bool {
    // SAFETY: the boot block describes these ranges; they stay readable and unchanged as long as the cokernel runs.
    let (pieces, tasks, data, tables) = unsafe {
        let list = |at: u64, count: u64| {
            if count == 0 {
                &[][..]
            } else {
                core::slice::from_raw_parts(at as *const Range, count as usize)
            }
        };
        (
            list(boot.pieces, u64::from(boot.piece_count)),
            list(boot.tasks, boot.task_count),
            bytes(&boot.data),
            |table: u64| &*((boot.tables + table * PAGE) as *const [u64; WORDS]),
        )
    };
    let mut images = [&[][..]; MAX_TASKS];
    for (image, range) in images.iter_mut().zip(tasks) {
        // SAFETY: as above.
        *image = unsafe { bytes(range) };
    }
    let mut memory = Memory::new(pieces);
    let (data, typed) = if is_program(data) {
        let Some(accepted) = check_typed(boot, &mut cokernel.layer, data) else { return false };
        (&[][..], Some(accepted))
    } else {
        (data, None)
    };
    let count = tasks.len() + usize::from(typed.is_some());
    let mut setup = Boot {
        frames: &mut cokernel.layer,
        memory: &mut memory,
        tables: space::Kernel {
            top: tables(0),
            level4: (boot.paging_levels == 5).then(|| tables(1)),
            level3: tables(u64::from(boot.paging_levels) - 3),
            low: None,
            root_bits: boot.page_table,
        },
        data,
        typed,
        gates: typed::gates(boot),
        info: StartInfo {
            mode: boot.mode,
            tsc_khz: boot.tsc_khz,
            tick_hz: boot.tick_hz,
            budget_us: boot.budget_us,
            parameter: boot.parameter,
            ..StartInfo::default()
        },
        yield_cpu: Layer::yield_cpu,
    };
    let made = setup.tasks(&mut cokernel.kernel, &images[..tasks.len().min(MAX_TASKS)]);
    match made {
        Ok(()) => {
            report(
                &mut cokernel.layer,
                EVENT_NOTE,
                format_args!("microkernel: tasks {count} memory {}", boot.memory_bytes),
            );
            true
        }
        Err(error) => {
            let (task, reason) = (error.task, error.reason);
            let line = Line::<{ REPORT_BYTES as usize }>::new(format_args!(
                "microkernel: task {task}: {reason}"
            ));
            cokernel.layer.report(EVENT_FAULT, 0, line.bytes());
            if boot.parameter & MONITOR_EXPECTED != 0 {
                publish(&mut cokernel.layer, boot, MONITOR_ENDED, line.bytes());
            }
            false
        }
    }
}

/// Checks a typed program. Reports it if it is refused.
fn check_typed(
    boot: &BootBlock,
    layer: &mut Layer,
    file: &'static [u8],
) -> Option<Accepted<'static>> {
    // SAFETY: memory is handed out only after this.
    let mut scratch = unsafe { typed::Scratch::new(boot) };
    let (mut memory, faults) = scratch.cut(layer);
    let result = check(file, &mut memory, faults, || layer.yield_cpu());
    scratch.clear(layer);
    match result {
        Ok(accepted) => Some(accepted),
        Err(refusal) => {
            report(
                layer,
                EVENT_FAULT,
                format_args!("microkernel: typed program refused: {refusal}"),
            );
            None
        }
    }
}

/// # Safety
///
/// The range must stay readable and unchanged as long as the cokernel runs.
unsafe fn bytes(range: &Range) -> &'static [u8] {
    if range.bytes == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(range.base as *const u8, range.bytes as usize) }
}

/// Publishes the monitor's status before its task runs, so that a monitor that never does is noticed.
fn publish(layer: &mut Layer, boot: &BootBlock, state: u64, reason: &[u8]) {
    let mut status = MonitorStatus {
        state,
        beat_tsc: layer::tsc(),
        patience_tsc: boot.tsc_khz * START_MS,
        ..MonitorStatus::default()
    };
    status.set_reason(reason);
    layer.publish(MONITOR_INDEX as u64, &status.to_words());
}

fn report(layer: &mut Layer, kind: u32, text: fmt::Arguments<'_>) {
    let line = Line::<{ REPORT_BYTES as usize }>::new(text);
    layer.report(kind, 0, line.bytes());
}

/// Reports a panic of the kernel itself, and idles from then on.
pub fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: the panicking code does not continue, and the layer's services do not depend on this state.
    let cokernel = unsafe { &mut *COKERNEL.0.get() };
    let line = Line::<{ REPORT_BYTES as usize }>::new(format_args!("microkernel: {info}"));
    cokernel.layer.report(EVENT_FAULT, 0, line.bytes());
    let mut status = MonitorStatus { state: MONITOR_ENDED, ..MonitorStatus::default() };
    status.set_reason(line.bytes());
    if cokernel.layer.parameter() & MONITOR_EXPECTED != 0 {
        cokernel.layer.publish(MONITOR_INDEX as u64, &status.to_words());
    }
    loop {
        cokernel.layer.idle();
    }
}
