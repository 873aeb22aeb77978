//! The pointers through which Linux calls code that is not in its own image, for people.

use super::{owned, HookCheck, Owned, MAX_PARTS};
use crate::check::Make;
use crate::hooks::source::{self, Cursor, Target};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner;
use crate::profile::ProfileError;
use alloc::string::String;
use alloc::vec::Vec;

/// A pointer to code, or to a table of functions, outside the kernel's image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// What kind of object has it: `timer`, `netfilter hook`.
    pub kind: &'static str,
    /// The object, in the words of a finding.
    pub object: String,
    /// The function that is hooked, if it is one's.
    pub function: Option<String>,
    /// What the pointer leads to.
    pub target: u64,
    /// Who owns that; `None` if nobody does.
    pub owner: Option<String>,
}

/// The hooks of one walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Those that lead out of the kernel's image.
    pub hooks: Vec<Hook>,
    /// Number of those that lead into it.
    pub own: u64,
    /// Whether each list was walked to its end.
    pub is_complete: bool,
}

/// Walks over all hooks once.
///
/// # Errors
///
/// [`ProfileError`] if the profile lacks something that the walk needs.
pub fn list<M: KernelMemory>(kernel: &Kernel<'_, M>) -> Result<Hooks, ProfileError> {
    let mut check = HookCheck::make(kernel.profile, 0)?;
    let mut all = Hooks { is_complete: true, ..Hooks::default() };
    let Some(mut index) = check.owners.take() else { return Ok(all) };
    while !index.advance(kernel) {}
    let mut late = u32::MAX;
    for source in check.sources.iter().filter(|source| !source.is_for_plans()) {
        let (mut at, mut parts) = (Some(Cursor::default()), 0);
        while let Some(part) = at {
            let mut seen = Vec::new();
            at = source.visit(kernel, part, &mut |hook| seen.push(hook));
            for hook in seen.into_iter().filter(|hook| hook.value != 0) {
                let hook = match hook.target {
                    Target::Data => hook,
                    _ => source::Hook { value: check.text.leads(kernel, hook.value), ..hook },
                };
                let owned = owned(kernel, &index, &check.text, &hook, &mut late);
                if owned == Owned::ByKernel {
                    all.own += 1;
                    continue;
                }
                let function = match hook.target {
                    Target::Hooks(function) => Some(owner::symbol(kernel, function)),
                    _ => None,
                };
                let owner = match owned {
                    Owned::ByNobody => None,
                    _ => index
                        .name(kernel, hook.value)
                        .or_else(|| owner::outside(kernel, index.owners(), hook.value)),
                };
                all.hooks.push(Hook {
                    kind: source.what().trim_start_matches("hidden "),
                    object: source.symbol(kernel, hook.object),
                    function,
                    target: hook.value,
                    owner,
                });
            }
            parts = if at.is_some_and(|next| next.list == part.list) { parts + 1 } else { 0 };
            if parts == MAX_PARTS {
                (all.is_complete, parts) = (false, 0);
                at = at.map(Cursor::next_list);
            }
        }
    }
    Ok(all)
}
