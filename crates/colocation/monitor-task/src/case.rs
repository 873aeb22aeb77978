//! A finding from its first line to its repair.

use crate::system::System;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::layer::{
    RepairRequest, RepairWord, MAX_REPAIR_WORDS, REPAIR_BUSY, REPAIR_CHANGED, REPAIR_DONE,
};
use kyozon_monitor::finding::{Finding, Repair};

/// Ticks for which a transaction is tried before the next look at the finding has to bring another.
const MAX_TRIES: u32 = 100;

/// What was found, and what is being done about it.
pub struct Case {
    what: String,
    address: u64,
    symbol: String,
    /// Transactions that are still to be done, the last one first.
    repairs: Vec<Repair>,
    tries: u32,
    /// The operator was told that it cannot be undone.
    given_up: bool,
}

/// How a case goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it was put back.
    Repaired,
    /// Nothing more can be done, for this reason.
    Refused(&'static str),
    /// Later.
    Waits,
}

impl Case {
    /// A case for `finding`.
    pub fn new(finding: Finding) -> Self {
        let Finding { what, address, symbol, repairs, .. } = finding;
        let mut case =
            Self { what, address, symbol, repairs: Vec::new(), tries: 0, given_up: false };
        case.renew(repairs);
        case
    }

    /// Whether `finding` is this one again.
    pub fn matches(&self, finding: &Finding) -> bool {
        self.address == finding.address && self.what == finding.what
    }

    /// It was seen again: what would undo it may be something else by now.
    pub fn renew(&mut self, mut repairs: Vec<Repair>) {
        repairs.reverse();
        self.repairs = repairs;
        self.tries = 0;
    }

    /// Tries what comes next.
    pub fn advance(&mut self, system: &mut impl System) -> Outcome {
        if self.given_up {
            return Outcome::Waits;
        }
        let Some(repair) = self.repairs.last() else {
            self.given_up = true;
            return Outcome::Refused("nothing is known that would undo it");
        };
        let Some(request) = request(repair) else {
            self.given_up = true;
            return Outcome::Refused("it takes more words than one transaction has");
        };
        match system.repair(&request) {
            REPAIR_DONE => {
                self.repairs.pop();
                if self.repairs.is_empty() {
                    return Outcome::Repaired;
                }
                self.tries = 0;
                Outcome::Waits
            }
            // Linux holds a lock, or has changed something; the other CPUs did not come.
            REPAIR_CHANGED | REPAIR_BUSY if self.tries < MAX_TRIES => {
                self.tries += 1;
                Outcome::Waits
            }
            REPAIR_CHANGED | REPAIR_BUSY => Outcome::Waits,
            _ => {
                self.given_up = true;
                Outcome::Refused("the layer refuses the transaction")
            }
        }
    }

    /// Whether a transaction is to be tried at this tick.
    pub fn is_open(&self) -> bool {
        !self.given_up && self.tries < MAX_TRIES
    }

    /// Its name in lines: what and where.
    pub fn name(&self) -> String {
        format!("{}: {}", self.what, self.symbol)
    }
}

/// The layer's form of a transaction; none where it has too many words.
fn request(repair: &Repair) -> Option<RepairRequest> {
    let mut words = [RepairWord::default(); MAX_REPAIR_WORDS];
    words.get_mut(..repair.words.len())?.copy_from_slice(&repair.words);
    Some(RepairRequest { count: repair.words.len() as u64, words })
}
