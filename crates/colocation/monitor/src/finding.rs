//! Findings and their repairs.

use crate::class::Class;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// Confirmed tampering, as text for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about; the operator's policy goes by it.
    pub class: Class,
    /// The kind of finding, such as `hidden process` or `kernel text changed`.
    pub what: String,
    /// The virtual address of the tampered object; 0 if it is a register.
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
    /// Why there is no repair, for the operator; empty if a repair is offered or none is known.
    pub held: &'static str,
    /// The found bytes are the kernel package's again, which ends an earlier finding. It is a note, not tampering.
    pub restored: bool,
}

impl Finding {
    /// A finding of `class` that leads to nobody, without words and repairs.
    pub fn new(class: Class) -> Self {
        Self {
            class,
            what: String::new(),
            address: 0,
            symbol: String::new(),
            owner: "nobody".into(),
            expected: String::new(),
            found: String::new(),
            repairs: Vec::new(),
            held: "",
            restored: false,
        }
    }

    /// The line that reports it.
    pub fn line(&self) -> String {
        let Self { what, address, symbol, owner, expected, found, .. } = self;
        let owner = if owner == "nobody" { String::new() } else { format!("; leads to {owner}") };
        let found = match expected.as_str() {
            "" => found.clone(),
            expected => format!("expected {expected}, found {found}"),
        };
        match address {
            // A register.
            0 => format!("{what}: {symbol}: {found}{owner}"),
            _ => format!("{what}: {symbol} at {address:#x}: {found}{owner}"),
        }
    }
}

/// One transaction of the layer: all words or none, at most `MAX_REPAIR_WORDS`, while every other CPU is parked.
///
/// A lock that must be free is a word with an expected and a new value of zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The words, by physical address.
    pub words: Vec<RepairWord>,
    /// The links that the check can look at after the repair; `None` if it cannot.
    pub links: Option<Links>,
}

/// Where a repair linked a node of an object into a list. Addresses are virtual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The object.
    pub object: u64,
    /// What tells the object from another one in the same memory.
    pub stamp: u64,
    /// Which of the object's lists it is; the check knows its meaning.
    pub list: u8,
    /// The node in the object.
    pub node: u64,
    /// What leads to the node, and what the node leads to.
    pub before: u64,
    /// See [`Links::before`].
    pub behind: u64,
}

/// What a check sees at links that a repair wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No link contradicts another.
    Consistent,
    /// Links contradict each other: other code has linked the object as well. With the transaction that takes the
    /// repair back, if its links are still there and the object is safe without them.
    Torn(Option<Repair>),
    /// The object is gone, or Linux is changing its links.
    Unknown,
}
