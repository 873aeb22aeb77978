//! Direct calls: at its entry, a function calls somebody's code without Linux's own in between
//! (`register_ftrace_direct` in `kernel/trace/ftrace.c` of Linux).
//!
//! Linux looks a function up in one table. If it has other users of ftrace, newer kernels call what the user names.

use super::filter::Layout;
use super::source::{offset, visit_some_of_chain, Cursor, Hook, Source};
use super::tracers::{Tracers, MAX_LIST, USERS};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::string::String;

/// Entries, and beginnings of lists, that are visited in one part of the table.
const MOVES: u32 = 64;

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
            let entries = table.iter().flat_map(|table| table.entries_beside(function));
            let is_same = |(entry, of)| of == function && code(entry) == Some(hook.value);
            if !entries.take(MAX_LIST).any(is_same) {
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

    /// First the users, then the entries of the table, whose lists are bounded together. The place there is the number
    /// of the lists that were begun.
    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        match at.list {
            0 => {
                let users = self.tracers.users();
                let see = |user| self.visit_user(kernel, user, see);
                return Some(visit_some_of_chain(kernel, users, at, USERS, see));
            }
            1 => {}
            _ => return None,
        }
        let table = self.table.table(kernel, kernel.u64(self.pointer)?)?;
        let Cursor { mut link, mut inner, .. } = at;
        for _ in 0..MOVES {
            let next = if link != 0 {
                let (entry, function) = table.entry(link);
                let hook = Hook::code(kernel, entry, self.code);
                hook.into_iter().for_each(|hook| see(hook.on(function)));
                link.wrapping_add(table.next())
            } else if inner < table.lists() {
                inner += 1;
                table.head(inner - 1)
            } else {
                return None;
            };
            link = kernel.u64(next).unwrap_or(0);
        }
        Some(Cursor { link, inner, ..at })
    }

    fn symbol<M: KernelMemory>(&self, _kernel: &Kernel<'_, M>, _object: u64) -> String {
        "direct call".into()
    }
}
