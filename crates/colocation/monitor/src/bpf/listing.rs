//! The BPF programs that the kernel's structures have now, for people.

use super::{BpfCheck, INDEX, LIST};
use crate::check::Make;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::ProfileError;
use alloc::string::String;
use alloc::vec::Vec;

/// A BPF program, as the kernel's structures have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Address of the `struct bpf_prog_aux`.
    pub address: u64,
    /// Its ID.
    pub id: u64,
    /// The name of its code, of printable ASCII; empty if it is not compiled.
    pub name: String,
    /// Address and bytes of its code; 0 if it is not compiled, or not listed because its user has no privileges.
    pub code: (u64, u64),
    /// The structures that must have it and do not.
    pub missing: Vec<&'static str>,
}

/// All programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// By ID.
    pub programs: Vec<Program>,
    /// Whether every structure was walked to its end.
    pub is_complete: bool,
}

/// Walks over all structures once, and returns the programs by ID. Functions of programs are not among them.
///
/// # Errors
///
/// [`ProfileError`] if the profile lacks something that the walk needs.
pub fn list<M: KernelMemory>(kernel: &Kernel<'_, M>) -> Result<Programs, ProfileError> {
    let mut check = BpfCheck::make(kernel.profile, 0)?;
    let Some(layout) = check.layout.take() else {
        return Ok(Programs { programs: Vec::new(), is_complete: false });
    };
    while !check.advance(kernel, &layout) {}
    check.not_indexed.end_look();
    check.not_listed.end_look();
    let mut found = check.indexed.clone();
    let not_indexed = check.listed.iter().filter(|listed| !listed.is_indexed);
    found.extend(
        not_indexed.filter_map(|listed| Some((layout.id(kernel, listed.aux)?, listed.aux))),
    );
    found.retain(|(id, _)| *id != 0);
    found.sort_unstable();
    found.dedup();
    let program = |(id, aux): (u64, u64)| {
        let (start, end) = layout.code(kernel, aux).unwrap_or((0, 0));
        let is_missing = [(&check.not_indexed, INDEX), (&check.not_listed, LIST)];
        let is_missing = is_missing
            .into_iter()
            .filter(|(confirm, _)| confirm.keys().any(|key| key == (aux, id)));
        Program {
            address: aux,
            id,
            name: layout.name(kernel, aux).unwrap_or_default(),
            code: (start, end.saturating_sub(start)),
            missing: is_missing.map(|(_, place)| place).collect(),
        }
    };
    Ok(Programs {
        programs: found.into_iter().map(program).collect(),
        is_complete: !check.list_is_cut && !check.index_is_cut,
    })
}
