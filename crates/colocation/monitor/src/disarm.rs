//! What takes a module's hooks out: a plan that a check makes and the server carries out.
//!
//! Each step is one transaction after which Linux can run on, whatever its CPUs were doing: mostly one word, by which
//! Linux calls a function of its own that does nothing. The module's registration stays, so that Linux's accounts are
//! right and the module can unregister as ever. Nothing of the module is freed or overwritten: what calls it late still
//! executes valid code.

use crate::finding::Repair;
use alloc::string::String;
use alloc::vec::Vec;

/// Maximum number of hooks in a plan; more are left, and counted.
pub const MAX_HOOKS: usize = 256;

/// The owner of code that a finding blames, as it was then: another one may come to its place before its plan is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Culprit {
    /// The beginning of its code, the same for all addresses of one owner.
    pub start: u64,
    /// The address that was blamed.
    pub address: u64,
    /// A sum of the module's name; 0 for code in no listed module.
    pub name: u64,
    /// A sum of the code around the address; 0 if nothing is there.
    pub code: u64,
}

impl Culprit {
    /// Whether `other`, at the same place, is this one still or again. Who changes its name is known by its code.
    pub fn is_same(&self, other: &Self) -> bool {
        let has_same_code = self.code == other.code && self.code != 0;
        self.start == other.start && (self.name == other.name || has_same_code)
    }
}

/// A hook that can be taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The hook, in the words of a report: its kind, what it hooks, the address of the pointer.
    pub hook: String,
    /// The transaction that takes it out. Each word has the value that was seen.
    pub repair: Repair,
}

/// A hook that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// As [`Removal::hook`].
    pub hook: String,
    /// Why it stays.
    pub why: &'static str,
}

/// The hooks of one owner, as one pass saw them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The owner, as the plan was asked for with.
    pub culprit: Culprit,
    /// The owner, in the words of a report; empty if nobody's code is there any more.
    pub owner: String,
    /// In the order in which they are taken out.
    pub removals: Vec<Removal>,
    /// Those that no step takes out.
    pub left: Vec<Left>,
    /// Number of hooks beyond [`MAX_HOOKS`].
    pub omitted: u64,
}
