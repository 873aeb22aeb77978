//! One function of WebAssembly for Cranelift: places of the operand stack are values, blocks are blocks.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{Block, InstBuilder, Value};
use cranelift_frontend::Variable;
use wasmparser::{BlockType, BrTable, Operator};

use super::emit::Emit;
use super::{clif_type, symbol, Symbol};
use crate::function::describe;
use crate::program::{passing, Function, Instance, Passed};
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
    /// Where branches lead: the start of a loop, the end of all others.
    target: Block,
    /// Where an `if` continues without its condition, with these values.
    other: Option<(Block, Vec<Value>)>,
    /// Height of the stack below its arguments.
    height: usize,
    arguments: Vec<Type>,
    results: Vec<Type>,
    /// A branch leads to its end.
    targeted: bool,
}

pub(super) struct Translator<'e, 'b, 'u, 'p, 'a> {
    pub emit: &'e mut Emit<'b, 'u, 'p, 'a>,
    instance: &'p Instance<'a>,
    locals: Vec<(Variable, Type)>,
    pub stack: Vec<(Value, Type)>,
    frames: Vec<Frame>,
    /// How many blocks within code that cannot be reached are open; none if code can be reached.
    dead: Option<u32>,
}

/// Translates a module's own function.
pub(super) fn translate(
    emit: &mut Emit<'_, '_, '_, '_>,
    number: usize,
    index: usize,
) -> Result<(), Error> {
    let program = emit.unit.program;
    let instance = &program.instances[number];
    let kind = program.function_type(Function::Own(number, index));
    let mut registers = emit.begin().into_iter();
    let mut locals = Vec::new();
    for (passed, &t) in passing(&kind.arguments).into_iter().zip(&kind.arguments) {
        let value = match passed {
            Passed::Register => registers.next(),
            Passed::Slot(slot) => Some(emit.load_slot(slot, t)),
        };
        locals.push((value, t));
    }
    for group in instance.module.bodies[index].get_locals_reader()? {
        let (count, t) = group?;
        let t = named_type(t)?;
        let zero = emit.zero(t);
        locals.extend((0..count).map(|_| (Some(zero), t)));
    }
    let declare = |(value, t): (Option<Value>, Type)| {
        let variable = emit.b.declare_var(clif_type(t));
        if let Some(value) = value {
            emit.b.def_var(variable, value);
        }
        (variable, t)
    };
    let locals = locals.into_iter().map(declare).collect();
    let mut this =
        Translator { emit, instance, locals, stack: Vec::new(), frames: Vec::new(), dead: None };
    this.open(Kind::Block, Vec::new(), kind.results.clone());
    for operator in instance.module.bodies[index].get_operators_reader()?.into_iter_with_offsets() {
        let (operator, offset) = operator?;
        this.operator(&operator)
            .map_err(|error| Error::new(format!("{error} (at byte {offset:#x})")))?;
    }
    if this.dead.is_none() {
        let values = this.values(kind.results.len());
        for (n, &value) in values.iter().enumerate().skip(1) {
            this.emit.store_slot(n - 1, value);
        }
        this.emit.b.ins().return_(&values[..values.len().min(1)]);
    }
    Ok(())
}

impl Translator<'_, '_, '_, '_, '_> {
    pub fn pop(&mut self) -> Value {
        match self.stack.pop() {
            Some((value, _)) => value,
            // The module was validated: there is one.
            None => self.emit.zero(Type::I32),
        }
    }

    pub fn push(&mut self, value: Value, t: Type) {
        self.stack.push((value, t));
    }

    /// The last values, which stay on the stack.
    fn values(&self, count: usize) -> Vec<Value> {
        self.stack[self.stack.len() - count..].iter().map(|&(value, _)| value).collect()
    }

    /// The last values, which are taken off.
    fn take(&mut self, count: usize) -> Vec<Value> {
        let values = self.values(count);
        self.stack.truncate(self.stack.len() - count);
        values
    }

    fn pop3(&mut self) -> [Value; 3] {
        let (n, s, d) = (self.pop(), self.pop(), self.pop());
        [d, s, n]
    }

    fn push_parameters(&mut self, block: Block, types: &[Type]) {
        let values = self.emit.b.block_params(block).to_vec();
        self.stack.extend(values.into_iter().zip(types.iter().copied()));
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

    fn open(&mut self, kind: Kind, arguments: Vec<Type>, results: Vec<Type>) {
        let height = self.stack.len() - arguments.len();
        let target = self.emit.block(if kind == Kind::Loop { &arguments } else { &results });
        let targeted = false;
        let frame = Frame { kind, target, other: None, height, arguments, results, targeted };
        self.frames.push(frame);
    }

    /// Where a branch leads, and the values that it takes.
    fn branch(&mut self, depth: u32) -> (Block, Vec<Value>) {
        let n = self.frames.len() - 1 - depth as usize;
        let frame = &mut self.frames[n];
        frame.targeted = true;
        let types = if frame.kind == Kind::Loop { &frame.arguments } else { &frame.results };
        let (count, target) = (types.len(), frame.target);
        (target, self.values(count))
    }

    fn go(&mut self, depth: u32) {
        let (target, values) = self.branch(depth);
        self.emit.jump(target, &values);
        self.dead = Some(0);
    }

    /// A tree of comparisons: `runs` have the first index of each run of equal depths.
    fn choose(&mut self, index: Value, runs: &[(u32, u32)]) {
        if let [(_, depth)] = runs {
            return self.go(*depth);
        }
        let (low, high) = runs.split_at(runs.len() / 2);
        let (below, above) = (self.emit.b.create_block(), self.emit.b.create_block());
        let first = self.emit.i32(high[0].0);
        let less = self.emit.b.ins().icmp(IntCC::UnsignedLessThan, index, first);
        self.emit.jump_if(less, below, &[], above);
        self.emit.enter(below);
        self.choose(index, low);
        self.emit.enter(above);
        self.choose(index, high);
    }

    fn br_table(&mut self, targets: &BrTable<'_>) -> Result<(), Error> {
        let index = self.pop();
        let mut runs: Vec<(u32, u32)> = Vec::new();
        let depths = targets.targets().chain([Ok(targets.default())]);
        for (n, depth) in depths.enumerate() {
            let depth = depth?;
            if runs.last().is_none_or(|&(_, last)| last != depth) {
                runs.push((n as u32, depth));
            }
        }
        self.choose(index, &runs);
        Ok(())
    }

    fn begin_else(&mut self) {
        let Some(mut frame) = self.frames.pop() else { return };
        self.leave(&mut frame);
        self.begin_other(&mut frame);
        self.frames.push(frame);
    }

    /// Goes to the end of a block, if this place is reached.
    fn leave(&mut self, frame: &mut Frame) {
        if self.dead.is_none() {
            let values = self.values(frame.results.len());
            self.emit.jump(frame.target, &values);
            frame.targeted = true;
        }
        self.stack.truncate(frame.height);
    }

    fn begin_other(&mut self, frame: &mut Frame) {
        let Some((block, values)) = frame.other.take() else { return };
        frame.kind = Kind::Else;
        self.emit.enter(block);
        self.stack.extend(values.into_iter().zip(frame.arguments.iter().copied()));
        self.dead = None;
    }

    fn end(&mut self) {
        let Some(mut frame) = self.frames.pop() else { return };
        if frame.kind == Kind::Loop {
            self.emit.b.seal_block(frame.target);
            if self.dead.is_some() {
                self.dead = Some(0);
            }
            return;
        }
        self.leave(&mut frame);
        if frame.kind == Kind::If {
            self.begin_other(&mut frame);
            self.leave(&mut frame);
        }
        self.dead = Some(0);
        if frame.targeted {
            self.emit.enter(frame.target);
            self.push_parameters(frame.target, &frame.results);
            self.dead = None;
        }
    }

    /// What a block does not reach.
    fn skip(&mut self, operator: &Operator<'_>, depth: u32) -> bool {
        match operator {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => {
                self.dead = Some(depth + 1);
            }
            Operator::End if depth > 0 => self.dead = Some(depth - 1),
            Operator::End => return false,
            Operator::Else if depth == 0 => return false,
            _ => (),
        }
        true
    }

    fn operator(&mut self, operator: &Operator<'_>) -> Result<(), Error> {
        if self.dead.is_some_and(|depth| self.skip(operator, depth)) {
            return Ok(());
        }
        match *operator {
            Operator::Nop => (),
            Operator::Unreachable => {
                self.emit.trap();
                self.dead = Some(0);
            }
            Operator::Block { blockty } => {
                let t = self.block_type(blockty)?;
                self.open(Kind::Block, t.arguments, t.results);
            }
            Operator::Loop { blockty } => {
                let t = self.block_type(blockty)?;
                let values = self.take(t.arguments.len());
                let types = t.arguments.clone();
                self.stack.extend(values.iter().copied().zip(types.iter().copied()));
                self.open(Kind::Loop, t.arguments, t.results);
                let head = self.frames[self.frames.len() - 1].target;
                self.emit.jump(head, &values);
                self.emit.b.switch_to_block(head);
                self.stack.truncate(self.stack.len() - types.len());
                self.push_parameters(head, &types);
            }
            Operator::If { blockty } => {
                let t = self.block_type(blockty)?;
                let condition = self.pop();
                let values = self.values(t.arguments.len());
                self.open(Kind::If, t.arguments, t.results);
                let (then, other) = (self.emit.b.create_block(), self.emit.b.create_block());
                self.emit.jump_if(condition, then, &[], other);
                self.emit.enter(then);
                if let Some(frame) = self.frames.last_mut() {
                    frame.other = Some((other, values));
                }
            }
            Operator::Else => self.begin_else(),
            Operator::End => self.end(),
            Operator::Br { relative_depth } => self.go(relative_depth),
            Operator::BrIf { relative_depth } => {
                let condition = self.pop();
                let (target, values) = self.branch(relative_depth);
                let next = self.emit.b.create_block();
                self.emit.jump_if(condition, target, &values, next);
                self.emit.enter(next);
            }
            Operator::BrTable { ref targets } => self.br_table(targets)?,
            Operator::Return => self.go(self.frames.len() as u32 - 1),
            Operator::Call { function_index } => {
                let function = self.instance.functions[function_index as usize];
                let kind = self.emit.unit.program.function_type(function);
                let arguments = self.take(kind.arguments.len());
                let results = self.emit.call(symbol(function), kind, &arguments);
                self.stack.extend(results.into_iter().zip(kind.results.iter().copied()));
            }
            Operator::CallIndirect { type_index, table_index } => {
                let index = self.pop();
                let table = self.table(table_index);
                let reference = self.emit.table_get(table, index);
                let kind = &self.instance.module.types[type_index as usize];
                let arguments = self.take(kind.arguments.len());
                let results = self.emit.call_reference(reference, kind, &arguments);
                self.stack.extend(results.into_iter().zip(kind.results.iter().copied()));
            }
            Operator::Drop => {
                // A load that can trap stays.
                self.pop();
            }
            Operator::Select | Operator::TypedSelect { .. } => {
                let condition = self.pop();
                let other = self.pop();
                let t = self.stack.last().map_or(Type::I32, |&(_, t)| t);
                let one = self.pop();
                let value = self.emit.b.ins().select(condition, one, other);
                self.push(value, t);
            }
            Operator::LocalGet { local_index } => {
                let (variable, t) = self.locals[local_index as usize];
                let value = self.emit.b.use_var(variable);
                self.push(value, t);
            }
            Operator::LocalSet { local_index } => {
                let value = self.pop();
                self.emit.b.def_var(self.locals[local_index as usize].0, value);
            }
            Operator::LocalTee { local_index } => {
                let value = self.values(1)[0];
                self.emit.b.def_var(self.locals[local_index as usize].0, value);
            }
            Operator::GlobalGet { global_index } => {
                let global = self.instance.globals[global_index as usize];
                let t = self.emit.unit.program.globals[global].kind.value;
                let value = self.emit.global(global);
                self.push(value, t);
            }
            Operator::GlobalSet { global_index } => {
                let value = self.pop();
                let global = self.instance.globals[global_index as usize];
                self.emit.store(value, self.emit.unit.program.globals[global].address);
            }
            Operator::RefNull { hty } => {
                let t = null_type(hty)?;
                let zero = self.emit.zero(t);
                self.push(zero, t);
            }
            Operator::RefIsNull => {
                let value = self.pop();
                let zero = self.emit.i32(0);
                let null = self.emit.b.ins().icmp(IntCC::Equal, value, zero);
                let null = self.emit.b.ins().uextend(I32, null);
                self.push(null, Type::I32);
            }
            Operator::RefFunc { function_index } => {
                let function = self.instance.functions[function_index as usize];
                let unit = &mut *self.emit.unit;
                let code = unit.references.value(unit.program, function)?;
                let code = self.emit.i32(code);
                self.push(code, Type::Funcref);
            }
            _ => return self.memory_or_table(operator),
        }
        Ok(())
    }

    fn memory_or_table(&mut self, operator: &Operator<'_>) -> Result<(), Error> {
        let program = self.emit.unit.program;
        match *operator {
            Operator::MemorySize { mem } => {
                let size = self.emit.load(I32, self.memory(mem).1);
                self.push(size, Type::I32);
            }
            Operator::MemoryGrow { mem } => {
                let count = self.pop();
                let symbol = Symbol::GrowMemory(self.instance.memories[mem as usize]);
                let old = self.emit.call_runtime(symbol, &[count])[0];
                self.push(old, Type::I32);
            }
            Operator::MemoryCopy { dst_mem, src_mem } => {
                let [d, s, n] = self.pop3();
                self.emit.memory_range(self.memory(dst_mem).1, d, n);
                self.emit.memory_range(self.memory(src_mem).1, s, n);
                let number = |n: u32| Some(self.instance.memories[n as usize]);
                let symbol = Symbol::Copy(number(dst_mem), number(src_mem));
                self.emit.call_runtime(symbol, &[d, s, n]);
            }
            Operator::MemoryFill { mem } => {
                let [d, value, n] = self.pop3();
                self.emit.memory_range(self.memory(mem).1, d, n);
                let symbol = Symbol::Fill(self.instance.memories[mem as usize]);
                self.emit.call_runtime(symbol, &[d, value, n]);
            }
            Operator::MemoryInit { data_index, mem } => {
                let [d, s, n] = self.pop3();
                let segment = &self.instance.data[data_index as usize];
                self.emit.memory_range(self.memory(mem).1, d, n);
                self.emit.entry_range(segment.size, s, n);
                let start = self.emit.i32((segment.base - program.region) as u32);
                let from = self.emit.b.ins().iadd(s, start);
                let symbol = Symbol::Copy(Some(self.instance.memories[mem as usize]), None);
                self.emit.call_runtime(symbol, &[d, from, n]);
            }
            Operator::DataDrop { data_index } => {
                let zero = self.emit.i32(0);
                self.emit.store(zero, self.instance.data[data_index as usize].size);
            }
            Operator::TableGet { table } => {
                let index = self.pop();
                let t = program.tables[self.instance.tables[table as usize]].kind.element;
                let entry = self.emit.table_get(self.table(table), index);
                self.push(entry, t);
            }
            Operator::TableSet { table } => {
                let (value, index) = (self.pop(), self.pop());
                self.emit.table_set(self.table(table), index, value);
            }
            Operator::TableSize { table } => {
                let size = self.emit.load(I32, self.table(table).1);
                self.push(size, Type::I32);
            }
            Operator::TableGrow { table } => self.table_grow(table),
            Operator::TableFill { table } => {
                let [index, value, n] = self.pop3();
                let (base, size) = self.table(table);
                self.emit.entry_range(size, index, n);
                let to = self.emit.entry_distance(base, index);
                self.emit.call_runtime(Symbol::FillEntries, &[to, value, n]);
            }
            Operator::TableCopy { dst_table, src_table } => {
                let range = self.pop3();
                self.emit.table_copy(self.table(dst_table), self.table(src_table), range);
            }
            Operator::TableInit { elem_index, table } => {
                let range = self.pop3();
                let segment = &self.instance.elements[elem_index as usize];
                self.emit.table_copy(self.table(table), (segment.base, segment.size), range);
            }
            Operator::ElemDrop { elem_index } => {
                let zero = self.emit.i32(0);
                self.emit.store(zero, self.instance.elements[elem_index as usize].size);
            }
            _ => {
                let known = self.access(operator)?
                    || self.number(operator)?
                    || self.lanes(operator)?
                    || self.vector_bits(operator)?
                    || self.vector(operator)?;
                if !known {
                    return Err(Error::new(format!(
                        "operator {} is not supported",
                        describe(operator).name
                    )));
                }
            }
        }
        Ok(())
    }

    /// The old size if there is room, else -1.
    fn table_grow(&mut self, table: u32) {
        let (count, value) = (self.pop(), self.pop());
        let (base, size) = self.table(table);
        let room = self.emit.unit.program.tables[self.instance.tables[table as usize]].room();
        let old = self.emit.load(I32, size);
        let (wide, more) = (self.emit.extend(old), self.emit.extend(count));
        let sum = self.emit.b.ins().iadd(wide, more);
        let room = self.emit.b.ins().iconst(I64, i64::from(room));
        let fits = self.emit.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, sum, room);
        let (grows, after) = (self.emit.b.create_block(), self.emit.block(&[Type::I32]));
        let fails = self.emit.b.create_block();
        self.emit.jump_if(fits, grows, &[], fails);
        self.emit.enter(fails);
        let none = self.emit.i32(u32::MAX);
        self.emit.jump(after, &[none]);
        self.emit.enter(grows);
        let to = self.emit.entry_distance(base, old);
        self.emit.call_runtime(Symbol::FillEntries, &[to, value, count]);
        let new = self.emit.b.ins().iadd(old, count);
        self.emit.store(new, size);
        self.emit.jump(after, &[old]);
        self.emit.enter(after);
        self.push_parameters(after, &[Type::I32]);
    }

    /// Address and place of the size of a memory.
    pub(super) fn memory(&self, index: u32) -> (u64, u64) {
        let program = self.emit.unit.program;
        let memory = &program.memories[self.instance.memories[index as usize]];
        (memory.base, memory.size)
    }

    /// Address and place of the size of a table.
    fn table(&self, index: u32) -> (u64, u64) {
        let table = &self.emit.unit.program.tables[self.instance.tables[index as usize]];
        (table.base, table.size)
    }
}
