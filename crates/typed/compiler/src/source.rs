//! The C source of a program.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use kyozon_typed_manifest::{GROW, MODULE, SLOT, START};

use crate::contents::Contents;
use crate::exports::{exports, Exported};
use crate::function::Translator;
use crate::program::{passing, Function, Passed, Program};
use crate::references::{References, INDEX};
use crate::start::{self, Offset, Step};
use crate::wasm::{FunctionType, Type};
use crate::Error;

const PRELUDE: &str = include_str!("prelude.c");
const VECTORS: &str = include_str!("vectors.c");

/// The C type of a value.
pub(crate) fn c_type(t: Type) -> &'static str {
    match t {
        Type::I64 => "u64",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::V128 => "v128",
        Type::I32 | Type::Funcref | Type::Externref => "u32",
    }
}

/// The C variable for a place of the operand stack.
pub(crate) fn variable(place: usize, t: Type) -> String {
    let letter = match t {
        Type::Funcref | Type::Externref => 'i',
        t => t.letter(),
    };
    format!("s{place}{letter}")
}

/// What the assembler must know of a C function.
pub(crate) struct Declared {
    pub kind: FunctionType,
    /// It is called indirectly, or the program's entry.
    pub landing: bool,
}

/// A program in C, and what its assembly needs beside.
pub(crate) struct Compiled {
    pub c: String,
    /// There are operators on vectors.
    pub vectors: bool,
    /// Functions by name.
    pub functions: HashMap<String, Declared>,
    /// Imports in the order of their numbers.
    pub imports: Vec<(String, FunctionType)>,
    /// Call tables: name, type, functions.
    pub tables: Vec<(String, FunctionType, Vec<String>)>,
    pub manifest: Vec<u8>,
}

/// Functions of modules: numbers of the module and of the function among its own.
pub(crate) type Functions = BTreeSet<(usize, usize)>;

/// The functions of the modules that a C function stands for: one, or none.
pub(crate) fn function_of(name: &str) -> Option<(usize, usize)> {
    let (module, function) = name.strip_prefix('f')?.split_once('_')?;
    Some((module.parse().ok()?, function.parse().ok()?))
}

/// A program while it is translated.
pub(crate) struct Source<'p, 'a> {
    pub program: &'p Program<'a>,
    references: References,
    /// Types of indirect calls.
    pub called: BTreeSet<u32>,
    /// Pairs of memories that bytes are copied between; from the runtime's if the second is none.
    copied: BTreeSet<(usize, Option<usize>)>,
    /// Memories that are filled.
    pub filled: BTreeSet<usize>,
    /// Memories that grow.
    pub grown: BTreeSet<usize>,
    /// There are operators on vectors.
    pub vectors: bool,
    /// Functions whose indices the C compiler must not know.
    pub opaque: &'p Functions,
}

impl<'p, 'a> Source<'p, 'a> {
    pub fn new(program: &'p Program<'a>, opaque: &'p Functions) -> Self {
        Source {
            program,
            references: References::new(program),
            called: BTreeSet::new(),
            copied: BTreeSet::new(),
            filled: BTreeSet::new(),
            grown: BTreeSet::new(),
            vectors: false,
            opaque,
        }
    }

    /// A slot of the call area.
    pub fn slot(&self, n: usize, t: Type) -> String {
        format!("AT({}m, {:#x}, 0)", c_type(t), self.program.region + (n * SLOT) as u64)
    }

    pub fn global(&self, n: usize) -> String {
        let global = &self.program.globals[n];
        format!("AT({}m, {:#x}, 0)", c_type(global.kind.value), global.address)
    }

    /// The function that copies into a memory.
    pub fn copy(&mut self, to: usize, from: Option<usize>) -> String {
        self.copied.insert((to, from));
        copy_name(to, from)
    }

    /// The value of a reference to a function.
    pub fn reference(&mut self, function: Function) -> Result<u32, Error> {
        self.references.value(self.program, function)
    }

    /// The number of a type of functions.
    pub fn number(&self, kind: &FunctionType) -> u32 {
        self.references.types[kind]
    }

    /// The head of a C function.
    pub fn prototype(&self, name: &str, kind: &FunctionType) -> String {
        let result = kind.results.first().map_or("void", |&t| c_type(t));
        let arguments = self.register_arguments(kind);
        let text = if arguments.is_empty() { "void".into() } else { arguments.join(", ") };
        format!("HIDDEN {result} {name}({text})")
    }

    fn register_arguments(&self, kind: &FunctionType) -> Vec<String> {
        let passed = passing(&kind.arguments).into_iter().enumerate();
        let registers = passed.filter(|(_, passed)| *passed == Passed::Register);
        registers.map(|(n, _)| format!("{} l{n}", c_type(kind.arguments[n]))).collect()
    }

    /// The C source and what belongs to it.
    pub fn compile(mut self) -> Result<Compiled, Error> {
        let program = self.program;
        let mut bodies = String::new();
        let mut contents = Contents::new(program);
        for (n, instance) in program.instances.iter().enumerate() {
            bodies += &self.start(n, &mut contents)?;
            for index in 0..instance.module.functions.len() {
                let body = Translator::new(&mut self, n, index)
                    .and_then(|translator| translator.translate(index));
                bodies += &body.map_err(|error| instance.module.in_function(index, error))?;
            }
        }
        let exports = exports(program);
        bodies += &self.dispatcher(&exports);
        let mut functions = HashMap::new();
        let mut declare = |name: String, kind: &FunctionType, landing| {
            functions.insert(name, Declared { kind: kind.clone(), landing });
        };
        let mut head = String::from(PRELUDE);
        if self.vectors {
            head += VECTORS;
        }
        let mut imports = Vec::new();
        for (n, function) in program.host.iter().enumerate() {
            let name = format!("i{n}");
            let _ = writeln!(head, "{};", self.prototype(&name, &function.kind));
            contents.import(&function.module, &function.name, &function.kind.text());
            imports.push((name, function.kind.clone()));
        }
        if !self.grown.is_empty() {
            let kind = FunctionType { arguments: vec![Type::I32; 2], results: vec![Type::I32] };
            contents.import(MODULE, GROW, &kind.text());
            imports.push(("grow".into(), kind));
            head += "HIDDEN u32 grow(u32 memory, u32 pages);\n";
        }
        for &n in &self.grown {
            let (size, most) = (program.memories[n].size, program.memories[n].most());
            let _ = writeln!(
                head,
                "HIDDEN __attribute__((noinline)) u32 grow{n}(u32 count)\n{{\n\
                 u32 old = load32({size:#x});\n\
                 if ((u64)old + count > {most} || !grow({n}, old + count)) return -1u;\n\
                 store32({size:#x}, old + count);\nreturn old;\n}}"
            );
            let kind = FunctionType { arguments: vec![Type::I32], results: vec![Type::I32] };
            declare(format!("grow{n}"), &kind, false);
        }
        let empty = FunctionType::default();
        let copies: Vec<_> = self.copied.iter().copied().collect();
        let three = FunctionType { arguments: vec![Type::I32; 3], ..FunctionType::default() };
        for (to, from) in copies {
            let (to_base, name) = (program.memories[to].base, copy_name(to, from));
            let from_base = from.map_or(program.region, |n| program.memories[n].base);
            let _ = writeln!(
                head,
                "HIDDEN __attribute__((noinline)) void {name}(u32 to, u32 from, u32 count)\n\
                 {{ copy_bytes({to_base:#x}, {from_base:#x}, to, from, count); }}"
            );
            declare(name, &three, false);
        }
        for &n in &self.filled {
            let base = program.memories[n].base;
            let _ = writeln!(
                head,
                "HIDDEN __attribute__((noinline)) void fill{n}(u32 to, u32 value, u32 count)\n\
                 {{ fill_bytes({base:#x}, to, value, count); }}"
            );
            declare(format!("fill{n}"), &three, false);
        }
        for (n, instance) in program.instances.iter().enumerate() {
            let _ = writeln!(head, "HIDDEN void start{n}(void);");
            declare(format!("start{n}"), &empty, false);
            for (index, &t) in instance.module.functions.iter().enumerate() {
                let (name, kind) = (format!("f{n}_{index}"), &instance.module.types[t as usize]);
                let _ = writeln!(head, "{};", self.prototype(&name, kind));
                let function = Function::Own(n, index);
                let landing = self.references.of_type(self.number(kind)).contains(&function);
                declare(name, kind, landing);
            }
        }
        let any = FunctionType { arguments: vec![Type::I64], ..FunctionType::default() };
        declare("entry".into(), &any, true);
        let mut tables = Vec::new();
        for (number, kind) in &self.references.kinds() {
            if !self.called.contains(number) {
                continue;
            }
            let mut names = Vec::new();
            for &function in self.references.of_type(*number) {
                names.push(match function {
                    Function::Own(instance, n) => format!("f{instance}_{n}"),
                    Function::Host(n) => {
                        let name = format!("h{n}");
                        head += &self.wrapper(&name, &format!("i{n}"), kind);
                        declare(name.clone(), kind, true);
                        name
                    }
                });
            }
            head += &self.indirect(*number, kind, names.len());
            if let Some(first) = names.first().cloned() {
                names.resize(names.len().next_power_of_two(), first);
                tables.push((format!("t{number}"), kind.clone(), names));
            }
        }
        let manifest = contents.finish(&exports);
        Ok(Compiled {
            c: head + &bodies,
            vectors: self.vectors,
            functions,
            imports,
            tables,
            manifest,
        })
    }

    /// Names of arguments that are passed in registers.
    fn forwarded(&self, kind: &FunctionType) -> Vec<String> {
        let passed = passing(&kind.arguments).into_iter().enumerate();
        let registers = passed.filter(|(_, passed)| *passed == Passed::Register);
        registers.map(|(n, _)| format!("l{n}")).collect()
    }

    /// A function that calls another one of the same type.
    fn wrapper(&self, name: &str, callee: &str, kind: &FunctionType) -> String {
        let leave = if kind.results.is_empty() { "" } else { "return " };
        let arguments = self.forwarded(kind).join(", ");
        format!("{} {{ {leave}{callee}({arguments}); }}\n", self.prototype(name, kind))
    }

    /// The function that calls by a table's entry: its type is compared, its index is bounded again.
    fn indirect(&self, number: u32, kind: &FunctionType, count: usize) -> String {
        let result = kind.results.first().map_or("void", |&t| c_type(t));
        let mut declared = vec!["u32 code".to_string()];
        declared.extend(self.register_arguments(kind));
        let head = format!("INLINE {result} c{number}({})", declared.join(", "));
        if count == 0 {
            return format!("{head} {{ trap(); }}\n");
        }
        let types = self.register_arguments(kind);
        let types = if types.is_empty() { "void".into() } else { types.join(", ") };
        let mask = count.next_power_of_two() - 1;
        let leave = if kind.results.is_empty() { "" } else { "return " };
        let arguments = self.forwarded(kind).join(", ");
        format!(
            "extern HIDDEN {result} (*const t{number}[{}])({types});\n\
             {head} {{\ntrap_if(code >> {INDEX} != {number});\n\
             {leave}t{number}[code & {mask}]({arguments});\n}}\n",
            mask + 1
        )
    }

    /// What happens when a module is started; and its first contents.
    fn start(&mut self, number: usize, contents: &mut Contents) -> Result<String, Error> {
        let program = self.program;
        let mut text = format!("HIDDEN __attribute__((cold)) void start{number}(void) {{\n");
        for step in start::steps(program, number, &mut self.references, contents)? {
            let _ = match step {
                Step::Global { to, from } => {
                    writeln!(text, "{} = {};", self.global(to), self.global(from))
                }
                Step::Entry { at, from } => {
                    writeln!(text, "store32({at:#x}, {});", self.global(from))
                }
                Step::Elements { table, segment, offset, length } => {
                    let table = &program.tables[table];
                    let offset = self.offset(offset);
                    writeln!(
                        text,
                        "table_copy({:#x}, {:#x}, {:#x}, {:#x}, {offset}, 0, {length});\n\
                         store32({:#x}, 0);",
                        table.base, table.size, segment.base, segment.size, segment.size
                    )
                }
                Step::Data { memory, segment, offset } => {
                    let (offset, length) = (self.offset(offset), segment.length);
                    let copy = self.copy(memory, None);
                    let start = segment.base - program.region;
                    writeln!(
                        text,
                        "memory_range({:#x}, {offset}, {length});\n\
                         {copy}({offset}, {start}u, {length}u);",
                        program.memories[memory].size
                    )
                }
                Step::Call(Function::Own(instance, n)) => writeln!(text, "f{instance}_{n}();"),
                Step::Call(Function::Host(n)) => writeln!(text, "i{n}();"),
            };
        }
        text += "}\n";
        Ok(text)
    }

    /// The offset of an active segment.
    fn offset(&self, offset: Offset) -> String {
        match offset {
            Offset::Constant(n) => format!("{n}u"),
            Offset::Global(n) => self.global(n),
        }
    }

    /// The entry: calls an export or a start function by its number.
    fn dispatcher(&self, exports: &[(Option<Function>, Exported)]) -> String {
        let mut text = String::from(
            "HIDDEN __attribute__((cold)) void entry(u64 number) {\nswitch ((u32)number) {\n",
        );
        for n in 0..self.program.instances.len() as u32 {
            let _ = writeln!(text, "case {}u: start{n}(); return;", START + n);
        }
        for (function, export) in exports {
            let Some(function) = *function else { continue };
            let kind = self.program.function_type(function);
            let _ = writeln!(text, "case {}u: {{", export.number);
            for (n, &t) in kind.arguments.iter().enumerate() {
                let _ = writeln!(text, "{} a{n} = {};", c_type(t), self.slot(n, t));
            }
            let mut values = Vec::new();
            for (n, passed) in passing(&kind.arguments).into_iter().enumerate() {
                match passed {
                    Passed::Register => values.push(format!("a{n}")),
                    Passed::Slot(slot) => {
                        let slot = self.slot(slot, kind.arguments[n]);
                        let _ = writeln!(text, "{slot} = a{n};");
                    }
                }
            }
            let name = match function {
                Function::Own(instance, n) => format!("f{instance}_{n}"),
                Function::Host(n) => format!("i{n}"),
            };
            let call = format!("{name}({})", values.join(", "));
            // Further results are in the call area from slot 0, and move up by one.
            for (n, &t) in kind.results.iter().enumerate() {
                let value = if n == 0 { call.clone() } else { self.slot(n - 1, t) };
                let _ = writeln!(text, "{} r{n} = {value};", c_type(t));
            }
            if kind.results.is_empty() {
                let _ = writeln!(text, "{call};");
            }
            for (n, &t) in kind.results.iter().enumerate() {
                let _ = writeln!(text, "{} = r{n};", self.slot(n, t));
            }
            text += "return;\n}\n";
        }
        text += "}\ntrap();\n}\n";
        text
    }
}

fn copy_name(to: usize, from: Option<usize>) -> String {
    match from {
        Some(from) => format!("copy{to}_{from}"),
        None => format!("copy{to}_runtime"),
    }
}
