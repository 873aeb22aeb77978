//! One function of WebAssembly as one of C.
//!
//! Each place of the operand stack is a variable of C for each type that is ever there; blocks are labels and jumps.
//! The C compiler makes values and control flow of it again. Operators without immediates are functions of the same
//! name in the prelude.

use std::collections::BTreeSet;
use std::fmt::Write;

use wasmparser::{BlockType, MemArg, Operator};

use crate::program::{passing, Function, Instance, Passed};
use crate::source::{c_type, variable, Source};
use crate::wasm::{named_type, null_type, FunctionType, Type};
use crate::Error;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Block,
    Loop,
    If,
    Else,
}

struct Frame {
    kind: Kind,
    label: u32,
    /// Height of the stack below its arguments.
    height: usize,
    arguments: Vec<Type>,
    results: Vec<Type>,
    /// A branch leads to its end.
    targeted: bool,
}

pub(crate) struct Translator<'s, 'p, 'a> {
    source: &'s mut Source<'p, 'a>,
    instance: &'p Instance<'a>,
    number: usize,
    kind: &'p FunctionType,
    /// The C compiler must not know indices.
    opaque: bool,
    locals: Vec<Type>,
    body: String,
    stack: Vec<Type>,
    /// Variables of the stack that are in use.
    variables: BTreeSet<(usize, char)>,
    frames: Vec<Frame>,
    labels: u32,
    /// How many blocks within code that cannot be reached are open; none if code can be reached.
    dead: Option<u32>,
}

/// What an operator of the prelude is.
pub(crate) struct Described {
    /// That of its visitor, without `visit_`.
    pub name: &'static str,
    arity: &'static str,
    memory: Option<MemArg>,
    lanes: Vec<u8>,
}

/// Memory argument and lanes of an operator with fields of these names.
macro_rules! immediates {
    ($operator:ident $op:ident memarg) => {
        if let Operator::$op { memarg } = $operator {
            (Some(*memarg), Vec::new())
        } else {
            NONE
        }
    };
    ($operator:ident $op:ident memarg lane) => {
        if let Operator::$op { memarg, lane } = $operator {
            (Some(*memarg), vec![*lane])
        } else {
            NONE
        }
    };
    ($operator:ident $op:ident lane) => {
        if let Operator::$op { lane } = $operator {
            (None, vec![*lane])
        } else {
            NONE
        }
    };
    ($operator:ident $op:ident lanes) => {
        if let Operator::$op { lanes } = $operator {
            (None, lanes.to_vec())
        } else {
            NONE
        }
    };
    ($($other:ident)*) => {
        NONE
    };
}

pub(crate) fn describe(operator: &Operator<'_>) -> Described {
    const NONE: (Option<MemArg>, Vec<u8>) = (None, Vec::new());
    macro_rules! descriptions {
        ($( @$proposal:ident $op:ident $({ $($field:ident: $t:ty),* })?
            => $visit:ident ($($arity:tt)*) )*) => {
            match operator {
                $( Operator::$op { .. } => (
                    stringify!($visit),
                    stringify!($($arity)*),
                    immediates!(operator $op $($($field)*)?),
                ), )*
                _ => ("visit_unknown", "", NONE),
            }
        };
    }
    let (name, arity, (memory, lanes)) = wasmparser::for_each_operator!(descriptions);
    Described { name: name.strip_prefix("visit_").unwrap_or(name), arity, memory, lanes }
}

/// Arguments and results of an operator that has a fixed number of them.
fn arity(text: &str) -> Option<(usize, usize)> {
    let numbers = text.strip_prefix("arity ")?;
    let numbers = numbers.strip_prefix("memarg ").unwrap_or(numbers);
    let (arguments, results) = numbers.split_once(" -> ")?;
    Some((arguments.parse().ok()?, results.parse().ok()?))
}

/// Whether an operator has a name in the prelude's part on vectors.
fn is_vector(name: &str) -> bool {
    name.split_once('_').is_some_and(|(prefix, _)| prefix == "v128" || prefix.contains('x'))
}

/// Type of the result of an operator with this name.
fn result_type(name: &str) -> Option<Type> {
    let (prefix, rest) = name.split_once('_')?;
    let lane = match prefix {
        "i32" | "i8x16" | "i16x8" | "i32x4" => Type::I32,
        "i64" | "i64x2" => Type::I64,
        "f32" | "f32x4" => Type::F32,
        "f64" | "f64x2" => Type::F64,
        "v128" => Type::V128,
        _ => return None,
    };
    let compares = ["eqz", "eq", "ne", "lt", "gt", "le", "ge"];
    let tests = ["all_true", "any_true", "bitmask"];
    Some(if prefix.len() > 3 {
        match rest {
            _ if rest.starts_with("extract_lane") => lane,
            _ if tests.contains(&rest) => Type::I32,
            _ => Type::V128,
        }
    } else if compares.contains(&rest.split('_').next().unwrap_or("")) {
        Type::I32
    } else {
        lane
    })
}

impl<'s, 'p, 'a> Translator<'s, 'p, 'a> {
    pub fn new(source: &'s mut Source<'p, 'a>, number: usize, index: usize) -> Result<Self, Error> {
        let instance = &source.program.instances[number];
        let kind = source.program.function_type(Function::Own(number, index));
        let mut locals = kind.arguments.clone();
        for group in instance.module.bodies[index].get_locals_reader()? {
            let (count, t) = group?;
            let t = named_type(t)?;
            locals.extend((0..count).map(|_| t));
        }
        let opaque = source.opaque.contains(&(number, index));
        Ok(Translator {
            source,
            instance,
            number,
            kind,
            opaque,
            locals,
            body: String::new(),
            stack: Vec::new(),
            variables: BTreeSet::new(),
            frames: Vec::new(),
            labels: 0,
            dead: None,
        })
    }

    /// The C function.
    pub fn translate(mut self, index: usize) -> Result<String, Error> {
        let results = self.kind.results.clone();
        self.open(Kind::Block, Vec::new(), results);
        let body = &self.instance.module.bodies[index];
        for operator in body.get_operators_reader()?.into_iter_with_offsets() {
            let (operator, offset) = operator?;
            self.operator(&operator)
                .map_err(|error| Error::new(format!("{error} (at byte {offset:#x})")))?;
        }
        let name = format!("f{}_{index}", self.number);
        let mut text = format!("{} {{\n", self.source.prototype(&name, self.kind));
        for (n, passed) in passing(&self.kind.arguments).into_iter().enumerate() {
            if let Passed::Slot(slot) = passed {
                let t = self.kind.arguments[n];
                let slot = self.source.slot(slot, t);
                let _ = writeln!(text, "{} l{n} = {slot};", c_type(t));
            }
        }
        for (n, &t) in self.locals.iter().enumerate().skip(self.kind.arguments.len()) {
            let zero = if t == Type::V128 { "{0}" } else { "0" };
            let _ = writeln!(text, "{} l{n} = {zero};", c_type(t));
        }
        for &(n, letter) in &self.variables {
            let t = match letter {
                'I' => Type::I64,
                'f' => Type::F32,
                'F' => Type::F64,
                'v' => Type::V128,
                _ => Type::I32,
            };
            let _ = writeln!(text, "{} {};", c_type(t), variable(n, t));
        }
        text += &self.body;
        if self.dead.is_none() {
            for (n, &t) in self.kind.results.iter().enumerate().skip(1) {
                let _ = writeln!(text, "{} = {};", self.source.slot(n - 1, t), variable(n, t));
            }
            if let Some(&t) = self.kind.results.first() {
                let _ = writeln!(text, "return {};", variable(0, t));
            }
        }
        text += "}\n";
        Ok(text)
    }

    fn line(&mut self, text: &str) {
        self.body += text;
        self.body.push('\n');
    }

    /// The variable at the top of the stack, which is taken off.
    fn pop(&mut self) -> String {
        let t = self.stack.pop().unwrap_or(Type::I32);
        variable(self.stack.len(), t)
    }

    /// A variable for a new value.
    fn push(&mut self, t: Type) -> String {
        let name = variable(self.stack.len(), t);
        self.variables.insert((self.stack.len(), name.chars().last().unwrap_or('i')));
        self.stack.push(t);
        name
    }

    fn push_value(&mut self, t: Type, value: &str) {
        let name = self.push(t);
        self.line(&format!("{name} = {value};"));
    }

    fn open(&mut self, kind: Kind, arguments: Vec<Type>, results: Vec<Type>) {
        let height = self.stack.len() - arguments.len();
        let label = self.labels;
        self.labels += 1;
        self.frames.push(Frame { kind, label, height, arguments, results, targeted: false });
    }

    fn block_type(&self, t: BlockType) -> Result<FunctionType, Error> {
        Ok(match t {
            BlockType::Empty => FunctionType::default(),
            BlockType::Type(t) => {
                FunctionType { arguments: Vec::new(), results: vec![named_type(t)?] }
            }
            BlockType::FuncType(n) => self.instance.module.types[n as usize].clone(),
        })
    }

    /// A branch: the values move to where the target has them.
    fn branch(&mut self, depth: u32) -> String {
        let n = self.frames.len() - 1 - depth as usize;
        let frame = &mut self.frames[n];
        frame.targeted = true;
        let (label, height) = (frame.label, frame.height);
        let types = if frame.kind == Kind::Loop { &frame.arguments } else { &frame.results };
        let from = self.stack.len() - types.len();
        let mut text = String::new();
        for (n, &t) in types.iter().enumerate().filter(|_| from != height) {
            self.variables.insert((height + n, variable(0, t).chars().last().unwrap_or('i')));
            text += &format!("{} = {}; ", variable(height + n, t), variable(from + n, t));
        }
        format!("{{ {text}goto L{label}; }}")
    }

    /// What a block does not reach.
    fn skip(&mut self, operator: &Operator<'_>, depth: u32) -> Result<bool, Error> {
        match operator {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => {
                self.dead = Some(depth + 1);
            }
            Operator::End if depth > 0 => self.dead = Some(depth - 1),
            Operator::End => return Ok(false),
            Operator::Else if depth == 0 => return Ok(false),
            _ => (),
        }
        Ok(true)
    }

    fn operator(&mut self, operator: &Operator<'_>) -> Result<(), Error> {
        if let Some(depth) = self.dead {
            if self.skip(operator, depth)? {
                return Ok(());
            }
        }
        match *operator {
            Operator::Nop => (),
            Operator::Unreachable => {
                self.line("trap();");
                self.dead = Some(0);
            }
            Operator::Block { blockty } => {
                let t = self.block_type(blockty)?;
                self.open(Kind::Block, t.arguments, t.results);
            }
            Operator::Loop { blockty } => {
                let t = self.block_type(blockty)?;
                self.open(Kind::Loop, t.arguments, t.results);
                self.line(&format!("L{}:;", self.labels - 1));
            }
            Operator::If { blockty } => {
                let t = self.block_type(blockty)?;
                let condition = self.pop();
                self.open(Kind::If, t.arguments, t.results);
                self.line(&format!("if (!{condition}) goto E{};", self.labels - 1));
            }
            Operator::Else => self.begin_else(),
            Operator::End => self.end(),
            Operator::Br { relative_depth } => {
                let text = self.branch(relative_depth);
                self.line(&text);
                self.dead = Some(0);
            }
            Operator::BrIf { relative_depth } => {
                let condition = self.pop();
                let text = self.branch(relative_depth);
                self.line(&format!("if ({condition}) {text}"));
            }
            Operator::BrTable { ref targets } => {
                let index = self.pop();
                self.line(&format!("switch ({index}) {{"));
                for (n, depth) in targets.targets().enumerate() {
                    let text = self.branch(depth?);
                    self.line(&format!("case {n}: {text}"));
                }
                let text = self.branch(targets.default());
                self.line(&format!("default: {text}\n}}"));
                self.dead = Some(0);
            }
            Operator::Return => {
                let text = self.branch(self.frames.len() as u32 - 1);
                self.line(&text);
                self.dead = Some(0);
            }
            Operator::Call { function_index } => {
                let function = self.instance.functions[function_index as usize];
                let kind = self.source.program.function_type(function);
                let name = match function {
                    Function::Own(instance, n) => format!("f{instance}_{n}"),
                    Function::Host(n) => format!("i{n}"),
                };
                self.call(&name, None, kind);
            }
            Operator::CallIndirect { type_index, table_index } => {
                let index = self.pop();
                let entry = self.table_entry(table_index, index);
                let kind = &self.instance.module.types[type_index as usize];
                let number = self.source.number(kind);
                let name = format!("c{number}");
                self.source.called.insert(number);
                self.call(&name, Some(entry), kind);
            }
            Operator::Drop => {
                // A load whose value is not used traps all the same.
                let t = self.stack.last().copied().unwrap_or(Type::I32);
                let value = self.pop();
                let class = if t.is_general() { 'r' } else { 'x' };
                self.line(&format!("__asm__ volatile(\"\" :: \"{class}\"({value}));"));
            }
            Operator::Select | Operator::TypedSelect { .. } => {
                let condition = self.pop();
                let other = self.pop();
                let t = self.stack.last().copied().unwrap_or(Type::I32);
                let one = self.pop();
                self.push_value(t, &format!("{condition} ? {one} : {other}"));
            }
            Operator::LocalGet { local_index } => {
                let t = self.locals[local_index as usize];
                self.push_value(t, &format!("l{local_index}"));
            }
            Operator::LocalSet { local_index } => {
                let value = self.pop();
                self.line(&format!("l{local_index} = {value};"));
            }
            Operator::LocalTee { local_index } => {
                let t = self.locals[local_index as usize];
                let value = variable(self.stack.len() - 1, t);
                self.line(&format!("l{local_index} = {value};"));
            }
            Operator::GlobalGet { global_index } => {
                let global = self.instance.globals[global_index as usize];
                let t = self.source.program.globals[global].kind.value;
                let place = self.source.global(global);
                self.push_value(t, &place);
            }
            Operator::GlobalSet { global_index } => {
                let value = self.pop();
                let place = self.source.global(self.instance.globals[global_index as usize]);
                self.line(&format!("{place} = {value};"));
            }
            Operator::I32Const { value } => {
                self.push_value(Type::I32, &format!("{}u", value as u32))
            }
            Operator::I64Const { value } => {
                self.push_value(Type::I64, &format!("{}ull", value as u64))
            }
            Operator::F32Const { value } => {
                self.push_value(Type::F32, &format!("f32_bits({:#x}u)", value.bits()))
            }
            Operator::F64Const { value } => {
                self.push_value(Type::F64, &format!("f64_bits({:#x}ull)", value.bits()))
            }
            Operator::V128Const { value } => {
                let value = value.i128() as u128;
                let (low, high) = (value as u64, (value >> 64) as u64);
                self.push_value(Type::V128, &format!("(v128){{{low:#x}ull, {high:#x}ull}}"))
            }
            Operator::RefNull { hty } => self.push_value(null_type(hty)?, "0"),
            Operator::RefIsNull => {
                let value = self.pop();
                self.push_value(Type::I32, &format!("{value} == 0"));
            }
            Operator::RefFunc { function_index } => {
                let function = self.instance.functions[function_index as usize];
                let code = self.source.reference(function)?;
                self.push_value(Type::Funcref, &format!("{code}u"));
            }
            _ => return self.memory_or_table(operator),
        }
        Ok(())
    }

    fn memory_or_table(&mut self, operator: &Operator<'_>) -> Result<(), Error> {
        match *operator {
            Operator::MemorySize { mem } => {
                let size = self.memory(mem).1;
                self.push_value(Type::I32, &format!("load32({size:#x})"));
            }
            Operator::MemoryGrow { mem } => {
                let number = self.instance.memories[mem as usize];
                let delta = self.pop();
                self.source.grown.insert(number);
                self.push_value(Type::I32, &format!("grow{number}({delta})"));
            }
            Operator::MemoryCopy { dst_mem, src_mem } => {
                let (n, s, d) = (self.pop(), self.pop(), self.pop());
                let (to, from) = (self.memory_number(dst_mem), self.memory_number(src_mem));
                let (to_size, from_size) = (self.memory(dst_mem).1, self.memory(src_mem).1);
                self.line(&format!("memory_range({to_size:#x}, {d}, {n});"));
                self.line(&format!("memory_range({from_size:#x}, {s}, {n});"));
                let copy = self.source.copy(to, Some(from));
                self.line(&format!("{copy}({d}, {s}, {n});"));
            }
            Operator::MemoryFill { mem } => {
                let (n, value, d) = (self.pop(), self.pop(), self.pop());
                let (number, size) = (self.memory_number(mem), self.memory(mem).1);
                self.line(&format!("memory_range({size:#x}, {d}, {n});"));
                self.source.filled.insert(number);
                self.line(&format!("fill{number}({d}, {value}, {n});"));
            }
            Operator::MemoryInit { data_index, mem } => {
                let (n, s, d) = (self.pop(), self.pop(), self.pop());
                let (number, size) = (self.memory_number(mem), self.memory(mem).1);
                let segment = &self.instance.data[data_index as usize];
                let (start, length) = (segment.base - self.source.program.region, segment.size);
                self.line(&format!("memory_range({size:#x}, {d}, {n});"));
                self.line(&format!("entry_range({length:#x}, {s}, {n});"));
                let copy = self.source.copy(number, None);
                self.line(&format!("{copy}({d}, {start}u + {s}, {n});"));
            }
            Operator::DataDrop { data_index } => {
                let size = self.instance.data[data_index as usize].size;
                self.line(&format!("store32({size:#x}, 0);"));
            }
            Operator::TableGet { table } => {
                let index = self.pop();
                let entry = self.table_entry(table, index);
                let t = self.source.program.tables[self.instance.tables[table as usize]].kind;
                self.push_value(t.element, &entry);
            }
            Operator::TableSet { table } => {
                let (value, index) = (self.pop(), self.pop());
                let (base, size) = self.table(table);
                let index = self.index(index);
                self.line(&format!("table_set({base:#x}, {size:#x}, {index}, {value});"));
            }
            Operator::TableSize { table } => {
                let size = self.table(table).1;
                self.push_value(Type::I32, &format!("load32({size:#x})"));
            }
            Operator::TableGrow { table } => {
                let (delta, value) = (self.pop(), self.pop());
                let (base, size) = self.table(table);
                let room = self.source.program.tables[self.instance.tables[table as usize]].room();
                let text = format!("table_grow({base:#x}, {size:#x}, {room}, {value}, {delta})");
                self.push_value(Type::I32, &text);
            }
            Operator::TableFill { table } => {
                let (n, value, index) = (self.pop(), self.pop(), self.pop());
                let (base, size) = self.table(table);
                self.line(&format!("table_fill({base:#x}, {size:#x}, {index}, {value}, {n});"));
            }
            Operator::TableCopy { dst_table, src_table } => {
                let (n, s, d) = (self.pop(), self.pop(), self.pop());
                let ((to, to_size), (from, from_size)) =
                    (self.table(dst_table), self.table(src_table));
                self.line(&format!(
                    "table_copy({to:#x}, {to_size:#x}, {from:#x}, {from_size:#x}, {d}, {s}, {n});"
                ));
            }
            Operator::TableInit { elem_index, table } => {
                let (n, s, d) = (self.pop(), self.pop(), self.pop());
                let (base, size) = self.table(table);
                let segment = &self.instance.elements[elem_index as usize];
                let (from, length) = (segment.base, segment.size);
                self.line(&format!(
                    "table_copy({base:#x}, {size:#x}, {from:#x}, {length:#x}, {d}, {s}, {n});"
                ));
            }
            Operator::ElemDrop { elem_index } => {
                let size = self.instance.elements[elem_index as usize].size;
                self.line(&format!("store32({size:#x}, 0);"));
            }
            _ => return self.prelude(operator),
        }
        Ok(())
    }

    /// An operator that the prelude has.
    fn prelude(&mut self, operator: &Operator<'_>) -> Result<(), Error> {
        let Described { name, arity: text, memory, lanes } = describe(operator);
        let known = arity(text).zip(result_type(name));
        let Some(((arguments, results), t)) = known else {
            return Err(Error::new(format!("operator {name} is not supported")));
        };
        let mut values: Vec<String> = (0..arguments).map(|_| self.pop()).collect();
        values.reverse();
        if let Some(memarg) = memory {
            // WebAssembly 2.0 has one memory.
            let (base, _) = self.memory(0);
            values[0] = self.index(std::mem::take(&mut values[0]));
            values.insert(0, format!("{:#x}", base + memarg.offset));
        }
        values.extend(lanes.iter().map(u8::to_string));
        self.source.vectors |= is_vector(name);
        let call = format!("{name}({})", values.join(", "));
        if results == 0 {
            self.line(&format!("{call};"));
        } else {
            self.push_value(t, &call);
        }
        Ok(())
    }

    fn begin_else(&mut self) {
        let Some(frame) = self.frames.last_mut() else { return };
        frame.kind = Kind::Else;
        let (label, height) = (frame.label, frame.height);
        let arguments = frame.arguments.clone();
        if self.dead.take().is_none() {
            frame.targeted = true;
            self.line(&format!("goto L{label};"));
        }
        self.stack.truncate(height);
        self.stack.extend(arguments);
        self.line(&format!("E{label}:;"));
    }

    fn end(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        if frame.kind == Kind::If {
            self.line(&format!("E{}:;", frame.label));
            self.dead = None;
        }
        if frame.kind != Kind::Loop && frame.targeted {
            self.line(&format!("L{}:;", frame.label));
            self.dead = None;
        }
        if self.dead.is_none() {
            self.stack.truncate(frame.height);
            for &t in &frame.results {
                self.push(t);
            }
        } else {
            self.dead = Some(0);
        }
    }

    /// A call of a C function; the table's entry is its first argument if there is one.
    fn call(&mut self, name: &str, entry: Option<String>, kind: &FunctionType) {
        let base = self.stack.len() - kind.arguments.len();
        let mut values: Vec<String> = entry.into_iter().collect();
        for (n, passed) in passing(&kind.arguments).into_iter().enumerate() {
            let t = kind.arguments[n];
            let value = variable(base + n, t);
            match passed {
                Passed::Register => values.push(value),
                Passed::Slot(slot) => {
                    let slot = self.source.slot(slot, t);
                    self.line(&format!("{slot} = {value};"));
                }
            }
        }
        self.stack.truncate(base);
        let call = format!("{name}({})", values.join(", "));
        match kind.results.first() {
            None => self.line(&format!("{call};")),
            Some(&t) => self.push_value(t, &call),
        }
        for (n, &t) in kind.results.iter().enumerate().skip(1) {
            let slot = self.source.slot(n - 1, t);
            self.push_value(t, &slot);
        }
    }

    /// Address and place of the size of a memory.
    fn memory(&self, index: u32) -> (u64, u64) {
        let memory = &self.source.program.memories[self.instance.memories[index as usize]];
        (memory.base, memory.size)
    }

    fn memory_number(&self, index: u32) -> usize {
        self.instance.memories[index as usize]
    }

    /// Address and place of the size of a table.
    fn table(&self, index: u32) -> (u64, u64) {
        let table = &self.source.program.tables[self.instance.tables[index as usize]];
        (table.base, table.size)
    }

    /// An index of an access.
    fn index(&self, index: String) -> String {
        if self.opaque {
            format!("opaque({index})")
        } else {
            index
        }
    }

    fn table_entry(&self, table: u32, index: String) -> String {
        let (base, size) = self.table(table);
        let index = self.index(index);
        format!("table_get({base:#x}, {size:#x}, {index})")
    }
}
