//! x86-64: the image's header, the layer's functions, and the way in from user mode.

mod layer;

use crate::boot::Boot;
use crate::kernel::Kernel;
use crate::machine::{Machine, WORDS};
use crate::memory::{Memory, PAGE};
use crate::space;
use core::cell::UnsafeCell;
use core::fmt;
use kyozon_abi::events::{EVENT_FAULT, EVENT_NOTE};
use kyozon_abi::layer::*;
use kyozon_abi::line::Line;
use kyozon_abi::task::StartInfo;
use layer::Layer;

kyozon_abi::image_header!(IMAGE_COKERNEL, "cokernel_entry");

/// Bytes of the stack that the kernel has while it serves user mode.
const STACK_BYTES: usize = 16 << 10;

#[repr(C, align(4096))]
struct Stack(UnsafeCell<[u8; STACK_BYTES]>);

// SAFETY: the CPU's alone.
unsafe impl Sync for Stack {}

/// First of the image's data: a stack that overflows meets read-only data.
#[link_section = ".data.stack"]
static STACK: Stack = Stack(UnsafeCell::new([0; STACK_BYTES]));

/// The kernel and its machine.
struct All {
    kernel: Kernel,
    layer: Layer,
}

struct Owned(UnsafeCell<All>);

// SAFETY: one CPU, and kernel code is not preempted: the start uses it until it leaves for user mode, `on_user` after
// that, and neither is entered while the other, or itself, runs.
unsafe impl Sync for Owned {}

static ALL: Owned = Owned(UnsafeCell::new(All { kernel: Kernel::EMPTY, layer: Layer::NONE }));

/// Everything that leaves user mode.
extern "C" fn on_user(frame: &mut Frame) {
    // SAFETY: see `Owned`.
    let all = unsafe { &mut *ALL.0.get() };
    all.kernel.trap(frame, &mut all.layer);
}

#[no_mangle]
extern "C" fn cokernel_entry(boot: *const BootBlock) {
    // SAFETY: the layer's structure, which stays as long as the cokernel runs; and see `Owned`.
    let (boot, all) = unsafe { (&*boot, &mut *ALL.0.get()) };
    all.layer = Layer::new(boot);
    let handlers = Handlers {
        tick: layer::on_tick as *const () as u64,
        user: on_user as *const () as u64,
        user_stack: STACK.0.get() as u64 + STACK_BYTES as u64,
    };
    let answer = all.layer.set_handlers(&handlers);
    if answer != 0 {
        report(
            &mut all.layer,
            EVENT_FAULT,
            format_args!("microkernel: handlers refused: {answer}"),
        );
    } else if start_tasks(boot, all) {
        let first = all.kernel.start(&mut all.layer);
        let answer = all.layer.enter_user(&first);
        report(
            &mut all.layer,
            EVENT_FAULT,
            format_args!("microkernel: user mode refused: {answer}"),
        );
    }
    loop {
        all.layer.idle();
    }
}

/// Makes the tasks. False where there is one that cannot be made, or none.
fn start_tasks(boot: &'static BootBlock, all: &mut All) -> bool {
    // SAFETY: what the boot block says; all of it stays as long as the cokernel runs, and is never written.
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
    let mut setup = Boot {
        frames: &mut all.layer,
        memory: &mut memory,
        tables: space::Kernel {
            top: tables(0),
            level4: (boot.paging_levels == 5).then(|| tables(1)),
            root_bits: boot.page_table,
        },
        data,
        info: StartInfo {
            mode: boot.mode,
            tsc_khz: boot.tsc_khz,
            tick_hz: boot.tick_hz,
            budget_us: boot.budget_us,
            parameter: boot.parameter,
            ..StartInfo::default()
        },
        breathe: Layer::breathe,
    };
    let made = setup.tasks(&mut all.kernel, &images[..tasks.len().min(MAX_TASKS)]);
    match made {
        Ok(()) => {
            report(
                &mut all.layer,
                EVENT_NOTE,
                format_args!("microkernel: tasks {} memory {}", tasks.len(), boot.memory_bytes),
            );
            true
        }
        Err(refusal) => {
            let (task, why) = (refusal.task, refusal.why);
            report(&mut all.layer, EVENT_FAULT, format_args!("microkernel: task {task}: {why}"));
            false
        }
    }
}

/// # Safety
///
/// The range must be readable and stay as it is, for ever.
unsafe fn bytes(range: &Range) -> &'static [u8] {
    if range.bytes == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(range.base as *const u8, range.bytes as usize) }
}

fn report(layer: &mut Layer, kind: u32, text: fmt::Arguments<'_>) {
    let line = Line::<{ REPORT_BYTES as usize }>::new(text);
    layer.report(kind, 0, line.bytes());
}

/// The kernel failed itself: it says so, and comes to rest.
pub fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: whoever used it does not go on; the services of the layer do not depend on its state.
    let all = unsafe { &mut *ALL.0.get() };
    report(&mut all.layer, EVENT_FAULT, format_args!("microkernel: {info}"));
    loop {
        all.layer.idle();
    }
}
