//! Repairs that were carried out, and are looked at again.
//!
//! Code that hid an object may put it back as well, at any time: after a repair, the object is linked twice. Then the
//! repair is taken back, once, and the object is not repaired again while it exists. An object is watched until looks
//! in a row no longer find it, or until it gives its place to another.

use crate::case::{request, Case};
use crate::journal::Journal;
use crate::system::System;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::events::EVENT_NOTE;
use kyozon_abi::layer::{REPAIR_BUSY, REPAIR_CHANGED, REPAIR_DONE};
use kyozon_monitor::finding::{Links, Repair, Verdict};

/// Maximum number of watched repairs of a check.
pub const MAX_WATCHED: usize = 256;
/// Looks per tick.
const LOOKS_PER_TICK: usize = 4;
/// Looks in a row that confirm torn links. Linux runs between two of them.
const CONFIRM_LOOKS: u32 = 3;
/// Looks in a row after which an object counts as gone.
const GONE_LOOKS: u32 = 256;
/// Ticks for which taking a repair back is tried.
const MAX_TRIES: u32 = 100;
/// Why an object is not repaired again.
pub const TORN: &str = "its links contradicted each other after an earlier repair";

/// The links of a repair.
struct Watched {
    /// The address of the finding, and its kind and symbol.
    address: u64,
    name: String,
    links: Links,
    /// Looks in a row that found the links torn, and that found nothing.
    torn: u32,
    unknown: u32,
    tries: u32,
    /// It was torn: it is not repaired again.
    spoiled: bool,
}

/// The watched repairs of one check.
#[derive(Default)]
pub struct Watch {
    repairs: Vec<Watched>,
    /// The repair to look at next.
    next: usize,
}

impl Watch {
    /// Watches a repair of `case`. If there is no room, it takes the place of the oldest one that was not torn.
    pub fn add(&mut self, case: &Case, links: Links) {
        let watched = Watched {
            address: case.address,
            name: case.name(),
            links,
            torn: 0,
            unknown: 0,
            tries: 0,
            spoiled: false,
        };
        let same = |old: &Watched| old.links.node == links.node;
        let replaced = self.repairs.iter().position(same).or_else(|| {
            let full = self.repairs.len() >= MAX_WATCHED;
            full.then(|| self.repairs.iter().position(|old| !old.spoiled)).flatten()
        });
        if let Some(replaced) = replaced {
            self.repairs.remove(replaced);
        }
        if self.repairs.len() < MAX_WATCHED {
            self.repairs.push(watched);
        }
    }

    /// Whether a repair of the object at `address` was torn at the last look, which is yet to be confirmed.
    pub fn is_torn(&self, address: u64) -> bool {
        let is_torn = |watched: &Watched| watched.torn > 0 && !watched.spoiled;
        self.repairs.iter().any(|watched| watched.address == address && is_torn(watched))
    }

    /// Whether several looks found a repair of the object at `address` torn, at any time.
    pub fn is_spoiled(&self, address: u64) -> bool {
        self.repairs.iter().any(|watched| watched.spoiled && watched.address == address)
    }

    /// Looks at some of the repairs, at most once at each. Returns the addresses of objects found torn now.
    pub fn look<S: System>(
        &mut self,
        check: usize,
        journal: &mut Journal<'_, S>,
        verify: impl Fn(&Links) -> Verdict,
    ) -> Vec<u64> {
        let mut spoiled = Vec::new();
        for _ in 0..LOOKS_PER_TICK.min(self.repairs.len()) {
            if self.next >= self.repairs.len() {
                self.next = 0;
            }
            let watched = &mut self.repairs[self.next];
            let verdict = verify(&watched.links);
            watched.unknown = if verdict == Verdict::Unknown { watched.unknown + 1 } else { 0 };
            if watched.unknown >= GONE_LOOKS {
                self.repairs.remove(self.next);
                continue;
            }
            if let Some(result) = watched.judge(verdict, journal.system) {
                watched.spoiled = true;
                spoiled.push(watched.address);
                let line = format!(
                    "{}: links contradict each other after the repair, {result}",
                    watched.name
                );
                journal.report(EVENT_NOTE, check, &line);
            }
            self.next += 1;
        }
        spoiled
    }
}

impl Watched {
    /// Takes the repair back if several looks found it torn. Returns what became of that, once.
    fn judge(&mut self, verdict: Verdict, system: &mut impl System) -> Option<&'static str> {
        let Verdict::Torn(repair) = verdict else {
            self.torn = 0;
            return None;
        };
        self.torn = self.torn.saturating_add(1);
        if self.spoiled || self.torn < CONFIRM_LOOKS {
            return None;
        }
        match repair.and_then(|repair: Repair| request(&repair)).map(|it| system.repair(&it)) {
            Some(REPAIR_DONE) => Some("which is taken back"),
            Some(REPAIR_CHANGED | REPAIR_BUSY) if self.tries < MAX_TRIES => {
                self.tries += 1;
                None
            }
            _ => Some("which cannot be taken back"),
        }
    }
}
