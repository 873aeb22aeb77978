//! Where Linux keeps mounts (`fs/mount.h`, `include/linux/mount.h` of Linux).

use super::Place;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::{Profile, ProfileError};
use crate::walk::{Lists, Trees};

pub(crate) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("dentry", "d_name.name", Optional),
        ("dentry", "d_parent", Optional),
        ("file_system_type", "name", Optional),
        ("fs_struct", "root.dentry", Optional),
        ("fs_struct", "root.mnt", Optional),
        ("mnt_namespace", "list", Optional),
        ("mnt_namespace", "mounts", Optional),
        ("mnt_namespace", "root", Optional),
        ("mount", "mnt", Optional),
        ("mount", "mnt.mnt_flags", Optional),
        ("mount", "mnt.mnt_root", Optional),
        ("mount", "mnt.mnt_sb", Optional),
        ("mount", "mnt_child", Optional),
        ("mount", "mnt_devname", Optional),
        ("mount", "mnt_hash", Optional),
        ("mount", "mnt_id", Optional),
        ("mount", "mnt_id_unique", Optional),
        ("mount", "mnt_list", Optional),
        ("mount", "mnt_mountpoint", Optional),
        ("mount", "mnt_mounts", Optional),
        ("mount", "mnt_node", Optional),
        ("mount", "mnt_ns", Optional),
        ("mount", "mnt_parent", Optional),
        ("nsproxy", "mnt_ns", Optional),
        ("pid_namespace", "child_reaper", Optional),
        ("super_block", "s_type", Optional),
        ("task_struct", "fs", Optional),
        ("task_struct", "nsproxy", Optional),
        ("task_struct", "tgid", Optional),
    ],
    constants: &[],
};

/// How a namespace keeps its mounts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kept {
    /// In a list, up to Linux 6.7: offset of the head in the namespace, and of the link in a mount.
    List { head: u64, link: u64 },
    /// In a tree: offset of the root in the namespace, and of the node in a mount.
    Tree { nodes: Trees, root: u64, node: u64 },
}

/// The mounts below a mount.
#[derive(Clone, Copy, Debug)]
pub(super) struct Children {
    /// Offset in a namespace of the pointer to its uppermost mount.
    pub top: u64,
    /// Offset of the list's head in a mount, and of the link in one below.
    pub head: u64,
    pub link: u64,
}

/// The table in which Linux finds a mount by its parent and the directory that it covers. It has those of all
/// namespaces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// Addresses of the pointer to its heads, and of their number less one; bytes of a head.
    pub heads: u64,
    pub mask: u64,
    pub head_bytes: u64,
    /// Offset in a mount of the link.
    pub link: u64,
    /// Offset in a mount of the pointer to its namespace.
    pub namespace: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub lists: Lists,
    pub kept: Kept,
    pub children: Option<Children>,
    pub table: Option<Table>,
    /// Address of the sequence lock that guards the structures; its first member is the sequence.
    pub lock: Option<u64>,
    // In `mount`.
    pub id: u64,
    pub unique: Option<u64>,
    pub source: u64,
    pub parent: u64,
    pub point: u64,
    pub root: u64,
    pub file_system: u64,
    pub flags: u64,
    // In `super_block`, and in `file_system_type`.
    pub kind: u64,
    pub kind_name: u64,
    // In `dentry`.
    pub dentry_parent: u64,
    pub dentry_name: u64,
    /// Address of the pointer to the first process's task.
    first: u64,
    // In `task_struct`.
    tgid: u64,
    namespaces: u64,
    folders: u64,
    /// In `nsproxy`.
    namespace: u64,
    // In `fs_struct`: the mount and the dentry of the root directory.
    root_mount: u64,
    root_dentry: u64,
    /// From a `mount` to what others point to.
    inner: u64,
}

impl Layout {
    /// Looks it up in `profile`; `None` if the kernel does not describe it.
    pub fn new(profile: &Profile<'_>) -> Result<Option<Self>, ProfileError> {
        Ok(Self::with_lists(profile, Lists::new(profile)?))
    }

    fn with_lists(profile: &Profile<'_>, lists: Lists) -> Option<Self> {
        let offset = |structure, member| profile.field(structure, member).map(|field| field.offset);
        let mount = |member| offset("mount", member);
        // Before there was a tree, its name was that of a number.
        let kept = match offset("mnt_namespace", "list") {
            Some(head) => Kept::List { head, link: mount("mnt_list")? },
            None => Kept::Tree {
                nodes: Trees::new(profile).ok()?,
                root: offset("mnt_namespace", "mounts")?,
                node: mount("mnt_node")?,
            },
        };
        let children = || {
            Some(Children {
                top: offset("mnt_namespace", "root")?,
                head: mount("mnt_mounts")?,
                link: mount("mnt_child")?,
            })
        };
        let table = || {
            Some(Table {
                heads: profile.symbol("mount_hashtable")?,
                mask: profile.symbol("m_hash_mask")?,
                head_bytes: profile.size_of("hlist_head").filter(|&bytes| bytes > 0)?,
                link: mount("mnt_hash")?,
                namespace: mount("mnt_ns")?,
            })
        };
        let of_ids = offset("pid_namespace", "child_reaper")?;
        Some(Self {
            lists,
            kept,
            children: children(),
            table: table(),
            lock: profile.symbol("mount_lock"),
            id: mount("mnt_id")?,
            unique: mount("mnt_id_unique"),
            source: mount("mnt_devname")?,
            parent: mount("mnt_parent")?,
            point: mount("mnt_mountpoint")?,
            root: mount("mnt.mnt_root")?,
            file_system: mount("mnt.mnt_sb")?,
            flags: mount("mnt.mnt_flags")?,
            kind: offset("super_block", "s_type")?,
            kind_name: offset("file_system_type", "name")?,
            dentry_parent: offset("dentry", "d_parent")?,
            dentry_name: offset("dentry", "d_name.name")?,
            first: profile.symbol("init_pid_ns")?.wrapping_add(of_ids),
            tgid: offset("task_struct", "tgid")?,
            namespaces: offset("task_struct", "nsproxy")?,
            folders: offset("task_struct", "fs")?,
            namespace: offset("nsproxy", "mnt_ns")?,
            root_mount: offset("fs_struct", "root.mnt")?,
            root_dentry: offset("fs_struct", "root.dentry")?,
            inner: mount("mnt")?,
        })
    }

    /// The mount namespace of the process with PID 1, and its root directory.
    pub fn first_process<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> Option<(u64, Place)> {
        let word = |at: u64, offset: u64| {
            kernel.u64(at.wrapping_add(offset)).filter(|&pointer| pointer != 0)
        };
        let task = word(self.first, 0)?;
        kernel.u32(task.wrapping_add(self.tgid)).filter(|&pid| pid == 1)?;
        let namespace = word(word(task, self.namespaces)?, self.namespace)?;
        let folders = word(task, self.folders)?;
        let root = Place {
            mount: word(folders, self.root_mount)?.wrapping_sub(self.inner),
            dentry: word(folders, self.root_dentry)?,
        };
        Some((namespace, root))
    }
}
