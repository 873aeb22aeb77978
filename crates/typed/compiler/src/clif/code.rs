//! Machine code of Cranelift, taken apart and put together again as the checker wants it.
//!
//! Returns and indirect calls go through the host's thunks; a function that calls others checks the stack first; one
//! that is called indirectly begins with `endbr64`; constants lie in the read-only data. Branches become short ones if
//! they can.

use std::collections::{HashMap, HashSet};

use cranelift_codegen::binemit::Reloc;
use kyozon_typed_checker::decode::decode;
use kyozon_typed_checker::insn::{Insn, Op, Operand, Register, RSP};
use kyozon_typed_checker::{FLOOR, SLACK};

use super::Symbol;
use crate::Error;

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const UD2: [u8; 2] = [0x0f, 0x0b];
const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;
const SHORT_JUMP: u8 = 0xeb;
/// Plus the number of the condition.
const SHORT_JUMP_IF: u8 = 0x70;
/// After 0f, plus the number of the condition.
const JUMP_IF: u8 = 0x80;
const BELOW: u8 = 2;
/// A register that calls may change and that passes no argument.
const R11: u8 = 11;
/// What the stack pointer is compared with if the function's frame is empty.
const CHECK: u32 = FLOOR + 256;
/// Alignment of constants and functions.
pub(super) const ALIGN: usize = 16;

/// A field that Cranelift leaves to the linker.
pub(super) struct Reference {
    pub offset: u32,
    pub kind: Reloc,
    pub symbol: Symbol,
    pub addend: i64,
}

/// Where a field leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Symbol(Symbol),
    /// The thunk for indirect branches by this register.
    Thunk(u8),
    Return,
    /// This byte of the function's constants.
    Constant(u32),
}

/// A field of 4 bytes that holds the distance from its end, plus an addend.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub offset: u32,
    pub target: Target,
    pub addend: i64,
}

/// What becomes of an instruction.
enum What {
    Same,
    /// The same, of two registers that hold the same, but with its destination as the source: see [`Copies`].
    OfOne,
    /// The same, but for the field at this offset.
    With(Field),
    /// A jump to what was at an offset; with the number of a condition.
    Branch(Option<u8>, u32),
    Call(Target),
    Return,
    /// A call of the address in memory.
    CallMemory,
}

struct Item {
    at: u32,
    length: u32,
    what: What,
}

/// A function.
pub(crate) struct Code {
    bytes: Vec<u8>,
    items: Vec<Item>,
    /// For the read-only data, at a multiple of [`ALIGN`].
    pub constants: Vec<u8>,
    /// Bytes of its frame.
    pub frame: u32,
    calls: bool,
}

/// The offset of the displacement in an instruction that addresses relative to its end.
fn displacement(bytes: &[u8]) -> usize {
    let mut at = 0;
    while matches!(bytes[at], 0x66 | 0xf2 | 0xf3 | 0xf0 | 0x40..=0x4f) {
        at += 1;
    }
    let map = [bytes[at], bytes[at + 1]];
    let opcode = match map {
        [0x0f, 0x38 | 0x3a] => 3,
        [0x0f, _] => 2,
        _ => 1,
    };
    at + opcode + 1
}

impl Code {
    /// Takes a function apart.
    pub(super) fn parse(bytes: &[u8], references: &[Reference]) -> Result<Code, Error> {
        let mut references: HashMap<u32, &Reference> =
            references.iter().map(|reference| (reference.offset, reference)).collect();
        let mut this = Code {
            bytes: bytes.to_vec(),
            items: Vec::new(),
            constants: Vec::new(),
            frame: 0,
            calls: false,
        };
        // Constants follow the code, after padding.
        let mut end = bytes.len();
        let mut at = 0;
        let mut flows = true;
        while at < end && (flows || bytes[at..end].iter().any(|&byte| byte != 0)) {
            let insn = decode(&bytes[at..end]).map_err(|refusal| {
                let length = bytes[at..end].len().min(8);
                let found = &bytes[at..at + length];
                Error::new(format!("Cranelift: instruction {found:02x?}: {refusal}"))
            })?;
            let next = at + usize::from(insn.length);
            let (field, addend) = if insn.memory.relative {
                let field = at + displacement(&bytes[at..]);
                (field, (field + 4) as i64 - next as i64)
            } else {
                (next - 4.min(next), 0)
            };
            let reference = references.remove(&(field as u32));
            let what = this.what(&insn, &bytes[at..next], at, field, addend, reference)?;
            if let What::With(Field { target: Target::Constant(place), .. }) = what {
                end = end.min(place as usize);
            }
            flows = !matches!(insn.op, Op::Jump | Op::Trap | Op::Return);
            this.items.push(Item { at: at as u32, length: u32::from(insn.length), what });
            at = next;
        }
        if let Some(reference) = references.values().next() {
            let kind = reference.kind;
            return Err(Error::new(format!("Cranelift: a reference {kind:?} to no instruction")));
        }
        // The constants keep their places modulo their alignment.
        let start = end / ALIGN * ALIGN;
        this.constants = bytes[start..].to_vec();
        if end == bytes.len() {
            this.constants.clear();
        }
        for item in &mut this.items {
            if let What::With(Field { target: Target::Constant(place), .. }) = &mut item.what {
                *place -= start as u32;
            }
        }
        this.mark_copies();
        Ok(this)
    }

    fn what(
        &mut self,
        insn: &Insn,
        bytes: &[u8],
        at: usize,
        field: usize,
        addend: i64,
        reference: Option<&Reference>,
    ) -> Result<What, Error> {
        let wrong = |what: &str| Err(Error::new(format!("Cranelift: {what}")));
        let next = (at + bytes.len()) as i64;
        let target = next.wrapping_add(insn.immediate) as u32;
        if let Some(reference) = reference {
            let Reference { kind, symbol, addend: relative, .. } = *reference;
            if !matches!(kind, Reloc::X86PCRel4 | Reloc::X86CallPCRel4) {
                return wrong(&format!("a reference {kind:?}"));
            }
            return match insn.op {
                Op::Call if relative == -4 => {
                    self.calls = true;
                    Ok(What::Call(Target::Symbol(symbol)))
                }
                Op::Lea if insn.memory.relative => {
                    let offset = (field - at) as u32;
                    let addend = relative + 4 + addend;
                    Ok(What::With(Field { offset, target: Target::Symbol(symbol), addend }))
                }
                _ => wrong(&format!("a reference in {:?}", insn.op)),
            };
        }
        match insn.op {
            Op::Push => self.frame += 8,
            Op::Sub if insn.destination == Operand::Register(RSP) => match insn.source {
                Operand::Immediate => self.frame += insn.immediate as u32,
                _ => return wrong("a frame of variable size"),
            },
            _ => (),
        }
        Ok(match insn.op {
            Op::Jump => What::Branch(None, target),
            Op::JumpIf(condition) => What::Branch(Some(condition as u8), target),
            Op::Call => return wrong("a call within the function"),
            Op::JumpIndirect => return wrong("a jump table"),
            Op::CallIndirect => {
                self.calls = true;
                match insn.source {
                    Operand::Register(register) => What::Call(Target::Thunk(register)),
                    _ if insn.memory.relative => return wrong("a call of a constant"),
                    _ => What::CallMemory,
                }
            }
            Op::Return => What::Return,
            _ if insn.memory.relative => {
                let place = (next + i64::from(insn.memory.displacement)) as u32;
                if place < at as u32 || place as usize >= self.bytes.len() {
                    return wrong("a constant that is not behind the code");
                }
                let offset = (field - at) as u32;
                What::With(Field { offset, target: Target::Constant(place), addend })
            }
            _ => What::Same,
        })
    }

    /// Finds what is made of two copies of a register of which the checker may know nothing.
    fn mark_copies(&mut self) {
        let targets: HashSet<u32> = self
            .items
            .iter()
            .filter_map(|item| match item.what {
                What::Branch(_, target) => Some(target),
                _ => None,
            })
            .collect();
        let mut copies = Copies::default();
        for item in &mut self.items {
            if targets.contains(&item.at) {
                copies = Copies::default();
            }
            let Ok(insn) = decode(&self.bytes[item.at as usize..]) else { return };
            if copies.are_one(&insn) && matches!(item.what, What::Same) {
                item.what = What::OfOne;
            }
            copies.take(&insn);
        }
    }

    /// Puts the function together. Returns its bytes and the fields that the linker fills in.
    pub(super) fn assemble(&self, landing: bool) -> Result<(Vec<u8>, Vec<Field>), Error> {
        let checks = self.calls || self.frame >= SLACK;
        let mut head = Vec::new();
        if landing {
            head.extend(ENDBR64);
        }
        if checks {
            let depth = u16::try_from(CHECK + self.frame)
                .map_err(|_| Error::new(format!("a frame of {} bytes is too large", self.frame)))?;
            // cmp $depth, %sp; jb to the end
            head.extend([0x66, 0x81, 0xfc]);
            head.extend(depth.to_le_bytes());
            head.extend([0x0f, JUMP_IF + BELOW, 0, 0, 0, 0]);
        }
        let starts = self.layout(head.len() as u32)?;
        let end = starts[self.items.len()];
        if checks {
            let at = head.len();
            head[at - 4..].copy_from_slice(&(end - at as u32).to_le_bytes());
        }
        let mut out = head;
        let mut fields = Vec::new();
        for (n, item) in self.items.iter().enumerate() {
            debug_assert_eq!(out.len() as u32, starts[n]);
            let own = &self.bytes[item.at as usize..(item.at + item.length) as usize];
            let mut far = |out: &mut Vec<u8>, opcode: u8, target: Target| {
                out.push(opcode);
                fields.push(Field { offset: out.len() as u32, target, addend: 0 });
                out.extend([0; 4]);
            };
            match &item.what {
                What::Same => out.extend(own),
                What::OfOne => out.extend(of_one(own)),
                What::With(field) => {
                    fields.push(Field { offset: out.len() as u32 + field.offset, ..*field });
                    out.extend(own);
                }
                What::Call(target) => far(&mut out, CALL, *target),
                What::Return => far(&mut out, JUMP, Target::Return),
                What::CallMemory => {
                    out.extend(load_r11(own));
                    far(&mut out, CALL, Target::Thunk(R11));
                }
                What::Branch(condition, target) => {
                    let target = starts[self.find(*target)?] as i64;
                    let distance = target - i64::from(starts[n + 1]);
                    match (starts[n + 1] - starts[n], condition) {
                        (2, None) => out.extend([SHORT_JUMP, distance as u8]),
                        (2, Some(condition)) => {
                            out.extend([SHORT_JUMP_IF + condition, distance as u8])
                        }
                        (_, None) => {
                            out.push(JUMP);
                            out.extend((distance as i32).to_le_bytes());
                        }
                        (_, Some(condition)) => {
                            out.extend([0x0f, JUMP_IF + condition]);
                            out.extend((distance as i32).to_le_bytes());
                        }
                    }
                }
            }
        }
        if checks {
            out.extend(UD2);
        }
        Ok((out, fields))
    }

    /// The item that was at an offset.
    fn find(&self, at: u32) -> Result<usize, Error> {
        self.items
            .binary_search_by_key(&at, |item| item.at)
            .map_err(|_| Error::new("Cranelift: a jump into an instruction"))
    }

    /// Where each item starts, and where the last one ends. Jumps are short until their targets are too far.
    fn layout(&self, head: u32) -> Result<Vec<u32>, Error> {
        let mut targets = Vec::new();
        let mut sizes = Vec::new();
        for (n, item) in self.items.iter().enumerate() {
            sizes.push(match &item.what {
                What::Same | What::OfOne | What::With(_) => item.length,
                What::Call(_) | What::Return => 5,
                What::CallMemory => {
                    let own = &self.bytes[item.at as usize..(item.at + item.length) as usize];
                    load_r11(own).len() as u32 + 5
                }
                What::Branch(condition, target) => {
                    let long = if condition.is_some() { 6 } else { 5 };
                    targets.push((n, self.find(*target)?, long));
                    2
                }
            });
        }
        loop {
            let mut starts = vec![head];
            for size in &sizes {
                starts.push(starts[starts.len() - 1] + size);
            }
            let before = targets.len();
            targets.retain(|&(n, target, long)| {
                let distance = i64::from(starts[target]) - i64::from(starts[n + 1]);
                let near = i8::try_from(distance).is_ok();
                if !near {
                    sizes[n] = long;
                }
                near
            });
            if targets.len() == before {
                return Ok(starts);
            }
        }
    }
}

/// Which registers hold the same.
///
/// Cranelift makes a zero by `xor` of a register that nothing was written to with itself, and a mask of the carry by
/// `sbb`. Its register allocator can make two registers of it: one is copied to the other before.
#[derive(Default)]
struct Copies {
    /// The register that each one was copied from.
    origins: HashMap<Register, Register>,
}

impl Copies {
    fn origin(&self, register: Register) -> Register {
        self.origins.get(&register).copied().unwrap_or(register)
    }

    /// Whether an instruction depends on the difference of two registers that hold the same.
    fn are_one(&self, insn: &Insn) -> bool {
        match (insn.op, insn.destination, insn.source) {
            (Op::Xor | Op::Sub | Op::SubBorrow, Operand::Register(a), Operand::Register(b)) => {
                insn.size >= 4 && a != b && self.origin(a) == self.origin(b)
            }
            _ => false,
        }
    }

    /// Takes in what an instruction does.
    fn take(&mut self, insn: &Insn) {
        let written = match (insn.op, insn.destination) {
            (Op::Move | Op::MoveZero | Op::MoveSign | Op::Lea | Op::Add | Op::Sub, place)
            | (Op::And | Op::Or | Op::Xor | Op::Set(_) | Op::MoveIf(_), place)
            | (Op::SubBorrow | Op::AddCarry | Op::Negate | Op::Not, place) => place,
            (Op::Compare | Op::Test | Op::Vector | Op::VectorCompare, _) => return,
            // Others may write other registers too.
            _ => return self.origins.clear(),
        };
        let Operand::Register(to) = written else {
            if matches!(written, Operand::High(_)) {
                self.origins.clear();
            }
            return;
        };
        self.origins.remove(&to);
        self.origins.retain(|_, origin| *origin != to);
        if let (Op::Move, Operand::Register(from), 8) = (insn.op, insn.source, insn.size) {
            let origin = self.origin(from);
            if origin != to {
                self.origins.insert(to, origin);
            }
        }
    }
}

/// An instruction on its destination and itself, as long as this one on two registers.
fn of_one(own: &[u8]) -> Vec<u8> {
    let mut out = own.to_vec();
    let start = usize::from(out[0] & 0xf0 == 0x40);
    let rex = if start == 1 { out[0] } else { 0x40 };
    let (opcode, modrm) = (out[start], out[start + 1]);
    // The direction: ModRM.reg or ModRM.rm is the destination.
    let (register, extension) = match opcode & 2 {
        2 => (modrm >> 3 & 7, rex >> 2 & 1),
        _ => (modrm & 7, rex & 1),
    };
    out[start + 1] = 0xc0 | register << 3 | register;
    if start == 1 {
        out[0] = rex & 0xf8 | extension << 2 | extension;
    }
    out
}

/// `mov MEMORY, %r11` for the memory of a `call *MEMORY`.
fn load_r11(call: &[u8]) -> Vec<u8> {
    let (rex, rest) = match call {
        [rex @ 0x40..=0x4f, rest @ ..] => (*rex, rest),
        rest => (0x40, rest),
    };
    // REX.W for 8 bytes, REX.R for the register.
    let mut out = vec![rex & 3 | 0x4c, 0x8b];
    let (opcode, modrm, after) = (rest[0], rest[1], &rest[2..]);
    debug_assert_eq!(opcode, 0xff);
    out.push(modrm & 0xc7 | (R11 & 7) << 3);
    out.extend(after);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const RET: u8 = 0xc3;

    fn assembled(bytes: &[u8], references: &[Reference]) -> (Vec<u8>, Vec<Field>) {
        Code::parse(bytes, references).unwrap().assemble(false).unwrap()
    }

    #[test]
    fn jumps_become_short_if_they_can() {
        // jmp to the end, over so many nops.
        for (nops, length) in [(127, 2), (128, 5)] {
            let mut bytes = vec![JUMP];
            bytes.extend((nops as u32).to_le_bytes());
            bytes.extend(vec![0x90; nops]);
            bytes.push(RET);
            let (out, fields) = assembled(&bytes, &[]);
            assert_eq!(out.len(), length + nops + 5);
            assert_eq!(out[0], if length == 2 { SHORT_JUMP } else { JUMP });
            assert_eq!(out[1], nops as u8);
            assert_eq!(fields[0].target, Target::Return);
        }
    }

    #[test]
    fn calls_check_the_stack() {
        // push %rbp; sub $0x20, %rsp; call ...; call *%r10; call *8(%rbx,%rcx); call *(%r9)
        let bytes = [
            0x55, 0x48, 0x83, 0xec, 0x20, 0xe8, 0, 0, 0, 0, 0x41, 0xff, 0xd2, 0xff, 0x54, 0x0b, 8,
            0x41, 0xff, 0x11, RET,
        ];
        let kind = Reloc::X86CallPCRel4;
        let reference = Reference { offset: 6, kind, symbol: Symbol::Grow, addend: -4 };
        let (out, fields) = assembled(&bytes, &[reference]);
        let depth = (CHECK + 0x28).to_le_bytes();
        assert_eq!(out[..7], [0x66, 0x81, 0xfc, depth[0], depth[1], 0x0f, 0x82]);
        assert_eq!(out[out.len() - 2..], UD2);
        let distance = out.len() as u8 - 2 - 11;
        assert_eq!(out[7..11], [distance, 0, 0, 0]);
        let targets: Vec<Target> = fields.iter().map(|field| field.target).collect();
        let thunk = Target::Thunk(R11);
        let expected = [Target::Symbol(Symbol::Grow), Target::Thunk(10), thunk, thunk];
        assert_eq!(targets, [&expected[..], &[Target::Return]].concat());
        // mov 8(%rbx,%rcx), %r11; mov (%r9), %r11
        let has = |part: &[u8]| out.windows(part.len()).any(|window| window == part);
        assert!(has(&[0x4c, 0x8b, 0x5c, 0x0b, 8, CALL]));
        assert!(has(&[0x4d, 0x8b, 0x19, CALL]));
    }

    #[test]
    fn constants_move_with_their_alignment() {
        // movsd 8(%rip), %xmm0; ret; padding; a constant of 8 bytes at offset 16
        let mut bytes = vec![0xf2, 0x0f, 0x10, 0x05, 8, 0, 0, 0, RET];
        bytes.resize(16, 0);
        bytes.extend([1, 2, 3, 4, 5, 6, 7, 8]);
        let code = Code::parse(&bytes, &[]).unwrap();
        assert_eq!(code.constants, [1, 2, 3, 4, 5, 6, 7, 8]);
        let (out, fields) = code.assemble(false).unwrap();
        assert_eq!(out.len(), 8 + 5);
        let Field { offset, target, addend } = fields[0];
        assert_eq!((offset, target, addend), (4, Target::Constant(0), 0));
    }

    #[test]
    fn copies_of_one_register_are_one() {
        // What comes before `xor %edx, %ecx`, and whether it becomes `xor %ecx, %ecx`.
        let copy = [0x48, 0x89, 0xca];
        for (before, one) in [
            // mov %rcx, %rdx
            (copy.to_vec(), true),
            (Vec::new(), false),
            // mov %ecx, %edx; the upper half may differ
            (vec![0x89, 0xca], false),
            // Then mov %rax, (%rsp): no register changes.
            ([&copy[..], &[0x48, 0x89, 0x04, 0x24]].concat(), true),
            // Then inc %ecx, or add $1, %edx.
            ([&copy[..], &[0xff, 0xc1]].concat(), false),
            ([&copy[..], &[0x83, 0xc2, 1]].concat(), false),
            // Then mul %rbx.
            ([&copy[..], &[0x48, 0xf7, 0xe3]].concat(), false),
            // mov %rcx, %rax; mov %rax, %rdx
            (vec![0x48, 0x89, 0xc8, 0x48, 0x89, 0xc2], true),
        ] {
            for (own, alone) in [([0x33, 0xca], [0x33, 0xc9]), ([0x31, 0xd1], [0x31, 0xc9])] {
                let bytes = [&before[..], &own, &[RET]].concat();
                let (out, _) = assembled(&bytes, &[]);
                let found = &out[before.len()..before.len() + 2];
                assert_eq!(found, if one { alone } else { own }, "{before:02x?}");
            }
        }
        // With REX: mov %r9, %rdx; sbb %rdx, %r9. And where a jump leads, nothing is known of copies.
        let (out, _) = assembled(&[0x4c, 0x89, 0xca, 0x49, 0x19, 0xd1, RET], &[]);
        assert_eq!(out[3..6], [0x4d, 0x19, 0xc9]);
        let jump = [0x75, 3, 0x48, 0x89, 0xca, 0x33, 0xca, RET];
        assert_eq!(assembled(&jump, &[]).0[5..7], [0x33, 0xca]);
    }
}
