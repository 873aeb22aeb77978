//! iced-x86's view of an instruction against the checker's.

use crate::effects;
use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register, RflagsBits,
};
use kyozon_typed_checker::insn::{Insn, Memory, Op, Operand};

/// Decodes one instruction as Intel's processors do.
pub fn decode(bytes: &[u8]) -> Instruction {
    Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode()
}

/// Fails if AMD's processors understand the instruction in another way. With prefix 66, their branches have 16 bits.
pub fn compare_vendors(bytes: &[u8], intel: &Instruction) -> Result<(), String> {
    let amd = Decoder::with_ip(64, bytes, 0, DecoderOptions::AMD).decode();
    if amd.eq_all_bits(intel) {
        return Ok(());
    }
    Err(format!("AMD: {:?} of {} bytes", amd.code(), amd.len()))
}

/// Fails unless iced-x86 says the same of the instruction as the checker.
pub fn compare(
    insn: &Insn,
    iced: &Instruction,
    factory: &mut InstructionInfoFactory,
) -> Result<(), String> {
    if iced.is_invalid() {
        return Err("iced-x86 calls it invalid".into());
    }
    same("length", usize::from(insn.length), iced.len())?;
    operation(insn, iced)?;
    flow(insn, iced)?;
    size(insn, iced)?;
    operands(insn, iced)?;
    accesses(insn, iced, factory)
}

/// Fails if the instruction is the same without one of its prefixes: a later processor may give it another meaning.
pub fn compare_prefixes(insn: &Insn, bytes: &[u8], whole: &Instruction) -> Result<(), String> {
    // Padding, and `rep ret`.
    if matches!(insn.op, Op::Nop | Op::Return) {
        return Ok(());
    }
    let prefixes = bytes.iter().take_while(|byte| matches!(byte, 0x66 | 0xf2 | 0xf3)).count();
    for i in 0..prefixes {
        let shorter = decode(&[&bytes[..i], &bytes[i + 1..]].concat());
        if shorter.code() == whole.code() {
            return Err(format!("redundant prefix: {:02x}", bytes[i]));
        }
    }
    Ok(())
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: T, theirs: T) -> Result<(), String> {
    if ours == theirs {
        return Ok(());
    }
    Err(format!("{what}: {ours:?}, iced-x86 has {theirs:?}"))
}

fn condition(op: Op) -> ConditionCode {
    use ConditionCode::*;
    let (Op::JumpIf(c) | Op::MoveIf(c) | Op::Set(c)) = op else { return None };
    [o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g][c as usize]
}

/// The operation that each mnemonic of general registers must have. Vector instructions have none here.
fn general(mnemonic: Mnemonic) -> Option<Op> {
    use Mnemonic::*;
    Some(match mnemonic {
        Nop | Pause | Endbr64 | Lfence | Mfence | Sfence => Op::Nop,
        Mov | Movnti => Op::Move,
        Movzx => Op::MoveZero,
        Movsx | Movsxd => Op::MoveSign,
        Lea => Op::Lea,
        Add => Op::Add,
        Sub => Op::Sub,
        Cmp => Op::Compare,
        Test => Op::Test,
        And => Op::And,
        Or => Op::Or,
        Xor => Op::Xor,
        Adc => Op::AddCarry,
        Sbb => Op::SubBorrow,
        Inc => Op::Increment,
        Dec => Op::Decrement,
        Neg => Op::Negate,
        Not => Op::Not,
        Shl => Op::ShiftLeft,
        Shr => Op::ShiftRight,
        Sar => Op::ShiftArithmetic,
        Rol | Ror => Op::Rotate,
        Shld | Shrd => Op::ShiftDouble,
        Mul => Op::MultiplyWide,
        Div | Idiv => Op::Divide,
        Cwd | Cdq | Cqo => Op::SignIntoRdx,
        Cbw | Cwde | Cdqe => Op::SignInRax,
        Push => Op::Push,
        Pop => Op::Pop,
        Leave => Op::Leave,
        Xchg => Op::Exchange,
        Xadd => Op::ExchangeAdd,
        Cmpxchg => Op::CompareExchange,
        Bt => Op::BitTest,
        Bts | Btr | Btc => Op::BitChange,
        Bsf | Bsr | Lzcnt | Tzcnt => Op::BitScan,
        Popcnt => Op::BitCount,
        Bswap => Op::ByteSwap,
        Ret => Op::Return,
        Ud2 => Op::Trap,
        Comiss | Comisd | Ucomiss | Ucomisd | Ptest => Op::VectorCompare,
        _ => return None,
    })
}

fn operation(insn: &Insn, iced: &Instruction) -> Result<(), String> {
    same("condition", condition(insn.op), iced.condition_code())?;
    let expected = match (iced.mnemonic(), iced.flow_control()) {
        (Mnemonic::Imul, _) => match iced.op_count() {
            1 => Op::MultiplyWide,
            2 => Op::Multiply,
            _ => Op::MultiplyImmediate,
        },
        (Mnemonic::Jmp, FlowControl::IndirectBranch) => Op::JumpIndirect,
        (Mnemonic::Jmp, _) => Op::Jump,
        (Mnemonic::Call, FlowControl::IndirectCall) => Op::CallIndirect,
        (Mnemonic::Call, _) => Op::Call,
        _ if iced.condition_code() != ConditionCode::None => match insn.op {
            Op::JumpIf(_) if iced.flow_control() == FlowControl::ConditionalBranch => insn.op,
            Op::MoveIf(_) if iced.mnemonic() as u32 != 0 && iced.op_count() == 2 => insn.op,
            Op::Set(_) if iced.op_count() == 1 => insn.op,
            _ => return Err(format!("{:?}, iced-x86 has a condition", insn.op)),
        },
        (mnemonic, _) => match general(mnemonic) {
            Some(op) => op,
            None if written_register(iced) => Op::VectorToRegister,
            None if vectors_only(iced) => Op::Vector,
            None => return Err("not a vector instruction for iced-x86".into()),
        },
    };
    same("operation", insn.op, expected)
}

/// The first operand is a general register, and so written.
fn written_register(iced: &Instruction) -> bool {
    iced.op0_kind() == OpKind::Register && iced.op0_register().is_gpr()
}

/// There is a vector operand, and no register that is neither a vector nor a general one.
fn vectors_only(iced: &Instruction) -> bool {
    let registers: Vec<_> = (0..iced.op_count())
        .filter(|&i| iced.op_kind(i) == OpKind::Register)
        .map(|i| iced.op_register(i))
        .collect();
    registers.iter().any(|r| r.is_xmm()) && registers.iter().all(|r| r.is_xmm() || r.is_gpr())
}

fn flow(insn: &Insn, iced: &Instruction) -> Result<(), String> {
    let expected = match insn.op {
        Op::Jump => FlowControl::UnconditionalBranch,
        Op::JumpIf(_) => FlowControl::ConditionalBranch,
        Op::JumpIndirect => FlowControl::IndirectBranch,
        Op::Call => FlowControl::Call,
        Op::CallIndirect => FlowControl::IndirectCall,
        Op::Return => FlowControl::Return,
        Op::Trap => FlowControl::Exception,
        _ => FlowControl::Next,
    };
    same("flow", expected, iced.flow_control())?;
    if matches!(insn.op, Op::Jump | Op::JumpIf(_) | Op::Call) {
        let target = (insn.length as u64).wrapping_add(insn.immediate as u64);
        same("op kind", OpKind::NearBranch64, iced.op0_kind())?;
        same("target", target, iced.near_branch64())?;
    }
    Ok(())
}

/// The size where no register operand shows it.
fn size(insn: &Insn, iced: &Instruction) -> Result<(), String> {
    let in_memory = [insn.destination, insn.source].contains(&Operand::Memory);
    let expected = match (insn.op, iced.mnemonic()) {
        (_, Mnemonic::Cbw | Mnemonic::Cwd) => 2,
        (_, Mnemonic::Cwde | Mnemonic::Cdq) => 4,
        (_, Mnemonic::Cdqe | Mnemonic::Cqo) => 8,
        (Op::Jump | Op::JumpIf(_) | Op::JumpIndirect | Op::Call | Op::CallIndirect, _) => 8,
        (Op::Return | Op::Push | Op::Pop | Op::Leave, _) => 8,
        (Op::MoveZero | Op::MoveSign, _) => insn.size,
        (Op::Vector | Op::VectorToRegister | Op::VectorCompare, _) => insn.size,
        _ if in_memory => insn.width,
        _ => insn.size,
    };
    same("size", insn.size, expected)
}

/// An operand in the checker's words, and the bytes of a register.
fn operand(iced: &Instruction, i: u32) -> (Operand, usize) {
    match iced.op_kind(i) {
        OpKind::Register => {
            let register = iced.op_register(i);
            let number = register.full_register().number() as u8;
            match register {
                Register::AH | Register::CH | Register::DH | Register::BH => {
                    (Operand::High(number), 1)
                }
                _ if register.is_xmm() => (Operand::Vector, 16),
                _ => (Operand::Register(number), register.size()),
            }
        }
        OpKind::Memory => (Operand::Memory, iced.memory_size().size()),
        _ => (Operand::Immediate, 0),
    }
}

fn operands(insn: &Insn, iced: &Instruction) -> Result<(), String> {
    if matches!(insn.op, Op::Jump | Op::JumpIf(_) | Op::Call | Op::Nop) {
        same("operands", (Operand::None, Operand::None), (insn.destination, insn.source))?;
        return same(
            "address",
            Memory { base: None, index: None, displacement: 0, relative: false },
            insn.memory,
        );
    }
    let mut next = 0;
    if insn.op == Op::Lea {
        same("lea's destination", (insn.destination, insn.size as usize), operand(iced, 0))?;
        address(insn, iced)?;
        next = 2;
    } else {
        for (source, ours) in [(false, insn.destination), (true, insn.source)] {
            if ours == Operand::None {
                continue;
            }
            let (theirs, bytes) = operand(iced, next);
            same("operand", ours, theirs)?;
            match ours {
                Operand::Register(_) | Operand::High(_) => {
                    let expected = register_bytes(insn, iced, source);
                    same("bytes of a register", expected.unwrap_or(bytes), bytes)?;
                }
                Operand::Memory => {
                    same("bytes in memory", insn.width as usize, bytes)?;
                    address(insn, iced)?;
                }
                Operand::Immediate => immediate(insn, iced, next)?,
                _ => {}
            }
            next += 1;
        }
    }
    // What is not named as an operand: immediates, the count in cl, and the mask of blends.
    for i in next..iced.op_count() {
        match operand(iced, i) {
            (Operand::Immediate, _) => immediate(insn, iced, i)?,
            (Operand::Register(1), 1) if insn.by_cl => {}
            (Operand::Vector, _) if iced.op_register(i) == Register::XMM0 => {}
            (theirs, _) => return Err(format!("iced-x86 has another operand, {theirs:?}")),
        }
    }
    Ok(())
}

/// Bytes of a general register; none if the size is of no importance, because the vector part decides.
fn register_bytes(insn: &Insn, iced: &Instruction, source: bool) -> Option<usize> {
    use Mnemonic::*;
    match (insn.op, iced.mnemonic()) {
        (Op::Vector | Op::VectorToRegister, Pinsrb | Pinsrw | Pextrb | Pextrw | Extractps) => None,
        (Op::MoveZero | Op::MoveSign, _) if source => Some(insn.width as usize),
        (Op::ShiftLeft | Op::ShiftRight | Op::ShiftArithmetic | Op::Rotate, _) if source => Some(1),
        _ => Some(insn.size as usize),
    }
}

fn immediate(insn: &Insn, iced: &Instruction, i: u32) -> Result<(), String> {
    let value = iced.immediate(i);
    let expected = match iced.op_kind(i) {
        OpKind::Immediate8 => value as i8 as i64,
        OpKind::Immediate16 => value as i16 as i64,
        OpKind::Immediate32 => value as i32 as i64,
        _ => value as i64,
    };
    same("immediate", insn.immediate, expected)
}

fn address(insn: &Insn, iced: &Instruction) -> Result<(), String> {
    let number = |r: Register| (r != Register::None).then(|| r.number() as u8);
    let relative = iced.is_ip_rel_memory_operand();
    let displacement = iced.memory_displacement64();
    let theirs = Memory {
        base: if relative { None } else { number(iced.memory_base()) },
        index: number(iced.memory_index()).map(|r| (r, iced.memory_index_scale().ilog2() as u8)),
        displacement: if relative {
            displacement.wrapping_sub(iced.len() as u64) as i32
        } else {
            displacement as i32
        },
        relative,
    };
    same("segment", Register::None, iced.segment_prefix())?;
    same("address", insn.memory, theirs)
}

fn accesses(
    insn: &Insn,
    iced: &Instruction,
    factory: &mut InstructionInfoFactory,
) -> Result<(), String> {
    let ours = effects::of(insn);
    let info = factory.info(iced);
    let (mut reads, mut writes) = (0, 0);
    for used in info.used_registers() {
        let register = used.register().full_register();
        if register.is_xmm() || register.is_ymm() || register.is_zmm() {
            continue;
        }
        if !register.is_gpr() {
            return Err(format!("iced-x86 uses {register:?}"));
        }
        let (r, w) = access(used.access());
        reads |= (r as u16) << register.number();
        writes |= (w as u16) << register.number();
    }
    if insn.op != Op::Nop {
        let zeroed =
            matches!(insn.op, Op::Xor | Op::Sub | Op::SubBorrow) && insn.destination == insn.source;
        // A register minus itself does not depend on it. iced-x86 names the old value of a register that may keep it.
        let may_keep = match (insn.op, insn.destination) {
            (Op::BitScan | Op::MoveIf(_), Operand::Register(r)) => 1 << r,
            _ => 0,
        };
        same(
            "registers read",
            if zeroed { reads } else { ours.reads } | may_keep,
            reads | may_keep,
        )?;
    }
    same("registers written", ours.writes, writes)?;
    let mut memory = (false, false);
    let mut stack = (false, false);
    for (i, used) in info.used_memory().iter().enumerate() {
        let (r, w) = access(used.access());
        // The memory operand comes first, then the stack.
        let of_operand = i == 0 && [insn.destination, insn.source].contains(&Operand::Memory);
        let place = if of_operand { &mut memory } else { &mut stack };
        *place = (place.0 | r, place.1 | w);
    }
    same("memory operand read, written", ours.operand, memory)?;
    same("stack read, written", ours.stack, stack)?;
    let flags = iced.rflags_modified()
        & (RflagsBits::OF
            | RflagsBits::SF
            | RflagsBits::ZF
            | RflagsBits::AF
            | RflagsBits::CF
            | RflagsBits::PF);
    if ours.flags_at_most {
        return same("flags", ours.flags | flags, ours.flags);
    }
    same("flags", ours.flags, flags)
}

fn access(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
    }
}
