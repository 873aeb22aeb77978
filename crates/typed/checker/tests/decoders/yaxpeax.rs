//! yaxpeax-x86's view of an instruction against the checker's.

use kyozon_typed_checker::insn::{Insn, Memory, Op, Operand as Ours};
use yaxpeax_arch::LengthedInstruction;
use yaxpeax_x86::amd64::{register_class, InstDecoder, Instruction, Opcode, Operand, RegSpec};

/// yaxpeax-x86 2.2 says 8 bytes for the loads of bt and movd that have 4, and 16 for those of cvtdq2pd that have 8.
const MISSIZED: [Opcode; 6] =
    [Opcode::BT, Opcode::BTS, Opcode::BTR, Opcode::BTC, Opcode::MOVQ, Opcode::CVTDQ2PD];

/// Fails unless yaxpeax-x86 finds the same length, address and operands.
pub fn compare(insn: &Insn, bytes: &[u8], decoder: &InstDecoder) -> Result<(), String> {
    let theirs = decoder.decode_slice(bytes).map_err(|e| format!("yaxpeax-x86: {e}"))?;
    let length = theirs.len().to_const() as usize;
    if length != usize::from(insn.length) {
        return Err(format!("length for yaxpeax-x86: {}, it has {length}", insn.length));
    }
    if matches!(insn.op, Op::Nop) {
        return Ok(());
    }
    let named = [insn.destination, insn.source].contains(&Ours::Memory) || insn.op == Op::Lea;
    let memory = memory(&theirs);
    if memory != named.then_some(insn.memory) {
        return Err(format!(
            "address for yaxpeax-x86: {:?}, it has {memory:?} in {theirs}",
            insn.memory
        ));
    }
    let bytes = theirs.mem_size().and_then(|size| size.bytes_size());
    if named
        && insn.op != Op::Lea
        && !MISSIZED.contains(&theirs.opcode())
        && bytes != Some(insn.width)
    {
        return Err(format!(
            "bytes in memory for yaxpeax-x86: {}, it has {bytes:?} in {theirs}",
            insn.width
        ));
    }
    operands(insn, &theirs)
}

/// The operands that the checker names, in their order. yaxpeax-x86 2.2 has a vector as the second operand of pinsrb,
/// pinsrd and pinsrq.
fn operands(insn: &Insn, theirs: &Instruction) -> Result<(), String> {
    let mut ours: Vec<_> =
        [insn.destination, insn.source].into_iter().filter(|o| *o != Ours::None).collect();
    match theirs.opcode() {
        Opcode::PINSRB | Opcode::PINSRD | Opcode::PINSRQ => ours.truncate(1),
        // One opcode has them the other way round, which is the same.
        Opcode::XCHG if ours[0] != operand(&theirs.operand(0)).0 => ours.reverse(),
        _ => {}
    }
    for (i, ours) in ours.into_iter().enumerate() {
        let (their, immediate) = operand(&theirs.operand(i as u8));
        if ours != their || immediate.is_some_and(|value| value != insn.immediate) {
            let found = (their, immediate);
            return Err(format!(
                "operand {i} for yaxpeax-x86: {ours:?}, it has {found:?} in {theirs}"
            ));
        }
    }
    Ok(())
}

/// An operand in the checker's words, and the value of an immediate.
fn operand(theirs: &Operand) -> (Ours, Option<i64>) {
    let value = match *theirs {
        Operand::ImmediateI8 { imm } => imm.into(),
        Operand::ImmediateU8 { imm } => i64::from(imm as i8),
        Operand::ImmediateI16 { imm } => imm.into(),
        Operand::ImmediateU16 { imm } => i64::from(imm as i16),
        Operand::ImmediateI32 { imm } => imm.into(),
        Operand::ImmediateU32 { imm } => i64::from(imm as i32),
        Operand::ImmediateI64 { imm } => imm,
        Operand::ImmediateU64 { imm } => imm as i64,
        Operand::Register { reg } => {
            let ours = match (reg.class(), reg.num()) {
                (register_class::X, _) => Ours::Vector,
                (register_class::B, number @ 4..) => Ours::High(number - 4),
                (register_class::B | register_class::RB, number) => Ours::Register(number),
                (register_class::Q | register_class::D | register_class::W, number) => {
                    Ours::Register(number)
                }
                _ => Ours::None,
            };
            return (ours, None);
        }
        ref other if other.is_memory() => return (Ours::Memory, None),
        _ => return (Ours::None, None),
    };
    (Ours::Immediate, Some(value))
}

fn memory(theirs: &Instruction) -> Option<Memory> {
    let found = (0..theirs.operand_count()).map(|i| theirs.operand(i)).find(Operand::is_memory)?;
    let (base, index, displacement) = match found {
        Operand::AbsoluteU32 { addr } => (None, None, addr as i32),
        Operand::AbsoluteU64 { addr } => (None, None, addr as i32),
        Operand::MemDeref { base } => (Some(base), None, 0),
        Operand::Disp { base, disp } => (Some(base), None, disp),
        Operand::MemIndexScale { index, scale } => (None, Some((index, scale)), 0),
        Operand::MemIndexScaleDisp { index, scale, disp } => (None, Some((index, scale)), disp),
        Operand::MemBaseIndexScale { base, index, scale } => (Some(base), Some((index, scale)), 0),
        Operand::MemBaseIndexScaleDisp { base, index, scale, disp } => {
            (Some(base), Some((index, scale)), disp)
        }
        other => panic!("{other:?}"),
    };
    let relative = base == Some(RegSpec::rip());
    Some(Memory {
        base: base.filter(|_| !relative).map(|r| r.num()),
        index: index.map(|(r, scale)| (r.num(), scale.ilog2() as u8)),
        displacement,
        relative,
    })
}
