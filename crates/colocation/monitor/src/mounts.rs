//! The mounts of the first process's namespace, as the kernel's structures have them, for people.
//!
//! Linux keeps a mount in its namespace, which `/proc/PID/mountinfo` lists, among the mounts of its parent, and in the
//! table by which a path leads from its parent to it. One that the namespace lacks can be used, and is not listed.

mod layout;
#[cfg(test)]
mod tests;

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::ProfileError;
use crate::walk::{HashWalk, ListWalk};
use alloc::collections::btree_map::{BTreeMap, Entry};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
pub(crate) use layout::WANTS;
use layout::{Kept, Layout, Table};

/// Maximum number of mounts; `fs.mount-max` of Linux is 100,000.
const MAX_MOUNTS: u32 = 1 << 17;
/// Maximum number of buckets of the table of mount points.
const MAX_BUCKETS: u32 = 1 << 24;
/// Maximum number of directories and mounts from a mount up to its root, and of all mounts together: once for their
/// paths, and once for those of all namespaces in the table.
const MAX_DEPTH: u32 = 4096;
const MAX_STEPS: u32 = 1 << 22;
/// Bytes of a name that count as one more step: the paths of all mounts take at most 64 MiB.
const NAME_BYTES_PER_STEP: u32 = 16;
/// Maximum bytes of a shown path, of a name in it, of a source, and of a kind of file system.
const PATH_BYTES: usize = 4096;
const NAME_BYTES: usize = 256;
const SOURCE_BYTES: usize = 256;
const KIND_BYTES: usize = 32;
/// A mark in the list that is no mount: the place of someone who reads `mountinfo` (`MNT_CURSOR` in Linux's `mount.h`).
const CURSOR: u32 = 0x1000_0000;
/// What is shown if it cannot be read.
const UNKNOWN: &str = "?";

/// The places, as bits.
const NAMESPACE: u8 = 1;
const PARENT: u8 = 2;
const TABLE: u8 = 4;
const PLACES: [(u8, &str); 3] = [
    (NAMESPACE, "its mount namespace"),
    (PARENT, "its parent's mounts"),
    (TABLE, "the table of mount points"),
];

/// A mount, as the kernel's structures have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Address of the `struct mount`.
    pub address: u64,
    /// Its ID, as `mountinfo` shows it. Another mount may get it later.
    pub id: u32,
    /// The ID that no other mount gets, since Linux 6.8.
    pub unique: Option<u64>,
    /// The kind of file system.
    pub kind: String,
    /// What is mounted.
    pub source: String,
    /// The path at which it is mounted, of printable ASCII.
    pub point: String,
    /// Whether the first process can reach the path from its root directory. `mountinfo` leaves out other mounts.
    pub is_reachable: bool,
    /// The structures that must have it and do not.
    pub missing: Vec<&'static str>,
}

/// The mounts of one walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mounts {
    /// The mounts, by ID.
    pub mounts: Vec<Mount>,
    /// Whether every structure was walked to its end.
    pub is_complete: bool,
}

/// A directory as processes see it: a mount, and an entry of its file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    mount: u64,
    dentry: u64,
}

/// The mounts that were seen, each with the places that have it.
#[derive(Debug, Default)]
struct Seen {
    mounts: BTreeMap<u64, u8>,
    /// The places that were not walked to their ends.
    cut: u8,
}

impl Seen {
    /// Notes that `place` has `mount`. False if it was there before, or there are too many: the walk must end.
    fn add(&mut self, mount: u64, place: u8) -> bool {
        let is_full = self.mounts.len() >= MAX_MOUNTS as usize;
        let is_new = match self.mounts.entry(mount) {
            Entry::Occupied(mut entry) => {
                let before = *entry.get();
                entry.insert(before | place);
                before & place == 0
            }
            Entry::Vacant(entry) if !is_full => {
                entry.insert(place);
                true
            }
            Entry::Vacant(_) => false,
        };
        if !is_new {
            self.cut |= place;
        }
        is_new
    }
}

/// Walks over all structures once; `None` if the kernel does not describe its mounts.
///
/// # Errors
///
/// [`ProfileError`] if the profile lacks something that every walk needs.
pub fn list<M: KernelMemory>(kernel: &Kernel<'_, M>) -> Result<Option<Mounts>, ProfileError> {
    let layout = Layout::new(kernel.profile)?;
    Ok(layout.map(|layout| walk(kernel, &layout).unwrap_or_default()))
}

/// The mounts; `None` if there is no first process, or it ends.
fn walk<M: KernelMemory>(kernel: &Kernel<'_, M>, layout: &Layout) -> Option<Mounts> {
    let (namespace, root) = layout.first_process(kernel)?;
    let mut seen = Seen::default();
    see_namespace(kernel, layout, namespace, &mut seen);
    see_children(kernel, layout, namespace, &mut seen);
    see_table(kernel, layout, namespace, &mut seen);
    let cut = &mut seen.cut;
    seen.mounts.retain(|address, places| {
        let is_readable = kernel.u32(address.wrapping_add(layout.id)).is_some();
        // What leads to nowhere may have led to more.
        *cut |= if is_readable { 0 } else { *places };
        is_readable
    });
    let mut all = Mounts { mounts: Vec::new(), is_complete: seen.cut == 0 };
    // Whoever changes mounts has made the sequence odd.
    all.is_complete &= layout.lock.is_none_or(|lock| kernel.u32(lock).is_some_and(|n| n % 2 == 0));
    let mut expected = NAMESPACE;
    expected |= if layout.children.is_some() { PARENT } else { 0 };
    expected |= if layout.table.is_some() { TABLE } else { 0 };
    let mut steps = MAX_STEPS;
    for (&address, &places) in &seen.mounts {
        // No path leads to the uppermost mount from another one.
        let is_top = kernel.u64(address.wrapping_add(layout.parent)) == Some(address);
        let missing = expected & !places & !seen.cut & if is_top { !TABLE } else { !0 };
        match read(kernel, layout, root, address, missing, &mut steps) {
            Some((mount, is_known)) => {
                all.is_complete &= is_known;
                all.mounts.push(mount);
            }
            None => all.is_complete = false,
        }
    }
    all.mounts.sort_by_key(|mount| (mount.id, mount.address));
    Some(all)
}

/// Sees the mounts that the namespace has.
fn see_namespace<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    namespace: u64,
    seen: &mut Seen,
) {
    match layout.kept {
        Kept::List { head, link } => {
            let mut walk = ListWalk::new(namespace.wrapping_add(head), MAX_MOUNTS);
            loop {
                match walk.next(kernel, &layout.lists) {
                    Ok(Some(node)) => {
                        let mount = node.wrapping_sub(link);
                        if !is_cursor(kernel, layout, mount) && !seen.add(mount, NAMESPACE) {
                            return;
                        }
                    }
                    Ok(None) => return,
                    Err(_) => {
                        seen.cut |= NAMESPACE;
                        return;
                    }
                }
            }
        }
        Kept::Tree { nodes, root, node } => {
            let root = namespace.wrapping_add(root);
            let (mut at, mut last) = (nodes.first(kernel, root), None);
            while let Some(found) = at {
                if !seen.add(found.wrapping_sub(node), NAMESPACE) {
                    return;
                }
                (at, last) = (nodes.next(kernel, found), Some(found));
            }
            // A damaged tree may end anywhere; no namespace is empty.
            if last.is_none() || last != nodes.last(kernel, root) {
                seen.cut |= NAMESPACE;
            }
        }
    }
}

/// Whether the entry `mount` of a list is a mark: it has no file system. An intruder may mark a mount.
fn is_cursor<M: KernelMemory>(kernel: &Kernel<'_, M>, layout: &Layout, mount: u64) -> bool {
    let flags = kernel.u32(mount.wrapping_add(layout.flags));
    flags.is_some_and(|flags| flags & CURSOR != 0)
        && kernel.u64(mount.wrapping_add(layout.file_system)) == Some(0)
}

/// Sees the namespace's uppermost mount, and all below it.
fn see_children<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    namespace: u64,
    seen: &mut Seen,
) {
    let Some(children) = layout.children else { return };
    let Some(top) = kernel.u64(namespace.wrapping_add(children.top)).filter(|&top| top != 0) else {
        seen.cut |= PARENT;
        return;
    };
    let mut open = vec![top];
    seen.add(top, PARENT);
    while let Some(mount) = open.pop() {
        let mut walk = ListWalk::new(mount.wrapping_add(children.head), MAX_MOUNTS);
        loop {
            match walk.next(kernel, &layout.lists) {
                Ok(Some(node)) => {
                    let child = node.wrapping_sub(children.link);
                    if !seen.add(child, PARENT) {
                        break;
                    }
                    open.push(child);
                }
                Ok(None) => break,
                Err(_) => {
                    seen.cut |= PARENT;
                    break;
                }
            }
        }
    }
}

/// Sees the namespace's mounts in the table of those of all namespaces.
fn see_table<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    namespace: u64,
    seen: &mut Seen,
) {
    let Some(table) = layout.table else { return };
    let (first, mask) = (kernel.u64(table.heads), kernel.u32(table.mask));
    let (Some(first), Some(mask)) = (first, mask.filter(|&mask| mask < MAX_BUCKETS)) else {
        seen.cut |= TABLE;
        return;
    };
    let mut steps = MAX_STEPS;
    for bucket in 0..=u64::from(mask) {
        let Some(left) = steps.checked_sub(1) else {
            seen.cut |= TABLE;
            return;
        };
        steps = left;
        let head = first.wrapping_add(bucket * table.head_bytes);
        let mut walk = HashWalk::new(head, &layout.lists, MAX_MOUNTS);
        loop {
            let mount = match walk.next(kernel, &layout.lists) {
                Ok(Some(node)) => node.wrapping_sub(table.link),
                Ok(None) => break,
                Err(_) => {
                    seen.cut |= TABLE;
                    break;
                }
            };
            match is_in(kernel, layout, table, namespace, mount, seen, &mut steps) {
                Some(true) if !seen.add(mount, TABLE) => break,
                Some(_) => {}
                None => {
                    seen.cut |= TABLE;
                    break;
                }
            }
        }
    }
}

/// Whether `mount` names `namespace`, or one does that is above it: Linux does not ask a mount for its namespace when a
/// path leads to it. `None` if that cannot be read.
fn is_in<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    table: Table,
    namespace: u64,
    mount: u64,
    seen: &Seen,
    steps: &mut u32,
) -> Option<bool> {
    let mut at = mount;
    for _ in 0..MAX_DEPTH {
        *steps = steps.checked_sub(1)?;
        let own = kernel.u64(at.wrapping_add(table.namespace))?;
        if own == namespace || seen.mounts.contains_key(&at) {
            return Some(true);
        }
        let above = kernel.u64(at.wrapping_add(layout.parent))?;
        if above == at {
            return Some(false);
        }
        at = above;
    }
    None
}

/// The mount at `address`, and whether its path could be read; `None` if the memory holds none.
fn read<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    root: Place,
    address: u64,
    missing: u8,
    steps: &mut u32,
) -> Option<(Mount, bool)> {
    let word = |at: u64, offset: u64| kernel.u64(at.wrapping_add(offset));
    let id = kernel.u32(address.wrapping_add(layout.id))?;
    let kind = word(address, layout.file_system)
        .and_then(|file_system| word(file_system, layout.kind))
        .and_then(|kind| word(kind, layout.kind_name))
        .and_then(|name| kernel.c_string(name, KIND_BYTES));
    let source = match word(address, layout.source)? {
        0 => Some("none".into()),
        source => kernel.c_string(source, SOURCE_BYTES),
    };
    let point = point(kernel, layout, root, address, steps);
    let is_known = point.is_some();
    let (point, is_reachable) = point.unwrap_or_else(|| (UNKNOWN.into(), false));
    let mount = Mount {
        address,
        id,
        unique: layout.unique.and_then(|unique| word(address, unique)),
        kind: kind.unwrap_or_else(|| UNKNOWN.into()),
        source: source.unwrap_or_else(|| UNKNOWN.into()),
        point,
        is_reachable,
        missing: PLACES
            .iter()
            .filter(|(place, _)| missing & place != 0)
            .map(|(_, name)| *name)
            .collect(),
    };
    Some((mount, is_known))
}

/// The path of `mount`, and whether it begins at `root`, as `prepend_path` in Linux's `d_path.c` finds them. If it does
/// not, it begins at the namespace's uppermost mount. `None` if it cannot be read, or is too long.
fn point<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    root: Place,
    mount: u64,
    steps: &mut u32,
) -> Option<(String, bool)> {
    let word = |at: u64, offset: u64| kernel.u64(at.wrapping_add(offset));
    let mut at = Place { mount, dentry: word(mount, layout.root)? };
    let (mut names, mut bytes) = (Vec::new(), 0);
    for _ in 0..MAX_DEPTH {
        *steps = steps.checked_sub(1)?;
        if at == root {
            return Some((path(&names), true));
        }
        if at.dentry == word(at.mount, layout.root)? {
            let above = word(at.mount, layout.parent)?;
            if above == at.mount {
                return Some((path(&names), false));
            }
            at = Place { mount: above, dentry: word(at.mount, layout.point)? };
            continue;
        }
        let above = word(at.dentry, layout.dentry_parent)?;
        if above == at.dentry {
            return Some((path(&names), false));
        }
        if bytes < PATH_BYTES {
            let name = kernel.c_string(word(at.dentry, layout.dentry_name)?, NAME_BYTES)?;
            *steps = steps.checked_sub(name.len() as u32 / NAME_BYTES_PER_STEP)?;
            bytes += name.len() + 1;
            names.push(if bytes < PATH_BYTES { name } else { "...".into() });
        }
        at.dentry = above;
    }
    None
}

/// The path of `names`, the last first.
fn path(names: &[String]) -> String {
    let mut path = String::new();
    for name in names.iter().rev() {
        path.push('/');
        path.push_str(name);
    }
    if path.is_empty() {
        path.push('/');
    }
    path
}
