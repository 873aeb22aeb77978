//! Where Linux keeps modules.

use super::{LIST, SYSFS, TREE};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner::Owners;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{List, Trees};

pub(super) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("kobject", "entry", Optional),
        ("kset", "list", Optional),
        ("latch_tree_node", "node", Optional),
        ("latch_tree_root", "seq", Optional),
        ("latch_tree_root", "tree", Optional),
        ("mod_tree_node", "mod", Optional),
        ("mod_tree_node", "node", Optional),
        ("mod_tree_root", "root", Optional),
        ("module_kobject", "kobj", Optional),
        ("module_kobject", "mod", Optional),
    ],
    constants: &[("MODULE_STATE_UNFORMED", Optional)],
};

/// The tree by which Linux finds the module that an address is in: two copies, of which one is stable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    pub nodes: Trees,
    /// Address of the counter whose lowest bit names the stable copy.
    pub sequence: u64,
    /// Address of the first root; distances between the roots, and between the nodes of a module's part.
    pub root: u64,
    pub root_bytes: u64,
    pub node_bytes: u64,
    /// From a part's first node to the pointer to its module.
    pub module: u64,
}

/// The directory of modules in sysfs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sysfs {
    /// Address of the pointer to the set of the directory's entries; offset of its list.
    pub set: u64,
    pub list: u64,
    /// From the link in an entry to the pointer to its module.
    pub module: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub owners: Owners,
    pub state: u64,
    pub live: u64,
    pub unformed: Option<u64>,
    pub tree: Option<Tree>,
    pub sysfs: Option<Sysfs>,
    /// Address of the kernel's taints.
    pub taints: Option<u64>,
}

impl Layout {
    /// Looks it up in `profile`; `None` if the kernel has no modules, or does not describe them.
    pub fn new(profile: &Profile<'_>) -> Option<Self> {
        let owners = Owners::new(profile).ok()?;
        let (state, _) = owners.module_state?;
        Some(Self {
            owners,
            state,
            live: profile.constant("MODULE_STATE_LIVE")?,
            unformed: profile.constant("MODULE_STATE_UNFORMED"),
            tree: tree(profile),
            sysfs: sysfs(profile),
            taints: profile.symbol("tainted_mask"),
        })
    }

    /// The places that must have a module. Sysfs has it later than the others, and loses it earlier.
    pub fn expected(&self, is_live: bool) -> u64 {
        let sysfs = self.sysfs.is_some() && is_live;
        LIST | if self.tree.is_some() { TREE } else { 0 } | if sysfs { SYSFS } else { 0 }
    }

    /// What `module` says about itself.
    pub fn state_of<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, module: u64) -> Option<u64> {
        kernel.u32(module.wrapping_add(self.state)).map(u64::from)
    }

    /// The list of modules.
    pub fn list(&self) -> List {
        self.owners.modules
    }
}

fn tree(profile: &Profile<'_>) -> Option<Tree> {
    let offset = |structure, member| profile.field(structure, member).map(|field| field.offset);
    let latch = profile.symbol("mod_tree")? + offset("mod_tree_root", "root")?;
    let roots = profile.field("latch_tree_root", "tree")?;
    let nodes = profile.field("latch_tree_node", "node")?;
    let first = offset("mod_tree_node", "node")? + nodes.offset;
    Some(Tree {
        nodes: Trees::new(profile).ok()?,
        sequence: latch + offset("latch_tree_root", "seq")?,
        root: latch + roots.offset,
        root_bytes: roots.bytes / 2,
        node_bytes: nodes.bytes / 2,
        module: offset("mod_tree_node", "mod")?.wrapping_sub(first),
    })
}

fn sysfs(profile: &Profile<'_>) -> Option<Sysfs> {
    let offset = |structure, member| profile.field(structure, member).map(|field| field.offset);
    let link = offset("module_kobject", "kobj")? + offset("kobject", "entry")?;
    Some(Sysfs {
        set: profile.symbol("module_kset")?,
        list: offset("kset", "list")?,
        module: offset("module_kobject", "mod")?.wrapping_sub(link),
    })
}
