//! Direct calls: at its entry, a function calls somebody's code without Linux's own in between
//! (`register_ftrace_direct` in `kernel/trace/ftrace.c` of Linux).
//!
//! Linux looks a function up in one table. If it has other users of ftrace, newer kernels call what the user names.

use super::filter::Layout;
use super::source::{offset, visit_chain, visit_some_of_chain, Cursor, Hook, Source};
use super::tracers::{Tracers, USERS};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::string::String;

#[derive(Debug)]
pub(super) struct Directs {
    tracers: Tracers,
    /// Linux's pointer to the table, and the table's form.
    pointer: u64,
    table: Layout,
    /// Offset of the pointer to the code in an entry; in a user, where there is one.
    code: u64,
    of_user: Option<u64>,
}

impl Directs {
    /// Sees what the user names, unless the table has the same.
    fn visit_user<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        user: u64,
        see: &mut dyn FnMut(Hook),
    ) {
        let hook = self.of_user.and_then(|at| Hook::code(kernel, user, at));
        let Some(hook) = hook.filter(|hook| hook.value != 0) else { return };
        let pointer = kernel.u64(self.pointer).unwrap_or(0);
        let table = self.table.table(kernel, pointer);
        let code = |entry: u64| kernel.u64(entry.wrapping_add(self.code));
        self.tracers.functions(kernel, user, |function| {
            let mut entries = table.iter().flat_map(|table| table.entries_beside(function));
            let is_same = |(entry, of)| of == function && code(entry) == Some(hook.value);
            if !entries.any(is_same) {
                see(hook.on(function));
            }
        });
    }
}

impl Source for Directs {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("ftrace_func_entry", "direct", Optional),
            ("ftrace_ops", "direct_call", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden direct call";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        Some(Self {
            tracers: Tracers::new(profile)?,
            pointer: profile.symbol("direct_functions")?,
            table: Layout::new(profile)?,
            code: offset(profile, "ftrace_func_entry", "direct")?,
            of_user: offset(profile, "ftrace_ops", "direct_call"),
        })
    }

    /// The first list is that of the users, the others are those of the table.
    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let Some(number) = at.list.checked_sub(1) else {
            let users = self.tracers.users();
            let see = |user| self.visit_user(kernel, user, see);
            return Some(visit_some_of_chain(kernel, users, at, USERS, see));
        };
        let pointer = kernel.u64(self.pointer)?;
        let table = self.table.table(kernel, pointer).filter(|table| number < table.lists())?;
        Some(visit_chain(kernel, table.head(number), table.next(), at, |link| {
            let (entry, function) = table.entry(link);
            Hook::code(kernel, entry, self.code)
                .into_iter()
                .for_each(|hook| see(hook.on(function)));
        }))
    }

    fn symbol<M: KernelMemory>(&self, _kernel: &Kernel<'_, M>, _object: u64) -> String {
        "direct call".into()
    }
}
