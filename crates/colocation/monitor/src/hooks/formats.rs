//! Formats of executable files, which see every `execve` (`include/linux/binfmts.h` of Linux).

use super::source::{offset, see_functions, visit_list, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::List;

#[derive(Debug)]
pub(super) struct Formats {
    list: List,
    functions: [u64; 2],
}

impl Source for Formats {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("linux_binfmt", "core_dump", Optional),
            ("linux_binfmt", "lh", Optional),
            ("linux_binfmt", "load_binary", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden binary format";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let format = |member| offset(profile, "linux_binfmt", member);
        Some(Self {
            list: List { head: profile.symbol("formats")?, link: format("lh")? },
            functions: [format("load_binary")?, format("core_dump")?],
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let next = visit_list(kernel, self.list.head, at, |link| {
            let object = link.wrapping_sub(self.list.link);
            see_functions(kernel, object, self.functions, see);
        });
        Some(next).filter(|next| next.list == 0)
    }
}
