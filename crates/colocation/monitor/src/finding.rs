//! Findings and their repairs.

use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// Confirmed tampering, as text for the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// The kind of finding, such as `hidden process` or `kernel text changed`.
    pub what: String,
    /// The virtual address of the tampered object.
    pub address: u64,
    /// The symbol and offset at the address, or the task's name and pid.
    pub symbol: String,
    /// The owner of the code or data that the found value leads to: a module, a symbol, `nobody`.
    pub owner: String,
    /// The expected value; empty if it is not known.
    pub expected: String,
    /// The value that was found.
    pub found: String,
    /// The transactions that repair it, in order; empty if no repair is known.
    pub repairs: Vec<Repair>,
}

/// One transaction of the layer: all words or none, at most `MAX_REPAIR_WORDS`, while every other CPU is parked.
///
/// A lock that must be free is a word with an expected and a new value of zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The words, by physical address.
    pub words: Vec<RepairWord>,
}
