//! From a module to a source that assembles to the same file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind};
use kyozon_typed_annotate::module::{JumpTable, Module};
use kyozon_typed_checker::program::{ALIGN, STUB};
use kyozon_typed_checker::value::REGISTERS;

use crate::error::Complaint;
use crate::spelling::Spelling;
use crate::{head, signature};

/// Bytes of the text at one place.
enum Piece {
    /// An instruction.
    Instruction(Instruction),
    /// One byte that is in none.
    Byte(u8),
}

/// What is in the image, by its offsets.
struct Image<'a> {
    module: &'a Module,
    read_only: u64,
    call_tables: u64,
    stubs: u64,
    pieces: BTreeMap<u64, Piece>,
    labels: BTreeSet<u64>,
}

/// The source of a module.
pub(crate) fn disassemble(module: &Module) -> Result<String, Complaint> {
    let mut image = Image::new(module);
    image.sweep();
    image.find_labels();
    let instructions = image.pieces.values().filter_map(|piece| match piece {
        Piece::Instruction(instruction) => Some(instruction),
        Piece::Byte(_) => None,
    });
    let spelling = Spelling::of(&module.text, instructions)?;
    let mut out = String::new();
    image.write_head(&mut out);
    image.write_text(&spelling, &mut out);
    image.write_read_only(&mut out);
    if !module.rest.is_empty() {
        out += ".section .rest\n";
        write_bytes(&module.rest, &mut out);
    }
    Ok(out)
}

/// Bytes, sixteen in a line.
fn write_bytes(bytes: &[u8], out: &mut String) {
    for row in bytes.chunks(16) {
        let row: Vec<_> = row.iter().map(|byte| format!("{byte:#04x}")).collect();
        let _ = writeln!(out, "        .byte   {}", row.join(", "));
    }
}

impl<'a> Image<'a> {
    fn new(module: &'a Module) -> Self {
        let align = |n: u64| n.next_multiple_of(u64::from(ALIGN));
        let entries: usize = module.call_tables.iter().map(|t| t.functions.len()).sum();
        let read_only = align(module.text.len() as u64);
        let call_tables = align(read_only + module.read_only.len() as u64);
        let stubs = align(call_tables + 8 * entries as u64);
        let (pieces, labels) = (BTreeMap::new(), BTreeSet::new());
        Image { module, read_only, call_tables, stubs, pieces, labels }
    }

    /// Takes the text apart, so that each function and each head begins with a piece.
    fn sweep(&mut self) {
        let text = &self.module.text;
        let functions = self.module.functions.iter();
        let mut borders: BTreeSet<u64> = functions
            .flat_map(|f| f.heads.keys().copied().chain([f.start]))
            .map(u64::from)
            .collect();
        borders.insert(text.len() as u64);
        let mut at = 0;
        while at < text.len() as u64 {
            let limit = borders.range(at + 1..).next().map_or(text.len() as u64, |&limit| limit);
            let bytes = &text[at as usize..(limit as usize).min(text.len())];
            let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                self.pieces.insert(at, Piece::Byte(bytes[0]));
                at += 1;
            } else {
                self.pieces.insert(at, Piece::Instruction(instruction));
                at += instruction.len() as u64;
            }
        }
    }

    /// Where a direct jump or call leads.
    fn target(instruction: &Instruction) -> Option<u64> {
        let near = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::NearBranch64;
        near.then(|| instruction.near_branch64())
    }

    fn find_labels(&mut self) {
        let jumps = self.pieces.values().filter_map(|piece| match piece {
            Piece::Instruction(instruction) => Self::target(instruction),
            Piece::Byte(_) => None,
        });
        let tables = self.module.jump_tables.iter().flat_map(|table| self.targets(table));
        let heads = self.module.functions.iter().flat_map(|f| f.heads.values());
        let origins = heads.flat_map(|head| head.types.values()).filter_map(|value| value.origin());
        let labels: BTreeSet<u64> = jumps
            .chain(tables)
            .chain(origins.map(u64::from))
            .filter(|at| self.pieces.contains_key(at))
            .collect();
        self.labels = labels;
    }

    /// The places that a jump table leads to.
    fn targets(&self, table: &JumpTable) -> Vec<u64> {
        let start = table.start as usize;
        let bytes = self.module.read_only.get(start..start + table.count as usize * 4);
        let base = self.read_only.wrapping_add(u64::from(table.start));
        let entries = bytes.unwrap_or(&[]).chunks_exact(4);
        entries
            .map(|b| base.wrapping_add_signed(i32::from_le_bytes([b[0], b[1], b[2], b[3]]).into()))
            .collect()
    }

    fn function_at(&self, at: u64) -> Option<usize> {
        self.module.functions.iter().position(|f| u64::from(f.start) == at)
    }

    /// How a place in the image is written.
    fn name(&self, at: u64) -> String {
        if let Some(n) = self.function_at(at) {
            return format!("f{n}");
        }
        if self.labels.contains(&at) {
            return format!("L{at:x}");
        }
        let read_only = self.read_only..self.read_only + self.module.read_only.len() as u64;
        if read_only.contains(&at) {
            let offset = at - self.read_only;
            let tables = &self.module.jump_tables;
            return match tables.iter().position(|table| u64::from(table.start) == offset) {
                Some(n) => format!("jump_table{n}"),
                None if offset == 0 => "read_only".into(),
                None => format!("read_only+{offset:#x}"),
            };
        }
        let mut start = self.call_tables;
        for (n, table) in self.module.call_tables.iter().enumerate() {
            let end = start + 8 * table.functions.len() as u64;
            if (start..end).contains(&at) {
                return match at - start {
                    0 => format!("call_table{n}"),
                    offset => format!("call_table{n}+{offset:#x}"),
                };
            }
            start = end;
        }
        if let Some(stub) = at.checked_sub(self.stubs).filter(|at| at % u64::from(STUB) == 0) {
            let n = (stub / u64::from(STUB)) as usize;
            match n.checked_sub(self.module.imports.len()) {
                None => return format!("import{n}"),
                Some(register @ 0..=15) => {
                    return format!("__x86_indirect_thunk_{}", REGISTERS[register])
                }
                Some(16) => return "__x86_return_thunk".into(),
                Some(_) => (),
            }
        }
        match at as i64 {
            at if at < 0 => format!("f0-{:#x}", at.unsigned_abs()),
            at => format!("f0+{at:#x}"),
        }
    }

    fn write_head(&self, out: &mut String) {
        let module = self.module;
        let _ = writeln!(out, ".region {:#x}", module.region);
        if module.indirect_branches {
            *out += ".indirect\n";
        }
        for (n, s) in module.signatures.iter().enumerate() {
            let _ = writeln!(out, ".sig sig{n} {}", signature::print(s));
        }
        for (n, import) in module.imports.iter().enumerate() {
            let _ = writeln!(out, ".import import{n} {} sig{}", import.number, import.signature);
        }
        for (n, table) in module.call_tables.iter().enumerate() {
            let functions: Vec<_> = table.functions.iter().map(|f| format!("f{f}")).collect();
            let functions = functions.join(", ");
            let _ = writeln!(out, ".calltable call_table{n} sig{}: {functions}", table.signature);
        }
        let _ = writeln!(out, ".entry f{}", module.entry);
    }

    fn write_text(&self, spelling: &Spelling, out: &mut String) {
        let mut function = 0;
        for (&at, piece) in &self.pieces {
            if let Some(n) = self.function_at(at) {
                function = n;
                let f = &self.module.functions[n];
                let _ = write!(out, "\n.func f{n} sig{}", f.signature);
                if f.frame > 0 {
                    let _ = write!(out, " frame {}", f.frame);
                }
                out.push('\n');
            } else if self.labels.contains(&at) {
                let _ = writeln!(out, "L{at:x}:");
            }
            let heads = self.module.functions.get(function).map(|f| &f.heads);
            if let Some(head) = heads.and_then(|heads| heads.get(&(at as u32))) {
                let _ = writeln!(
                    out,
                    "{}",
                    format!(".head {}", head::print(head, &|at| self.name(at.into()))).trim_end()
                );
            }
            match piece {
                Piece::Byte(byte) => write_bytes(&[*byte], out),
                Piece::Instruction(instruction) => {
                    self.write_instruction(instruction, spelling, out)
                }
            }
        }
    }

    fn write_instruction(&self, instruction: &Instruction, spelling: &Spelling, out: &mut String) {
        let at = instruction.ip() as usize;
        let bytes = &self.module.text[at..at + instruction.len()];
        let Some(text) = spelling.get(bytes) else {
            let row: Vec<_> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
            let plain = Spelling::plain(instruction);
            let _ = writeln!(out, "        .byte   {} # {plain}", row.join(", "));
            return;
        };
        let text = match Self::target(instruction) {
            Some(target) => {
                let inside = target < self.module.text.len() as u64;
                if instruction.len() == 2 && !inside {
                    write_bytes(bytes, out);
                    return;
                }
                // Where a short jump would do, a long one must be asked for.
                let long =
                    inside && instruction.len() > 2 && instruction.mnemonic() != Mnemonic::Call;
                let near = target.abs_diff(instruction.ip()) < 0x100;
                let prefix = if long && near { "{disp32} " } else { "" };
                format!("{prefix}{text} {}", self.name(target))
            }
            None if instruction.is_ip_rel_memory_operand() => {
                let name = self.name(instruction.ip_rel_memory_address());
                Spelling::with_symbol(text, &name)
            }
            None => text.clone(),
        };
        let (mnemonic, operands) = match text.split_once(' ') {
            Some((mnemonic, operands)) if !mnemonic.starts_with('{') => (mnemonic, operands),
            _ => (text.as_str(), ""),
        };
        let _ = writeln!(out, "{}", format!("        {mnemonic:<7} {operands}").trim_end());
    }

    fn write_read_only(&self, out: &mut String) {
        let bytes = &self.module.read_only;
        if bytes.is_empty() {
            return;
        }
        *out += "\n.section .rodata\n.p2align 2\nread_only:\n";
        let mut at = 0;
        for (n, table) in self.module.jump_tables.iter().enumerate() {
            let start = table.start as usize;
            write_bytes(&bytes[at..start], out);
            let targets: Vec<_> = self.targets(table).iter().map(|&at| self.name(at)).collect();
            let targets = targets.join(", ");
            let _ = writeln!(out, ".jumptable jump_table{n} in f{}: {targets}", table.function);
            at = start + table.count as usize * 4;
        }
        write_bytes(&bytes[at..], out);
    }
}
