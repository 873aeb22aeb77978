//! Live patches: functions that Linux runs in place of others (`kernel/livepatch/patch.c` of Linux).
//!
//! Each patched function has a user of ftrace of Linux's own, which goes on with the latest of its replacements. While
//! processes change over, some still run the one before.

use super::source::{extent, offset, visit_some_of_chain, Cursor, Hook, Source, Target};
use super::stubs::{self, Stubs, NO_STEP};
use super::tracers::{callee, Tracers, CALL_BYTES, USERS};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{entries, List};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use kyozon_abi::layer::RepairWord;

/// Replacements of one function that Linux can run, the latest first.
const REPLACEMENTS: usize = 2;

#[derive(Debug)]
pub(super) struct LivePatches {
    tracers: Tracers,
    /// Linux's function that goes on with a replacement.
    handler: Range<u64>,
    /// Offsets in what is kept of a patched function: the user of ftrace, and the list of replacements.
    user: u64,
    stack: u64,
    /// Offsets in a replacement: the link of that list, and the pointer to the code.
    link: u64,
    code: u64,
}

impl Source for LivePatches {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("klp_func", "new_func", Optional),
            ("klp_func", "stack_node", Optional),
            ("klp_ops", "fops", Optional),
            ("klp_ops", "func_stack", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden live patch";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        Some(Self {
            tracers: Tracers::new(profile)?,
            handler: extent(profile, "klp_ftrace_handler")?,
            user: offset(profile, "klp_ops", "fops")?,
            stack: offset(profile, "klp_ops", "func_stack")?,
            link: offset(profile, "klp_func", "stack_node")?,
            code: offset(profile, "klp_func", "new_func")?,
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let next = visit_some_of_chain(kernel, self.tracers.users(), at, USERS, |user| {
            if !self.tracers.called(kernel, user).any(|it| self.handler.contains(&it.value)) {
                return;
            }
            let head = user.wrapping_sub(self.user).wrapping_add(self.stack);
            let replacements = entries(kernel, List { head, link: self.link });
            let mut hooks = [None; REPLACEMENTS];
            for (hook, replacement) in hooks.iter_mut().zip(replacements) {
                *hook = Hook::code(kernel, replacement, self.code);
            }
            self.tracers.functions(kernel, user, |function| {
                hooks.iter().flatten().for_each(|hook| see(hook.on(function)));
            });
        });
        Some(next).filter(|next| next.list == 0)
    }

    /// The function itself is its replacement: it goes on behind its call of ftrace.
    fn removal<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        _stubs: &Stubs,
    ) -> Result<Vec<RepairWord>, &'static str> {
        let Target::Hooks(entry) = hook.target else { return Err(NO_STEP) };
        callee(kernel, entry).filter(|&called| called != 0).ok_or(NO_STEP)?;
        stubs::lead(kernel, hook, Some(entry.wrapping_add(CALL_BYTES)))
    }

    fn symbol<M: KernelMemory>(&self, _kernel: &Kernel<'_, M>, _object: u64) -> String {
        "live patch".into()
    }
}
