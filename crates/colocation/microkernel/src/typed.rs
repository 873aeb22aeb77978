//! A task in typed code: its program is checked here, and runs in kernel mode, in the kernel's own address space.
//!
//! The file comes from the loader like any data, and no verdict about it is believed. What the checker accepts reaches
//! only its region, its stack and its own text and tables, and leaves only by a return, a fault, or a call of one of
//! [`CALLS`]. See `docs/architecture/typed.md`.

use crate::boot::Boot;
use crate::kernel::{Kernel, Outcome};
use crate::machine::{Frames, Machine, WORDS};
use crate::memory::PAGE;
use crate::space::{Low, TYPED_DATA, TYPED_TEXT};
use core::fmt;
use kyozon_abi::events::EVENT_NOTE;
use kyozon_abi::layer::{Range, KERNEL_CODE_SELECTOR, REPORT_BYTES};
use kyozon_abi::task::*;
use kyozon_typed_checker::error::Error;
use kyozon_typed_checker::flow::Memory;
use kyozon_typed_checker::program::{Host, Import, Program, MAGIC, STUB};
use kyozon_typed_checker::value::Value;
use kyozon_typed_checker::STACK;
use kyozon_typed_manifest::{Kind, Malformed, Manifest, PAGE as WASM_PAGE, START};

/// Where the program's text and tables lie.
pub const IMAGE: Range = Range { base: 0xc_0000_0000, bytes: 64 << 20 };
/// Its stack: at a multiple of its size, with nothing mapped around it.
const STACK_START: u64 = 0xd_0000_0000;
/// The end of the stack. The return address of the entry lies in its last word.
const STACK_TOP: u64 = STACK_START + STACK as u64;
const _: () = assert!(TASK_REGION + TASK_REGION_RESERVED <= IMAGE.base);
const _: () = assert!(IMAGE.base + IMAGE.bytes < STACK_START);

/// Number of the call that the kernel makes for a program whose entry returned. No task can make it.
pub const RETURNED: u64 = 1 << 32;
/// Memory of a program without a manifest.
const PLAIN_BYTES: u64 = WASM_PAGE;
/// What is neither text nor a stub: int3.
const FILL: u64 = 0xcccc_cccc_cccc_cccc;
/// Steps of the checker between two looks at the time.
const STEPS: u32 = 64;
/// Code of a result in a signature that fits each number.
const ANY: u8 = 1;

/// What the checker needs to know of this host: the microkernel uses no thunks against speculation, and no tracking.
pub const HOST: Host = Host {
    region: TASK_REGION,
    reserved: TASK_REGION_RESERVED,
    indirect_branches: true,
    tracking: false,
};

/// A call that typed code can make.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number in `abi::task`.
    pub number: u64,
    name: &'static str,
    /// Its type, as manifests write types.
    signature: &'static str,
    arguments: u8,
    /// Whether another thread may run before it returns.
    waits: bool,
}

const fn call(
    number: u64,
    name: &'static str,
    signature: &'static str,
    arguments: u8,
    waits: bool,
) -> Call {
    Call { number, name, signature, arguments, waits }
}

/// Every call.
pub const CALLS: [Call; 7] = [
    call(NO_OPERATION, "nothing", ":I", 0, false),
    call(WAIT_TICK, "wait_tick", ":I", 0, true),
    call(EXIT, "exit", "i:", 1, true),
    call(REPORT, "report", "ii:I", 2, false),
    call(READ_LINUX, "read", "Iii:I", 3, false),
    call(CLOCK, "clock", ":I", 0, false),
    call(PARAMETER, "parameter", ":I", 0, false),
];

/// The kernel's code for calls: addresses below 4 GiB.
#[derive(Clone, Copy, Debug)]
pub struct Gates {
    /// For calls that return at once; the number is in eax.
    pub call: u64,
    /// For calls that may wait.
    pub wait: u64,
    /// For the return of the entry.
    pub returned: u64,
}

/// The code of a stub: mov $number, %eax; mov $gate, %r11d; jmp *%r11
fn jump(number: u32, gate: u64) -> Option<[u8; 14]> {
    let mut code = [0xb8, 0, 0, 0, 0, 0x41, 0xbb, 0, 0, 0, 0, 0x41, 0xff, 0xe3];
    code[1..5].copy_from_slice(&number.to_le_bytes());
    code[7..11].copy_from_slice(&u32::try_from(gate).ok()?.to_le_bytes());
    Some(code)
}

/// Why a program does not become a task.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The checker's reason.
    Checker(Error),
    /// It uses vector registers, which are Linux's.
    Vectors,
    /// Its manifest is wrong.
    Manifest(Malformed),
    /// The kernel has no such call.
    Import(u32),
    /// The call has other arguments or another result.
    Signature(u32),
    /// Its entry expects more of its arguments than what the kernel passes.
    Entry,
    /// It was compiled, and exports no function `run` without arguments.
    Run,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checker(error) => error.fmt(f),
            Self::Vectors => f.write_str("it uses vector registers, which are Linux's"),
            Self::Manifest(malformed) => malformed.fmt(f),
            Self::Import(n) => write!(f, "import {n}: the microkernel has no such call"),
            Self::Signature(n) => {
                write!(f, "import {n}: the call has other arguments or another result")
            }
            Self::Entry => f.write_str("its entry takes more than one number of 32 bits"),
            Self::Run => f.write_str("it exports no function run without arguments and results"),
        }
    }
}

/// Whether data of the loader is a typed program.
pub fn is_program(data: &[u8]) -> bool {
    data.starts_with(MAGIC)
}

/// A program that was checked, and whose imports are calls of this kernel.
#[derive(Clone, Copy, Debug)]
pub struct Accepted<'a> {
    program: Program<'a>,
    manifest: Option<Manifest<'a>>,
    /// Number of the export `run`.
    run: Option<u32>,
}

/// Checks a program in bounded memory and in time linear in its size. `pause` is called often.
pub fn check<'a>(
    file: &'a [u8],
    memory: &mut Memory<'_>,
    faults: &mut [u32],
    mut pause: impl FnMut(),
) -> Result<Accepted<'a>, Refusal> {
    let mut steps = 0u32;
    let mut go_on = || {
        steps = steps.wrapping_add(1);
        if steps.is_multiple_of(STEPS) {
            pause();
        }
        true
    };
    let verdict = kyozon_typed_checker::check(file, HOST, memory, faults, &mut go_on);
    let verdict = verdict.map_err(Refusal::Checker)?;
    if verdict.vectors {
        return Err(Refusal::Vectors);
    }
    let program = verdict.program;
    // The kernel passes 32 bits in rdi. In other registers is whatever the program left there when it returned.
    let entry = program.signature(program.function(program.entry).signature);
    let passed = [Value::data(4)].into_iter().chain([Value::UNKNOWN; 5]);
    if !passed.zip(entry.arguments).all(|(value, argument)| value.within(argument)) {
        return Err(Refusal::Entry);
    }
    let (mut manifest, mut run) = (None, None);
    if !program.rest().is_empty() {
        let parsed = Manifest::parse_with(program.rest(), HOST.reserved, || _ = go_on())
            .map_err(Refusal::Manifest)?;
        let is_run = |e: &kyozon_typed_manifest::Export<'_>| {
            pause();
            e.kind == Kind::Function && e.name == "run" && e.signature == ":"
        };
        run = Some(parsed.exports().find(is_run).ok_or(Refusal::Run)?.number);
        manifest = Some(parsed);
    }
    let accepted = Accepted { program, manifest, run };
    for n in 0..program.import_count() {
        pause();
        let call = accepted.call(program.import(n)).ok_or(Refusal::Import(n))?;
        let [result, count, _, _, _, _, _, _, stack, ..] =
            *program.signature_bytes(program.import(n).signature);
        // The kernel promises no more than some number.
        if result > ANY || count != call.arguments || stack != 0 {
            return Err(Refusal::Signature(n));
        }
    }
    Ok(accepted)
}

impl Accepted<'_> {
    /// The call that an import stands for.
    fn call(&self, import: Import) -> Option<&'static Call> {
        let Some(manifest) = &self.manifest else {
            return CALLS.iter().find(|call| call.number == u64::from(import.number));
        };
        let [module, name, signature] = manifest.import_bytes(import.number.into())?;
        let named =
            |call: &&Call| call.name.as_bytes() == name && call.signature.as_bytes() == signature;
        CALLS.iter().find(named).filter(|_| module == b"task")
    }
}

/// The task of a typed program.
#[derive(Clone, Copy, Debug)]
pub struct Typed {
    /// Its number.
    pub task: u8,
    low: Low,
    entry: u64,
    /// Start and bytes of its first memory.
    memory: (u64, u64),
    /// What the entry is called with when it returns next.
    run: Option<u32>,
    /// Where the entry returns.
    returned: u64,
    parameter: u64,
}

impl<F: Frames> Boot<'_, F> {
    /// Makes the task of a typed program: its image, region and stack. Its thread is made by [`Kernel::start_typed`].
    pub(crate) fn typed_task(
        &mut self,
        kernel: &mut Kernel,
        task: usize,
        accepted: &Accepted<'_>,
    ) -> Option<()> {
        let low = self.tables.low?;
        let program = &accepted.program;
        // The entry returns to a stub of its own, behind the others: a program may end by a jump to an import, which
        // then continues there, and only addresses in the image are typed code's.
        let back = program.image_size();
        let pages = u64::from(back + STUB).div_ceil(PAGE);
        self.typed_pages(&low, IMAGE.base, pages.min(IMAGE.bytes / PAGE), FILL, TYPED_TEXT)?;
        self.typed_pages(&low, STACK_START, u64::from(STACK) / PAGE, 0, TYPED_DATA)?;
        let mut memory = (TASK_REGION, PLAIN_BYTES);
        if let Some(manifest) = &accepted.manifest {
            let runtime = u64::from(manifest.runtime()) / PAGE;
            self.typed_pages(&low, TASK_REGION, runtime, 0, TYPED_DATA)?;
            for (n, m) in manifest.memories().enumerate() {
                let (start, bytes) = (TASK_REGION + m.distance, u64::from(m.initial) * WASM_PAGE);
                self.typed_pages(&low, start, bytes / PAGE, 0, TYPED_DATA)?;
                if n == 0 {
                    memory = (start, bytes);
                }
            }
            for content in manifest.contents() {
                self.put(&low, TASK_REGION + content.distance, content.bytes)?;
            }
        } else {
            self.typed_pages(&low, TASK_REGION, PLAIN_BYTES / PAGE, 0, TYPED_DATA)?;
        }
        let at = |offset: u32| IMAGE.base + u64::from(offset);
        self.put(&low, at(0), program.text())?;
        self.put(&low, at(program.read_only_start()), program.read_only())?;
        for (n, function) in (0..).zip(program.entries()) {
            let address = at(program.function(function).start);
            self.put(&low, at(program.call_tables_start() + 8 * n), &address.to_le_bytes())?;
        }
        let count = program.import_count();
        let stub = |n: u32| at(program.stubs_start() + n * STUB);
        for n in 0..count {
            let call = accepted.call(program.import(n))?;
            let gate = if call.waits { self.gates.wait } else { self.gates.call };
            self.put(&low, stub(n), &jump(call.number as u32, gate)?)?;
        }
        self.put(&low, at(back), &jump(0, self.gates.returned)?)?;
        for register in 0..16u8 {
            // jmp *%register
            let code = [0x40 | register >> 3, 0xff, 0xe0 | register & 7];
            self.put(&low, stub(count + u32::from(register)), &code)?;
        }
        // ret
        self.put(&low, stub(count + 16), &[0xc3])?;
        self.put(&low, STACK_TOP - 8, &at(back).to_le_bytes())?;
        kernel.tasks[task].space =
            crate::space::Space::new(self.frames, self.memory, &self.tables)?;
        let (rights, (_, most)) = crate::boot::privileges(task);
        kernel.add_task(task, rights, most);
        kernel.typed = Some(Typed {
            task: task as u8,
            low,
            entry: at(program.function(program.entry).start),
            memory,
            run: accepted.run,
            returned: at(back),
            parameter: self.info.parameter,
        });
        Some(())
    }

    /// Maps `pages` new pages of `word` at `va`.
    fn typed_pages(&mut self, low: &Low, va: u64, pages: u64, word: u64, flags: u64) -> Option<()> {
        for n in 0..pages {
            let page = self.memory.take()?;
            if word != 0 {
                self.frames.page(page)?.fill(word);
            }
            low.map(self.frames, self.memory, va + n * PAGE, page, flags)?;
            (self.yield_cpu)(self.frames);
        }
        Some(())
    }

    /// Copies bytes to a part that is mapped.
    fn put(&mut self, low: &Low, va: u64, bytes: &[u8]) -> Option<()> {
        let mut va = va;
        for part in bytes.chunks(PAGE as usize) {
            low.write(self.frames, va, part).then_some(())?;
            va += part.len() as u64;
            (self.yield_cpu)(self.frames);
        }
        Some(())
    }
}

impl Kernel {
    /// Makes the thread of the typed task `task`.
    pub(crate) fn start_typed(&mut self, task: usize, priority: u8) {
        let Some(typed) = self.typed else { return };
        // A compiled program first gets its start function called.
        let argument = if typed.run.is_some() { START } else { 0 };
        self.add_thread(task, 0, typed.entry, u64::from(argument), priority);
        let thread = (task as u64 * TASK_THREADS) as u8;
        let frame = &mut self.threads[thread].frame;
        (frame.cs, frame.rsp) = (KERNEL_CODE_SELECTOR, STACK_TOP - 8);
    }

    /// Whether the running thread is the typed task's.
    pub(crate) fn runs_typed(&self) -> Option<Typed> {
        self.typed.filter(|typed| usize::from(typed.task) == self.current_task())
    }

    /// The entry of the typed program returned: it is called again, or the task ends.
    pub(crate) fn typed_returned(&mut self, machine: &mut impl Machine) -> Result<Outcome, i64> {
        let typed = self.runs_typed().ok_or(E_CALL)?;
        let current = self.current;
        let Some(run) = typed.run else {
            self.ending |= 1 << typed.task;
            return Ok(Outcome::Waits);
        };
        if let Some(typed) = &mut self.typed {
            typed.run = None;
        }
        let frame = &mut self.threads[current].frame;
        (frame.rip, frame.rdi, frame.rsp) = (typed.entry, u64::from(run), STACK_TOP - 8);
        // Interrupts have written below the stack pointer since.
        typed.low.write(machine, STACK_TOP - 8, &typed.returned.to_le_bytes());
        Ok(Outcome::Answer(0))
    }

    /// A call of typed code that returns at once: the result.
    pub fn typed_call(&mut self, number: u64, words: [u64; 3], machine: &mut impl Machine) -> u64 {
        let Some(typed) = self.runs_typed() else { return E_CALL as u64 };
        let [a, b, c] = words;
        let answer = match number {
            NO_OPERATION => Ok(0),
            CLOCK => return machine.clock(),
            PARAMETER => return typed.parameter,
            REPORT => self.typed_report(&typed, a, b, machine),
            READ_LINUX => self.read_linux(&typed, a, b, c, machine),
            _ => Err(E_CALL),
        };
        answer.unwrap_or_else(|error| error) as u64
    }

    fn typed_report(
        &self,
        typed: &Typed,
        text: u64,
        bytes: u64,
        machine: &mut impl Machine,
    ) -> Result<i64, i64> {
        self.needs(RIGHT_LINUX)?;
        let mut line = [0; REPORT_BYTES as usize];
        let address = typed.address(text, bytes)?;
        let line = line.get_mut(..(bytes as u32) as usize).ok_or(E_ARGUMENT)?;
        if !typed.low.read(machine, address, line) {
            return Err(E_ADDRESS);
        }
        crate::services::service(machine.report(EVENT_NOTE, 0, line))
    }

    fn read_linux(
        &self,
        typed: &Typed,
        physical: u64,
        to: u64,
        bytes: u64,
        machine: &mut impl Machine,
    ) -> Result<i64, i64> {
        self.needs(RIGHT_LINUX)?;
        let address = typed.address(to, bytes)?;
        let words = u64::from(bytes as u32) / 8;
        let whole = physical.is_multiple_of(8) && (bytes as u32).is_multiple_of(8);
        if !whole || words > WORDS as u64 {
            return Err(E_ARGUMENT);
        }
        if !address.is_multiple_of(8) {
            return Err(E_ADDRESS);
        }
        // In two parts if the bytes cross into the next page.
        let start = address % PAGE / 8;
        let first = words.min(WORDS as u64 - start);
        for (done, at, count) in [(0, start, first), (first, 0, words - first)] {
            if count == 0 {
                continue;
            }
            let page = typed.low.physical(machine, address + 8 * done).ok_or(E_ADDRESS)?;
            let from = physical.checked_add(8 * done).ok_or(E_ARGUMENT)?;
            if !machine.copy_linux(from, page, at as usize, count as usize) {
                return Err(E_ARGUMENT);
            }
        }
        Ok(0)
    }
}

impl Typed {
    /// The address of bytes in the first memory. Both are 32-bit numbers; their upper halves have any value.
    fn address(&self, at: u64, bytes: u64) -> Result<u64, i64> {
        let (at, bytes) = (u64::from(at as u32), u64::from(bytes as u32));
        let (start, room) = self.memory;
        if at + bytes > room {
            return Err(E_ADDRESS);
        }
        Ok(start + at)
    }
}

#[cfg(test)]
mod tests;
