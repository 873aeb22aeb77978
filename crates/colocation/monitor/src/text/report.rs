//! The findings of this check, with their transactions.

use super::code;
use super::compare::Change;
use super::layout::TextLayout;
use super::owner;
use crate::finding::{Finding, Repair};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write;
use kyozon_abi::layer::RepairWord;

/// Maximum number of bytes in a finding's text; the transaction has all of them.
const SHOWN: usize = 16;

pub(super) fn finding<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    change: &Change,
) -> Finding {
    let is_text = layout.text.contains(&change.address);
    let words = change.words.iter().map(|&(address, expected, value)| {
        Some(RepairWord { address: kernel.physical(address)?, expected, value })
    });
    let words: Option<Vec<RepairWord>> = words.collect();
    let (found, expected, leads) = if is_text {
        (hex(&change.found), hex(&change.expected), leads_to(change))
    } else {
        let first = change.words.first().copied().unwrap_or_default();
        (
            pointer(kernel, layout, first.1, change),
            pointer(kernel, layout, first.2, change),
            Some(first.1),
        )
    };
    Finding {
        what: if is_text { "kernel text changed" } else { "read-only data changed" }.into(),
        address: change.address,
        symbol: owner::symbol(kernel, change.address),
        owner: leads
            .and_then(|to| owner::name(kernel, &layout.owners, to))
            .unwrap_or_else(|| "nobody".into()),
        expected,
        found,
        repairs: words.map(|words| vec![Repair { words }]).unwrap_or_default(),
    }
}

/// The target of a call or jump in the changed bytes.
fn leads_to(change: &Change) -> Option<u64> {
    (0..change.code.len()).find_map(|skip| {
        let bytes = change.code.get(skip..)?;
        let at = change.code_address + skip as u64;
        // Entirely before or after the change: Linux's own instruction.
        let length = if bytes.first() == Some(&0x48) { 12 } else { 5 };
        (at + length > change.address && at < change.end()).then(|| code::target(at, bytes))?
    })
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.iter().take(SHOWN).enumerate() {
        let _ = write!(text, "{}{byte:02x}", if at == 0 { "" } else { " " });
    }
    if bytes.len() > SHOWN {
        let _ = write!(text, " and {} more", bytes.len() - SHOWN);
    }
    text
}

/// A word of data, with the symbol it points to.
fn pointer<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    word: u64,
    change: &Change,
) -> String {
    let more = change.words.len().saturating_sub(1);
    let mut text = format!("{word:#018x}");
    if let Some(name) = owner::name(kernel, &layout.owners, word) {
        let _ = write!(text, " ({name})");
    }
    if more > 0 {
        let _ = write!(text, " and {more} more words");
    }
    text
}
