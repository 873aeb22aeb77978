//! Operators on vectors. On the operand stack each vector has 16 lanes.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32X4, F64X2, I16, I16X8, I32, I32X4, I64, I64X2, I8, I8X16};
use cranelift_codegen::ir::{self, Endianness, InstBuilder, MemFlagsData, Value};
use wasmparser::Operator;

use super::function::Translator;
use crate::wasm::Type;
use crate::Error;

impl Translator<'_, '_, '_, '_, '_> {
    /// The same bits as another type of vectors.
    fn cast(&mut self, t: ir::Type, value: Value) -> Value {
        if self.emit.b.func.dfg.value_type(value) == t {
            return value;
        }
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        self.emit.b.ins().bitcast(t, flags, value)
    }

    fn pop_vector(&mut self, t: ir::Type) -> Value {
        let value = self.pop();
        self.cast(t, value)
    }

    fn push_vector(&mut self, value: Value) {
        let value = self.cast(I8X16, value);
        self.push(value, Type::V128);
    }

    fn vector_constant(&mut self, t: ir::Type, value: u128) -> Value {
        let value = self.emit.b.func.dfg.constants.insert(value.to_le_bytes().to_vec().into());
        self.emit.b.ins().vconst(t, value)
    }

    fn vector_one(&mut self, t: ir::Type, operation: impl FnOnce(&mut Self, Value) -> Value) {
        let a = self.pop_vector(t);
        let value = operation(self, a);
        self.push_vector(value);
    }

    fn vector_two(
        &mut self,
        t: ir::Type,
        operation: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) {
        let (b, a) = (self.pop_vector(t), self.pop_vector(t));
        let value = operation(self, a, b);
        self.push_vector(value);
    }

    fn compare_lanes(&mut self, t: ir::Type, condition: IntCC) {
        self.vector_two(t, |this, a, b| this.emit.b.ins().icmp(condition, a, b));
    }

    fn compare_float_lanes(&mut self, t: ir::Type, condition: FloatCC) {
        self.vector_two(t, |this, a, b| this.emit.b.ins().fcmp(condition, a, b));
    }

    /// The second vector's lane if the first one's is less, or the other way round, else the first one's.
    fn pseudo_minimum(&mut self, t: ir::Type, integers: ir::Type, most: bool) {
        self.vector_two(t, |this, a, b| {
            let (low, high) = if most { (a, b) } else { (b, a) };
            let other = this.emit.b.ins().fcmp(FloatCC::LessThan, low, high);
            let (a, b) = (this.cast(integers, a), this.cast(integers, b));
            let other = this.cast(integers, other);
            this.emit.b.ins().bitselect(other, b, a)
        });
    }

    /// A shift by a number of bits, of which those above the lanes' width do not count.
    fn shift_lanes(
        &mut self,
        t: ir::Type,
        operation: impl FnOnce(&mut Self, Value, Value) -> Value,
    ) {
        let count = self.pop();
        let a = self.pop_vector(t);
        let value = operation(self, a, count);
        self.push_vector(value);
    }

    /// A bit as a number.
    fn push_bit(&mut self, bit: Value) {
        let bit = self.emit.b.ins().uextend(I32, bit);
        self.push(bit, Type::I32);
    }

    /// Loads, stores, constants and lanes.
    pub(super) fn lanes(&mut self, operator: &Operator<'_>) -> Result<bool, Error> {
        let flags = MemFlagsData::new();
        macro_rules! widen {
            ($argument:expr, $load:ident) => {{
                let (address, base) = self.operand($argument);
                let value = self.emit.b.ins().$load(flags, address, base);
                self.push_vector(value);
            }};
        }
        macro_rules! load {
            ($argument:expr, $lane:ident, $t:ident, $make:ident) => {{
                let (address, base) = self.operand($argument);
                let value = self.emit.b.ins().load($lane, flags, address, base);
                let value = self.emit.b.ins().$make($t, value);
                self.push_vector(value);
            }};
        }
        macro_rules! load_lane {
            ($argument:expr, $index:expr, $lane:ident, $t:ident) => {{
                let vector = self.pop_vector($t);
                let (address, base) = self.operand($argument);
                let value = self.emit.b.ins().load($lane, flags, address, base);
                let value = self.emit.b.ins().insertlane(vector, value, $index);
                self.push_vector(value);
            }};
        }
        macro_rules! store_lane {
            ($argument:expr, $index:expr, $t:ident) => {{
                let vector = self.pop_vector($t);
                let (address, base) = self.operand($argument);
                let value = self.emit.b.ins().extractlane(vector, $index);
                self.emit.b.ins().store(flags, value, address, base);
            }};
        }
        macro_rules! splat {
            ($t:ident $(, $lane:ident)?) => {{
                let value = self.pop();
                $(let value = self.emit.b.ins().ireduce($lane, value);)?
                let value = self.emit.b.ins().splat($t, value);
                self.push_vector(value);
            }};
        }
        macro_rules! extract {
            ($t:ident, $index:expr, $result:ident $(, $extend:ident)?) => {{
                let vector = self.pop_vector($t);
                let value = self.emit.b.ins().extractlane(vector, $index);
                $(let value = self.emit.b.ins().$extend(I32, value);)?
                self.push(value, Type::$result);
            }};
        }
        macro_rules! replace {
            ($t:ident, $index:expr $(, $lane:ident)?) => {{
                let value = self.pop();
                let vector = self.pop_vector($t);
                $(let value = self.emit.b.ins().ireduce($lane, value);)?
                let value = self.emit.b.ins().insertlane(vector, value, $index);
                self.push_vector(value);
            }};
        }
        match *operator {
            Operator::V128Load { memarg } => {
                let (address, base) = self.operand(memarg);
                let value = self.emit.b.ins().load(I8X16, flags, address, base);
                self.push_vector(value);
            }
            Operator::V128Store { memarg } => {
                let value = self.pop();
                let (address, base) = self.operand(memarg);
                self.emit.b.ins().store(flags, value, address, base);
            }
            Operator::V128Load8x8S { memarg } => widen!(memarg, sload8x8),
            Operator::V128Load8x8U { memarg } => widen!(memarg, uload8x8),
            Operator::V128Load16x4S { memarg } => widen!(memarg, sload16x4),
            Operator::V128Load16x4U { memarg } => widen!(memarg, uload16x4),
            Operator::V128Load32x2S { memarg } => widen!(memarg, sload32x2),
            Operator::V128Load32x2U { memarg } => widen!(memarg, uload32x2),
            Operator::V128Load8Splat { memarg } => load!(memarg, I8, I8X16, splat),
            Operator::V128Load16Splat { memarg } => load!(memarg, I16, I16X8, splat),
            Operator::V128Load32Splat { memarg } => load!(memarg, I32, I32X4, splat),
            Operator::V128Load64Splat { memarg } => load!(memarg, I64, I64X2, splat),
            Operator::V128Load32Zero { memarg } => load!(memarg, I32, I32X4, scalar_to_vector),
            Operator::V128Load64Zero { memarg } => load!(memarg, I64, I64X2, scalar_to_vector),
            Operator::V128Load8Lane { memarg, lane } => load_lane!(memarg, lane, I8, I8X16),
            Operator::V128Load16Lane { memarg, lane } => load_lane!(memarg, lane, I16, I16X8),
            Operator::V128Load32Lane { memarg, lane } => load_lane!(memarg, lane, I32, I32X4),
            Operator::V128Load64Lane { memarg, lane } => load_lane!(memarg, lane, I64, I64X2),
            Operator::V128Store8Lane { memarg, lane } => store_lane!(memarg, lane, I8X16),
            Operator::V128Store16Lane { memarg, lane } => store_lane!(memarg, lane, I16X8),
            Operator::V128Store32Lane { memarg, lane } => store_lane!(memarg, lane, I32X4),
            Operator::V128Store64Lane { memarg, lane } => store_lane!(memarg, lane, I64X2),
            Operator::V128Const { value } => {
                let value = self.vector_constant(I8X16, value.i128() as u128);
                self.push_vector(value);
            }
            Operator::I8x16Shuffle { lanes } => {
                let (b, a) = (self.pop_vector(I8X16), self.pop_vector(I8X16));
                let lanes = self.emit.b.func.dfg.immediates.push(lanes.to_vec().into());
                let value = self.emit.b.ins().shuffle(a, b, lanes);
                self.push_vector(value);
            }
            Operator::I8x16Swizzle => {
                self.vector_two(I8X16, |this, a, b| this.emit.b.ins().swizzle(a, b));
            }
            Operator::I8x16Splat => splat!(I8X16, I8),
            Operator::I16x8Splat => splat!(I16X8, I16),
            Operator::I32x4Splat => splat!(I32X4),
            Operator::I64x2Splat => splat!(I64X2),
            Operator::F32x4Splat => splat!(F32X4),
            Operator::F64x2Splat => splat!(F64X2),
            Operator::I8x16ExtractLaneS { lane } => extract!(I8X16, lane, I32, sextend),
            Operator::I8x16ExtractLaneU { lane } => extract!(I8X16, lane, I32, uextend),
            Operator::I16x8ExtractLaneS { lane } => extract!(I16X8, lane, I32, sextend),
            Operator::I16x8ExtractLaneU { lane } => extract!(I16X8, lane, I32, uextend),
            Operator::I32x4ExtractLane { lane } => extract!(I32X4, lane, I32),
            Operator::I64x2ExtractLane { lane } => extract!(I64X2, lane, I64),
            Operator::F32x4ExtractLane { lane } => extract!(F32X4, lane, F32),
            Operator::F64x2ExtractLane { lane } => extract!(F64X2, lane, F64),
            Operator::I8x16ReplaceLane { lane } => replace!(I8X16, lane, I8),
            Operator::I16x8ReplaceLane { lane } => replace!(I16X8, lane, I16),
            Operator::I32x4ReplaceLane { lane } => replace!(I32X4, lane),
            Operator::I64x2ReplaceLane { lane } => replace!(I64X2, lane),
            Operator::F32x4ReplaceLane { lane } => replace!(F32X4, lane),
            Operator::F64x2ReplaceLane { lane } => replace!(F64X2, lane),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Comparisons and operators on bits.
    pub(super) fn vector_bits(&mut self, operator: &Operator<'_>) -> Result<bool, Error> {
        macro_rules! all_true {
            ($t:ident) => {{
                let vector = self.pop_vector($t);
                let bit = self.emit.b.ins().vall_true(vector);
                self.push_bit(bit);
            }};
        }
        macro_rules! bitmask {
            ($t:ident) => {{
                let vector = self.pop_vector($t);
                let bits = self.emit.b.ins().vhigh_bits(I32, vector);
                self.push(bits, Type::I32);
            }};
        }
        macro_rules! two {
            ($operation:ident) => {
                self.vector_two(I8X16, |this, a, b| this.emit.b.ins().$operation(a, b))
            };
        }
        use IntCC::*;
        match *operator {
            Operator::I8x16Eq => self.compare_lanes(I8X16, Equal),
            Operator::I8x16Ne => self.compare_lanes(I8X16, NotEqual),
            Operator::I8x16LtS => self.compare_lanes(I8X16, SignedLessThan),
            Operator::I8x16LtU => self.compare_lanes(I8X16, UnsignedLessThan),
            Operator::I8x16GtS => self.compare_lanes(I8X16, SignedGreaterThan),
            Operator::I8x16GtU => self.compare_lanes(I8X16, UnsignedGreaterThan),
            Operator::I8x16LeS => self.compare_lanes(I8X16, SignedLessThanOrEqual),
            Operator::I8x16LeU => self.compare_lanes(I8X16, UnsignedLessThanOrEqual),
            Operator::I8x16GeS => self.compare_lanes(I8X16, SignedGreaterThanOrEqual),
            Operator::I8x16GeU => self.compare_lanes(I8X16, UnsignedGreaterThanOrEqual),
            Operator::I16x8Eq => self.compare_lanes(I16X8, Equal),
            Operator::I16x8Ne => self.compare_lanes(I16X8, NotEqual),
            Operator::I16x8LtS => self.compare_lanes(I16X8, SignedLessThan),
            Operator::I16x8LtU => self.compare_lanes(I16X8, UnsignedLessThan),
            Operator::I16x8GtS => self.compare_lanes(I16X8, SignedGreaterThan),
            Operator::I16x8GtU => self.compare_lanes(I16X8, UnsignedGreaterThan),
            Operator::I16x8LeS => self.compare_lanes(I16X8, SignedLessThanOrEqual),
            Operator::I16x8LeU => self.compare_lanes(I16X8, UnsignedLessThanOrEqual),
            Operator::I16x8GeS => self.compare_lanes(I16X8, SignedGreaterThanOrEqual),
            Operator::I16x8GeU => self.compare_lanes(I16X8, UnsignedGreaterThanOrEqual),
            Operator::I32x4Eq => self.compare_lanes(I32X4, Equal),
            Operator::I32x4Ne => self.compare_lanes(I32X4, NotEqual),
            Operator::I32x4LtS => self.compare_lanes(I32X4, SignedLessThan),
            Operator::I32x4LtU => self.compare_lanes(I32X4, UnsignedLessThan),
            Operator::I32x4GtS => self.compare_lanes(I32X4, SignedGreaterThan),
            Operator::I32x4GtU => self.compare_lanes(I32X4, UnsignedGreaterThan),
            Operator::I32x4LeS => self.compare_lanes(I32X4, SignedLessThanOrEqual),
            Operator::I32x4LeU => self.compare_lanes(I32X4, UnsignedLessThanOrEqual),
            Operator::I32x4GeS => self.compare_lanes(I32X4, SignedGreaterThanOrEqual),
            Operator::I32x4GeU => self.compare_lanes(I32X4, UnsignedGreaterThanOrEqual),
            Operator::I64x2Eq => self.compare_lanes(I64X2, Equal),
            Operator::I64x2Ne => self.compare_lanes(I64X2, NotEqual),
            Operator::I64x2LtS => self.compare_lanes(I64X2, SignedLessThan),
            Operator::I64x2GtS => self.compare_lanes(I64X2, SignedGreaterThan),
            Operator::I64x2LeS => self.compare_lanes(I64X2, SignedLessThanOrEqual),
            Operator::I64x2GeS => self.compare_lanes(I64X2, SignedGreaterThanOrEqual),
            Operator::F32x4Eq => self.compare_float_lanes(F32X4, FloatCC::Equal),
            Operator::F32x4Ne => self.compare_float_lanes(F32X4, FloatCC::NotEqual),
            Operator::F32x4Lt => self.compare_float_lanes(F32X4, FloatCC::LessThan),
            Operator::F32x4Gt => self.compare_float_lanes(F32X4, FloatCC::GreaterThan),
            Operator::F32x4Le => self.compare_float_lanes(F32X4, FloatCC::LessThanOrEqual),
            Operator::F32x4Ge => self.compare_float_lanes(F32X4, FloatCC::GreaterThanOrEqual),
            Operator::F64x2Eq => self.compare_float_lanes(F64X2, FloatCC::Equal),
            Operator::F64x2Ne => self.compare_float_lanes(F64X2, FloatCC::NotEqual),
            Operator::F64x2Lt => self.compare_float_lanes(F64X2, FloatCC::LessThan),
            Operator::F64x2Gt => self.compare_float_lanes(F64X2, FloatCC::GreaterThan),
            Operator::F64x2Le => self.compare_float_lanes(F64X2, FloatCC::LessThanOrEqual),
            Operator::F64x2Ge => self.compare_float_lanes(F64X2, FloatCC::GreaterThanOrEqual),

            Operator::V128Not => self.vector_one(I8X16, |this, a| this.emit.b.ins().bnot(a)),
            Operator::V128And => two!(band),
            Operator::V128AndNot => two!(band_not),
            Operator::V128Or => two!(bor),
            Operator::V128Xor => two!(bxor),
            Operator::V128Bitselect => {
                let (mask, b, a) =
                    (self.pop_vector(I8X16), self.pop_vector(I8X16), self.pop_vector(I8X16));
                let value = self.emit.b.ins().bitselect(mask, a, b);
                self.push_vector(value);
            }
            Operator::V128AnyTrue => {
                let vector = self.pop_vector(I8X16);
                let bit = self.emit.b.ins().vany_true(vector);
                self.push_bit(bit);
            }
            Operator::I8x16AllTrue => all_true!(I8X16),
            Operator::I16x8AllTrue => all_true!(I16X8),
            Operator::I32x4AllTrue => all_true!(I32X4),
            Operator::I64x2AllTrue => all_true!(I64X2),
            Operator::I8x16Bitmask => bitmask!(I8X16),
            Operator::I16x8Bitmask => bitmask!(I16X8),
            Operator::I32x4Bitmask => bitmask!(I32X4),
            Operator::I64x2Bitmask => bitmask!(I64X2),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Operators on numbers in lanes.
    pub(super) fn vector(&mut self, operator: &Operator<'_>) -> Result<bool, Error> {
        macro_rules! one {
            ($t:ident, $operation:ident $(, $result:ident)?) => {
                self.vector_one($t, |this, a| this.emit.b.ins().$operation($($result,)? a))
            };
        }
        macro_rules! two {
            ($t:ident, $operation:ident) => {
                self.vector_two($t, |this, a, b| this.emit.b.ins().$operation(a, b))
            };
        }
        macro_rules! shift {
            ($t:ident, $operation:ident) => {
                self.shift_lanes($t, |this, a, count| this.emit.b.ins().$operation(a, count))
            };
        }
        // Products of widened lanes.
        macro_rules! widened {
            ($t:ident, $widen:ident) => {
                self.vector_two($t, |this, a, b| {
                    let b = this.emit.b.ins().$widen(b);
                    let a = this.emit.b.ins().$widen(a);
                    this.emit.b.ins().imul(a, b)
                })
            };
        }
        // Sums of neighbours, widened.
        macro_rules! pairwise {
            ($t:ident, $low:ident, $high:ident) => {
                self.vector_one($t, |this, a| {
                    let low = this.emit.b.ins().$low(a);
                    let high = this.emit.b.ins().$high(a);
                    this.emit.b.ins().iadd_pairwise(low, high)
                })
            };
        }
        match *operator {
            Operator::I8x16Abs => one!(I8X16, iabs),
            Operator::I16x8Abs => one!(I16X8, iabs),
            Operator::I32x4Abs => one!(I32X4, iabs),
            Operator::I64x2Abs => one!(I64X2, iabs),
            Operator::I8x16Neg => one!(I8X16, ineg),
            Operator::I16x8Neg => one!(I16X8, ineg),
            Operator::I32x4Neg => one!(I32X4, ineg),
            Operator::I64x2Neg => one!(I64X2, ineg),
            Operator::I8x16Popcnt => one!(I8X16, popcnt),
            Operator::I8x16NarrowI16x8S => two!(I16X8, snarrow),
            Operator::I8x16NarrowI16x8U => two!(I16X8, unarrow),
            Operator::I16x8NarrowI32x4S => two!(I32X4, snarrow),
            Operator::I16x8NarrowI32x4U => two!(I32X4, unarrow),
            Operator::I8x16Shl => shift!(I8X16, ishl),
            Operator::I16x8Shl => shift!(I16X8, ishl),
            Operator::I32x4Shl => shift!(I32X4, ishl),
            Operator::I64x2Shl => shift!(I64X2, ishl),
            Operator::I8x16ShrS => shift!(I8X16, sshr),
            Operator::I16x8ShrS => shift!(I16X8, sshr),
            Operator::I32x4ShrS => shift!(I32X4, sshr),
            Operator::I64x2ShrS => shift!(I64X2, sshr),
            Operator::I8x16ShrU => shift!(I8X16, ushr),
            Operator::I16x8ShrU => shift!(I16X8, ushr),
            Operator::I32x4ShrU => shift!(I32X4, ushr),
            Operator::I64x2ShrU => shift!(I64X2, ushr),
            Operator::I8x16Add => two!(I8X16, iadd),
            Operator::I16x8Add => two!(I16X8, iadd),
            Operator::I32x4Add => two!(I32X4, iadd),
            Operator::I64x2Add => two!(I64X2, iadd),
            Operator::I8x16AddSatS => two!(I8X16, sadd_sat),
            Operator::I16x8AddSatS => two!(I16X8, sadd_sat),
            Operator::I8x16AddSatU => two!(I8X16, uadd_sat),
            Operator::I16x8AddSatU => two!(I16X8, uadd_sat),
            Operator::I8x16Sub => two!(I8X16, isub),
            Operator::I16x8Sub => two!(I16X8, isub),
            Operator::I32x4Sub => two!(I32X4, isub),
            Operator::I64x2Sub => two!(I64X2, isub),
            Operator::I8x16SubSatS => two!(I8X16, ssub_sat),
            Operator::I16x8SubSatS => two!(I16X8, ssub_sat),
            Operator::I8x16SubSatU => two!(I8X16, usub_sat),
            Operator::I16x8SubSatU => two!(I16X8, usub_sat),
            Operator::I8x16MinS => two!(I8X16, smin),
            Operator::I16x8MinS => two!(I16X8, smin),
            Operator::I32x4MinS => two!(I32X4, smin),
            Operator::I8x16MinU => two!(I8X16, umin),
            Operator::I16x8MinU => two!(I16X8, umin),
            Operator::I32x4MinU => two!(I32X4, umin),
            Operator::I8x16MaxS => two!(I8X16, smax),
            Operator::I16x8MaxS => two!(I16X8, smax),
            Operator::I32x4MaxS => two!(I32X4, smax),
            Operator::I8x16MaxU => two!(I8X16, umax),
            Operator::I16x8MaxU => two!(I16X8, umax),
            Operator::I32x4MaxU => two!(I32X4, umax),
            Operator::I8x16AvgrU => two!(I8X16, avg_round),
            Operator::I16x8AvgrU => two!(I16X8, avg_round),
            Operator::I16x8Mul => two!(I16X8, imul),
            Operator::I32x4Mul => two!(I32X4, imul),
            Operator::I64x2Mul => two!(I64X2, imul),
            Operator::I16x8Q15MulrSatS => two!(I16X8, sqmul_round_sat),
            Operator::I16x8ExtendLowI8x16S => one!(I8X16, swiden_low),
            Operator::I16x8ExtendHighI8x16S => one!(I8X16, swiden_high),
            Operator::I16x8ExtendLowI8x16U => one!(I8X16, uwiden_low),
            Operator::I16x8ExtendHighI8x16U => one!(I8X16, uwiden_high),
            Operator::I32x4ExtendLowI16x8S => one!(I16X8, swiden_low),
            Operator::I32x4ExtendHighI16x8S => one!(I16X8, swiden_high),
            Operator::I32x4ExtendLowI16x8U => one!(I16X8, uwiden_low),
            Operator::I32x4ExtendHighI16x8U => one!(I16X8, uwiden_high),
            Operator::I64x2ExtendLowI32x4S => one!(I32X4, swiden_low),
            Operator::I64x2ExtendHighI32x4S => one!(I32X4, swiden_high),
            Operator::I64x2ExtendLowI32x4U => one!(I32X4, uwiden_low),
            Operator::I64x2ExtendHighI32x4U => one!(I32X4, uwiden_high),
            Operator::I16x8ExtMulLowI8x16S => widened!(I8X16, swiden_low),
            Operator::I16x8ExtMulHighI8x16S => widened!(I8X16, swiden_high),
            Operator::I16x8ExtMulLowI8x16U => widened!(I8X16, uwiden_low),
            Operator::I16x8ExtMulHighI8x16U => widened!(I8X16, uwiden_high),
            Operator::I32x4ExtMulLowI16x8S => widened!(I16X8, swiden_low),
            Operator::I32x4ExtMulHighI16x8S => widened!(I16X8, swiden_high),
            Operator::I32x4ExtMulLowI16x8U => widened!(I16X8, uwiden_low),
            Operator::I32x4ExtMulHighI16x8U => widened!(I16X8, uwiden_high),
            Operator::I64x2ExtMulLowI32x4S => widened!(I32X4, swiden_low),
            Operator::I64x2ExtMulHighI32x4S => widened!(I32X4, swiden_high),
            Operator::I64x2ExtMulLowI32x4U => widened!(I32X4, uwiden_low),
            Operator::I64x2ExtMulHighI32x4U => widened!(I32X4, uwiden_high),
            Operator::I16x8ExtAddPairwiseI8x16S => pairwise!(I8X16, swiden_low, swiden_high),
            Operator::I16x8ExtAddPairwiseI8x16U => pairwise!(I8X16, uwiden_low, uwiden_high),
            Operator::I32x4ExtAddPairwiseI16x8S => pairwise!(I16X8, swiden_low, swiden_high),
            Operator::I32x4ExtAddPairwiseI16x8U => pairwise!(I16X8, uwiden_low, uwiden_high),
            Operator::I32x4DotI16x8S => self.vector_two(I16X8, |this, a, b| {
                let ins = &mut this.emit.b;
                let (a_low, b_low) = (ins.ins().swiden_low(a), ins.ins().swiden_low(b));
                let low = ins.ins().imul(a_low, b_low);
                let (a_high, b_high) = (ins.ins().swiden_high(a), ins.ins().swiden_high(b));
                let high = ins.ins().imul(a_high, b_high);
                ins.ins().iadd_pairwise(low, high)
            }),

            Operator::F32x4Ceil => one!(F32X4, ceil),
            Operator::F64x2Ceil => one!(F64X2, ceil),
            Operator::F32x4Floor => one!(F32X4, floor),
            Operator::F64x2Floor => one!(F64X2, floor),
            Operator::F32x4Trunc => one!(F32X4, trunc),
            Operator::F64x2Trunc => one!(F64X2, trunc),
            Operator::F32x4Nearest => one!(F32X4, nearest),
            Operator::F64x2Nearest => one!(F64X2, nearest),
            Operator::F32x4Abs => one!(F32X4, fabs),
            Operator::F64x2Abs => one!(F64X2, fabs),
            Operator::F32x4Neg => one!(F32X4, fneg),
            Operator::F64x2Neg => one!(F64X2, fneg),
            Operator::F32x4Sqrt => one!(F32X4, sqrt),
            Operator::F64x2Sqrt => one!(F64X2, sqrt),
            Operator::F32x4Add => two!(F32X4, fadd),
            Operator::F64x2Add => two!(F64X2, fadd),
            Operator::F32x4Sub => two!(F32X4, fsub),
            Operator::F64x2Sub => two!(F64X2, fsub),
            Operator::F32x4Mul => two!(F32X4, fmul),
            Operator::F64x2Mul => two!(F64X2, fmul),
            Operator::F32x4Div => two!(F32X4, fdiv),
            Operator::F64x2Div => two!(F64X2, fdiv),
            Operator::F32x4Min => two!(F32X4, fmin),
            Operator::F64x2Min => two!(F64X2, fmin),
            Operator::F32x4Max => two!(F32X4, fmax),
            Operator::F64x2Max => two!(F64X2, fmax),
            Operator::F32x4PMin => self.pseudo_minimum(F32X4, I32X4, false),
            Operator::F64x2PMin => self.pseudo_minimum(F64X2, I64X2, false),
            Operator::F32x4PMax => self.pseudo_minimum(F32X4, I32X4, true),
            Operator::F64x2PMax => self.pseudo_minimum(F64X2, I64X2, true),
            Operator::I32x4TruncSatF32x4S => one!(F32X4, fcvt_to_sint_sat, I32X4),
            Operator::I32x4TruncSatF32x4U => one!(F32X4, fcvt_to_uint_sat, I32X4),
            Operator::F32x4ConvertI32x4S => one!(I32X4, fcvt_from_sint, F32X4),
            Operator::F32x4ConvertI32x4U => one!(I32X4, fcvt_from_uint, F32X4),
            Operator::I32x4TruncSatF64x2SZero => self.vector_one(F64X2, |this, a| {
                let wide = this.emit.b.ins().fcvt_to_sint_sat(I64X2, a);
                let zero = this.vector_constant(I64X2, 0);
                this.emit.b.ins().snarrow(wide, zero)
            }),
            Operator::I32x4TruncSatF64x2UZero => self.vector_one(F64X2, |this, a| {
                let wide = this.emit.b.ins().fcvt_to_uint_sat(I64X2, a);
                let zero = this.vector_constant(I64X2, 0);
                this.emit.b.ins().uunarrow(wide, zero)
            }),
            Operator::F64x2ConvertLowI32x4S => self.vector_one(I32X4, |this, a| {
                let wide = this.emit.b.ins().swiden_low(a);
                this.emit.b.ins().fcvt_from_sint(F64X2, wide)
            }),
            Operator::F64x2ConvertLowI32x4U => self.vector_one(I32X4, |this, a| {
                let wide = this.emit.b.ins().uwiden_low(a);
                this.emit.b.ins().fcvt_from_uint(F64X2, wide)
            }),
            Operator::F64x2PromoteLowF32x4 => one!(F32X4, fvpromote_low),
            Operator::F32x4DemoteF64x2Zero => one!(F64X2, fvdemote),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
