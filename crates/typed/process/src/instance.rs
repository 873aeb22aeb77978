//! A compiled program in a process: memory as its manifest says, calls of its exports, and its calls of the host.

use std::borrow::Cow;
use std::io;
use std::slice;
use std::time::Duration;

use kyozon_typed_checker::program::Program;
use kyozon_typed_checker::Verdict;
use kyozon_typed_manifest::{Import, Manifest, Memory, GROW, MODULE, PAGE, SLOT, START};

use crate::image::Image;
use crate::signals::Outcome;
use crate::space::Space;

/// A value, as it lies in a slot of the call area.
pub type Slot = [u8; SLOT];

/// What an engine does when the program calls an import: its number and first six arguments that are integers or
/// references. Returns the result, or none to end the run.
pub type Calls<'c> = dyn FnMut(&mut Space, &mut [Memory], u32, &[u64; 6]) -> Option<u64> + 'c;

/// What executes a program in its memory.
pub trait Engine {
    /// Calls the entry with the number of an export or a start function. Ends it after `limit`, if that is not zero.
    fn enter(
        &mut self,
        space: &mut Space,
        memories: &mut [Memory],
        number: u32,
        limit: Duration,
        calls: &mut Calls<'_>,
    ) -> Outcome;
}

impl Engine for Image<'_> {
    fn enter(
        &mut self,
        space: &mut Space,
        memories: &mut [Memory],
        number: u32,
        limit: Duration,
        calls: &mut Calls<'_>,
    ) -> Outcome {
        let arguments = [u64::from(number), 0, 0, 0, 0, 0];
        self.run_with(space, arguments, limit, &mut |space, import, arguments| {
            calls(space, memories, import, arguments)
        })
    }
}

/// A program with its memory, executed in this process or by another engine.
pub struct Instance<'a, E = Image<'a>> {
    engine: E,
    space: Space,
    manifest: Manifest<'a>,
    /// The memories; their initial pages are those that they have now.
    memories: Vec<Memory>,
    /// Number of the import that makes memories longer.
    grow: Option<u32>,
}

/// A call of an import.
pub struct Call<'c> {
    /// The import's number: its place in [`Instance::imports`].
    pub import: usize,
    /// Its first six arguments that are integers or references. The upper half of one of 32 bits has any value.
    pub arguments: [u64; 6],
    space: &'c mut Space,
    memories: &'c [Memory],
}

impl Call<'_> {
    /// An argument that is passed in the call area.
    pub fn slot(&self, n: usize) -> Slot {
        let mut slot = [0; SLOT];
        self.space.read(n * SLOT, &mut slot);
        slot
    }

    /// A memory. The program, which is stopped, does not reach it meanwhile.
    pub fn memory(&mut self, n: usize) -> Option<&mut [u8]> {
        let memory = self.memories.get(n)?;
        let bytes = u64::from(memory.initial) * PAGE;
        let start = self.space.address(memory.distance as usize);
        // SAFETY: so many bytes were opened from there on and stay readable and writable while the call lasts. It has
        // the space for itself, and other code reaches it only by the space.
        Some(unsafe { slice::from_raw_parts_mut(start, bytes as usize) })
    }
}

/// The functions of the host: returns the result of a call, or none to end the run.
pub type Host<'h> = dyn FnMut(&mut Call<'_>) -> Option<u64> + 'h;

/// Makes a memory longer: 1 if it has as many pages now.
fn grow(space: &mut Space, memories: &mut [Memory], arguments: &[u64; 6]) -> u64 {
    let (number, pages) = (arguments[0] as u32, arguments[1] as u32);
    let memory = memories.get_mut(number as usize);
    let Some(memory) = memory.filter(|memory| pages <= memory.most) else { return 0 };
    let bytes = u64::from(pages) * PAGE;
    if pages > memory.initial {
        if space.open(memory.distance as usize, bytes as usize).is_err() {
            return 0;
        }
        memory.initial = pages;
    }
    1
}

impl<'a> Instance<'a> {
    /// Loads an accepted program that was compiled. `faults` is what the checker wrote.
    ///
    /// # Errors
    ///
    /// Those of [`Self::on`].
    pub fn new(verdict: Verdict<'a>, faults: impl Into<Cow<'a, [u32]>>) -> io::Result<Self> {
        Instance::on(verdict.program, || Image::load_gated(verdict, faults))
    }
}

impl<'a, E: Engine> Instance<'a, E> {
    /// Makes the memory of a program that was compiled, and an engine that executes it.
    ///
    /// # Errors
    ///
    /// The manifest is malformed, the region's address is taken, memory is short, the program has an import that the
    /// manifest does not have, or `engine` fails.
    pub fn on(program: Program<'a>, engine: impl FnOnce() -> io::Result<E>) -> io::Result<Self> {
        let host = program.host();
        let manifest = Manifest::parse(program.rest(), host.reserved).map_err(io::Error::other)?;
        let imports = manifest.imports().count();
        let numbers = (0..program.import_count()).map(|n| program.import(n).number);
        if let Some(number) = numbers.max().filter(|&n| usize::from(n) >= imports) {
            return Err(io::Error::other(format!("the manifest has no import {number}")));
        }
        let mut space = Space::new(host, manifest.runtime() as usize)?;
        for Memory { distance, initial, .. } in manifest.memories() {
            space.open(distance as usize, (u64::from(initial) * PAGE) as usize)?;
        }
        for content in manifest.contents() {
            space.write(content.distance as usize, content.bytes);
        }
        let grow = manifest.imports().position(|i| (i.module, i.name) == (MODULE, GROW));
        Ok(Instance {
            engine: engine()?,
            space,
            memories: manifest.memories().collect(),
            grow: grow.map(|n| n as u32),
            manifest,
        })
    }

    /// The functions that the program calls, in the order of their numbers.
    pub fn imports(&self) -> impl Iterator<Item = Import<'a>> + use<'a, E> {
        self.manifest.imports()
    }

    /// Calls the entry with the number of an export or a start function.
    fn enter(&mut self, number: u32, limit: Duration, host: &mut Host<'_>) -> Outcome {
        let Instance { engine, space, memories, grow: own, .. } = self;
        engine.enter(space, memories, number, limit, &mut |space, memories, import, arguments| {
            if Some(import) == *own {
                return Some(grow(space, memories, arguments));
            }
            let import = import as usize;
            host(&mut Call { import, arguments: *arguments, space, memories })
        })
    }

    /// Starts the n-th module: it returns nothing, or traps. Ends it after `limit`, if that is not zero.
    pub fn start(&mut self, module: u32, limit: Duration, host: &mut Host<'_>) -> Outcome {
        self.enter(START + module, limit, host)
    }

    /// Calls an exported function by its number. After [`Outcome::Returned`], [`Self::slots`] has the results.
    pub fn call(
        &mut self,
        number: u32,
        arguments: &[Slot],
        limit: Duration,
        host: &mut Host<'_>,
    ) -> Outcome {
        for (n, argument) in arguments.iter().enumerate() {
            self.space.write(n * SLOT, argument);
        }
        self.enter(number, limit, host)
    }

    /// The first slots of the call area.
    pub fn slots(&self, count: usize) -> Vec<Slot> {
        (0..count).map(|n| self.slot((n * SLOT) as u32)).collect()
    }

    /// The slot at this distance from the region's start, in the runtime's memory.
    pub fn slot(&self, distance: u32) -> Slot {
        let mut slot = [0; SLOT];
        self.space.read(distance as usize, &mut slot);
        slot
    }
}
