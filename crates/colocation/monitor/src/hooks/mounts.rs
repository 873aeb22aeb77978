//! Tables of operations of mounted file systems and of their root directories (`include/linux/fs.h` of Linux).

use super::source::{agree, offset, visit_list, Cursor, Hook, Source};
use super::stubs;
use crate::kernel::Kernel;
use crate::memory::{mixed, KernelMemory};
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::List;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// Flag of a file system whose operations are in place (`SB_BORN` in Linux's `fs.h`).
const BORN: u64 = 1 << 29;
/// The type in a mode (`S_IFMT` in Linux's `stat.h`).
const TYPE: u16 = 0o170_000;
/// Bytes of the longest names that are shown (`s_id` of Linux's `super_block`, and a type's name).
const ID_BYTES: usize = 32;

#[derive(Debug)]
pub(super) struct Mounts {
    list: List,
    flags: u64,
    kind: u64,
    kind_name: u64,
    id: u64,
    device: u64,
    operations: u64,
    root: u64,
    inode: u64,
    of_inode: [u64; 2],
    /// Offset of an inode's type and permissions.
    mode: u64,
    /// In the operations, offsets of those that make and free inodes.
    of_inodes: Option<[u64; 3]>,
    /// What a directory gets if it turns out to be damaged.
    bad: [Option<u64>; 2],
}

fn inodes(profile: &Profile<'_>) -> Option<[u64; 3]> {
    let of = |member| offset(profile, "super_operations", member);
    Some([of("alloc_inode")?, of("destroy_inode")?, of("free_inode")?])
}

impl Source for Mounts {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("dentry", "d_inode", Optional),
            ("file_system_type", "name", Optional),
            ("inode", "i_fop", Optional),
            ("inode", "i_mode", Optional),
            ("inode", "i_op", Optional),
            ("super_block", "s_dev", Optional),
            ("super_block", "s_flags", Optional),
            ("super_block", "s_id", Optional),
            ("super_block", "s_list", Optional),
            ("super_block", "s_op", Optional),
            ("super_block", "s_root", Optional),
            ("super_block", "s_type", Optional),
            ("super_operations", "alloc_inode", Optional),
            ("super_operations", "destroy_inode", Optional),
            ("super_operations", "free_inode", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden operations";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let of = |member| offset(profile, "super_block", member);
        Some(Self {
            list: List { head: profile.symbol("super_blocks")?, link: of("s_list")? },
            flags: of("s_flags")?,
            kind: of("s_type")?,
            kind_name: offset(profile, "file_system_type", "name")?,
            id: of("s_id")?,
            device: of("s_dev")?,
            operations: of("s_op")?,
            root: of("s_root")?,
            inode: offset(profile, "dentry", "d_inode")?,
            of_inode: [offset(profile, "inode", "i_op")?, offset(profile, "inode", "i_fop")?],
            mode: offset(profile, "inode", "i_mode")?,
            of_inodes: inodes(profile),
            bad: ["bad_inode_ops", "bad_file_ops"].map(|name| profile.symbol(name)),
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let next = visit_list(kernel, self.list.head, at, |link| {
            let object = link.wrapping_sub(self.list.link);
            let word = |at: u64, offset: u64| {
                kernel.u64(at.wrapping_add(offset)).filter(|&word| word != 0)
            };
            if word(object, self.flags).is_none_or(|flags| flags & BORN == 0) {
                return;
            }
            let device = kernel.u32(object.wrapping_add(self.device)).map_or(0, u64::from);
            let stamp = word(object, self.kind).unwrap_or(0).wrapping_add(device << 32);
            let hook = Hook::data(kernel, object, self.operations);
            hook.into_iter().for_each(|hook| see(hook.fixed(stamp)));
            let inode = word(object, self.root).and_then(|root| word(root, self.inode));
            for at in self.of_inode {
                let hook = inode.and_then(|inode| Hook::data(kernel, inode, at));
                let hook = hook.filter(|hook| !self.bad.contains(&Some(hook.value)));
                // A user's file system says of what type its root is.
                let mode = inode.and_then(|inode| kernel.u16(inode.wrapping_add(self.mode)));
                let stamp = mixed(stamp, u64::from(mode.unwrap_or(0) & TYPE));
                hook.into_iter().for_each(|hook| see(Hook { object, ..hook }.fixed(stamp)));
            }
        });
        Some(next).filter(|next| next.list == 0)
    }

    fn restoration<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        before: u64,
    ) -> Result<Vec<RepairWord>, &'static str> {
        let is_own = hook.slot == hook.object.wrapping_add(self.operations);
        if is_own && !agree(kernel, hook.value, before, self.of_inodes) {
            return Err("the operations before may not free the inodes that these have made");
        }
        stubs::pointer(kernel, hook.slot, hook.value, before)
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        let text = |at: u64| kernel.c_string(at, ID_BYTES).unwrap_or_default();
        let kind = kernel.u64(object.wrapping_add(self.kind));
        let name = kind.and_then(|kind| kernel.u64(kind.wrapping_add(self.kind_name)));
        let id = text(object.wrapping_add(self.id));
        format!("file system {} ({id})", name.map_or_else(String::new, text))
    }
}
