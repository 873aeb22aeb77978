//! The modules that the kernel's structures have now, for people.

use super::{ModuleCheck, Notes, NAME_BYTES, PLACES};
use crate::check::Make;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner::code_of_module;
use crate::profile::ProfileError;
use alloc::string::String;
use alloc::vec::Vec;

/// A module, as the kernel's structures have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Address of the `struct module`.
    pub address: u64,
    /// Its name, of printable ASCII.
    pub name: String,
    /// Bytes of its code and data.
    pub bytes: u64,
    /// The taints that it set, as bits (`TAINT_*` in Linux's `panic.h`).
    pub taints: u64,
    /// Its ELF notes, one section after the other.
    pub notes: Vec<u8>,
    /// Whether its initialization is over and its removal has not begun.
    pub is_live: bool,
    /// The structures that must have it and do not.
    pub missing: Vec<&'static str>,
}

/// Walks over all structures once, and returns the modules by name; `None` if the kernel has no modules, or does not
/// describe them.
///
/// # Errors
///
/// [`ProfileError`] if the profile lacks something that the walk needs.
pub fn list<M: KernelMemory>(kernel: &Kernel<'_, M>) -> Result<Option<Vec<Module>>, ProfileError> {
    let mut check = ModuleCheck::make(kernel.profile, 0)?;
    let Some(layout) = check.layout.take() else { return Ok(None) };
    while !check.advance(kernel, &layout) {}
    let notes = Notes::new(kernel.profile);
    let mut modules: Vec<Module> = Vec::new();
    for &(address, places) in &check.modules {
        let at = |offset: u64| address.wrapping_add(offset);
        let is_live = kernel.u32(at(layout.state)).map(u64::from) == Some(layout.live);
        let missing = layout.expected(is_live) & !places;
        let ranges = code_of_module(kernel, &layout.owners, address);
        modules.push(Module {
            address,
            name: kernel.c_string(at(layout.owners.module_name), NAME_BYTES).unwrap_or_default(),
            bytes: ranges.map(|(start, end)| end - start).fold(0, u64::saturating_add),
            taints: layout
                .owners
                .module_taints
                .and_then(|taints| kernel.u64(at(taints)))
                .unwrap_or(0),
            notes: notes.map(|notes| notes.read(kernel, address)).unwrap_or_default(),
            is_live,
            missing: PLACES
                .iter()
                .filter(|(place, _)| missing & place != 0)
                .map(|(_, name)| *name)
                .collect(),
        });
    }
    modules.sort_by(|a, b| (&a.name, a.address).cmp(&(&b.name, b.address)));
    Ok(Some(modules))
}
