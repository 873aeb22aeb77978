//! Makes the tasks from their images: address spaces, stacks, heaps and handles. No memory is allocated afterwards.

use crate::elf::Image;
use crate::kernel::Kernel;
use crate::machine::{Frames, WORDS};
use crate::memory::{Memory, PAGE};
use crate::space::{self, Low, Space, DATA, RODATA, TABLE_BYTES, TEXT};
use crate::typed::{Accepted, Gates};
use kyozon_abi::layer::MAX_TASKS;
use kyozon_abi::task::*;

/// Heap of every task except the first, which gets the rest of the memory.
const HEAP_BYTES: u64 = 256 << 10;
/// Pages that the heap leaves free, enough for a table of each level: the last mapping cannot fail halfway.
const SPARE_PAGES: u64 = 4;
/// Rights of the first task.
const FIRST_RIGHTS: u64 = RIGHT_LINUX | RIGHT_TICK | RIGHT_MANAGE | RIGHT_RESET;
// Priorities: initial and maximum. The first task precedes all others.
const FIRST_PRIORITY: (u8, u8) = (24, 31);
const OTHER_PRIORITY: (u8, u8) = (8, 15);

/// The rights of `task` at its start, and its initial and its maximum priority.
pub(crate) fn privileges(task: usize) -> (u64, (u8, u8)) {
    match task {
        0 => (FIRST_RIGHTS, FIRST_PRIORITY),
        _ => (0, OTHER_PRIORITY),
    }
}

/// A task that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootError {
    /// Its number.
    pub task: usize,
    /// The reason, for a report.
    pub reason: &'static str,
}

/// The inputs for all tasks.
pub struct Boot<'a, F: Frames> {
    /// The cokernel's memory.
    pub frames: &'a mut F,
    /// Its free pages.
    pub memory: &'a mut Memory,
    /// The tables of the layer.
    pub tables: space::Kernel<'a>,
    /// The loader's data, for the first task.
    pub data: &'a [u8],
    /// The program of the last task, if that is a typed one.
    pub typed: Option<Accepted<'a>>,
    /// The kernel's code for the calls of that program.
    pub gates: Gates,
    /// The fields that all tasks' information shares.
    pub info: StartInfo,
    /// Called after every copied page: may give the CPU back for a while.
    pub yield_cpu: fn(&mut F),
}

impl<F: Frames> Boot<'_, F> {
    /// Makes one task per image, and one of the typed program; they run when the kernel starts.
    pub fn tasks(&mut self, kernel: &mut Kernel, images: &[&[u8]]) -> Result<(), BootError> {
        const MEMORY: &str = "not enough memory";
        let images = &images[..images.len().min(MAX_TASKS)];
        let typed = self.typed.take();
        let count = images.len() + usize::from(typed.is_some());
        if count > MAX_TASKS {
            return Err(BootError { task: MAX_TASKS, reason: "there are too many tasks" });
        }
        self.info.version = TASK_VERSION;
        self.info.tasks = count as u32;
        kernel.tick_hz = self.info.tick_hz;
        kernel.tasks[0].supervision.is_monitor = self.info.parameter & MONITOR_EXPECTED != 0;
        if let Some(accepted) = &typed {
            let task = images.len();
            let error = BootError { task, reason: MEMORY };
            let low = Low::new(self.frames, self.memory, self.tables.level3);
            self.tables.low = Some(low.ok_or(error)?);
            self.typed_task(kernel, task, accepted).ok_or(error)?;
        }
        // The first task is made last: it gets the remaining memory.
        let mut entries = [0; MAX_TASKS];
        for task in (0..images.len()).rev() {
            entries[task] = self
                .task(kernel, task, images[task])
                .map_err(|reason| BootError { task, reason })?;
        }
        for (task, entry) in entries[..images.len()].iter().enumerate() {
            kernel.add_thread(task, 0, *entry, TASK_INFO, privileges(task).1 .0);
        }
        if typed.is_some() {
            kernel.start_typed(images.len(), privileges(images.len()).1 .0);
        }
        for other in 1..count {
            kernel.introduce(0, other);
            kernel.introduce(other, 0);
        }
        Ok(())
    }

    /// Makes one task without its first thread. Returns that thread's entry address.
    fn task(
        &mut self,
        kernel: &mut Kernel,
        task: usize,
        image: &[u8],
    ) -> Result<u64, &'static str> {
        const MEMORY: &str = "not enough memory";
        let image = Image::read(image)?;
        let space = Space::new(self.frames, self.memory, &self.tables).ok_or(MEMORY)?;
        for s in image.segments() {
            let flags = match (s.write, s.execute) {
                (true, _) => DATA,
                (_, true) => TEXT,
                _ => RODATA,
            };
            self.fill(&space, s.address, s.pages, s.bytes, flags).ok_or(MEMORY)?;
        }
        for number in 0..TASK_THREADS {
            let bytes = if number == 0 { TASK_STACK_BYTES } else { THREAD_STACK_BYTES };
            let top = TASK_STACK_TOP - number * TASK_STACK_STRIDE;
            self.fill(&space, top - bytes, bytes / PAGE, &[], DATA).ok_or(MEMORY)?;
        }
        let (rights, (_, most)) = privileges(task);
        let kept_bytes = if task == 0 { TASK_KEPT_BYTES } else { 0 };
        self.fill(&space, TASK_KEPT, kept_bytes / PAGE, &[], DATA).ok_or(MEMORY)?;
        let data = if task == 0 { self.data } else { &[] };
        self.fill(&space, TASK_DATA_BASE, (data.len() as u64).div_ceil(PAGE), data, RODATA)
            .ok_or(MEMORY)?;
        let info = self.memory.take().ok_or(MEMORY)?;
        space.map(self.frames, self.memory, TASK_INFO, info, RODATA).ok_or(MEMORY)?;
        if rights & RIGHT_LINUX != 0 {
            space.open_window(self.frames);
        }
        let wanted = if task == 0 { u64::MAX } else { HEAP_BYTES };
        let heap_bytes = self.heap(&space, wanted).ok_or(MEMORY)?;
        let info_page = StartInfo {
            task: task as u32,
            rights,
            data: TASK_DATA_BASE,
            data_bytes: data.len() as u64,
            heap: TASK_HEAP_BASE,
            heap_bytes,
            max_priority: u64::from(most),
            kept: TASK_KEPT,
            kept_bytes,
            ..self.info
        };
        write_info(self.frames.page(info).ok_or(MEMORY)?, &info_page);
        kernel.tasks[task].space = space;
        kernel.add_task(task, rights, most);
        Ok(image.entry)
    }

    /// Maps `pages` fresh pages at `va` that begin with `bytes`.
    fn fill(&mut self, space: &Space, va: u64, pages: u64, bytes: &[u8], flags: u64) -> Option<()> {
        if pages == 0 {
            return Some(());
        }
        let mut table = space.table(self.frames, self.memory, va)?;
        for i in 0..pages {
            let at = va + i * PAGE;
            if at.is_multiple_of(TABLE_BYTES) {
                table = space.table(self.frames, self.memory, at)?;
            }
            let page = self.memory.take()?;
            let from = bytes.get((i * PAGE) as usize..).unwrap_or(&[]);
            if !from.is_empty() {
                copy(self.frames.page(page)?, &from[..from.len().min(PAGE as usize)]);
            }
            table.set(self.frames, at, page, flags)?;
            (self.yield_cpu)(self.frames);
        }
        Some(())
    }

    /// Maps up to `wanted` bytes of heap. Returns the number of mapped bytes.
    fn heap(&mut self, space: &Space, wanted: u64) -> Option<u64> {
        let mut bytes = 0;
        while bytes < wanted && self.memory.left() > SPARE_PAGES * PAGE {
            // At most one table's range at a time, so that memory for the next table is left.
            let left = self.memory.left() - SPARE_PAGES * PAGE;
            let part = TABLE_BYTES.min(left).min(wanted - bytes);
            self.fill(space, TASK_HEAP_BASE + bytes, part / PAGE, &[], DATA)?;
            bytes += part;
        }
        Some(bytes)
    }
}

/// Copies up to a page of bytes to the start of a zeroed page.
pub(crate) fn copy(to: &mut [u64; WORDS], from: &[u8]) {
    let whole = from.chunks_exact(8);
    let rest = whole.remainder();
    let last = from.len() / 8;
    for (word, bytes) in to.iter_mut().zip(whole) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap_or([0; 8]));
    }
    if !rest.is_empty() {
        to[last] = rest.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    }
}

fn write_info(page: &mut [u64; WORDS], info: &StartInfo) {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let words = [
        pair(info.version, info.mode),
        pair(info.task, info.tasks),
        info.rights,
        info.tsc_khz,
        pair(info.tick_hz, info.budget_us),
        info.parameter,
        info.data,
        info.data_bytes,
        info.heap,
        info.heap_bytes,
        info.max_priority,
        info.restarts,
        info.kept,
        info.kept_bytes,
    ];
    const _: () = assert!(size_of::<StartInfo>() == 14 * 8);
    page[..words.len()].copy_from_slice(&words);
}

#[cfg(test)]
mod tests;
