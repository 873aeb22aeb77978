//! Findings and their repairs.

use crate::class::Class;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
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
    /// What has Linux end the process that the finding is about, one for each thread; empty if it may not be ended.
    pub stop: Vec<Marking>,
    /// An address in the code of a module that the finding blames, whose hooks can be taken out; 0 if there is none.
    pub culprit: u64,
    /// Why there is no repair, for the operator; empty if a repair is offered or none is known.
    pub held: &'static str,
    /// The found bytes are the kernel package's again, or Linux loaded something anew, which ends an earlier finding at
    /// the address. It is a note, not tampering.
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
            stop: Vec::new(),
            culprit: 0,
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

/// Maximum number of bytes in a finding's text; a repair has all of them.
const SHOWN: usize = 16;

/// Bytes of memory in the words of a finding.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, byte) in bytes.iter().take(SHOWN).enumerate() {
        let _ = write!(text, "{}{byte:02x}", if at == 0 { "" } else { " " });
    }
    if bytes.len() > SHOWN {
        let _ = write!(text, " and {} more", bytes.len() - SHOWN);
    }
    text
}

/// The parts of a finding's line, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'l> {
    /// [`Finding::what`].
    pub what: &'l str,
    /// [`Finding::symbol`].
    pub object: &'l str,
    /// [`Finding::address`]; `None` if it is a register.
    pub address: Option<u64>,
    /// [`Finding::expected`]; `None` if it is not known.
    pub expected: Option<&'l str>,
    /// [`Finding::found`].
    pub found: &'l str,
    /// [`Finding::owner`]; `None` if it is nobody.
    pub owner: Option<&'l str>,
}

impl<'l> Parts<'l> {
    /// The parts of a line that [`Finding::line`] made; `None` if it can be read in several ways: attackers name tasks
    /// and modules.
    pub fn of(line: &'l str) -> Option<Self> {
        let (what, rest) = line.split_once(": ")?;
        let (rest, owner) = split_once_only(rest, "; leads to ")?;
        let (object, address, value) = match split_once_only(rest, " at 0x")? {
            (object, Some(behind)) => {
                let (digits, value) = behind.split_once(": ")?;
                (object, Some(u64::from_str_radix(digits, 16).ok()?), value)
            }
            (rest, None) => {
                let (object, value) = split_once_only(rest, ": ")?;
                (object, None, value?)
            }
        };
        let (expected, found) = match value.strip_prefix("expected ") {
            Some(values) => {
                let (expected, found) = split_once_only(values, ", found ")?;
                (Some(expected), found?)
            }
            None => (None, value),
        };
        Some(Self { what, object, address, expected, found, owner })
    }
}

/// What is before and behind `separator`, if it is in `text`; `None` if it is there more than once.
fn split_once_only<'t>(text: &'t str, separator: &str) -> Option<(&'t str, Option<&'t str>)> {
    match text.split_once(separator) {
        None => Some((text, None)),
        Some((_, behind)) if behind.contains(separator) => None,
        Some((before, behind)) => Some((before, Some(behind))),
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

/// Bits that one transaction of the layer sets in words, which change all the time otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marking {
    /// The words, by physical address.
    pub words: Vec<MarkedWord>,
}

/// A word of a [`Marking`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkedWord {
    /// Physical address.
    pub address: u64,
    /// The bits that must be as expected, and their values.
    pub mask: u64,
    /// See [`MarkedWord::mask`].
    pub expected: u64,
    /// The bits that are set.
    pub set: u64,
}

impl Marking {
    /// The transaction for what the words hold now; `None` if a bit is not as expected. `read` reads a word at a
    /// physical address.
    pub fn transaction(&self, read: impl Fn(u64) -> Option<u64>) -> Option<Repair> {
        let word = |word: &MarkedWord| {
            let now = read(word.address).filter(|now| now & word.mask == word.expected)?;
            Some(RepairWord { address: word.address, expected: now, value: now | word.set })
        };
        Some(Repair { words: self.words.iter().map(word).collect::<Option<_>>()?, links: None })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(address: u64, symbol: &str, owner: &str, expected: &str) -> Finding {
        Finding {
            what: "hidden thing".into(),
            address,
            symbol: symbol.into(),
            owner: owner.into(),
            expected: expected.into(),
            found: "31 c0, written by x".into(),
            ..Finding::new(Class::TextModified)
        }
    }

    #[test]
    fn a_line_has_the_parts_of_its_finding() {
        for address in [0, 0xffff_ffff_8100_0000] {
            for owner in ["nobody", "module evil"] {
                for expected in ["", "90 90"] {
                    let line = finding(address, "sys_x+0x4, pid 7", owner, expected).line();
                    let parts = Parts {
                        what: "hidden thing",
                        object: "sys_x+0x4, pid 7",
                        address: Some(address).filter(|address| *address != 0),
                        expected: Some(expected).filter(|expected| !expected.is_empty()),
                        found: "31 c0, written by x",
                        owner: Some(owner).filter(|owner| *owner != "nobody"),
                    };
                    assert_eq!(Parts::of(&line), Some(parts), "{line}");
                }
            }
        }
    }

    #[test]
    fn a_line_that_can_be_read_in_two_ways_has_no_parts() {
        for name in ["x at 0x1: y", "x; leads to y", "x at 0x"] {
            let line = finding(0xffff_ffff_8100_0000, name, "module evil", "90").line();
            assert_eq!(Parts::of(&line), None, "{line}");
        }
        let line = finding(1, "x", "nobody", "a, found b").line();
        assert_eq!(Parts::of(&line), None);
        for line in ["", "no parts", "a: b", "a: b at 0xyz: c", "a: b at 0x1"] {
            assert_eq!(Parts::of(line), None, "{line}");
        }
    }
}
