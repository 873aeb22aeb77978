//! An open finding, from its first report to its end.

use crate::system::System;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::layer::{
    RepairRequest, RepairWord, MAX_REPAIR_WORDS, REPAIR_BUSY, REPAIR_CHANGED, REPAIR_DONE,
};
use kyozon_monitor::class::Class;
use kyozon_monitor::finding::{Finding, Links, Marking, Repair};
use kyozon_monitor::policy::Action;

/// Ticks for which a transaction is tried; after them, only a new confirmation of the finding brings another.
const MAX_TRIES: u32 = 100;
/// Maximum number of values of one case that are reported: an intruder can change it for ever.
const MAX_VALUES: u32 = 16;

/// An open finding and the repairs that remain.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its class; not known of one that a monitor before this one had open.
    pub class: Option<Class>,
    /// The kind of finding.
    pub what: String,
    /// The address of the object. With kind and symbol, it is the finding's identity.
    pub address: u64,
    symbol: String,
    /// The line that reported it.
    pub line: String,
    /// Time-stamp counter at its first and at its last confirmation.
    pub first_tsc: u64,
    /// See [`Case::first_tsc`].
    pub last_tsc: u64,
    /// Number of the last line about it, of all lines that were reported.
    pub line_number: u64,
    /// Complete passes in a row that did not see it.
    pub missed_passes: u32,
    /// The remaining transactions in reverse order: the next one is last.
    repairs: Vec<Repair>,
    /// What ends the process after them, in reverse order too, and whether a thread has got its signal.
    markings: Vec<Marking>,
    is_stopped: bool,
    /// Why the check offers no repair; empty if it offers one or knows none.
    held: &'static str,
    tries: u32,
    /// Number of values that were reported.
    values: u32,
    /// What is done about it.
    pub action: Action,
    /// The operator does not want the repair that its class may have.
    is_left: bool,
    /// A note has reported that the finding cannot be repaired.
    given_up: bool,
    /// The hash of kind and symbol, if a monitor before this one had the case open.
    inherited: Option<u64>,
}

/// The state of a case after one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All transactions are done.
    Repaired,
    /// All transactions are done. The finding stays open until the process has ended.
    Stopped,
    /// The finding cannot be repaired, for this reason.
    Refused(&'static str),
    /// A transaction remains; try again at a later tick.
    Waits,
}

/// A hash of kind and symbol (FNV-1a, 64 bits).
fn hash(what: &str, symbol: &str) -> u64 {
    what.bytes().chain([0]).chain(symbol.bytes()).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Case {
    /// A case for `finding`, about which `action` is done, and whose line has the number `line_number`.
    pub fn new(finding: &Finding, action: Action, now: u64, line_number: u64) -> Self {
        let mut case = Self {
            class: Some(finding.class),
            what: finding.what.clone(),
            address: finding.address,
            symbol: finding.symbol.clone(),
            line: finding.line(),
            first_tsc: now,
            last_tsc: now,
            line_number,
            missed_passes: 0,
            repairs: Vec::new(),
            markings: Vec::new(),
            is_stopped: false,
            held: "",
            tries: 0,
            values: 1,
            action,
            is_left: Self::is_left(finding, action),
            given_up: false,
            inherited: None,
        };
        case.renew(finding);
        case
    }

    /// The case with this hash and address that a monitor before this one had open. There is no repair until the check
    /// finds it again.
    pub fn inherited(hash: u64, address: u64, line: String, first_tsc: u64, last_tsc: u64) -> Self {
        let finding = Finding { address, ..Finding::new(Class::ALL[0]) };
        let case = Self::new(&finding, Action::Report, first_tsc, 0);
        Self { class: None, line, last_tsc, given_up: true, inherited: Some(hash), ..case }
    }

    /// Whether `action` leaves `finding` as it is. A class without repairs is reported as one that is not repaired;
    /// what is done about hooks is no repair of the finding.
    fn is_left(finding: &Finding, action: Action) -> bool {
        !action.writes() && finding.class.is_repairable() || action == Action::Disarm
    }

    /// The hash of its kind and symbol.
    pub fn hash(&self) -> u64 {
        self.inherited.unwrap_or_else(|| hash(&self.what, &self.symbol))
    }

    /// Whether `finding` is a new confirmation of this case.
    pub fn matches(&self, finding: &Finding) -> bool {
        self.address == finding.address
            && match self.inherited {
                Some(known) => known == hash(&finding.what, &finding.symbol),
                None => self.what == finding.what && self.symbol == finding.symbol,
            }
    }

    /// Confirms the case. Returns whether the found value is another one, which is news.
    pub fn confirm(&mut self, finding: &Finding, action: Action, now: u64) -> bool {
        let inherits = self.inherited.take().is_some();
        if inherits {
            (self.action, self.is_left) = (action, Self::is_left(finding, action));
            self.class = Some(finding.class);
            self.what.clone_from(&finding.what);
            self.symbol.clone_from(&finding.symbol);
            self.given_up = false;
        }
        (self.last_tsc, self.missed_passes) = (now, 0);
        self.renew(finding);
        if !finding.class.has_chosen_value() || self.values >= MAX_VALUES {
            return false;
        }
        let line = finding.line();
        // The line that a monitor before this one kept may be cut.
        let is_same = line == self.line || inherits && line.starts_with(&self.line);
        self.line = line;
        self.values += u32::from(!is_same);
        !is_same
    }

    /// Replaces the remaining transactions after a new confirmation, whose repair may differ.
    fn renew(&mut self, finding: &Finding) {
        // A repair that was held back because its cause was elsewhere is tried once the cause is gone.
        self.given_up &= finding.held == self.held;
        self.repairs = finding.repairs.iter().rev().cloned().collect();
        self.markings = markings(finding, self.action).iter().rev().cloned().collect();
        if self.action == Action::Stop && self.markings.is_empty() {
            self.repairs.clear();
        }
        self.held = finding.held;
        self.tries = 0;
    }

    /// Drops the remaining transactions, for this reason.
    pub fn hold(&mut self, reason: &'static str) {
        self.repairs.clear();
        self.markings.clear();
        self.held = reason;
    }

    /// Tries the next transaction. `read` reads a word at a physical address. `done` gets the case and the links that
    /// it wrote.
    pub fn advance(
        &mut self,
        system: &mut impl System,
        read: impl Fn(u64) -> Option<u64>,
        mut done: impl FnMut(&Self, Links),
    ) -> Outcome {
        if self.given_up {
            return Outcome::Waits;
        }
        let (repair, marking) = (self.repairs.last(), self.markings.last());
        if repair.is_none() && marking.is_none() {
            self.given_up = true;
            return Outcome::Refused(match (self.held, self.action) {
                ("", Action::Stop) => "the process cannot be ended",
                ("", _) => "no repair is known",
                (held, _) => held,
            });
        }
        let is_marking = repair.is_none();
        let transaction = match repair {
            Some(repair) => Some(repair.clone()),
            None => marking.and_then(|marking| marking.transaction(&read)),
        };
        let result = match transaction.as_ref().map(request) {
            Some(Some(request)) => system.repair(&request),
            Some(None) => {
                self.given_up = true;
                return Outcome::Refused("the repair needs more than 16 words");
            }
            None => REPAIR_CHANGED,
        };
        match result {
            REPAIR_DONE if is_marking => {
                self.is_stopped = true;
                self.end_marking()
            }
            REPAIR_DONE => {
                if let Some(links) = self.repairs.pop().and_then(|repair| repair.links) {
                    done(self, links);
                }
                self.tries = 0;
                match self.repairs.is_empty() && self.markings.is_empty() {
                    true => Outcome::Repaired,
                    false => Outcome::Waits,
                }
            }
            // Linux holds a lock or has changed a word, or the other CPUs missed the rendezvous.
            REPAIR_CHANGED | REPAIR_BUSY => {
                self.tries += 1;
                match is_marking && self.tries >= MAX_TRIES {
                    true => self.end_marking(),
                    false => Outcome::Waits,
                }
            }
            _ => {
                self.given_up = true;
                Outcome::Refused("the layer rejected the transaction")
            }
        }
    }

    /// Goes on with the next thread of the process.
    fn end_marking(&mut self) -> Outcome {
        self.markings.pop();
        self.tries = 0;
        if !self.markings.is_empty() {
            return Outcome::Waits;
        }
        self.given_up = true;
        match self.is_stopped {
            true => Outcome::Stopped,
            false => Outcome::Refused("the process has ended, or keeps its signals locked"),
        }
    }

    /// Whether a transaction should be tried at this tick.
    pub fn is_due(&self) -> bool {
        !self.is_left && !self.given_up && self.tries < MAX_TRIES
    }

    /// Whether the finding cannot be repaired.
    pub fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Whether a monitor before this one had it open, and this one has not found it.
    pub fn is_inherited(&self) -> bool {
        self.inherited.is_some()
    }

    /// The case in report lines: kind and symbol.
    pub fn name(&self) -> String {
        name(&self.what, &self.symbol)
    }
}

/// What ends the process of `finding`, if `action` does. A process that is hidden is not ended before it is repaired:
/// Linux would unlink it from where it is not.
fn markings(finding: &Finding, action: Action) -> &[Marking] {
    let must_be_repaired = finding.class.is_repairable() && finding.repairs.is_empty();
    match action {
        Action::Stop if !must_be_repaired => &finding.stop,
        _ => &[],
    }
}

/// A finding in report lines: kind and symbol.
pub fn name(what: &str, symbol: &str) -> String {
    format!("{what}: {symbol}")
}

/// The layer's form of a transaction; `None` if it has more than [`MAX_REPAIR_WORDS`] words.
pub fn request(repair: &Repair) -> Option<RepairRequest> {
    let mut words = [RepairWord::default(); MAX_REPAIR_WORDS];
    words.get_mut(..repair.words.len())?.copy_from_slice(&repair.words);
    Some(RepairRequest { count: repair.words.len() as u64, words })
}
