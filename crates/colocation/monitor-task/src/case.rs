//! An open finding, from its first report to its repair.

use crate::system::System;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::layer::{
    RepairRequest, RepairWord, MAX_REPAIR_WORDS, REPAIR_BUSY, REPAIR_CHANGED, REPAIR_DONE,
};
use kyozon_monitor::finding::{Finding, Repair};

/// Ticks for which a transaction is tried; after them, only a new confirmation of the finding brings another.
const MAX_TRIES: u32 = 100;

/// An open finding and the repairs that remain.
pub struct Case {
    what: String,
    address: u64,
    symbol: String,
    /// The remaining transactions in reverse order: the next one is last.
    repairs: Vec<Repair>,
    tries: u32,
    /// A note has reported that the finding cannot be repaired.
    given_up: bool,
}

/// The state of a case after one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All transactions are done.
    Repaired,
    /// The finding cannot be repaired, for this reason.
    Refused(&'static str),
    /// A transaction remains; try again at a later tick.
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

    /// Whether `finding` is a new confirmation of this case.
    pub fn matches(&self, finding: &Finding) -> bool {
        self.address == finding.address && self.what == finding.what
    }

    /// Replaces the remaining transactions after a new confirmation, whose repair may differ.
    pub fn renew(&mut self, mut repairs: Vec<Repair>) {
        repairs.reverse();
        self.repairs = repairs;
        self.tries = 0;
    }

    /// Tries the next transaction.
    pub fn advance(&mut self, system: &mut impl System) -> Outcome {
        if self.given_up {
            return Outcome::Waits;
        }
        let Some(repair) = self.repairs.last() else {
            self.given_up = true;
            return Outcome::Refused("no repair is known");
        };
        let Some(request) = request(repair) else {
            self.given_up = true;
            return Outcome::Refused("the repair needs more than 16 words");
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
            // Linux holds a lock or has changed a word, or the other CPUs missed the rendezvous.
            REPAIR_CHANGED | REPAIR_BUSY if self.tries < MAX_TRIES => {
                self.tries += 1;
                Outcome::Waits
            }
            REPAIR_CHANGED | REPAIR_BUSY => Outcome::Waits,
            _ => {
                self.given_up = true;
                Outcome::Refused("the layer rejected the transaction")
            }
        }
    }

    /// Whether a transaction should be tried at this tick.
    pub fn is_open(&self) -> bool {
        !self.given_up && self.tries < MAX_TRIES
    }

    /// The case in report lines: kind and symbol.
    pub fn name(&self) -> String {
        format!("{}: {}", self.what, self.symbol)
    }
}

/// The layer's form of a transaction; `None` if it has more than [`MAX_REPAIR_WORDS`] words.
fn request(repair: &Repair) -> Option<RepairRequest> {
    let mut words = [RepairWord::default(); MAX_REPAIR_WORDS];
    words.get_mut(..repair.words.len())?.copy_from_slice(&repair.words);
    Some(RepairRequest { count: repair.words.len() as u64, words })
}
