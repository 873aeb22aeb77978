//! What the decoder says about one instruction: only what the type system needs.
//!
//! [`Op`] names effects, not mnemonics: all vector arithmetic has one effect, because vector registers always hold
//! plain data. An instruction that is not in the decoder's table does not exist here.

/// A general register by its number in the encoding: 0 is rax, 4 rsp, 15 r15.
pub type Register = u8;

/// rax
pub const RAX: Register = 0;
/// rcx
pub const RCX: Register = 1;
/// rdx
pub const RDX: Register = 2;
/// rbx
pub const RBX: Register = 3;
/// rsp
pub const RSP: Register = 4;
/// rbp
pub const RBP: Register = 5;
/// rsi
pub const RSI: Register = 6;
/// rdi
pub const RDI: Register = 7;
/// r8
pub const R8: Register = 8;
/// r9
pub const R9: Register = 9;

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// There is none.
    None,
    /// A general register, its low [`Insn::size`] bytes.
    Register(Register),
    /// ah, ch, dh or bh: bits 8 to 15 of register 0 to 3.
    High(Register),
    /// An SSE register. Its contents are always plain data.
    Vector,
    /// [`Insn::memory`], of [`Insn::width`] bytes.
    Memory,
    /// [`Insn::immediate`].
    Immediate,
}

/// The address of a memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Base register, if any.
    pub base: Option<Register>,
    /// Index register, if any, and the logarithm of its scale (0 to 3).
    pub index: Option<(Register, u8)>,
    /// Displacement. For [`Memory::relative`] it counts from the end of the instruction.
    pub displacement: i32,
    /// The address is relative to the instruction pointer.
    pub relative: bool,
}

/// Condition of a jump, set or move: the low four bits of its opcode. Bit 0 inverts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
#[rustfmt::skip]
pub enum Condition {
    Overflow, NotOverflow, Below, AboveEqual, Equal, NotEqual, BelowEqual, Above,
    Sign, NotSign, Parity, NotParity, Less, GreaterEqual, LessEqual, Greater,
}

impl Condition {
    /// All conditions, by the number in their opcodes.
    #[rustfmt::skip]
    pub const ALL: [Condition; 16] = {
        use Condition::*;
        [
            Overflow, NotOverflow, Below, AboveEqual, Equal, NotEqual, BelowEqual, Above,
            Sign, NotSign, Parity, NotParity, Less, GreaterEqual, LessEqual, Greater,
        ]
    };

    /// The condition that holds if this one does not.
    pub fn inverse(self) -> Condition {
        Condition::ALL[self as usize ^ 1]
    }
}

/// What an instruction does. `d` and `s` are [`Insn::destination`] and [`Insn::source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Nothing: nop of all lengths, endbr64, pause.
    Nop,
    /// d = s.
    Move,
    /// d (size) = s (width bytes), upper bits zero.
    MoveZero,
    /// d (size) = s (width bytes), sign copied.
    MoveSign,
    /// d = address of the memory operand.
    Lea,
    /// d = d + s, flags.
    Add,
    /// d = d - s, flags.
    Sub,
    /// flags of d - s.
    Compare,
    /// flags of d & s.
    Test,
    /// d = d & s, flags.
    And,
    /// d = d | s, flags.
    Or,
    /// d = d ^ s, flags.
    Xor,
    /// d = d + s + carry, flags.
    AddCarry,
    /// d = d - s - carry, flags.
    SubBorrow,
    /// d = d + 1; flags but carry.
    Increment,
    /// d = d - 1; flags but carry.
    Decrement,
    /// d = -d, flags.
    Negate,
    /// d = !d; no flags.
    Not,
    /// d = d << s; flags only if the count is not 0. The source is an immediate or rcx, of which 8 bits count.
    ShiftLeft,
    /// d = d >> s, unsigned; flags as above.
    ShiftRight,
    /// d = d >> s, signed; flags as above.
    ShiftArithmetic,
    /// d = d rotated by s (rol, ror; as shifts). Flags carry and overflow change if the count is not 0.
    Rotate,
    /// shld, shrd: d = bits of d and s. The count is an immediate or cl: see [`Insn::by_cl`].
    ShiftDouble,
    /// d = s * immediate, flags undefined.
    MultiplyImmediate,
    /// d = d * s, flags undefined.
    Multiply,
    /// rdx:rax = rax * s (mul, imul); with size 1 ax = al * s.
    MultiplyWide,
    /// rax, rdx = quotient and remainder of rdx:rax by s (div, idiv); with size 1 al and ah of ax. May fault.
    Divide,
    /// cwd, cdq, cqo: rdx = sign of rax, in size.
    SignIntoRdx,
    /// cbw, cwde, cdqe: rax (size) = sign-extended lower half.
    SignInRax,
    /// Push s (always 8 bytes).
    Push,
    /// Pop into d (always 8 bytes).
    Pop,
    /// leave: rsp = rbp, pop rbp.
    Leave,
    /// Swap d and s.
    Exchange,
    /// d, s = d + s, d; flags.
    ExchangeAdd,
    /// If rax = d then d = s, else rax = d; flags.
    CompareExchange,
    /// d (1 byte) = condition.
    Set(Condition),
    /// d = s if condition; a 4-byte destination's upper half becomes zero in both cases.
    MoveIf(Condition),
    /// Carry = bit s of d; other flags undefined. The source is an immediate, or a register if d is one.
    BitTest,
    /// Carry = bit s of d; then set, reset or complement it. Operands as above.
    BitChange,
    /// d = number of a bit of s (bsf, bsr), d unchanged if s is 0; or a count up to 8 * size (tzcnt, lzcnt), which a
    /// processor without these instructions takes for the others.
    BitScan,
    /// d = count in s (popcnt), at most 8 * size. Flags.
    BitCount,
    /// d = d with its bytes in reverse order, d a register.
    ByteSwap,
    /// Jump by [`Insn::immediate`] from the end of the instruction.
    Jump,
    /// The same, on a condition.
    JumpIf(Condition),
    /// Jump to the address in s.
    JumpIndirect,
    /// Call by [`Insn::immediate`] from the end of the instruction.
    Call,
    /// Call the address in s.
    CallIndirect,
    /// Return, without an immediate.
    Return,
    /// ud2: ends the program.
    Trap,
    /// Vector operation: reads s, writes d; each is a vector, memory of [`Insn::width`] bytes, or a general register
    /// of [`Insn::size`] bytes. A vector destination may be read too. No flags.
    Vector,
    /// The same, and the general register d receives a number below 2^[`Insn::result_bits`], zero-extended.
    VectorToRegister,
    /// Vector comparison into the flags (comiss, ptest and similar): d a vector, s a vector or memory.
    VectorCompare,
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Insn {
    /// What it does.
    pub op: Op,
    /// Bytes it takes.
    pub length: u8,
    /// Bytes of the operation: 1, 2, 4 or 8.
    pub size: u8,
    /// Bytes of the memory operand: 1 to 16. For MoveZero and MoveSign the source's bytes, of a register too.
    pub width: u8,
    /// Bits that the result of VectorToRegister can have.
    pub result_bits: u8,
    /// ShiftDouble only: the count is in cl, else it is the immediate.
    pub by_cl: bool,
    /// Destination.
    pub destination: Operand,
    /// Source.
    pub source: Operand,
    /// Address of the memory operand; only with an [`Operand::Memory`] or [`Op::Lea`].
    pub memory: Memory,
    /// Immediate, sign-extended to 64 bits, and the distance of jumps and calls.
    pub immediate: i64,
}

impl Insn {
    /// Whether it uses vector registers, or their control register.
    pub fn uses_vectors(&self) -> bool {
        matches!(self.op, Op::Vector | Op::VectorToRegister | Op::VectorCompare)
            || self.destination == Operand::Vector
            || self.source == Operand::Vector
    }

    /// A nop of no length: what a decoder starts from.
    pub const BLANK: Insn = Insn {
        op: Op::Nop,
        length: 0,
        size: 8,
        width: 8,
        result_bits: 0,
        by_cl: false,
        destination: Operand::None,
        source: Operand::None,
        memory: Memory { base: None, index: None, displacement: 0, relative: false },
        immediate: 0,
    };
}
