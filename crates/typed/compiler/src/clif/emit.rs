//! What functions of modules and of the runtime are made of.

use std::collections::HashMap;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{
    self, Block, BlockArg, ExtFuncData, ExternalName, FuncRef, InstBuilder, MemFlagsData, TrapCode,
    UserExternalName, Value,
};
use cranelift_frontend::FunctionBuilder;
use kyozon_typed_manifest::SLOT;

use super::{clif_type, signature, Symbol, Unit};
use crate::program::{passing, Passed};
use crate::references::INDEX;
use crate::wasm::{FunctionType, Type};

/// All traps are one: `ud2`.
pub(super) const TRAP: TrapCode = TrapCode::unwrap_user(1);

/// A function that is being made.
pub(crate) struct Emit<'b, 'u, 'p, 'a> {
    pub b: FunctionBuilder<'b>,
    pub unit: &'u mut Unit<'p, 'a>,
    imported: HashMap<Symbol, FuncRef>,
}

impl<'b, 'u, 'p, 'a> Emit<'b, 'u, 'p, 'a> {
    pub fn new(b: FunctionBuilder<'b>, unit: &'u mut Unit<'p, 'a>) -> Self {
        Emit { b, unit, imported: HashMap::new() }
    }

    /// The first block; its parameters are the arguments in registers.
    pub fn begin(&mut self) -> Vec<Value> {
        let block = self.b.create_block();
        self.b.append_block_params_for_function_params(block);
        self.b.switch_to_block(block);
        self.b.seal_block(block);
        self.b.block_params(block).to_vec()
    }

    pub fn i32(&mut self, n: u32) -> Value {
        self.b.ins().iconst(I32, i64::from(n))
    }

    /// A number of 32 bits plus a constant.
    pub fn plus(&mut self, value: Value, n: i32) -> Value {
        let n = self.i32(n as u32);
        self.b.ins().iadd(value, n)
    }

    /// A 32-bit index as a part of an address.
    pub fn extend(&mut self, index: Value) -> Value {
        self.b.ins().uextend(I64, index)
    }

    /// The region's start, and the distance of an address in the runtime's memory.
    fn place(&mut self, address: u64) -> (Value, i32) {
        let region = self.unit.program.region;
        (self.b.ins().iconst(I64, region as i64), (address - region) as i32)
    }

    /// Loads from the runtime's memory, which does not fault.
    pub fn load(&mut self, t: ir::Type, address: u64) -> Value {
        let (base, distance) = self.place(address);
        self.b.ins().load(t, MemFlagsData::trusted(), base, distance)
    }

    pub fn store(&mut self, value: Value, address: u64) {
        let (base, distance) = self.place(address);
        self.b.ins().store(MemFlagsData::trusted(), value, base, distance);
    }

    /// The address of a slot of the call area.
    fn slot(&self, n: usize) -> u64 {
        self.unit.program.region + (n * SLOT) as u64
    }

    pub fn load_slot(&mut self, n: usize, t: Type) -> Value {
        self.load(clif_type(t), self.slot(n))
    }

    pub fn store_slot(&mut self, n: usize, value: Value) {
        self.store(value, self.slot(n));
    }

    pub fn global(&mut self, n: usize) -> Value {
        let global = &self.unit.program.globals[n];
        self.load(clif_type(global.kind.value), global.address)
    }

    pub fn trap_if(&mut self, condition: Value) {
        self.b.ins().trapnz(condition, TRAP);
    }

    pub fn trap(&mut self) {
        self.b.ins().trap(TRAP);
    }

    pub fn jump(&mut self, to: Block, values: &[Value]) {
        let values: Vec<BlockArg> = values.iter().map(|&v| v.into()).collect();
        self.b.ins().jump(to, &values);
    }

    /// Goes to a block with values if a condition holds, else to one without.
    pub fn jump_if(&mut self, condition: Value, to: Block, values: &[Value], other: Block) {
        let values: Vec<BlockArg> = values.iter().map(|&v| v.into()).collect();
        self.b.ins().brif(condition, to, &values, other, &[]);
    }

    /// A block with parameters of these types.
    pub fn block(&mut self, types: &[Type]) -> Block {
        let block = self.b.create_block();
        for &t in types {
            self.b.append_block_param(block, clif_type(t));
        }
        block
    }

    /// Continues in a block that is branched to from all places already.
    pub fn enter(&mut self, block: Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
    }

    fn imported(&mut self, symbol: Symbol, kind: &FunctionType) -> FuncRef {
        if let Some(&known) = self.imported.get(&symbol) {
            return known;
        }
        let signature = self.b.import_signature(signature(kind));
        let name = UserExternalName { namespace: 0, index: self.unit.number(symbol) };
        let name = ExternalName::user(self.b.func.declare_imported_user_function(name));
        let function = self.b.import_function(ExtFuncData {
            name,
            signature,
            colocated: true,
            patchable: false,
        });
        self.imported.insert(symbol, function);
        function
    }

    /// Arguments of a call: those in registers; the others go to their slots.
    fn pass(&mut self, kind: &FunctionType, arguments: &[Value]) -> Vec<Value> {
        let mut registers = Vec::new();
        for (passed, &value) in passing(&kind.arguments).into_iter().zip(arguments) {
            match passed {
                Passed::Register => registers.push(value),
                Passed::Slot(slot) => self.store_slot(slot, value),
            }
        }
        registers
    }

    /// The results of a call, the first of which is in a register.
    fn results(&mut self, kind: &FunctionType, call: ir::Inst) -> Vec<Value> {
        let mut values = self.b.inst_results(call).to_vec();
        for (n, &t) in kind.results.iter().enumerate().skip(1) {
            values.push(self.load_slot(n - 1, t));
        }
        values
    }

    /// Calls a function.
    pub fn call(&mut self, symbol: Symbol, kind: &FunctionType, arguments: &[Value]) -> Vec<Value> {
        let registers = self.pass(kind, arguments);
        let function = self.imported(symbol, kind);
        let call = self.b.ins().call(function, &registers);
        self.results(kind, call)
    }

    /// Calls a function of the runtime.
    pub fn call_runtime(&mut self, symbol: Symbol, arguments: &[Value]) -> Vec<Value> {
        let kind = self.unit.runtime_type(symbol);
        self.call(symbol, &kind, arguments)
    }

    /// Calls by a reference to a function. Its type is compared, and its index is bounded again.
    pub fn call_reference(
        &mut self,
        reference: Value,
        kind: &FunctionType,
        arguments: &[Value],
    ) -> Vec<Value> {
        let (number, count) = self.unit.table(kind);
        if count == 0 {
            // No reference has this type.
            let always = self.i32(1);
            self.trap_if(always);
            let mut zeros = Vec::new();
            for &t in &kind.results {
                zeros.push(self.zero(t));
            }
            return zeros;
        }
        let registers = self.pass(kind, arguments);
        let found = self.b.ins().ushr_imm_u(reference, i64::from(INDEX));
        let other = self.b.ins().icmp_imm_u(IntCC::NotEqual, found, i64::from(number));
        self.trap_if(other);
        let mask = count.next_power_of_two() - 1;
        let index = self.b.ins().band_imm_u(reference, mask as i64);
        let index = self.extend(index);
        let distance = self.b.ins().ishl_imm_u(index, 3);
        // Only its address is taken.
        let table = self.imported(Symbol::Table(number), kind);
        let table = self.b.ins().func_addr(I64, table);
        let entry = self.b.ins().iadd(table, distance);
        let code = self.b.ins().load(I64, MemFlagsData::trusted().with_readonly(), entry, 0);
        let signature = self.b.import_signature(signature(kind));
        let call = self.b.ins().call_indirect(signature, code, &registers);
        self.results(kind, call)
    }

    /// The value 0, or no reference.
    pub fn zero(&mut self, t: Type) -> Value {
        match t {
            Type::I32 | Type::Funcref | Type::Externref => self.b.ins().iconst(I32, 0),
            Type::I64 => self.b.ins().iconst(I64, 0),
            Type::F32 => self.b.ins().f32const(0.0),
            Type::F64 => self.b.ins().f64const(0.0),
            Type::V128 => {
                let zero = self.b.func.dfg.constants.insert(vec![0; 16].into());
                self.b.ins().vconst(ir::types::I8X16, zero)
            }
        }
    }

    /// Traps if a range does not lie within what has so many bytes or entries, a number of 64 bits.
    fn range(&mut self, size: Value, start: Value, count: Value) {
        let (start, count) = (self.extend(start), self.extend(count));
        let end = self.b.ins().iadd(start, count);
        let outside = self.b.ins().icmp(IntCC::UnsignedGreaterThan, end, size);
        self.trap_if(outside);
    }

    /// Traps if a range does not lie within a memory; its size in pages is at this address.
    pub fn memory_range(&mut self, size: u64, start: Value, count: Value) {
        let pages = self.load(I32, size);
        let pages = self.extend(pages);
        let bytes = self.b.ins().ishl_imm_u(pages, 16);
        self.range(bytes, start, count);
    }

    /// Traps if a range does not lie within a table or segment; its size is at this address.
    pub fn entry_range(&mut self, size: u64, start: Value, count: Value) {
        let entries = self.load(I32, size);
        let entries = self.extend(entries);
        self.range(entries, start, count);
    }

    /// The distance from the region's start of the entry at an index; the base is an address.
    pub fn entry_distance(&mut self, base: u64, index: Value) -> Value {
        let scaled = self.b.ins().ishl_imm_u(index, 2);
        let base = self.i32((base - self.unit.program.region) as u32);
        self.b.ins().iadd(scaled, base)
    }

    /// The address of a table's entry without its constant part, and that part. Traps if there is no such entry.
    fn table_entry(&mut self, (base, size): (u64, u64), index: Value) -> (Value, i32) {
        let count = self.load(I32, size);
        let outside = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, index, count);
        self.trap_if(outside);
        let index = self.extend(index);
        (self.b.ins().ishl_imm_u(index, 2), base as i32)
    }

    pub fn table_get(&mut self, table: (u64, u64), index: Value) -> Value {
        let (address, base) = self.table_entry(table, index);
        self.b.ins().load(I32, MemFlagsData::new(), address, base)
    }

    pub fn table_set(&mut self, table: (u64, u64), index: Value, value: Value) {
        let (address, base) = self.table_entry(table, index);
        self.b.ins().store(MemFlagsData::new(), value, address, base);
    }

    /// Copies entries from a table or segment to a table.
    pub fn table_copy(
        &mut self,
        (to_base, to_size): (u64, u64),
        (from_base, from_size): (u64, u64),
        [to, from, count]: [Value; 3],
    ) {
        self.entry_range(to_size, to, count);
        self.entry_range(from_size, from, count);
        let to = self.entry_distance(to_base, to);
        let from = self.entry_distance(from_base, from);
        let bytes = self.b.ins().ishl_imm_u(count, 2);
        self.call_runtime(Symbol::Copy(None, None), &[to, from, bytes]);
    }
}
