//! yaxpeax-x86's view of an instruction against the checker's.

use kyozon_typed_checker::insn::{Insn, Memory, Op, Operand as Ours};
use yaxpeax_arch::LengthedInstruction;
use yaxpeax_x86::amd64::{InstDecoder, Instruction, Opcode, Operand, RegSpec};

/// yaxpeax-x86 2.2 says 8 bytes for the loads of bt and movd that have 4, and 16 for those of cvtdq2pd that have 8.
const MISSIZED: [Opcode; 6] =
    [Opcode::BT, Opcode::BTS, Opcode::BTR, Opcode::BTC, Opcode::MOVQ, Opcode::CVTDQ2PD];

/// Fails unless yaxpeax-x86 finds the same length and address.
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
    Ok(())
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
