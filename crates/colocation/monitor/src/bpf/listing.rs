//! The BPF programs that the kernel's structures have now, for people.

use super::{BpfCheck, Key};
use crate::check::Make;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::ProfileError;
use alloc::string::String;
use alloc::vec::Vec;

/// A BPF program, as the kernel's structures have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Address of the `struct bpf_prog`.
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
        return Ok(Programs { programs: Vec::new(), is_complete: true });
    };
    while !check.advance(kernel, &layout) {}
    check.confirm.end_look();
    let missing: Vec<(u64, &str)> = check.confirm.keys().map(Key::parts).collect();
    let mut addresses: Vec<(u64, u64)> = check.indexed.clone();
    let not_indexed = check.listed.iter().filter(|listed| !listed.is_indexed);
    addresses.extend(not_indexed.filter_map(|listed| layout.id_and_program(kernel, listed.aux)));
    let mut programs: Vec<Program> = addresses
        .into_iter()
        .filter(|(id, _)| *id != 0)
        .map(|(id, address)| {
            let aux = layout.aux(kernel, address);
            let (start, end) = aux.and_then(|aux| layout.code(kernel, aux)).unwrap_or((0, 0));
            Program {
                address,
                id,
                name: aux.and_then(|aux| layout.name(kernel, aux)).unwrap_or_default(),
                code: (start, end.saturating_sub(start)),
                missing: missing
                    .iter()
                    .filter(|(program, _)| *program == address)
                    .map(|(_, place)| *place)
                    .collect(),
            }
        })
        .collect();
    programs.sort_by_key(|program| (program.id, program.address));
    Ok(Programs { programs, is_complete: !check.is_cut })
}
