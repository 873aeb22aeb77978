//! Functions of the runtime: the entry, starts of modules, copies and fills.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I8, I8X16};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, Value};
use kyozon_typed_manifest::START;

use super::emit::Emit;
use super::{symbol, Symbol};
use crate::exports::Exported;
use crate::program::{passing, Function, Passed};
use crate::start::{Offset, Step};
use crate::wasm::Type;
use crate::Error;

impl Emit<'_, '_, '_, '_> {
    /// The entry: calls an export or a start function by its number.
    pub(super) fn entry(&mut self, exports: &[(Option<Function>, Exported)]) -> Result<(), Error> {
        let number = self.begin()[0];
        let number = self.b.ins().ireduce(I32, number);
        for n in 0..self.unit.program.instances.len() {
            let next = self.case(number, START + n as u32);
            self.call(Symbol::Start(n), &Default::default(), &[]);
            self.b.ins().return_(&[]);
            self.enter(next);
        }
        for (function, export) in exports {
            let Some(function) = *function else { continue };
            let kind = self.unit.program.function_type(function).clone();
            let next = self.case(number, export.number);
            let mut arguments = Vec::new();
            for (n, &t) in kind.arguments.iter().enumerate() {
                arguments.push(self.load_slot(n, t));
            }
            let results = self.call(symbol(function), &kind, &arguments);
            for (n, &value) in results.iter().enumerate() {
                self.store_slot(n, value);
            }
            self.b.ins().return_(&[]);
            self.enter(next);
        }
        self.trap();
        Ok(())
    }

    /// Continues if a number is this one. Else it goes to the block that is returned.
    fn case(&mut self, number: Value, expected: u32) -> ir::Block {
        let (same, next) = (self.b.create_block(), self.b.create_block());
        let expected = self.i32(expected);
        let equal = self.b.ins().icmp(IntCC::Equal, number, expected);
        self.jump_if(equal, same, &[], next);
        self.enter(same);
        next
    }

    /// The start of a module.
    pub(super) fn start(&mut self, steps: &[Step<'_>]) -> Result<(), Error> {
        let program = self.unit.program;
        self.begin();
        for step in steps {
            match *step {
                Step::Global { to, from } => {
                    let value = self.global(from);
                    self.store(value, program.globals[to].address);
                }
                Step::Entry { at, from } => {
                    let value = self.global(from);
                    self.store(value, at);
                }
                Step::Elements { table, segment, offset, length } => {
                    let table = &program.tables[table];
                    let offset = self.offset(offset);
                    let (zero, length) = (self.i32(0), self.i32(length));
                    let from = (segment.base, segment.size);
                    self.table_copy((table.base, table.size), from, [offset, zero, length]);
                    let zero = self.i32(0);
                    self.store(zero, segment.size);
                }
                Step::Data { memory, segment, offset } => {
                    let offset = self.offset(offset);
                    let length = self.i32(segment.length);
                    let start = self.i32((segment.base - program.region) as u32);
                    self.memory_range(program.memories[memory].size, offset, length);
                    self.call_runtime(Symbol::Copy(Some(memory), None), &[offset, start, length]);
                }
                Step::Call(function) => {
                    let kind = program.function_type(function);
                    self.call(symbol(function), kind, &[]);
                }
            }
        }
        self.b.ins().return_(&[]);
        Ok(())
    }

    fn offset(&mut self, offset: Offset) -> Value {
        match offset {
            Offset::Constant(n) => self.i32(n),
            Offset::Global(n) => self.global(n),
        }
    }

    /// A function that others call.
    pub(super) fn runtime(&mut self, symbol: Symbol) -> Result<(), Error> {
        let arguments = self.begin();
        match symbol {
            Symbol::GrowMemory(n) => self.grow(n, arguments[0]),
            Symbol::Copy(to, from) => {
                self.copy(to, from, [arguments[0], arguments[1], arguments[2]])
            }
            Symbol::Fill(n) => self.fill(n, [arguments[0], arguments[1], arguments[2]]),
            Symbol::FillEntries => self.fill_entries([arguments[0], arguments[1], arguments[2]]),
            Symbol::Wrapper(n) => {
                // Arguments and results in slots stay there.
                let mut kind = self.unit.program.host[n].kind.clone();
                let mut passed = passing(&kind.arguments).into_iter();
                kind.arguments.retain(|_| passed.next() == Some(Passed::Register));
                kind.results.truncate(1);
                let results = self.call(Symbol::Host(n), &kind, &arguments);
                self.b.ins().return_(&results);
            }
            _ => return Err(Error::new(format!("no function of the runtime: {symbol:?}"))),
        }
        Ok(())
    }

    fn grow(&mut self, n: usize, count: Value) {
        let memory = &self.unit.program.memories[n];
        let (size, most) = (memory.size, memory.most());
        let fails = self.b.create_block();
        let (small, grown) = (self.b.create_block(), self.b.create_block());
        let old = self.load(I32, size);
        let (wide, more) = (self.extend(old), self.extend(count));
        let sum = self.b.ins().iadd(wide, more);
        let too_many = self.b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, sum, i64::from(most));
        self.jump_if(too_many, fails, &[], small);
        self.enter(small);
        let new = self.b.ins().iadd(old, count);
        let number = self.i32(n as u32);
        let done = self.call_runtime(Symbol::Grow, &[number, new])[0];
        self.jump_if(done, grown, &[], fails);
        self.enter(grown);
        self.store(new, size);
        self.b.ins().return_(&[old]);
        self.enter(fails);
        let none = self.i32(u32::MAX);
        self.b.ins().return_(&[none]);
    }

    /// The address that indices of a memory are added to; the region's start for the runtime's memory.
    fn base(&self, memory: Option<usize>) -> u64 {
        memory.map_or(self.unit.program.region, |n| self.unit.program.memories[n].base)
    }

    /// An address: an index without its constant part, and that part.
    pub(super) fn address(&mut self, base: u64, index: Value) -> (Value, i32) {
        let index = self.extend(index);
        match i32::try_from(base) {
            Ok(base) => (index, base),
            Err(_) => (self.b.ins().iadd_imm_u(index, base as i64), 0),
        }
    }

    /// Moves bytes of one type from one index to another.
    fn move_one(
        &mut self,
        t: ir::Type,
        (to_base, to): (u64, Value),
        (from_base, from): (u64, Value),
    ) {
        let (address, base) = self.address(from_base, from);
        let value = self.b.ins().load(t, MemFlagsData::new(), address, base);
        let (address, base) = self.address(to_base, to);
        self.b.ins().store(MemFlagsData::new(), value, address, base);
    }

    /// Copies 16 bytes at a time, in the direction that overlapping ranges need.
    fn copy(&mut self, to: Option<usize>, from: Option<usize>, [d, s, count]: [Value; 3]) {
        let (to_base, from_base) = (self.base(to), self.base(from));
        if to == from {
            let (forward, backward) = (self.b.create_block(), self.b.create_block());
            let distance = self.b.ins().isub(d, s);
            let apart = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, distance, count);
            self.jump_if(apart, forward, &[], backward);
            self.enter(backward);
            let mut left = [count];
            for (t, bytes) in [(I8X16, 16), (I8, 1)] {
                left = self.repeat(left, bytes, |this, [left]| {
                    let left = this.plus(left, -bytes);
                    let to = this.b.ins().iadd(d, left);
                    let from = this.b.ins().iadd(s, left);
                    this.move_one(t, (to_base, to), (from_base, from));
                    [left]
                });
            }
            self.b.ins().return_(&[]);
            self.enter(forward);
        }
        let mut state = [count, d, s];
        for (t, bytes) in [(I8X16, 16), (I8, 1)] {
            state = self.repeat(state, bytes, |this, [left, to, from]| {
                this.move_one(t, (to_base, to), (from_base, from));
                [this.plus(left, -bytes), this.plus(to, bytes), this.plus(from, bytes)]
            });
        }
        self.b.ins().return_(&[]);
    }

    /// A loop over some state, as long as its first number is at least `step`.
    fn repeat<const N: usize>(
        &mut self,
        start: [Value; N],
        step: i32,
        body: impl FnOnce(&mut Self, [Value; N]) -> [Value; N],
    ) -> [Value; N] {
        let head = self.block(&[Type::I32; N]);
        let (inside, after) = (self.b.create_block(), self.b.create_block());
        self.jump(head, &start);
        self.b.switch_to_block(head);
        let mut state = start;
        state.copy_from_slice(self.b.block_params(head));
        let least = self.i32(step as u32);
        let more = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, state[0], least);
        self.jump_if(more, inside, &[], after);
        self.enter(inside);
        let next = body(self, state);
        self.jump(head, &next);
        self.b.seal_block(head);
        self.enter(after);
        state
    }

    fn fill(&mut self, n: usize, [to, value, count]: [Value; 3]) {
        let base = self.base(Some(n));
        let byte = self.b.ins().ireduce(I8, value);
        let vector = self.b.ins().splat(I8X16, byte);
        let mut state = [count, to];
        for (value, bytes) in [(vector, 16), (byte, 1)] {
            state = self.repeat(state, bytes, |this, [left, to]| {
                let (address, base) = this.address(base, to);
                this.b.ins().store(MemFlagsData::new(), value, address, base);
                [this.plus(left, -bytes), this.plus(to, bytes)]
            });
        }
        self.b.ins().return_(&[]);
    }

    /// Fills entries of tables: distance from the region's start, value, count.
    fn fill_entries(&mut self, [to, value, count]: [Value; 3]) {
        let base = self.base(None);
        self.repeat([count, to], 1, |this, [left, to]| {
            let (address, base) = this.address(base, to);
            this.b.ins().store(MemFlagsData::new(), value, address, base);
            [this.plus(left, -1), this.plus(to, 4)]
        });
        self.b.ins().return_(&[]);
    }
}
