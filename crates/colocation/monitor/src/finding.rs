//! What a check found, and how it would be undone.

use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// Tampering, confirmed, in words for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong, such as `hidden task` or `kernel text changed`.
    pub what: String,
    /// Linux's virtual address of it.
    pub address: u64,
    /// The symbol there and the offset in it, or the task's name and number.
    pub symbol: String,
    /// Who the found value belongs to: a module, a symbol, `nobody`.
    pub owner: String,
    /// What should stand there.
    pub expected: String,
    /// What stands there.
    pub found: String,
    /// The transactions that undo it, in order; empty where it cannot be undone.
    pub repairs: Vec<Repair>,
}

/// One transaction of the layer: all words or none, at most `MAX_REPAIR_WORDS`, while every other CPU stands still.
///
/// A lock that must be free is a word that is expected to be, and stays, zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Physical addresses.
    pub words: Vec<RepairWord>,
}
