//! From a file to a module.

use kyozon_typed_annotate::annotation::{Head, Heads};
use kyozon_typed_annotate::module::{
    CallTable, Function, Import, JumpTable, Module, Signature, Type,
};
use kyozon_typed_checker::frame::Slot;
use kyozon_typed_checker::heads::Location;
use kyozon_typed_checker::insn::RSP;
use kyozon_typed_checker::program::{self, Host, Program};
use kyozon_typed_checker::range::Range;
use kyozon_typed_checker::value::{Spot, Value};

use crate::error::Complaint;

/// Reads a file. Functions and tables get names from their numbers.
pub(crate) fn read(file: &[u8]) -> Result<Module, Complaint> {
    let region = file.get(16..24).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    let region = region.unwrap_or(0);
    let host = Host { region, reserved: 0, indirect_branches: true, tracking: false };
    let program = Program::parse(file, host).map_err(|malformed| malformed.to_string())?;
    let count = file.get(32..36).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes);
    let signatures = (0..count.unwrap_or(0)).map(|n| signature(&program, n as u16));
    let entries: Vec<u32> = program.entries().collect();
    let mut module = Module {
        region: host.region,
        indirect_branches: program.indirect_branches(),
        signatures: signatures.collect(),
        entry: program.entry,
        read_only: program.read_only().to_vec(),
        text: program.text().to_vec(),
        rest: program.rest().to_vec(),
        ..Module::default()
    };
    for n in 0..program.function_count() {
        let program::Function { start, signature, frame, .. } = program.function(n);
        let heads = read_heads(program.annotations(n), start)
            .ok_or_else(|| format!("function {n}: its annotations are malformed"))?;
        module.functions.push(Function { name: format!("f{n}"), start, signature, frame, heads });
    }
    for n in 0..program.call_table_count() {
        let program::CallTable { first, count, signature } = program.call_table(n);
        let functions = entries[first as usize..(first + count) as usize].to_vec();
        module.call_tables.push(CallTable { signature, functions });
    }
    for n in 0..program.jump_table_count() {
        let program::JumpTable { start, count, function } = program.jump_table(n);
        module.jump_tables.push(JumpTable { start, count, function });
    }
    for n in 0..program.import_count() {
        let program::Import { number, signature } = program.import(n);
        module.imports.push(Import { number, signature });
    }
    Ok(module)
}

fn signature(program: &Program<'_>, n: u16) -> Signature {
    let (bytes, parsed) = (program.signature_bytes(n), program.signature(n));
    Signature {
        arguments: bytes[2..8].iter().filter_map(|&code| Type::of(code)).collect(),
        stack: parsed.stack,
        halves: parsed.halves,
        result: Type::of(bytes[0]),
    }
}

/// The signed number that a LEB128 number stands for.
fn signed(n: u32) -> i32 {
    (n >> 1) as i32 ^ -((n & 1) as i32)
}

/// Annotation bytes that were not read yet.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn u8(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.u8()?, self.u8()?]))
    }

    fn leb(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for n in 0..10 {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(7 * n)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn leb32(&mut self) -> Option<u32> {
        self.leb()?.try_into().ok()
    }

    fn location(&mut self) -> Option<Location> {
        let n = self.leb32()?;
        Some(match n.checked_sub(16) {
            None => Location::Register(n as u8),
            Some(slot) => Location::Slot(Slot { granule: slot >> 1, pair: slot & 1 != 0 }),
        })
    }
}

/// The annotations of a function that starts at `start`: see [`kyozon_typed_checker::heads`].
fn read_heads(bytes: &[u8], start: u32) -> Option<Heads> {
    let mut reader = Reader(bytes);
    let mut heads = Heads::new();
    let mut at = start;
    while !reader.0.is_empty() {
        at = at.checked_add(reader.leb32()?)?;
        heads.insert(at, read_head(&mut reader)?);
    }
    Some(heads)
}

fn read_head(reader: &mut Reader<'_>) -> Option<Head> {
    let mut head = Head::default();
    let parts = reader.u8()?;
    let has = |bit: u8| parts >> bit & 1 != 0;
    if has(6) {
        head.checked = Some(8 - i32::try_from(reader.leb32()?).ok()?);
    }
    if has(7) {
        let depth = i32::try_from(reader.leb32()?).ok()?.checked_mul(-8)?;
        head.types.insert(Location::Register(RSP), Value::Stack(depth));
    }
    for (bit, value) in [(0, Value::UNKNOWN), (1, Value::ANY), (2, Value::data(4))] {
        let mask = if has(bit) { reader.u16()? } else { 0 };
        for register in (0..16).filter(|n| mask >> n & 1 != 0) {
            head.types.insert(Location::Register(register), value);
        }
    }
    let mut granule = u32::MAX;
    for _ in 0..if has(3) { reader.leb32()? } else { 0 } {
        let code = reader.leb32()?;
        granule = granule.wrapping_add(code >> 2);
        let (pair, value) = match code & 3 {
            0 => (false, Value::UNKNOWN),
            1 => (false, Value::data(4)),
            2 => (true, Value::ANY),
            _ => (true, Value::UNKNOWN),
        };
        head.types.insert(Location::Slot(Slot { granule, pair }), value);
    }
    for _ in 0..if has(4) { reader.leb32()? } else { 0 } {
        let location = reader.location()?;
        let kind = reader.u8()?;
        let stride = kind & 0x7f;
        let low = reader.leb()?;
        let width = reader.leb()?.checked_mul(1u64.checked_shl(u32::from(stride))?)?;
        let range = Range::new(low, low.checked_add(width)?, stride);
        let image = kind & 0x80 != 0;
        head.types.insert(location, if image { Value::image(range) } else { Value::Number(range) });
    }
    for _ in 0..if has(5) { reader.leb32()? } else { 0 } {
        let location = reader.location()?;
        let kind = reader.u8()?;
        if kind == 6 {
            head.flags = true;
            continue;
        }
        let operand = reader.leb32()?;
        let table = u16::try_from(operand).ok();
        let value = match kind {
            0 => Value::known(u8::try_from(operand).ok()?),
            1 => Value::Stack(signed(operand)),
            2 => Value::Saved(u8::try_from(operand).ok().filter(|&n| n < 16)?),
            3 => Value::Entry(table?),
            4 => Value::Distance(table?),
            5 => Value::Target(table?),
            7 => Value::Length(operand),
            8..=12 => {
                let (low, room) = (signed(reader.leb32()?), signed(reader.leb32()?));
                let spot = Spot { origin: operand, low, room };
                match kind {
                    12 => Value::Index(spot),
                    _ => Value::View { spot, write: kind & 1 != 0, exact: kind & 2 != 0 },
                }
            }
            _ => return None,
        };
        head.types.insert(location, value);
    }
    Some(head)
}
