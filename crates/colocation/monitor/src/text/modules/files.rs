//! What the code of a module is, as far as the module's file tells.

use super::super::code::Code;
use super::super::sites::SiteKind;
use super::super::thunks::{self, Thunks};
use super::copy::ModuleCopy;
use super::layout::Layout;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::Profile;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::ops::Range;

/// A module in memory.
#[derive(Debug)]
pub struct Loaded<'a> {
    /// The module's name, of printable ASCII.
    pub name: &'a str,
    /// Its ELF notes, one section after the other.
    pub notes: &'a [u8],
    /// Address of its code.
    pub start: u64,
    /// Its code. Where a probe was, there are the probed bytes.
    pub code: &'a [u8],
    /// Memory of its own with thunks for calls and jumps through a register.
    pub thunks: &'a [Range<u64>],
    /// All modules with a copy.
    pub others: &'a [Other],
}

/// A module in memory, for another one that calls it.
#[derive(Clone, Debug)]
pub struct Other {
    /// Its name, of printable ASCII.
    pub name: String,
    /// Its ELF notes, one section after the other.
    pub notes: Vec<u8>,
    /// Address of its code.
    pub start: u64,
}

impl Loaded<'_> {
    /// Whether Linux may have made `bytes` at `address` of a call or jump through a register.
    pub fn is_indirect(
        &self,
        profile: &Profile<'_>,
        thunks: &mut Thunks,
        address: u64,
        bytes: &[u8],
        before: &[u8],
    ) -> bool {
        let own = thunks::direct(address, bytes);
        thunks.is_same_indirect(profile, address, bytes, before)
            || own.is_some_and(|to| self.thunks.iter().any(|page| page.contains(&to)))
    }
}

/// What a module's file says of the module's code in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCode {
    /// Where the code differs from what Linux makes of the file there, but for the sites that Linux's records judge:
    /// addresses, and the bytes that should be at each.
    pub differences: Vec<(u64, Vec<u8>)>,
    /// The sites that Linux patches at any time, by address.
    pub sites: Vec<FileSite>,
}

/// A place that Linux patches at any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSite {
    /// Its address.
    pub address: u64,
    /// What it holds before Linux patches it.
    pub bytes: Vec<u8>,
    /// Where it leads, if it is a jump label, whose contents are among the differences. Linux's records judge others:
    /// static calls, their trampolines, the entries of functions.
    pub target: Option<u64>,
}

/// The files of modules.
pub trait ModuleFiles: Debug {
    /// What the file of `module` says of its code. `None` if no file of this module is known.
    fn code(&self, profile: &Profile<'_>, module: &Loaded<'_>) -> Option<FileCode>;
}

/// Makes `copy` what the file of its module says; `others` are all modules with a copy. Returns whether there is such a
/// file, and the copy is whole.
pub(super) fn compare<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    files: &dyn ModuleFiles,
    copy: &mut ModuleCopy,
    others: &[Other],
) -> bool {
    let module = copy.identity.module;
    let mut code = vec![0; (copy.identity.end - copy.identity.start) as usize];
    let loaded = Loaded {
        name: &layout.name(kernel, module),
        notes: &layout.notes(kernel, module),
        start: copy.identity.start,
        thunks: &layout.text.owners.thunks_of_module(kernel, module).collect::<Vec<_>>(),
        others,
        code: match copy.baseline.bytes(copy.identity.start, &mut code) {
            Some(()) => &code,
            None => return false,
        },
    };
    let Some(FileCode { differences, sites }) = files.code(kernel.profile, &loaded) else {
        return false;
    };
    // Linux's records are in memory that can be forged: they add no site to those of the file.
    copy.sites.keep(|site| {
        let known = sites.binary_search_by_key(&site.address, |known| known.address);
        known.ok().and_then(|at| sites.get(at)).is_some_and(|known| match site.kind {
            SiteKind::Jump { target, .. } => known.target == Some(target),
            _ => known.target.is_none(),
        })
    });
    let mut judged: Vec<u64> = copy.sites.all().map(|site| site.address).collect();
    judged.sort_unstable();
    let not_judged = sites
        .into_iter()
        .filter(|site| site.target.is_none() && judged.binary_search(&site.address).is_err());
    for FileSite { address, bytes, .. } in not_judged {
        let mut now = vec![0; bytes.len()];
        let is_empty =
            copy.baseline.bytes(address, &mut now).is_some() && now == Code::nop5().bytes();
        if !is_empty {
            copy.baseline.correct(address, &bytes);
        }
    }
    for (address, bytes) in differences {
        copy.baseline.correct(address, &bytes);
    }
    true
}
