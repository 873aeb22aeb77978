//! What answers questions about sockets, such as those of `ss`, by family (`net/core/sock_diag.c` of Linux).

use super::source::{offset, see_functions, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;

/// Families (`AF_MAX` in Linux's `socket.h`).
const FAMILIES: u64 = 46;

#[derive(Debug)]
pub(super) struct Diagnoses {
    table: u64,
    functions: [u64; 3],
}

impl Source for Diagnoses {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("sock_diag_handler", "destroy", Optional),
            ("sock_diag_handler", "dump", Optional),
            ("sock_diag_handler", "get_info", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden answer about sockets";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let handler = |member| offset(profile, "sock_diag_handler", member);
        let functions = [handler("destroy")?, handler("dump")?, handler("get_info")?];
        Some(Self { table: profile.symbol("sock_diag_handlers")?, functions })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        _at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        for entry in (0..FAMILIES).map(|number| self.table + 8 * number) {
            let Some(object) = kernel.u64(entry).filter(|&object| object != 0) else { continue };
            // Linux replaces none by another one.
            Hook::data(kernel, entry, 0).into_iter().for_each(|hook| see(hook.fixed(0)));
            see_functions(kernel, object, self.functions, see);
        }
        None
    }
}
