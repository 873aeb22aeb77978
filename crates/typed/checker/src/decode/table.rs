//! The opcode table: every instruction that typed code can have, and what it does.
//!
//! One row allows an opcode, or a range of opcodes, of a map with a prefix. Whatever no row allows is refused. Opcodes
//! and operands are those of the Intel SDM, volume 2, appendix A; so are most of the operands' letters:
//!
//! | letter | operand |
//! |---|---|
//! | `G`, `V` | general or vector register in ModRM.reg |
//! | `E`, `W` | general or vector register in ModRM.rm, or memory |
//! | `B` | the same as `E`, but of one byte whatever the size of the operation |
//! | `O` | general register in the low bits of the opcode |
//! | `A`, `C` | rax, rcx |
//! | `I` | immediate |
//! | `N` | none |

use super::entry::Imm::{Byte as Ib, Full as Iz, Long as Iv, One};
use super::entry::Size::{Byte, Dword, OnlyWide, Quad, Sized, Wide};
use super::entry::Slot::{A, B, C, E, G, I, N, O, V, W};
use super::entry::{op, plain, vector, Entry};
use crate::insn::{Condition, Op::*};

/// The mandatory prefix of a row, as an index.
pub(super) const NONE: u8 = 0;
/// 66 selects the instruction.
pub(super) const P66: u8 = 1;
/// F3 selects the instruction.
pub(super) const PF3: u8 = 2;
/// F2 selects the instruction.
pub(super) const PF2: u8 = 3;
/// Without a prefix, or with 66 for an operation on two bytes.
pub(super) const SIZE: u8 = 4;

/// The opcode maps: one byte, 0F, 0F 38, 0F 3A.
pub(super) const ONE: u8 = 0;
pub(super) const TWO: u8 = 1;
pub(super) const X38: u8 = 2;
pub(super) const X3A: u8 = 3;

/// The row is for every value of ModRM.reg.
pub(super) const ANY: u8 = 0xff;

/// Stands for the condition in the opcode's low bits: the index has the right one.
const CC: Condition = Condition::Overflow;

pub(super) struct Row {
    pub map: u8,
    pub prefix: u8,
    pub first: u8,
    pub last: u8,
    /// Values of ModRM.reg, as bits.
    pub reg: u8,
    pub entry: Entry,
}

const fn rows(map: u8, prefix: u8, first: u8, last: u8, reg: u8, entry: Entry) -> Row {
    Row { map, prefix, first, last, reg, entry }
}

const fn row(map: u8, prefix: u8, opcode: u8, entry: Entry) -> Row {
    rows(map, prefix, opcode, opcode, ANY, entry)
}

/// For one value of ModRM.reg.
const fn group(map: u8, prefix: u8, opcode: u8, reg: u8, entry: Entry) -> Row {
    rows(map, prefix, opcode, opcode, 1 << reg, entry)
}

/// The eight arithmetic operations, in the order of their numbers: opcodes 00 to 3D, and reg of 80, 81 and 83.
#[rustfmt::skip]
pub(super) const ARITHMETIC: [crate::insn::Op; 8] = [Add, Or, AddCarry, SubBorrow, And, Sub, Xor, Compare];

/// Their operands, at eight times their number.
pub(super) const ARITHMETIC_ROWS: [Row; 6] = [
    row(ONE, NONE, 0x00, op(Add, E, G, Byte)),
    row(ONE, SIZE, 0x01, op(Add, E, G, Sized)),
    row(ONE, NONE, 0x02, op(Add, G, E, Byte)),
    row(ONE, SIZE, 0x03, op(Add, G, E, Sized)),
    row(ONE, NONE, 0x04, plain(Add, A, I, Byte).imm(Ib)),
    row(ONE, SIZE, 0x05, plain(Add, A, I, Sized).imm(Iz)),
];

/// Their operands where reg has the number.
pub(super) const ARITHMETIC_GROUPS: [Row; 3] = [
    row(ONE, NONE, 0x80, op(Add, E, I, Byte).imm(Ib)),
    row(ONE, SIZE, 0x81, op(Add, E, I, Sized).imm(Iz)),
    row(ONE, SIZE, 0x83, op(Add, E, I, Sized).imm(Ib)),
];

/// Shifts by their numbers in reg, as bits. rcl, rcr (2, 3) and the alias of shl (6) are left out.
pub(super) const SHIFTS: [(u8, crate::insn::Op); 4] = [
    (1 << 0 | 1 << 1, Rotate),
    (1 << 4, ShiftLeft),
    (1 << 5, ShiftRight),
    (1 << 7, ShiftArithmetic),
];

/// Their operands.
pub(super) const SHIFT_GROUPS: [Row; 6] = [
    row(ONE, NONE, 0xc0, op(Rotate, E, I, Byte).imm(Ib)),
    row(ONE, SIZE, 0xc1, op(Rotate, E, I, Sized).imm(Ib)),
    row(ONE, NONE, 0xd0, op(Rotate, E, I, Byte).imm(One)),
    row(ONE, SIZE, 0xd1, op(Rotate, E, I, Sized).imm(One)),
    row(ONE, NONE, 0xd2, op(Rotate, E, C, Byte)),
    row(ONE, SIZE, 0xd3, op(Rotate, E, C, Sized)),
];

/// All others.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // General registers, one-byte opcodes.
    rows(ONE, NONE, 0x50, 0x57, ANY, plain(Push, N, O, Quad)),
    rows(ONE, NONE, 0x58, 0x5f, ANY, plain(Pop, O, N, Quad)),
    row(ONE, NONE, 0x63, op(MoveSign, G, E, OnlyWide).width(4)),         // movsxd
    row(ONE, NONE, 0x68, plain(Push, N, I, Quad).imm(Iz)),
    row(ONE, SIZE, 0x69, op(MultiplyImmediate, G, E, Sized).imm(Iz)),
    row(ONE, NONE, 0x6a, plain(Push, N, I, Quad).imm(Ib)),
    row(ONE, SIZE, 0x6b, op(MultiplyImmediate, G, E, Sized).imm(Ib)),
    rows(ONE, NONE, 0x70, 0x7f, ANY, plain(JumpIf(CC), N, N, Quad).imm(Ib)),
    row(ONE, NONE, 0x84, op(Test, E, G, Byte)),
    row(ONE, SIZE, 0x85, op(Test, E, G, Sized)),
    row(ONE, NONE, 0x86, op(Exchange, E, G, Byte)),
    row(ONE, SIZE, 0x87, op(Exchange, E, G, Sized)),
    row(ONE, NONE, 0x88, op(Move, E, G, Byte)),
    row(ONE, SIZE, 0x89, op(Move, E, G, Sized)),
    row(ONE, NONE, 0x8a, op(Move, G, E, Byte)),
    row(ONE, SIZE, 0x8b, op(Move, G, E, Sized)),
    row(ONE, SIZE, 0x8d, op(Lea, G, N, Sized).memory()),
    row(ONE, SIZE, 0x90, plain(Nop, N, N, Dword).no_rex()),              // with REX.B it would be xchg
    row(ONE, PF3, 0x90, plain(Nop, N, N, Dword).no_rex()),               // pause
    rows(ONE, SIZE, 0x91, 0x97, ANY, plain(Exchange, O, A, Sized)),
    row(ONE, SIZE, 0x98, plain(SignInRax, N, N, Sized)),                 // cbw, cwde, cdqe
    row(ONE, SIZE, 0x99, plain(SignIntoRdx, N, N, Sized)),               // cwd, cdq, cqo
    row(ONE, NONE, 0xa8, plain(Test, A, I, Byte).imm(Ib)),
    row(ONE, SIZE, 0xa9, plain(Test, A, I, Sized).imm(Iz)),
    rows(ONE, NONE, 0xb0, 0xb7, ANY, plain(Move, O, I, Byte).imm(Ib)),
    rows(ONE, SIZE, 0xb8, 0xbf, ANY, plain(Move, O, I, Sized).imm(Iv)),
    row(ONE, NONE, 0xc3, plain(Return, N, N, Quad)),
    row(ONE, PF3, 0xc3, plain(Return, N, N, Quad)),                      // rep ret, for old AMD processors
    group(ONE, NONE, 0xc6, 0, op(Move, E, I, Byte).imm(Ib)),
    group(ONE, SIZE, 0xc7, 0, op(Move, E, I, Sized).imm(Iz)),
    row(ONE, NONE, 0xc9, plain(Leave, N, N, Quad)),
    row(ONE, NONE, 0xe8, plain(Call, N, N, Quad).imm(Iz)),
    row(ONE, NONE, 0xe9, plain(Jump, N, N, Quad).imm(Iz)),
    row(ONE, NONE, 0xeb, plain(Jump, N, N, Quad).imm(Ib)),
    group(ONE, NONE, 0xf6, 0, op(Test, E, I, Byte).imm(Ib)),
    group(ONE, NONE, 0xf6, 2, op(Not, E, N, Byte).lock()),
    group(ONE, NONE, 0xf6, 3, op(Negate, E, N, Byte).lock()),
    rows(ONE, NONE, 0xf6, 0xf6, 1 << 4 | 1 << 5, op(MultiplyWide, N, E, Byte)),        // mul, imul
    rows(ONE, NONE, 0xf6, 0xf6, 1 << 6 | 1 << 7, op(Divide, N, E, Byte)),              // div, idiv
    group(ONE, SIZE, 0xf7, 0, op(Test, E, I, Sized).imm(Iz)),
    group(ONE, SIZE, 0xf7, 2, op(Not, E, N, Sized).lock()),
    group(ONE, SIZE, 0xf7, 3, op(Negate, E, N, Sized).lock()),
    rows(ONE, SIZE, 0xf7, 0xf7, 1 << 4 | 1 << 5, op(MultiplyWide, N, E, Sized)),
    rows(ONE, SIZE, 0xf7, 0xf7, 1 << 6 | 1 << 7, op(Divide, N, E, Sized)),
    group(ONE, NONE, 0xfe, 0, op(Increment, E, N, Byte).lock()),
    group(ONE, NONE, 0xfe, 1, op(Decrement, E, N, Byte).lock()),
    group(ONE, SIZE, 0xff, 0, op(Increment, E, N, Sized).lock()),
    group(ONE, SIZE, 0xff, 1, op(Decrement, E, N, Sized).lock()),
    group(ONE, NONE, 0xff, 2, op(CallIndirect, N, E, Quad)),
    group(ONE, NONE, 0xff, 4, op(JumpIndirect, N, E, Quad)),
    group(ONE, NONE, 0xff, 6, op(Push, N, E, Quad)),

    // General registers, two-byte opcodes.
    row(TWO, NONE, 0x0b, plain(Trap, N, N, Dword)),                      // ud2
    row(TWO, PF3, 0x1e, op(Nop, N, N, Dword).exact(0xfa)),               // endbr64
    group(TWO, SIZE, 0x1f, 0, op(Nop, N, N, Dword).hint()),
    rows(TWO, SIZE, 0x40, 0x4f, ANY, op(MoveIf(CC), G, E, Sized)),
    rows(TWO, NONE, 0x80, 0x8f, ANY, plain(JumpIf(CC), N, N, Quad).imm(Iz)),
    rows(TWO, NONE, 0x90, 0x9f, 1 << 0, op(Set(CC), E, N, Byte)),
    row(TWO, SIZE, 0xa3, op(BitTest, E, G, Sized).register()),           // in memory, reg would be part of the address
    row(TWO, SIZE, 0xa4, op(ShiftDouble, E, G, Sized).imm(Ib)),          // shld
    row(TWO, SIZE, 0xa5, op(ShiftDouble, E, G, Sized).by_cl()),
    row(TWO, SIZE, 0xab, op(BitChange, E, G, Sized).register()),         // bts
    row(TWO, SIZE, 0xac, op(ShiftDouble, E, G, Sized).imm(Ib)),          // shrd
    row(TWO, SIZE, 0xad, op(ShiftDouble, E, G, Sized).by_cl()),
    group(TWO, NONE, 0xae, 5, op(Nop, N, N, Dword).exact(0xe8)),         // lfence
    group(TWO, NONE, 0xae, 6, op(Nop, N, N, Dword).exact(0xf0)),         // mfence
    group(TWO, NONE, 0xae, 7, op(Nop, N, N, Dword).exact(0xf8)),         // sfence
    row(TWO, SIZE, 0xaf, op(Multiply, G, E, Sized)),
    row(TWO, NONE, 0xb0, op(CompareExchange, E, G, Byte).lock()),
    row(TWO, SIZE, 0xb1, op(CompareExchange, E, G, Sized).lock()),
    row(TWO, SIZE, 0xb3, op(BitChange, E, G, Sized).register()),         // btr
    row(TWO, SIZE, 0xb6, op(MoveZero, G, B, Sized).width(1)),
    row(TWO, NONE, 0xb7, op(MoveZero, G, E, Wide).width(2)),
    row(TWO, PF3, 0xb8, op(BitCount, G, E, Wide)),                       // popcnt
    group(TWO, SIZE, 0xba, 4, op(BitTest, E, I, Sized).imm(Ib)),
    rows(TWO, SIZE, 0xba, 0xba, 1 << 5 | 1 << 6 | 1 << 7, op(BitChange, E, I, Sized).imm(Ib).lock()), // bts, btr, btc
    row(TWO, SIZE, 0xbb, op(BitChange, E, G, Sized).register()),         // btc
    row(TWO, SIZE, 0xbc, op(BitScan, G, E, Sized)),                      // bsf
    row(TWO, SIZE, 0xbd, op(BitScan, G, E, Sized)),                      // bsr
    row(TWO, PF3, 0xbc, op(BitScan, G, E, Wide)), // tzcnt
    row(TWO, PF3, 0xbd, op(BitScan, G, E, Wide)), // lzcnt
    row(TWO, SIZE, 0xbe, op(MoveSign, G, B, Sized).width(1)),
    row(TWO, NONE, 0xbf, op(MoveSign, G, E, Wide).width(2)),
    row(TWO, NONE, 0xc0, op(ExchangeAdd, E, G, Byte).lock()),
    row(TWO, SIZE, 0xc1, op(ExchangeAdd, E, G, Sized).lock()),
    row(TWO, NONE, 0xc3, op(Move, E, G, Wide).memory()),                 // movnti
    rows(TWO, NONE, 0xc8, 0xcf, ANY, plain(ByteSwap, O, N, Wide)),

    // Vectors, without a prefix.
    row(TWO, NONE, 0x10, vector(V, W, 16)),                              // movups
    row(TWO, NONE, 0x11, vector(W, V, 16)),
    row(TWO, NONE, 0x12, vector(V, W, 8)),                               // movlps, movhlps
    row(TWO, NONE, 0x13, vector(W, V, 8).memory()),
    rows(TWO, NONE, 0x14, 0x15, ANY, vector(V, W, 16)),
    row(TWO, NONE, 0x16, vector(V, W, 8)),                               // movhps, movlhps
    row(TWO, NONE, 0x17, vector(W, V, 8).memory()),
    row(TWO, NONE, 0x28, vector(V, W, 16)),                              // movaps
    row(TWO, NONE, 0x29, vector(W, V, 16)),
    row(TWO, NONE, 0x2b, vector(W, V, 16).memory()),                     // movntps
    rows(TWO, NONE, 0x2e, 0x2f, ANY, op(VectorCompare, V, W, Dword).width(4)),
    row(TWO, NONE, 0x50, op(VectorToRegister, G, W, Wide).register().bits(4)), // movmskps
    rows(TWO, NONE, 0x51, 0x59, ANY, vector(V, W, 16)),
    row(TWO, NONE, 0x5a, vector(V, W, 8)),                               // cvtps2pd
    rows(TWO, NONE, 0x5b, 0x5f, ANY, vector(V, W, 16)),
    row(TWO, NONE, 0xc2, vector(V, W, 16).imm(Ib)),
    row(TWO, NONE, 0xc6, vector(V, W, 16).imm(Ib)),

    // Vectors, prefix 66.
    row(TWO, P66, 0x10, vector(V, W, 16)),                               // movupd
    row(TWO, P66, 0x11, vector(W, V, 16)),
    row(TWO, P66, 0x12, vector(V, W, 8).memory()),                       // movlpd
    row(TWO, P66, 0x13, vector(W, V, 8).memory()),
    rows(TWO, P66, 0x14, 0x15, ANY, vector(V, W, 16)),
    row(TWO, P66, 0x16, vector(V, W, 8).memory()),                       // movhpd
    row(TWO, P66, 0x17, vector(W, V, 8).memory()),
    row(TWO, P66, 0x28, vector(V, W, 16)),                               // movapd
    row(TWO, P66, 0x29, vector(W, V, 16)),
    row(TWO, P66, 0x2b, vector(W, V, 16).memory()),                      // movntpd
    rows(TWO, P66, 0x2e, 0x2f, ANY, op(VectorCompare, V, W, Dword).width(8)),
    row(TWO, P66, 0x50, op(VectorToRegister, G, W, Wide).register().bits(2)), // movmskpd
    row(TWO, P66, 0x51, vector(V, W, 16)),
    rows(TWO, P66, 0x54, 0x6d, ANY, vector(V, W, 16)),                   // 5a is cvtpd2ps
    row(TWO, P66, 0x6e, op(Vector, V, E, Wide)),                         // movd, movq
    row(TWO, P66, 0x6f, vector(V, W, 16)),                               // movdqa
    row(TWO, P66, 0x70, vector(V, W, 16).imm(Ib)),
    // psrlw, psraw, psllw, psrld, psrad, pslld; psrlq, psrldq, psllq, pslldq, all by an immediate.
    rows(TWO, P66, 0x71, 0x72, 1 << 2 | 1 << 4 | 1 << 6, vector(W, N, 16).register().imm(Ib)),
    rows(TWO, P66, 0x73, 0x73, 1 << 2 | 1 << 3 | 1 << 6 | 1 << 7, vector(W, N, 16).register().imm(Ib)),
    rows(TWO, P66, 0x74, 0x76, ANY, vector(V, W, 16)),
    rows(TWO, P66, 0x7c, 0x7d, ANY, vector(V, W, 16)),
    row(TWO, P66, 0x7e, op(VectorToRegister, E, V, Wide)),               // movd, movq
    row(TWO, P66, 0x7f, vector(W, V, 16)),                               // movdqa
    row(TWO, P66, 0xc2, vector(V, W, 16).imm(Ib)),
    row(TWO, P66, 0xc4, op(Vector, V, E, Dword).width(2).imm(Ib)),       // pinsrw
    row(TWO, P66, 0xc5, op(VectorToRegister, G, W, Wide).register().bits(16).imm(Ib)), // pextrw
    row(TWO, P66, 0xc6, vector(V, W, 16).imm(Ib)),
    rows(TWO, P66, 0xd0, 0xd5, ANY, vector(V, W, 16)),
    row(TWO, P66, 0xd6, vector(W, V, 8)),                                // movq
    row(TWO, P66, 0xd7, op(VectorToRegister, G, W, Wide).register().bits(16)), // pmovmskb
    rows(TWO, P66, 0xd8, 0xe6, ANY, vector(V, W, 16)),                   // e6 is cvttpd2dq
    row(TWO, P66, 0xe7, vector(W, V, 16).memory()),                      // movntdq
    rows(TWO, P66, 0xe8, 0xef, ANY, vector(V, W, 16)),
    rows(TWO, P66, 0xf1, 0xf6, ANY, vector(V, W, 16)),                   // f7 is maskmovdqu
    rows(TWO, P66, 0xf8, 0xfe, ANY, vector(V, W, 16)),

    // Vectors, prefix F3.
    row(TWO, PF3, 0x10, vector(V, W, 4)),                                // movss
    row(TWO, PF3, 0x11, vector(W, V, 4)),
    row(TWO, PF3, 0x12, vector(V, W, 16)),                               // movsldup
    row(TWO, PF3, 0x16, vector(V, W, 16)),                               // movshdup
    row(TWO, PF3, 0x2a, op(Vector, V, E, Wide)),                         // cvtsi2ss
    rows(TWO, PF3, 0x2c, 0x2d, ANY, op(VectorToRegister, G, W, Wide).width(4)),
    rows(TWO, PF3, 0x51, 0x53, ANY, vector(V, W, 4)),
    rows(TWO, PF3, 0x58, 0x5a, ANY, vector(V, W, 4)),                    // 5a is cvtss2sd
    row(TWO, PF3, 0x5b, vector(V, W, 16)),                               // cvttps2dq
    rows(TWO, PF3, 0x5c, 0x5f, ANY, vector(V, W, 4)),
    row(TWO, PF3, 0x6f, vector(V, W, 16)),                               // movdqu
    row(TWO, PF3, 0x70, vector(V, W, 16).imm(Ib)),
    row(TWO, PF3, 0x7e, vector(V, W, 8)),                                // movq
    row(TWO, PF3, 0x7f, vector(W, V, 16)),                               // movdqu
    row(TWO, PF3, 0xc2, vector(V, W, 4).imm(Ib)),
    row(TWO, PF3, 0xe6, vector(V, W, 8)),                                // cvtdq2pd

    // Vectors, prefix F2.
    row(TWO, PF2, 0x10, vector(V, W, 8)),                                // movsd
    row(TWO, PF2, 0x11, vector(W, V, 8)),
    row(TWO, PF2, 0x12, vector(V, W, 8)),                                // movddup
    row(TWO, PF2, 0x2a, op(Vector, V, E, Wide)),                         // cvtsi2sd
    rows(TWO, PF2, 0x2c, 0x2d, ANY, op(VectorToRegister, G, W, Wide).width(8)),
    row(TWO, PF2, 0x51, vector(V, W, 8)),
    rows(TWO, PF2, 0x58, 0x5a, ANY, vector(V, W, 8)),                    // 5a is cvtsd2ss
    rows(TWO, PF2, 0x5c, 0x5f, ANY, vector(V, W, 8)),
    row(TWO, PF2, 0x70, vector(V, W, 16).imm(Ib)),
    rows(TWO, PF2, 0x7c, 0x7d, ANY, vector(V, W, 16)),                   // haddps, hsubps
    row(TWO, PF2, 0xc2, vector(V, W, 8).imm(Ib)),
    row(TWO, PF2, 0xd0, vector(V, W, 16)),                               // addsubps
    row(TWO, PF2, 0xe6, vector(V, W, 16)),                               // cvtpd2dq
    row(TWO, PF2, 0xf0, vector(V, W, 16).memory()),                      // lddqu

    // SSSE3, SSE4.1, SSE4.2 and AES. blendv reads xmm0 too.
    rows(X38, P66, 0x00, 0x0b, ANY, vector(V, W, 16)),
    row(X38, P66, 0x10, vector(V, W, 16)),                               // pblendvb
    rows(X38, P66, 0x14, 0x15, ANY, vector(V, W, 16)),                   // blendvps, blendvpd
    row(X38, P66, 0x17, op(VectorCompare, V, W, Dword).width(16)),       // ptest
    rows(X38, P66, 0x1c, 0x1e, ANY, vector(V, W, 16)),
    row(X38, P66, 0x20, vector(V, W, 8)),                                // pmovsxbw
    row(X38, P66, 0x21, vector(V, W, 4)),                                // pmovsxbd
    row(X38, P66, 0x22, vector(V, W, 2)),                                // pmovsxbq
    row(X38, P66, 0x23, vector(V, W, 8)),                                // pmovsxwd
    row(X38, P66, 0x24, vector(V, W, 4)),                                // pmovsxwq
    row(X38, P66, 0x25, vector(V, W, 8)),                                // pmovsxdq
    rows(X38, P66, 0x28, 0x29, ANY, vector(V, W, 16)),
    row(X38, P66, 0x2a, vector(V, W, 16).memory()),                      // movntdqa
    row(X38, P66, 0x2b, vector(V, W, 16)),
    row(X38, P66, 0x30, vector(V, W, 8)),                                // pmovzxbw
    row(X38, P66, 0x31, vector(V, W, 4)),                                // pmovzxbd
    row(X38, P66, 0x32, vector(V, W, 2)),                                // pmovzxbq
    row(X38, P66, 0x33, vector(V, W, 8)),                                // pmovzxwd
    row(X38, P66, 0x34, vector(V, W, 4)),                                // pmovzxwq
    row(X38, P66, 0x35, vector(V, W, 8)),                                // pmovzxdq
    rows(X38, P66, 0x37, 0x41, ANY, vector(V, W, 16)),
    rows(X38, P66, 0xdb, 0xdf, ANY, vector(V, W, 16)),                   // AES
    rows(X3A, P66, 0x08, 0x09, ANY, vector(V, W, 16).imm(Ib)),           // roundps, roundpd
    row(X3A, P66, 0x0a, vector(V, W, 4).imm(Ib)),                        // roundss
    row(X3A, P66, 0x0b, vector(V, W, 8).imm(Ib)),                        // roundsd
    rows(X3A, P66, 0x0c, 0x0f, ANY, vector(V, W, 16).imm(Ib)),
    row(X3A, P66, 0x14, op(VectorToRegister, E, V, Dword).width(1).bits(8).imm(Ib)), // pextrb
    row(X3A, P66, 0x15, op(VectorToRegister, E, V, Dword).width(2).bits(16).imm(Ib)), // pextrw
    row(X3A, P66, 0x16, op(VectorToRegister, E, V, Wide).imm(Ib)),       // pextrd, pextrq
    row(X3A, P66, 0x17, op(VectorToRegister, E, V, Dword).width(4).bits(32).imm(Ib)), // extractps
    row(X3A, P66, 0x20, op(Vector, V, E, Dword).width(1).imm(Ib)),       // pinsrb
    row(X3A, P66, 0x21, vector(V, W, 4).imm(Ib)),                        // insertps
    row(X3A, P66, 0x22, op(Vector, V, E, Wide).imm(Ib)),                 // pinsrd, pinsrq
    rows(X3A, P66, 0x40, 0x42, ANY, vector(V, W, 16).imm(Ib)),           // dpps, dppd, mpsadbw
    row(X3A, P66, 0x44, vector(V, W, 16).imm(Ib)),                       // pclmulqdq
    row(X3A, P66, 0xdf, vector(V, W, 16).imm(Ib)),                       // aeskeygenassist
];
