//! From an object file and declarations to a module: layout of the image, references, tables, heads.

use std::collections::HashMap;

use kyozon_typed_annotate::annotation::Head;
use kyozon_typed_annotate::layout::Layout;
use kyozon_typed_annotate::module::{self, Module};
use kyozon_typed_checker::frame::Slot;
use kyozon_typed_checker::heads::Location;
use kyozon_typed_checker::range::Range;
use kyozon_typed_checker::value::{Spot, Value, REGISTERS};
use object::elf;

use crate::error::Complaint;
use crate::head::{Item, Type};
use crate::lines::Lines;
use crate::object_file::{ObjectFile, Part, Place, Relocation};
use crate::source::{Declarations, Name, HEAD};

/// A complaint and its line.
type Located = (Option<u32>, Complaint);

/// Where everything is in the image.
struct Link<'a> {
    declarations: &'a Declarations,
    object: &'a ObjectFile,
    lines: &'a Lines,
    read_only: u64,
    /// What is not in the object file, by name: call tables, imports, thunks.
    outside: HashMap<String, u64>,
    /// Numbers of functions by name.
    functions: HashMap<String, u32>,
    /// Numbers of jump tables by name, in the order of the read-only data.
    jump_tables: HashMap<String, u16>,
}

/// Makes the module.
pub(crate) fn link(
    declarations: &Declarations,
    object: &ObjectFile,
    lines: &Lines,
) -> Result<Module, Located> {
    let entries = declarations.call_tables.iter().map(|t| t.functions.len()).sum();
    let imports = declarations.imports.len();
    let layout = Layout::new(object.text.len(), object.read_only.len(), entries, imports);

    let mut outside = HashMap::new();
    let mut next = layout.call_tables;
    for table in &declarations.call_tables {
        outside.insert(table.name.text.clone(), next);
        next += 8 * table.functions.len() as u64;
    }
    for (n, import) in declarations.imports.iter().enumerate() {
        outside.insert(import.name.text.clone(), layout.import(n));
    }
    for (n, register) in (0..).zip(REGISTERS) {
        outside.insert(format!("__x86_indirect_thunk_{register}"), layout.thunk(n));
    }
    outside.insert("__x86_return_thunk".to_string(), layout.return_thunk());
    let mut link = Link {
        declarations,
        object,
        lines,
        read_only: layout.read_only,
        outside,
        functions: HashMap::new(),
        jump_tables: HashMap::new(),
    };
    for name in declarations.call_tables.iter().map(|t| &t.name) {
        link.not_defined(name)?;
    }
    for name in declarations.imports.iter().map(|i| &i.name) {
        link.not_defined(name)?;
    }
    link.module()
}

impl Link<'_> {
    fn not_defined(&self, name: &Name) -> Result<(), Located> {
        if self.object.find(&name.text).is_none() {
            return Ok(());
        }
        let message = format!("`{}` is a label as well: give one of them another name", name.text);
        Err((Some(name.line), message))
    }

    fn module(&mut self) -> Result<Module, Located> {
        let declarations = self.declarations;
        let mut module = Module {
            region: declarations.region,
            indirect_branches: declarations.indirect,
            signatures: declarations.signatures.clone(),
            text: self.object.text.clone(),
            read_only: self.object.read_only.clone(),
            rest: self.object.rest.clone(),
            ..Module::default()
        };
        self.add_functions(&mut module)?;
        self.add_tables(&mut module)?;
        self.add_heads(&mut module)?;
        if let Some(name) = &declarations.entry {
            module.entry = self.function(&name.text, name.line)?;
        }
        for &relocation in &self.object.relocations {
            let value = self.relocate(&relocation).map_err(|complaint| {
                (self.lines.at(relocation.part, relocation.offset), complaint)
            })?;
            let bytes = match relocation.part {
                Part::Text => &mut module.text,
                Part::ReadOnly => &mut module.read_only,
            };
            let at = relocation.offset as usize;
            if let Some(field) = bytes.get_mut(at..at + value.len()) {
                field.copy_from_slice(&value);
            }
        }
        Ok(module)
    }

    fn add_functions(&mut self, module: &mut Module) -> Result<(), Located> {
        let mut last = None;
        for (n, function) in self.declarations.functions.iter().enumerate() {
            let Name { text, line } = &function.name;
            let located = |message: String| (Some(*line), message);
            let Some(Place::In(Part::Text, start)) = self.object.find(text) else {
                return Err(located(format!("function `{text}` is not in .text: write it there")));
            };
            if last.is_none() && start != 0 {
                return Err((None, "code before the first .func: each belongs to one".into()));
            }
            if last.is_some_and(|last| start <= last) {
                return Err(located(format!("nothing is between `{text}` and the .func before")));
            }
            last = Some(start);
            self.functions.insert(text.clone(), n as u32);
            module.functions.push(module::Function {
                name: text.clone(),
                start: start as u32,
                signature: function.signature,
                frame: function.frame,
                ..module::Function::default()
            });
        }
        if module.functions.is_empty() {
            return Err((None, "no function: declare each by .func".into()));
        }
        if last.is_some_and(|last| last >= self.object.text.len() as u64) {
            return Err((None, "no instruction follows the last .func".into()));
        }
        Ok(())
    }

    fn function(&self, name: &str, line: u32) -> Result<u32, Located> {
        let found = self.functions.get(name).copied();
        found.ok_or_else(|| (Some(line), format!("`{name}` is no function: declare it by .func")))
    }

    fn add_tables(&mut self, module: &mut Module) -> Result<(), Located> {
        for table in &self.declarations.call_tables {
            let line = table.name.line;
            let functions: Result<Vec<_>, _> =
                table.functions.iter().map(|name| self.function(name, line)).collect();
            let signature = table.signature;
            module.call_tables.push(module::CallTable { signature, functions: functions? });
        }
        let mut tables = Vec::new();
        for table in &self.declarations.jump_tables {
            let Name { text, line } = &table.name;
            let Some(Place::In(Part::ReadOnly, start)) = self.object.find(text) else {
                let message = format!("jump table `{text}` is not in .rodata: write it there");
                return Err((Some(*line), message));
            };
            let function = self.function(&table.function, *line)?;
            let start = start as u32;
            tables.push((module::JumpTable { start, count: table.count, function }, text));
        }
        tables.sort_by_key(|(table, _)| table.start);
        for (n, (table, name)) in tables.into_iter().enumerate() {
            self.jump_tables.insert(name.clone(), n as u16);
            module.jump_tables.push(table);
        }
        for import in &self.declarations.imports {
            let (number, signature) = (import.number, import.signature);
            module.imports.push(module::Import { number, signature });
        }
        Ok(())
    }

    fn add_heads(&self, module: &mut Module) -> Result<(), Located> {
        let heads = self.object.symbols.iter().filter_map(|symbol| {
            let n: usize = symbol.name.strip_prefix(HEAD)?.parse().ok()?;
            Some((self.declarations.heads.get(n)?, symbol.place))
        });
        for (head, place) in heads {
            let located = |message: String| (Some(head.line), message);
            let Place::In(Part::Text, at) = place else {
                return Err(located(".head is not in .text".into()));
            };
            let end = module.functions.get(head.function + 1).map(|next| next.start);
            let function = &mut module.functions[head.function];
            let at = at as u32;
            if at < function.start || at >= end.unwrap_or(module.text.len() as u32) {
                let name = &function.name;
                return Err(located(format!(".head is outside its function `{name}`")));
            }
            let found = function.heads.entry(at).or_default();
            for item in &head.items {
                self.add_item(found, item).map_err(located)?;
            }
        }
        Ok(())
    }

    fn add_item(&self, head: &mut Head, item: &Item) -> Result<(), Complaint> {
        let (location, kind) = match item {
            Item::Flags => {
                head.flags = true;
                return Ok(());
            }
            Item::Checked(offset) => {
                if *offset > 8 {
                    return Err("checked: expected an offset of at most +8".into());
                }
                head.checked = Some(*offset);
                return Ok(());
            }
            Item::Type(location, kind) => (*location, kind),
        };
        let jump_table = |name: &String| {
            let n = self.jump_tables.get(name).copied();
            n.ok_or_else(|| format!("`{name}` is no jump table: declare it by .jumptable"))
        };
        let value = match kind {
            Type::Value(value) => *value,
            Type::Entry(name) => {
                let tables = &self.declarations.call_tables;
                let n = tables.iter().position(|table| table.name.text == *name);
                let n = n.ok_or_else(|| {
                    format!("`{name}` is no call table: declare it by .calltable")
                })?;
                Value::Entry(n as u16)
            }
            Type::Distance(name) => Value::Distance(jump_table(name)?),
            Type::Target(name) => Value::Target(jump_table(name)?),
            Type::Address(name) => match self.symbol_address(name, self.object.find(name))? {
                Address::Image(at) => Value::image(Range::constant(at as u64)),
                Address::Absolute(n) => Value::constant(n),
            },
            Type::View(name, value) => {
                let Some(Place::In(Part::Text, at)) = self.object.find(name) else {
                    return Err(format!("`{name}` is no label of a call that gives a view"));
                };
                let origin = at as u32;
                match *value {
                    Value::View { spot, write, exact } => {
                        Value::View { spot: Spot { origin, ..spot }, write, exact }
                    }
                    Value::Index(spot) => Value::Index(Spot { origin, ..spot }),
                    _ => Value::Length(origin),
                }
            }
        };
        // The file lists slots of these types apart, by their granules only: one slot each.
        if let Location::Slot(Slot { granule, pair }) = location {
            let other = Location::Slot(Slot { granule, pair: !pair });
            if head.types.contains_key(&other) {
                return Err(format!("two types for {location}"));
            }
        }
        if head.types.insert(location, value).is_some_and(|old| old != value) {
            return Err(format!("two types for {location}"));
        }
        Ok(())
    }

    fn symbol_address(&self, name: &str, place: Option<Place>) -> Result<Address, Complaint> {
        Ok(match place {
            Some(Place::In(Part::Text, offset)) => Address::Image(offset as i64),
            Some(Place::In(Part::ReadOnly, offset)) => {
                Address::Image((self.read_only + offset) as i64)
            }
            Some(Place::Absolute(n)) => Address::Absolute(n),
            Some(Place::Undefined) | None => match self.outside.get(name) {
                Some(&at) => Address::Image(at as i64),
                None => {
                    return Err(format!(
                        "`{name}` is not defined: write a label, or declare it by .func, .import, \
                         .calltable or .jumptable"
                    ))
                }
            },
        })
    }

    /// The bytes of a reference.
    fn relocate(&self, relocation: &Relocation) -> Result<Vec<u8>, Complaint> {
        let symbol = &self.object.symbols[relocation.symbol];
        let name = if symbol.name.is_empty() { "a label" } else { &symbol.name };
        let address = self.symbol_address(name, Some(symbol.place))?;
        let start = match relocation.part {
            Part::Text => 0,
            Part::ReadOnly => self.read_only as i64,
        };
        let place = start + relocation.offset as i64;
        let kind = relocation.kind;
        match (kind, address) {
            (elf::R_X86_64_PC32 | elf::R_X86_64_PLT32, Address::Image(at)) => {
                let distance = at + relocation.addend - place;
                let distance = i32::try_from(distance).map_err(|_| format!("{name} is too far"))?;
                Ok(distance.to_le_bytes().to_vec())
            }
            (elf::R_X86_64_PC64, Address::Image(at)) => {
                Ok((at + relocation.addend - place).to_le_bytes().to_vec())
            }
            (elf::R_X86_64_PC8 | elf::R_X86_64_PC16, _) => {
                Err(format!("a short jump to {name}: it needs one with a distance of 32 bits"))
            }
            (elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX, _) => {
                Err(format!("{name}@GOTPCREL: write {name}(%rip), there is no such table"))
            }
            (elf::R_X86_64_8 | elf::R_X86_64_16 | elf::R_X86_64_32, Address::Absolute(n))
            | (elf::R_X86_64_32S | elf::R_X86_64_64, Address::Absolute(n)) => {
                let value = (n as i64).wrapping_add(relocation.addend);
                let bytes = match kind {
                    elf::R_X86_64_8 => 1,
                    elf::R_X86_64_16 => 2,
                    elf::R_X86_64_64 => 8,
                    _ => 4,
                };
                Ok(value.to_le_bytes()[..bytes].to_vec())
            }
            (_, Address::Image(_)) => Err(format!(
                "an absolute address of {name}: the image may lie anywhere, so write {name}(%rip)"
            )),
            (_, Address::Absolute(_)) => Err(format!("a distance from the number {name}")),
        }
    }
}

/// What a symbol stands for.
enum Address {
    /// This many bytes from the image's start.
    Image(i64),
    /// A number.
    Absolute(u64),
}
