//! Operators on numbers, loads and stores.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::types::{F32, F64, I16, I32, I64, I8};
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, Value};
use wasmparser::{MemArg, Operator};

use super::function::Translator;
use crate::wasm::Type;
use crate::Error;

impl Translator<'_, '_, '_, '_, '_> {
    /// The address that an operator takes from the stack.
    pub(super) fn operand(&mut self, argument: MemArg) -> (Value, i32) {
        // WebAssembly 2.0 has one memory.
        let base = self.memory(0).0 + argument.offset;
        let index = self.pop();
        self.emit.address(base, index)
    }

    /// Loads and stores.
    pub(super) fn access(&mut self, operator: &Operator<'_>) -> Result<bool, Error> {
        let flags = MemFlagsData::new();
        macro_rules! load {
            ($argument:expr, $t:ident, $load:ident $(, $clif:ident)?) => {{
                let (address, base) = self.operand($argument);
                let value = self.emit.b.ins().$load($($clif,)? flags, address, base);
                self.push(value, Type::$t);
            }};
        }
        macro_rules! store {
            ($argument:expr, $store:ident) => {{
                let value = self.pop();
                let (address, base) = self.operand($argument);
                self.emit.b.ins().$store(flags, value, address, base);
            }};
        }
        match *operator {
            Operator::I32Load { memarg } => load!(memarg, I32, load, I32),
            Operator::I64Load { memarg } => load!(memarg, I64, load, I64),
            Operator::F32Load { memarg } => load!(memarg, F32, load, F32),
            Operator::F64Load { memarg } => load!(memarg, F64, load, F64),
            Operator::I32Load8S { memarg } => load!(memarg, I32, sload8, I32),
            Operator::I32Load8U { memarg } => load!(memarg, I32, uload8, I32),
            Operator::I32Load16S { memarg } => load!(memarg, I32, sload16, I32),
            Operator::I32Load16U { memarg } => load!(memarg, I32, uload16, I32),
            Operator::I64Load8S { memarg } => load!(memarg, I64, sload8, I64),
            Operator::I64Load8U { memarg } => load!(memarg, I64, uload8, I64),
            Operator::I64Load16S { memarg } => load!(memarg, I64, sload16, I64),
            Operator::I64Load16U { memarg } => load!(memarg, I64, uload16, I64),
            Operator::I64Load32S { memarg } => load!(memarg, I64, sload32),
            Operator::I64Load32U { memarg } => load!(memarg, I64, uload32),
            Operator::I32Store { memarg }
            | Operator::I64Store { memarg }
            | Operator::F32Store { memarg }
            | Operator::F64Store { memarg } => store!(memarg, store),
            Operator::I32Store8 { memarg } | Operator::I64Store8 { memarg } => {
                store!(memarg, istore8)
            }
            Operator::I32Store16 { memarg } | Operator::I64Store16 { memarg } => {
                store!(memarg, istore16)
            }
            Operator::I64Store32 { memarg } => store!(memarg, istore32),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn unary(&mut self, t: Type, operation: impl FnOnce(&mut Self, Value) -> Value) {
        let a = self.pop();
        let value = operation(self, a);
        self.push(value, t);
    }

    fn binary(&mut self, t: Type, operation: impl FnOnce(&mut Self, Value, Value) -> Value) {
        let (b, a) = (self.pop(), self.pop());
        let value = operation(self, a, b);
        self.push(value, t);
    }

    fn compare(&mut self, condition: IntCC) {
        self.binary(Type::I32, |this, a, b| {
            let bit = this.emit.b.ins().icmp(condition, a, b);
            this.emit.b.ins().uextend(I32, bit)
        });
    }

    fn compare_floats(&mut self, condition: FloatCC) {
        self.binary(Type::I32, |this, a, b| {
            let bit = this.emit.b.ins().fcmp(condition, a, b);
            this.emit.b.ins().uextend(I32, bit)
        });
    }

    fn is_zero(&mut self, t: ir::Type) {
        self.unary(Type::I32, |this, a| {
            let zero = this.emit.b.ins().iconst(t, 0);
            let bit = this.emit.b.ins().icmp(IntCC::Equal, a, zero);
            this.emit.b.ins().uextend(I32, bit)
        });
    }

    /// Leading zeros. `bsr` leaves what was in its destination if its source is 0, which the checker follows, so the
    /// source never is.
    fn leading_zeros(&mut self, t: Type) {
        self.unary(t, |this, a| {
            let b = &mut this.emit.b;
            if t == Type::I32 {
                // Of 2a + 1 in 64 bits there are 31 more.
                let wide = b.ins().uextend(I64, a);
                let one = b.ins().iconst(I64, 1);
                let twice = b.ins().ishl(wide, one);
                let odd = b.ins().bor(twice, one);
                let count = b.ins().clz(odd);
                let count = b.ins().ireduce(I32, count);
                let more = b.ins().iconst(I32, 31);
                b.ins().isub(count, more)
            } else {
                let (zero, one) = (b.ins().iconst(I64, 0), b.ins().iconst(I64, 1));
                let none = b.ins().icmp(IntCC::Equal, a, zero);
                let none = b.ins().uextend(I64, none);
                let odd = b.ins().bor(a, one);
                let count = b.ins().clz(odd);
                b.ins().iadd(count, none)
            }
        });
    }

    /// Trailing zeros, for the same reason as the ones below the lowest one.
    fn trailing_zeros(&mut self, t: Type, clif: ir::Type) {
        self.unary(t, |this, a| {
            let b = &mut this.emit.b;
            let one = b.ins().iconst(clif, 1);
            let less = b.ins().isub(a, one);
            let below = b.ins().band_not(less, a);
            b.ins().popcnt(below)
        });
    }

    /// Operators on numbers.
    pub(super) fn number(&mut self, operator: &Operator<'_>) -> Result<bool, Error> {
        macro_rules! one {
            ($t:ident, $operation:ident $(, $clif:ident)?) => {
                self.unary(Type::$t, |this, a| this.emit.b.ins().$operation($($clif,)? a))
            };
        }
        macro_rules! two {
            ($t:ident, $operation:ident) => {
                self.binary(Type::$t, |this, a, b| this.emit.b.ins().$operation(a, b))
            };
        }
        macro_rules! bits {
            ($t:ident, $clif:ident) => {
                self.unary(Type::$t, |this, a| {
                    this.emit.b.ins().bitcast($clif, MemFlagsData::new(), a)
                })
            };
        }
        macro_rules! narrow {
            ($t:ident, $from:ident, $to:ident) => {
                self.unary(Type::$t, |this, a| {
                    let low = this.emit.b.ins().ireduce($from, a);
                    this.emit.b.ins().sextend($to, low)
                })
            };
        }
        use FloatCC::{
            Equal as FEqual, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual,
            NotEqual as FNotEqual,
        };
        use IntCC::*;
        match *operator {
            Operator::I32Const { value } => {
                let value = self.emit.i32(value as u32);
                self.push(value, Type::I32);
            }
            Operator::I64Const { value } => {
                let value = self.emit.b.ins().iconst(I64, value);
                self.push(value, Type::I64);
            }
            Operator::F32Const { value } => {
                let value = self.emit.b.ins().f32const(Ieee32::with_bits(value.bits()));
                self.push(value, Type::F32);
            }
            Operator::F64Const { value } => {
                let value = self.emit.b.ins().f64const(Ieee64::with_bits(value.bits()));
                self.push(value, Type::F64);
            }
            Operator::I32Eqz => self.is_zero(I32),
            Operator::I64Eqz => self.is_zero(I64),
            Operator::I32Eq | Operator::I64Eq => self.compare(Equal),
            Operator::I32Ne | Operator::I64Ne => self.compare(NotEqual),
            Operator::I32LtS | Operator::I64LtS => self.compare(SignedLessThan),
            Operator::I32LtU | Operator::I64LtU => self.compare(UnsignedLessThan),
            Operator::I32GtS | Operator::I64GtS => self.compare(SignedGreaterThan),
            Operator::I32GtU | Operator::I64GtU => self.compare(UnsignedGreaterThan),
            Operator::I32LeS | Operator::I64LeS => self.compare(SignedLessThanOrEqual),
            Operator::I32LeU | Operator::I64LeU => self.compare(UnsignedLessThanOrEqual),
            Operator::I32GeS | Operator::I64GeS => self.compare(SignedGreaterThanOrEqual),
            Operator::I32GeU | Operator::I64GeU => self.compare(UnsignedGreaterThanOrEqual),
            Operator::F32Eq | Operator::F64Eq => self.compare_floats(FEqual),
            Operator::F32Ne | Operator::F64Ne => self.compare_floats(FNotEqual),
            Operator::F32Lt | Operator::F64Lt => self.compare_floats(LessThan),
            Operator::F32Gt | Operator::F64Gt => self.compare_floats(GreaterThan),
            Operator::F32Le | Operator::F64Le => self.compare_floats(LessThanOrEqual),
            Operator::F32Ge | Operator::F64Ge => self.compare_floats(GreaterThanOrEqual),

            Operator::I32Clz => self.leading_zeros(Type::I32),
            Operator::I64Clz => self.leading_zeros(Type::I64),
            Operator::I32Ctz => self.trailing_zeros(Type::I32, I32),
            Operator::I64Ctz => self.trailing_zeros(Type::I64, I64),
            Operator::I32Popcnt => one!(I32, popcnt),
            Operator::I64Popcnt => one!(I64, popcnt),
            Operator::I32Add => two!(I32, iadd),
            Operator::I64Add => two!(I64, iadd),
            Operator::I32Sub => two!(I32, isub),
            Operator::I64Sub => two!(I64, isub),
            Operator::I32Mul => two!(I32, imul),
            Operator::I64Mul => two!(I64, imul),
            Operator::I32DivS => two!(I32, sdiv),
            Operator::I64DivS => two!(I64, sdiv),
            Operator::I32DivU => two!(I32, udiv),
            Operator::I64DivU => two!(I64, udiv),
            Operator::I32RemS => two!(I32, srem),
            Operator::I64RemS => two!(I64, srem),
            Operator::I32RemU => two!(I32, urem),
            Operator::I64RemU => two!(I64, urem),
            Operator::I32And => two!(I32, band),
            Operator::I64And => two!(I64, band),
            Operator::I32Or => two!(I32, bor),
            Operator::I64Or => two!(I64, bor),
            Operator::I32Xor => two!(I32, bxor),
            Operator::I64Xor => two!(I64, bxor),
            Operator::I32Shl => two!(I32, ishl),
            Operator::I64Shl => two!(I64, ishl),
            Operator::I32ShrS => two!(I32, sshr),
            Operator::I64ShrS => two!(I64, sshr),
            Operator::I32ShrU => two!(I32, ushr),
            Operator::I64ShrU => two!(I64, ushr),
            Operator::I32Rotl => two!(I32, rotl),
            Operator::I64Rotl => two!(I64, rotl),
            Operator::I32Rotr => two!(I32, rotr),
            Operator::I64Rotr => two!(I64, rotr),
            Operator::I32Extend8S => narrow!(I32, I8, I32),
            Operator::I32Extend16S => narrow!(I32, I16, I32),
            Operator::I64Extend8S => narrow!(I64, I8, I64),
            Operator::I64Extend16S => narrow!(I64, I16, I64),
            Operator::I64Extend32S => narrow!(I64, I32, I64),
            Operator::I64ExtendI32S => one!(I64, sextend, I64),
            Operator::I64ExtendI32U => one!(I64, uextend, I64),
            Operator::I32WrapI64 => one!(I32, ireduce, I32),

            Operator::F32Abs => one!(F32, fabs),
            Operator::F64Abs => one!(F64, fabs),
            Operator::F32Neg => one!(F32, fneg),
            Operator::F64Neg => one!(F64, fneg),
            Operator::F32Ceil => one!(F32, ceil),
            Operator::F64Ceil => one!(F64, ceil),
            Operator::F32Floor => one!(F32, floor),
            Operator::F64Floor => one!(F64, floor),
            Operator::F32Trunc => one!(F32, trunc),
            Operator::F64Trunc => one!(F64, trunc),
            Operator::F32Nearest => one!(F32, nearest),
            Operator::F64Nearest => one!(F64, nearest),
            Operator::F32Sqrt => one!(F32, sqrt),
            Operator::F64Sqrt => one!(F64, sqrt),
            Operator::F32Add => two!(F32, fadd),
            Operator::F64Add => two!(F64, fadd),
            Operator::F32Sub => two!(F32, fsub),
            Operator::F64Sub => two!(F64, fsub),
            Operator::F32Mul => two!(F32, fmul),
            Operator::F64Mul => two!(F64, fmul),
            Operator::F32Div => two!(F32, fdiv),
            Operator::F64Div => two!(F64, fdiv),
            Operator::F32Min => two!(F32, fmin),
            Operator::F64Min => two!(F64, fmin),
            Operator::F32Max => two!(F32, fmax),
            Operator::F64Max => two!(F64, fmax),
            Operator::F32Copysign => two!(F32, fcopysign),
            Operator::F64Copysign => two!(F64, fcopysign),
            Operator::F64PromoteF32 => one!(F64, fpromote, F64),
            Operator::F32DemoteF64 => one!(F32, fdemote, F32),

            Operator::F32ConvertI32S | Operator::F32ConvertI64S => {
                one!(F32, fcvt_from_sint, F32)
            }
            Operator::F64ConvertI32S | Operator::F64ConvertI64S => {
                one!(F64, fcvt_from_sint, F64)
            }
            Operator::F32ConvertI32U | Operator::F32ConvertI64U => {
                one!(F32, fcvt_from_uint, F32)
            }
            Operator::F64ConvertI32U | Operator::F64ConvertI64U => {
                one!(F64, fcvt_from_uint, F64)
            }
            Operator::I32TruncF32S | Operator::I32TruncF64S => one!(I32, fcvt_to_sint, I32),
            Operator::I64TruncF32S | Operator::I64TruncF64S => one!(I64, fcvt_to_sint, I64),
            Operator::I32TruncF32U | Operator::I32TruncF64U => one!(I32, fcvt_to_uint, I32),
            Operator::I64TruncF32U | Operator::I64TruncF64U => one!(I64, fcvt_to_uint, I64),
            Operator::I32TruncSatF32S | Operator::I32TruncSatF64S => {
                one!(I32, fcvt_to_sint_sat, I32)
            }
            Operator::I64TruncSatF32S | Operator::I64TruncSatF64S => {
                one!(I64, fcvt_to_sint_sat, I64)
            }
            Operator::I32TruncSatF32U | Operator::I32TruncSatF64U => {
                one!(I32, fcvt_to_uint_sat, I32)
            }
            Operator::I64TruncSatF32U | Operator::I64TruncSatF64U => {
                one!(I64, fcvt_to_uint_sat, I64)
            }
            Operator::I32ReinterpretF32 => bits!(I32, I32),
            Operator::I64ReinterpretF64 => bits!(I64, I64),
            Operator::F32ReinterpretI32 => bits!(F32, F32),
            Operator::F64ReinterpretI64 => bits!(F64, F64),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
