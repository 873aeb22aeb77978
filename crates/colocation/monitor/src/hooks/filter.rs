//! Ftrace's tables of functions: the filter of a user, and the direct calls (`struct ftrace_hash` of Linux).

use super::source::offset;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{chain, hash};

/// Maximum binary logarithm of the number of lists (`FTRACE_HASH_MAX_BITS` in Linux's `ftrace.c`).
const MAX_BITS: u64 = 12;

/// What [`Layout`] needs from a profile.
pub(super) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("ftrace_func_entry", "hlist", Optional),
        ("ftrace_func_entry", "ip", Optional),
        ("ftrace_hash", "buckets", Optional),
        ("ftrace_hash", "count", Optional),
        ("ftrace_hash", "size_bits", Optional),
    ],
    constants: &[],
};

/// Where a table and its entries have what.
#[derive(Debug)]
pub(super) struct Layout {
    count: u64,
    bits: u64,
    lists: u64,
    /// Offsets of the link and of the function in an entry; offset of the next link in a link.
    link: u64,
    function: u64,
    next: u64,
}

impl Layout {
    pub fn new(profile: &Profile<'_>) -> Option<Self> {
        Some(Self {
            count: offset(profile, "ftrace_hash", "count")?,
            bits: offset(profile, "ftrace_hash", "size_bits")?,
            lists: offset(profile, "ftrace_hash", "buckets")?,
            link: offset(profile, "ftrace_func_entry", "hlist")?,
            function: offset(profile, "ftrace_func_entry", "ip")?,
            next: offset(profile, "hlist_node", "next")?,
        })
    }

    /// The table at `at`, as it is now; `None` if it has no functions, or a form that Linux does not make.
    pub fn table<'a, M: KernelMemory>(
        &'a self,
        kernel: &'a Kernel<'a, M>,
        at: u64,
    ) -> Option<Table<'a, M>> {
        let word = |member: u64| kernel.u64(at.wrapping_add(member)).filter(|&word| word != 0);
        word(self.count).filter(|_| at != 0)?;
        let bits = word(self.bits).unwrap_or(0);
        let first = word(self.lists)?;
        (bits <= MAX_BITS).then_some(Table { layout: self, kernel, first, bits: bits as u32 })
    }
}

/// A table: lists of entries.
pub(super) struct Table<'a, M> {
    layout: &'a Layout,
    kernel: &'a Kernel<'a, M>,
    first: u64,
    bits: u32,
}

impl<'a, M: KernelMemory> Table<'a, M> {
    /// Number of lists.
    pub fn lists(&self) -> u64 {
        1 << self.bits
    }

    /// Address of the pointer to the first link of a list.
    pub fn head(&self, list: u64) -> u64 {
        self.first.wrapping_add(8 * list)
    }

    /// Offset of the next link in a link.
    pub fn next(&self) -> u64 {
        self.layout.next
    }

    /// The entry with a link, and its function.
    pub fn entry(&self, link: u64) -> (u64, u64) {
        let entry = link.wrapping_sub(self.layout.link);
        (entry, self.kernel.u64(entry.wrapping_add(self.layout.function)).unwrap_or(0))
    }

    /// All entries with their functions.
    pub fn entries(&self) -> impl Iterator<Item = (u64, u64)> + use<'_, 'a, M> {
        let links = |list| chain(self.kernel, self.head(list), self.layout.next);
        (0..self.lists()).flat_map(links).map(|link| self.entry(link))
    }

    /// The entries of the list that a function is looked up in.
    pub fn entries_beside(
        &self,
        function: u64,
    ) -> impl Iterator<Item = (u64, u64)> + use<'_, 'a, M> {
        let head = self.head(hash(function, self.bits));
        chain(self.kernel, head, self.layout.next).map(|link| self.entry(link))
    }
}
