//! The tracer of calls and returns: functions that Linux calls at the entries of others and when those return
//! (`kernel/trace/fgraph.c` of Linux).

use super::source::{offset, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Users of newer kernels (`FGRAPH_ARRAY_SIZE`).
const USERS: u64 = 16;
/// Linux's pointers to the functions of the only user of older kernels. The first leads to a filter in front of the
/// second.
const POINTERS: [&str; 3] = ["ftrace_graph_entry", "__ftrace_graph_entry", "ftrace_graph_return"];

#[derive(Debug)]
pub(super) enum Graphs {
    One([u64; POINTERS.len()]),
    /// The pointers to the users, and the offsets of the functions in one.
    Several(u64, Vec<u64>),
}

impl Source for Graphs {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("fgraph_ops", "entryfunc", Optional),
            ("fgraph_ops", "retfunc", Optional),
            ("fgraph_ops", "saved_func", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden graph tracer";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let Some(users) = profile.symbol("fgraph_array") else {
            let [one, two, three] = POINTERS.map(|name| profile.symbol(name));
            return Some(Self::One([one?, two?, three?]));
        };
        let function = |member| offset(profile, "fgraph_ops", member);
        let mut functions = vec![function("entryfunc")?, function("retfunc")?];
        // While only some processes are traced, Linux's own filter is in front of this one.
        functions.extend(function("saved_func"));
        Some(Self::Several(users, functions))
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        _at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let mut see_pointer = |object, offset| {
            // Each can be called for every function.
            let hook = Hook::code(kernel, object, offset);
            hook.into_iter().for_each(|hook| see(hook.on(0)));
        };
        match self {
            Self::One(pointers) => pointers.iter().for_each(|&pointer| see_pointer(pointer, 0)),
            Self::Several(users, functions) => {
                let users = (0..USERS).filter_map(|number| kernel.u64(users + 8 * number));
                for user in users.filter(|&user| user != 0) {
                    functions.iter().for_each(|&function| see_pointer(user, function));
                }
            }
        }
        None
    }

    fn symbol<M: KernelMemory>(&self, _kernel: &Kernel<'_, M>, _object: u64) -> String {
        "graph tracer".into()
    }
}
