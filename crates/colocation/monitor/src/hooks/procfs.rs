//! Entries of `/proc`: their tables of operations, and the functions that they have instead (`fs/proc/internal.h` of
//! Linux).

use super::source::{agree, named, offset, Cursor, Hook, Source, BATCH};
use super::stubs;
use crate::kernel::Kernel;
use crate::memory::{mixed, KernelMemory};
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::Trees;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// Bytes of the longest name that is shown, and maximum depth of a path.
const NAME_BYTES: usize = 64;
const MAX_DEPTH: usize = 16;
/// The type in a mode, and that of directories (`S_IFMT` and `S_IFDIR` in Linux's `stat.h`).
const TYPE: u16 = 0o170_000;
const DIRECTORY: u16 = 0o040_000;

const OTHER_FORM: &str = "a file that is open can have what the operations before do not know";

#[derive(Debug)]
pub(super) struct Procfs {
    /// The entries that are the roots: of `/proc`, and address of the pointer to that of `/proc/net`.
    root: u64,
    network: Option<u64>,
    trees: Trees,
    parent: u64,
    children: u64,
    node: u64,
    name: u64,
    number: u64,
    pointers: [u64; 3],
    /// Offset of an entry's type and permissions; in its operations, offsets of those that make and free what an open
    /// file has.
    mode: Option<u64>,
    pair: Option<[u64; 2]>,
}

impl Procfs {
    /// The entry after `entry` below `root`: its first child, or else the next one that is no descendant.
    fn next<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, root: u64, entry: u64) -> Option<u64> {
        let of_node = |node: u64| node.wrapping_sub(self.node);
        if let Some(child) = self.trees.first(kernel, entry.wrapping_add(self.children)) {
            return Some(of_node(child));
        }
        let mut at = entry;
        for _ in 0..MAX_DEPTH {
            if at == root {
                return None;
            }
            if let Some(next) = self.trees.next(kernel, at.wrapping_add(self.node)) {
                return Some(of_node(next));
            }
            at = kernel.u64(at.wrapping_add(self.parent))?;
        }
        None
    }

    /// What tells an entry from another one in the same memory: number, parent and name. Linux gives the numbers of
    /// entries that are gone to new ones.
    fn stamp<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, entry: u64) -> u64 {
        let word = |at: u64| kernel.u64(at).unwrap_or(0);
        let name = word(entry.wrapping_add(self.name));
        let number = kernel.u32(entry.wrapping_add(self.number)).map_or(0, u64::from);
        named(kernel, name, mixed(number, word(entry.wrapping_add(self.parent))))
    }
}

impl Source for Procfs {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("net", "proc_net", Optional),
            ("proc_dir_entry", "low_ino", Optional),
            ("proc_dir_entry", "mode", Optional),
            ("proc_dir_entry", "name", Optional),
            ("proc_dir_entry", "parent", Optional),
            ("proc_dir_entry", "proc_iops", Optional),
            ("proc_dir_entry", "proc_ops", Optional),
            ("proc_dir_entry", "seq_ops", Optional),
            ("proc_dir_entry", "subdir", Optional),
            ("proc_dir_entry", "subdir_node", Optional),
            ("proc_ops", "proc_open", Optional),
            ("proc_ops", "proc_release", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden operations";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let entry = |member| offset(profile, "proc_dir_entry", member);
        let network = || Some(profile.symbol("init_net")? + offset(profile, "net", "proc_net")?);
        Some(Self {
            root: profile.symbol("proc_root")?,
            network: network(),
            trees: Trees::new(profile).ok()?,
            parent: entry("parent")?,
            children: entry("subdir")?,
            node: entry("subdir_node")?,
            name: entry("name")?,
            number: entry("low_ino")?,
            // The third is a table or a function.
            pointers: [entry("proc_iops")?, entry("proc_ops")?, entry("seq_ops")?],
            mode: entry("mode"),
            pair: offset(profile, "proc_ops", "proc_open")
                .zip(offset(profile, "proc_ops", "proc_release"))
                .map(|(open, release)| [open, release]),
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let root = match at.list {
            0 => self.root,
            1 => kernel.u64(self.network?)?,
            _ => return None,
        };
        let mut entry = if at.link == 0 { root } else { at.link };
        for _ in 0..BATCH {
            let stamp = self.stamp(kernel, entry);
            for pointer in self.pointers {
                let hook = Hook::data(kernel, entry, pointer);
                hook.into_iter().for_each(|hook| see(hook.fixed(stamp)));
            }
            match self.next(kernel, root, entry) {
                Some(next) => entry = next,
                None => return Some(at.next_list()),
            }
        }
        Some(Cursor { link: entry, ..at })
    }

    fn restoration<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        before: u64,
    ) -> Result<Vec<RepairWord>, &'static str> {
        let words = stubs::pointer(kernel, hook.slot, hook.value, before)?;
        let [_, operations, _] = self.pointers;
        let mode = self.mode.and_then(|at| kernel.u16(hook.object.wrapping_add(at)));
        // Of a directory, the inode has the operations, and a file that is open gets them from there. Any other file
        // asks the entry each time.
        if hook.slot != hook.object.wrapping_add(operations)
            || mode.is_some_and(|mode| mode & TYPE == DIRECTORY)
        {
            return Ok(words);
        }
        agree(kernel, hook.value, before, self.pair).then_some(words).ok_or(OTHER_FORM)
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        let mut path = String::new();
        let mut at = object;
        for _ in 0..MAX_DEPTH {
            let name = kernel.u64(at.wrapping_add(self.name));
            let name = name.and_then(|name| kernel.c_string(name, NAME_BYTES)).unwrap_or_default();
            if at == self.root {
                break;
            }
            path = format!("/{name}{path}");
            let parent = kernel.u64(at.wrapping_add(self.parent)).filter(|&parent| parent != at);
            match parent {
                Some(parent) if parent != 0 => at = parent,
                _ => break,
            }
        }
        format!("/proc{path}")
    }
}
