//! The modules of a program: what each import stands for, and where everything lies in the region.

use std::collections::HashMap;

use kyozon_typed_manifest::{MODULE, MOST_PAGES, PAGE, SLOT};

use crate::wasm::{
    Constant, FunctionType, GlobalType, ImportType, Kind, Limits, Mode, Module, TableType, Type,
};
use crate::{Error, Part};

/// Entries that a table can grow to if its type does not say less, or needs more.
const TABLE_ROOM: u32 = 1 << 16;
/// Distance of a memory from the one before it: each address that an access can name, and a page.
const MEMORY_ROOM: u64 = (8 << 30) + (1 << 20);
/// Most bytes of the runtime's memory, so that the first memory's addresses fit in displacements.
const MOST_RUNTIME: u64 = 1 << 30;

/// A function of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    /// Of a module: its number, and the function's among its own.
    Own(usize, usize),
    /// Of the host.
    Host(usize),
}

/// A function of the host.
pub(crate) struct HostFunction {
    pub module: String,
    pub name: String,
    pub kind: FunctionType,
}

pub(crate) struct Memory {
    pub limits: Limits,
    /// Address of its first byte.
    pub base: u64,
    /// Address of its size in pages.
    pub size: u64,
}

impl Memory {
    /// The most pages that it may have.
    pub fn most(&self) -> u32 {
        self.limits.most.unwrap_or(MOST_PAGES).min(MOST_PAGES)
    }
}

pub(crate) struct Table {
    pub kind: TableType,
    /// Address of its first entry.
    pub base: u64,
    /// Address of its size in entries.
    pub size: u64,
}

impl Table {
    /// The most entries that there is room for.
    pub fn room(&self) -> u32 {
        let Limits { initial, most } = self.kind.limits;
        most.unwrap_or(u32::MAX).min(TABLE_ROOM).max(initial)
    }
}

pub(crate) struct Global {
    pub kind: GlobalType,
    pub address: u64,
    /// The module that it belongs to, and its first value there.
    pub value: (usize, Constant),
}

/// Where a segment's contents lie until the program needs them.
pub(crate) struct Segment {
    /// Address of the first byte or entry.
    pub base: u64,
    /// Address of the length, which is 0 after it was dropped.
    pub size: u64,
    pub length: u32,
    /// It is written to its place before the program runs.
    pub placed: bool,
}

/// A module, and what its indices stand for.
pub(crate) struct Instance<'a> {
    pub module: Module<'a>,
    pub functions: Vec<Function>,
    pub tables: Vec<usize>,
    pub memories: Vec<usize>,
    pub globals: Vec<usize>,
    pub data: Vec<Segment>,
    pub elements: Vec<Segment>,
}

/// All modules.
#[derive(Default)]
pub(crate) struct Program<'a> {
    pub region: u64,
    pub instances: Vec<Instance<'a>>,
    pub host: Vec<HostFunction>,
    pub memories: Vec<Memory>,
    pub tables: Vec<Table>,
    pub globals: Vec<Global>,
    /// Bytes of the runtime's memory at the region's start.
    pub runtime: u64,
}

impl<'a> Program<'a> {
    /// Links modules; each can import from those before it.
    pub fn link(parts: &[Part<'a>], region: u64) -> Result<Self, Error> {
        let mut program = Program { region, ..Program::default() };
        for part in parts {
            let module = Module::parse(part.wasm)?;
            program.add(module, &part.from)?;
        }
        program.lay_out()?;
        Ok(program)
    }

    fn add(&mut self, module: Module<'a>, from: &[(String, usize)]) -> Result<(), Error> {
        let number = self.instances.len();
        let mut this = Instance {
            functions: Vec::new(),
            tables: Vec::new(),
            memories: Vec::new(),
            globals: Vec::new(),
            data: Vec::new(),
            elements: Vec::new(),
            module,
        };
        for import in &this.module.imports {
            let other = from.iter().rev().find(|(name, _)| name == import.module);
            let Some(&(_, other)) = other else {
                let ImportType::Function(kind) = import.kind else {
                    return Err(Error::new(format!(
                        "import {} {}: only functions can come from the host",
                        import.module, import.name
                    )));
                };
                if import.module == MODULE {
                    return Err(Error::new(format!(
                        "import {} {}: this module is for what compiled programs import themselves",
                        import.module, import.name
                    )));
                }
                this.functions.push(Function::Host(self.host.len()));
                self.host.push(HostFunction {
                    module: import.module.into(),
                    name: import.name.into(),
                    kind: this.module.types[kind as usize].clone(),
                });
                continue;
            };
            let wrong = |what: &str| {
                Error::new(format!("import {} {}: {what}", import.module, import.name))
            };
            let other = self.instances.get(other).ok_or_else(|| wrong("no such module"))?;
            let export = other.module.exports.iter().find(|export| export.name == import.name);
            let export = export.ok_or_else(|| wrong("that module does not export it"))?;
            let index = export.index as usize;
            let fits = match (import.kind, export.kind) {
                (ImportType::Function(kind), Kind::Function) => {
                    let function = other.functions[index];
                    this.functions.push(function);
                    *self.function_type(function) == this.module.types[kind as usize]
                }
                (ImportType::Table(wanted), Kind::Table) => {
                    let table = other.tables[index];
                    this.tables.push(table);
                    let found = self.tables[table].kind;
                    found.element == wanted.element && within(found.limits, wanted.limits)
                }
                (ImportType::Memory(wanted), Kind::Memory) => {
                    let memory = other.memories[index];
                    this.memories.push(memory);
                    within(self.memories[memory].limits, wanted)
                }
                (ImportType::Global(wanted), Kind::Global) => {
                    let global = other.globals[index];
                    this.globals.push(global);
                    self.globals[global].kind == wanted
                }
                _ => return Err(wrong("that module exports something else by this name")),
            };
            if !fits {
                return Err(wrong("that module exports it with another type"));
            }
        }
        this.functions.extend((0..this.module.functions.len()).map(|n| Function::Own(number, n)));
        for &kind in &this.module.tables {
            this.tables.push(self.tables.len());
            self.tables.push(Table { kind, base: 0, size: 0 });
        }
        for &limits in &this.module.memories {
            this.memories.push(self.memories.len());
            self.memories.push(Memory { limits, base: 0, size: 0 });
        }
        for &(kind, value) in &this.module.globals {
            this.globals.push(self.globals.len());
            self.globals.push(Global { kind, address: 0, value: (number, value) });
        }
        self.instances.push(this);
        Ok(())
    }

    /// Gives everything its place.
    fn lay_out(&mut self) -> Result<(), Error> {
        let slots = self.instances.iter().flat_map(|instance| &instance.module.types);
        let slots = slots.map(|t| t.arguments.len().max(t.results.len())).max().unwrap_or(0);
        let mut next = slots as u64 * SLOT as u64;
        let mut take = |bytes: u64| {
            let at = next;
            next = (next + bytes).next_multiple_of(SLOT as u64);
            self.region + at
        };
        for memory in &mut self.memories {
            memory.size = take(4);
        }
        for table in &mut self.tables {
            table.size = take(4);
        }
        for global in &mut self.globals {
            global.address = take(16);
        }
        for table in &mut self.tables {
            table.base = take(4 * u64::from(table.room()));
        }
        for Instance { module, data, elements, memories, .. } in &mut self.instances {
            for segment in &module.elements {
                let length = segment.items.len() as u32;
                let size = take(4);
                let base = take(4 * u64::from(length));
                elements.push(Segment { base, size, length, placed: false });
            }
            let mut placed = true;
            for segment in &module.data {
                let length = segment.bytes.len() as u32;
                let size = take(4);
                // Overlapping segments must be written in their order.
                placed &= match segment.mode {
                    Mode::Active(n, Constant::Bits(Type::I32, offset)) => {
                        let own = (n as usize).checked_sub(memories.len() - module.memories.len());
                        let pages = own.map_or(0, |n| module.memories[n].initial);
                        offset + u64::from(length) <= u64::from(pages) * PAGE
                    }
                    Mode::Active(..) => false,
                    _ => placed,
                };
                let placed = placed && matches!(segment.mode, Mode::Active(..));
                let base = take(if placed { 0 } else { u64::from(length) });
                data.push(Segment { base, size, length, placed });
            }
        }
        self.runtime = next.next_multiple_of(PAGE);
        if self.runtime > MOST_RUNTIME {
            let message = "tables and segments are larger than 1 GiB: split the module";
            return Err(Error::new(message));
        }
        for (n, memory) in self.memories.iter_mut().enumerate() {
            memory.base = self.region + self.runtime + n as u64 * MEMORY_ROOM;
        }
        Ok(())
    }

    /// Bytes of the region that the program needs, with guards.
    pub fn reserved(&self) -> u64 {
        self.runtime + self.memories.len().max(1) as u64 * MEMORY_ROOM
    }

    pub fn function_type(&self, function: Function) -> &FunctionType {
        match function {
            Function::Own(instance, n) => {
                let module = &self.instances[instance].module;
                &module.types[module.functions[n] as usize]
            }
            Function::Host(n) => &self.host[n].kind,
        }
    }

    /// Each type of a function.
    pub fn types(&self) -> HashMap<FunctionType, u32> {
        let mut numbers = HashMap::new();
        for instance in &self.instances {
            for t in &instance.module.types {
                let next = numbers.len() as u32 + 1;
                numbers.entry(t.clone()).or_insert(next);
            }
        }
        numbers
    }
}

/// Whether what is found has at least the size that is wanted, and at most the most.
fn within(found: Limits, wanted: Limits) -> bool {
    let most = match (found.most, wanted.most) {
        (_, None) => true,
        (Some(found), Some(wanted)) => found <= wanted,
        (None, Some(_)) => false,
    };
    found.initial >= wanted.initial && most
}

/// How a type's values are passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    Register,
    /// In this slot of the call area.
    Slot(usize),
}

/// Places of arguments.
pub(crate) fn passing(arguments: &[Type]) -> Vec<Passed> {
    let (mut general, mut vector, mut slots) = (0, 0, 0);
    let place = |t: &Type| {
        let (count, most) = if t.is_general() { (&mut general, 6) } else { (&mut vector, 8) };
        *count += 1;
        if *count <= most {
            return Passed::Register;
        }
        slots += 1;
        Passed::Slot(slots - 1)
    };
    arguments.iter().map(place).collect()
}

#[cfg(test)]
pub(crate) mod tests;
