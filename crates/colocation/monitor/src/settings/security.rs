//! The hooks of Linux's security modules where they are static calls, as from Linux 6.12 on (`security/security.c`): at
//! boot, each gets its function, and the key that turns it on. Neither changes after that.

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

pub(super) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[("static_call_key", "func", Optional), ("static_key", "enabled", Optional)],
    constants: &[],
};

/// How the names begin of the records of the calls, and of the keys.
const CALLS: &str = "__SCK__lsm_static_call_";
const KEYS: &str = "security_hook_active_";
/// A security module in BPF turns its hooks on and off, where Linux has this function.
const TOGGLES: &str = "bpf_lsm_toggle_hook";
/// Maximum number of entries of a table: Linux 6.12 has three thousand.
const MAX_ENTRIES: u64 = 1 << 14;
/// Looks that together see a whole table.
const PARTS: u64 = 16;
/// Maximum number of changed entries that each look sees again.
const MAX_CHANGED: usize = 64;
/// What no entry has: the first look at one is to come.
const UNSEEN: u64 = u64::MAX;

/// Records or keys, one behind the other.
#[derive(Debug)]
struct Table {
    start: u64,
    /// Bytes of an entry, and the bits of its first word that count.
    bytes: u64,
    mask: u64,
    /// What each had at the first look, or [`UNSEEN`].
    first: Vec<u64>,
    /// The part that the next look sees.
    part: u64,
    changed: Vec<u64>,
}

impl Table {
    /// The variables whose names begin with `prefix`, if they lie one behind the other.
    fn new(
        profile: &Profile<'_>,
        prefix: &str,
        (structure, member): (&str, &str),
        mask: u64,
    ) -> Option<Self> {
        let bytes = profile.size_of(structure).filter(|bytes| bytes % 8 == 0 && *bytes != 0)?;
        profile.field(structure, member).filter(|field| field.offset == 0)?;
        let all = || profile.symbols_starting_with(prefix).map(|symbol| symbol.address);
        let (start, last) = (all().min()?, all().max()?);
        let entries = (last - start) / bytes + 1;
        let is_whole = all().count() as u64 == entries && (last - start) % bytes == 0;
        (is_whole && entries <= MAX_ENTRIES && start % 8 == 0).then(|| Self {
            start,
            bytes,
            mask,
            first: vec![UNSEEN; entries as usize],
            part: 0,
            changed: Vec::new(),
        })
    }

    /// The place of what the entry at `address` had first; `None` if there is none.
    fn place(&self, address: u64) -> Option<usize> {
        let offset = address.checked_sub(self.start).filter(|offset| offset % self.bytes == 0)?;
        usize::try_from(offset / self.bytes).ok().filter(|place| *place < self.first.len())
    }

    /// What the entry at `address` had first.
    fn first(&self, address: u64) -> Option<u64> {
        self.first.get(self.place(address)?).copied().filter(|first| *first != UNSEEN)
    }

    /// Sees the next part, and the entries that were changed; calls `see` with the address and the value of each that
    /// is changed.
    fn look<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, see: &mut impl FnMut(u64, u64)) {
        let mut changed = core::mem::take(&mut self.changed);
        changed.retain(|&address| {
            let first = self.first(address);
            let value = kernel.u64(address).map(|word| word & self.mask);
            value.filter(|value| Some(*value) != first).map(|value| see(address, value)).is_some()
        });
        let entries = self.first.len() as u64;
        let (from, to) = (entries * self.part / PARTS, entries * (self.part + 1) / PARTS);
        self.part = (self.part + 1) % PARTS;
        let words = self.bytes / 8;
        kernel.words(self.start + from * self.bytes, (to - from) * words, |address, word| {
            let value = word & self.mask;
            let place = self.place(address).and_then(|place| self.first.get_mut(place));
            let Some(first) = place else { return };
            let is_new = || changed.len() < MAX_CHANGED && !changed.contains(&address);
            if *first == UNSEEN {
                *first = value;
            } else if *first != value && is_new() {
                changed.push(address);
                see(address, value);
            }
        });
        self.changed = changed;
    }
}

/// The hooks.
#[derive(Debug)]
pub(super) struct SecurityHooks {
    calls: Option<Table>,
    keys: Option<Table>,
}

impl SecurityHooks {
    pub fn new(profile: &Profile<'_>) -> Self {
        let keys = || Table::new(profile, KEYS, ("static_key", "enabled"), u32::MAX.into());
        Self {
            calls: Table::new(profile, CALLS, ("static_call_key", "func"), u64::MAX),
            keys: if profile.symbol(TOGGLES).is_none() { keys() } else { None },
        }
    }

    /// Calls `see` with the address and the value of each entry that is changed, of those that this look sees.
    pub fn look<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, mut see: impl FnMut(u64, u64)) {
        for table in [&mut self.calls, &mut self.keys].into_iter().flatten() {
            table.look(kernel, &mut see);
        }
    }

    /// What is wrong with the entry at `address`, which has `value`: its name, what it had first, what it has. `None`
    /// if there is no such entry.
    pub fn words<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        address: u64,
        value: u64,
    ) -> Option<[String; 3]> {
        let first = |table: &Option<Table>| table.as_ref()?.first(address);
        let shown = |value: u64| match value {
            0 => "none".into(),
            value => owner::symbol(kernel, value),
        };
        let (expected, found) = match (first(&self.calls), first(&self.keys)) {
            (Some(first), _) => (shown(first), shown(value)),
            (_, Some(first)) => (first.to_string(), value.to_string()),
            _ => return None,
        };
        Some([owner::symbol(kernel, address), expected, found])
    }
}
