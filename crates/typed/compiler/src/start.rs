//! What happens when a module is started: for each back end.

use crate::contents::Contents;
use crate::program::{Function, Program, Segment};
use crate::references::References;
use crate::wasm::{Constant, Mode};
use crate::Error;

/// The offset of an active segment.
#[derive(Clone, Copy)]
pub(crate) enum Offset {
    Constant(u32),
    /// The value of this global of the program.
    Global(usize),
}

/// A step of a module's start.
pub(crate) enum Step<'p> {
    /// A global gets the value of another one.
    Global { to: usize, from: usize },
    /// A reference at an address gets the value of a global.
    Entry { at: u64, from: usize },
    /// Elements are copied to a table, and dropped.
    Elements { table: usize, segment: &'p Segment, offset: Offset, length: u32 },
    /// Data is copied to a memory.
    Data { memory: usize, segment: &'p Segment, offset: Offset },
    /// The start function is called.
    Call(Function),
}

/// The steps of a module's start. What is known before the run becomes contents.
pub(crate) fn steps<'p>(
    program: &'p Program<'_>,
    number: usize,
    references: &mut References,
    contents: &mut Contents,
) -> Result<Vec<Step<'p>>, Error> {
    let instance = &program.instances[number];
    let offset = |constant| match constant {
        Constant::Bits(_, bits) => Offset::Constant(bits as u32),
        Constant::Global(n) => Offset::Global(instance.globals[n as usize]),
        _ => Offset::Constant(0),
    };
    let mut steps = Vec::new();
    for (to, global) in program.globals.iter().enumerate() {
        let (owner, value) = global.value;
        if owner != number {
            continue;
        }
        match (references.bytes(program, number, value)?, value) {
            (Some(bytes), _) => contents.add(global.address, bytes),
            (None, Constant::Global(from)) => {
                steps.push(Step::Global { to, from: instance.globals[from as usize] });
            }
            (None, _) => (),
        }
    }
    for (segment, elements) in instance.elements.iter().zip(&instance.module.elements) {
        let mut bytes = Vec::new();
        for (n, &item) in elements.items.iter().enumerate() {
            match (references.bytes(program, number, item)?, item) {
                (None, Constant::Global(from)) => {
                    let at = segment.base + 4 * n as u64;
                    steps.push(Step::Entry { at, from: instance.globals[from as usize] });
                    bytes.extend([0; 4]);
                }
                (item, _) => bytes.extend(item.unwrap_or_default()),
            }
        }
        contents.add(segment.base, bytes);
        let dropped = matches!(elements.mode, Mode::Declared);
        let length = if dropped { 0 } else { segment.length };
        contents.add(segment.size, length.to_le_bytes().to_vec());
        if let Mode::Active(table, start) = elements.mode {
            let table = instance.tables[table as usize];
            steps.push(Step::Elements { table, segment, offset: offset(start), length });
        }
    }
    for (segment, data) in instance.data.iter().zip(&instance.module.data) {
        match data.mode {
            Mode::Active(memory, Constant::Bits(_, start)) if segment.placed => {
                let memory = &program.memories[instance.memories[memory as usize]];
                contents.add(memory.base + start, data.bytes.to_vec());
            }
            Mode::Active(memory, start) => {
                contents.add(segment.base, data.bytes.to_vec());
                let memory = instance.memories[memory as usize];
                steps.push(Step::Data { memory, segment, offset: offset(start) });
            }
            _ => {
                contents.add(segment.base, data.bytes.to_vec());
                contents.add(segment.size, segment.length.to_le_bytes().to_vec());
            }
        }
    }
    let start = instance.module.start.map(|n| instance.functions[n as usize]);
    steps.extend(start.map(Step::Call));
    Ok(steps)
}
