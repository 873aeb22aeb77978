//! Spellings of instructions that the GNU assembler turns into the same bytes.
//!
//! An instruction can have several encodings. Each is tried in a few spellings; what gives other bytes in all of them
//! has none, and is written as bytes.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Formatter, GasFormatter, Instruction, OpKind};

use crate::error::Complaint;
use crate::gnu;
use crate::object_file::{ObjectFile, Part, Place};

const PREFIXES: [&str; 4] = ["", "{load} ", "{store} ", "{disp32} "];
const SYMBOL: &str = "__kyozon_spelling_";

/// Spellings by the bytes of the instruction; of a direct jump or call, the mnemonic only.
pub(crate) struct Spelling(BTreeMap<Vec<u8>, String>);

impl Spelling {
    /// Finds the spellings of these instructions of the text.
    pub fn of<'a>(
        text: &[u8],
        instructions: impl Iterator<Item = &'a Instruction>,
    ) -> Result<Spelling, Complaint> {
        let mut found = BTreeMap::new();
        let mut wanted: BTreeMap<Vec<u8>, Vec<String>> = BTreeMap::new();
        for instruction in instructions {
            let at = instruction.ip() as usize;
            let bytes = text[at..at + instruction.len()].to_vec();
            if instruction.op_count() > 0 && instruction.op0_kind() == OpKind::NearBranch64 {
                if let Some(mnemonic) = branch(&bytes, instruction) {
                    found.insert(bytes, mnemonic);
                }
                continue;
            }
            wanted.entry(bytes).or_insert_with(|| variants(instruction));
        }
        let mut lines: Vec<(&[u8], &String)> = wanted
            .iter()
            .flat_map(|(bytes, texts)| texts.iter().map(|text| (bytes.as_slice(), text)))
            .collect();
        // The assembler refuses the whole source for one line, and names all such lines.
        let object = loop {
            match gnu::run(&source(&lines)) {
                Ok(object) => break ObjectFile::parse(&object)?,
                Err(refused) => {
                    let bad: BTreeSet<usize> = refused
                        .errors
                        .iter()
                        .filter_map(|(line, _)| (*line)?.checked_sub(1).map(|n| n as usize))
                        .collect();
                    let count = lines.len();
                    let mut n = 0;
                    lines.retain(|_| {
                        n += 1;
                        !bad.contains(&(n - 1))
                    });
                    if lines.len() == count {
                        let error = refused.errors.into_iter().next();
                        return Err(error.map_or_else(String::new, |(_, message)| message));
                    }
                }
            }
        };
        let mut starts = vec![0; lines.len() + 1];
        for symbol in &object.symbols {
            let n = symbol.name.strip_prefix(SYMBOL).and_then(|n| n.parse::<usize>().ok());
            if let (Some(n), Place::In(Part::Text, at)) = (n, symbol.place) {
                starts[n] = at as usize;
            }
        }
        for (n, (bytes, text)) in lines.into_iter().enumerate() {
            if object.text.get(starts[n]..starts[n + 1]) == Some(bytes) {
                found.entry(bytes.to_vec()).or_insert_with(|| text.clone());
            }
        }
        Ok(Spelling(found))
    }

    /// The spelling of an instruction, if it has one.
    pub fn get(&self, bytes: &[u8]) -> Option<&String> {
        self.0.get(bytes)
    }

    /// An instruction as a reader likes it.
    pub fn plain(instruction: &Instruction) -> String {
        format(instruction, false)
    }

    /// Puts a symbol in front of `(%rip)`, in the place of the distance.
    pub fn with_symbol(text: &str, name: &str) -> String {
        let Some(end) = text.find("(%rip)") else {
            return text.into();
        };
        let is_number = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let start = text[..end].rfind(|c| !is_number(c)).map_or(0, |at| at + 1);
        format!("{}{name}{}", &text[..start], &text[end..])
    }
}

/// The mnemonic of a direct jump or call, if its bytes are opcode and distance only.
fn branch(bytes: &[u8], instruction: &Instruction) -> Option<String> {
    let plain = matches!(bytes, [0x70..=0x7f | 0xeb, _] | [0xe8 | 0xe9, _, _, _, _])
        || matches!(bytes, [0x0f, 0x80..=0x8f, _, _, _, _]);
    let text = format(instruction, false);
    let mnemonic = text.split_whitespace().next()?;
    plain.then(|| mnemonic.to_string())
}

fn variants(instruction: &Instruction) -> Vec<String> {
    let texts = [format(instruction, false), format(instruction, true)];
    let spelled =
        |prefix: &&str| texts.iter().map(|text| format!("{prefix}{text}")).collect::<Vec<_>>();
    PREFIXES.iter().flat_map(spelled).collect()
}

fn format(instruction: &Instruction, suffix: bool) -> String {
    let mut formatter = GasFormatter::new();
    let options = formatter.options_mut();
    options.set_rip_relative_addresses(true);
    options.set_gas_show_mnemonic_size_suffix(suffix);
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(true);
    options.set_space_after_operand_separator(true);
    let mut text = String::new();
    formatter.format(instruction, &mut text);
    text
}

fn source(lines: &[(&[u8], &String)]) -> String {
    let mut out = String::new();
    for (n, (_, text)) in lines.iter().enumerate() {
        out += &format!("{SYMBOL}{n}: {text}\n");
    }
    out + &format!("{SYMBOL}{}:\n", lines.len())
}
