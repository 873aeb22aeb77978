//! Single instructions, by their bytes.

extern crate std;

use super::table::*;
use super::{decode, Refusal};
use crate::insn::{Insn, Op, Operand};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

fn bytes(hex: &str) -> Vec<u8> {
    hex.split(' ').map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal")).collect()
}

/// Operation and size, destination and source. `r` is a general register, `h` bits 8 to 15 of one, `x` a vector, `#` an
/// immediate; memory has its width behind it, and a result its bits.
fn show(insn: &Insn) -> String {
    let m = insn.memory;
    let mut parts = Vec::new();
    parts.extend(m.relative.then(|| "end".to_string()));
    parts.extend(m.base.map(|r| format!("r{r}")));
    parts.extend(m.index.map(|(r, scale)| format!("r{r}*{}", 1 << scale)));
    parts.push(m.displacement.to_string());
    let address = parts.join(" + ");
    let operand = |operand| match operand {
        Operand::None => "-".to_string(),
        Operand::Register(r) => format!("r{r}"),
        Operand::High(r) => format!("h{r}"),
        Operand::Vector => "x".to_string(),
        Operand::Memory => format!("[{address}]:{}", insn.width),
        Operand::Immediate => "#".to_string(),
    };
    let mut text = format!(
        "{:?}/{} {}, {}",
        insn.op,
        insn.size,
        operand(insn.destination),
        operand(insn.source)
    );
    match insn.op {
        Op::Lea => text += &format!(" address {address}"),
        Op::MoveZero | Op::MoveSign => text += &format!(" of {}", insn.width),
        Op::VectorToRegister => text += &format!(" bits {}", insn.result_bits),
        Op::ShiftDouble if insn.by_cl => text += " by cl",
        _ => {}
    }
    if insn.immediate != 0 {
        text += &format!(" imm {}", insn.immediate);
    }
    text
}

/// Lines of a list: bytes, a colon, and what they give.
fn list(text: &str) -> impl Iterator<Item = (Vec<u8>, &str)> {
    text.lines().map(|line| {
        let (hex, rest) = line.split_once(" : ").expect("a colon between bytes and result");
        (bytes(hex), rest)
    })
}

const ACCEPTED: &str = include_str!("tests/accepted.txt");
const REFUSED: &str = include_str!("tests/refused.txt");

#[test]
fn accepted_instructions_have_their_operands() {
    for (bytes, expected) in list(ACCEPTED) {
        let insn = decode(&bytes).unwrap_or_else(|refusal| panic!("{bytes:02x?}: {refusal}"));
        assert_eq!(show(&insn), expected, "{bytes:02x?}");
        assert_eq!(usize::from(insn.length), bytes.len(), "{bytes:02x?}");
    }
}

#[test]
fn refused_instructions_have_a_reason() {
    for (bytes, expected) in list(REFUSED) {
        let refusal = decode(&bytes).expect_err(expected);
        assert_eq!(refusal.to_string(), expected, "{bytes:02x?}");
    }
}

#[test]
fn the_bytes_behind_an_instruction_do_not_matter() {
    for (bytes, _) in list(ACCEPTED) {
        for behind in [0x00, 0x0f, 0x66, 0xff] {
            let mut longer = bytes.clone();
            longer.resize(32, behind);
            assert_eq!(decode(&longer), decode(&bytes), "{bytes:02x?}");
        }
    }
}

#[test]
fn an_instruction_without_its_last_byte_is_truncated() {
    for (bytes, _) in list(ACCEPTED) {
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), Err(Refusal::Truncated), "{:02x?}", &bytes[..end]);
        }
    }
}

/// Map, prefix, opcode and ModRM.reg of an instruction.
fn key(bytes: &[u8]) -> (u8, u8, u8, u8) {
    let mut rest = bytes;
    let mut prefix = NONE;
    while let Some(byte @ (0x66 | 0xf0 | 0xf2 | 0xf3 | 0x2e | 0x40..=0x4f)) = rest.first() {
        prefix = match byte {
            0x66 => P66,
            0xf2 => PF2,
            0xf3 => PF3,
            _ => prefix,
        };
        rest = &rest[1..];
    }
    let (map, rest) = match rest {
        [0x0f, 0x38, rest @ ..] => (X38, rest),
        [0x0f, 0x3a, rest @ ..] => (X3A, rest),
        [0x0f, rest @ ..] => (TWO, rest),
        _ => (ONE, rest),
    };
    (map, prefix, rest[0], rest.get(1).unwrap_or(&0) >> 3 & 7)
}

#[test]
fn each_row_of_the_table_has_a_case() {
    let keys: Vec<_> = list(ACCEPTED).map(|(bytes, _)| key(&bytes)).collect();
    let rows = ROWS.iter().chain(&ARITHMETIC_ROWS).chain(&ARITHMETIC_GROUPS).chain(&SHIFT_GROUPS);
    let mut missing = Vec::new();
    for row in rows {
        // The arithmetic operations share their rows.
        let shared = ARITHMETIC_ROWS.iter().any(|r| core::ptr::eq(r, row));
        let has_case = keys.iter().any(|&(map, prefix, opcode, reg)| {
            let opcode = if shared && opcode < 0x40 { opcode % 8 } else { opcode };
            map == row.map
                && (prefix == row.prefix || row.prefix == SIZE && prefix <= P66)
                && (row.first..=row.last).contains(&opcode)
                && row.reg >> reg & 1 != 0
        });
        if !has_case {
            missing.push(format!(
                "map {} prefix {} opcode {:02x} reg {:02x}",
                row.map, row.prefix, row.first, row.reg
            ));
        }
    }
    assert!(missing.is_empty(), "rows without a case: {missing:#?}");
}
