//! Line disciplines, which see what is typed (`include/linux/tty_ldisc.h` of Linux).

use super::source::{offset, see_functions, Cursor, Hook, Source};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::format;
use alloc::string::String;
use core::ops::Range;

/// Disciplines (`NR_LDISCS` in Linux's `tty.h`).
const DISCIPLINES: u64 = 30;
/// Those that the kernel registers itself and never replaces (`N_TTY` and `N_NULL`); a module can give up its own.
const OWN: [u64; 2] = [0, 27];
/// Bytes of the longest name that is shown.
const NAME_BYTES: usize = 32;

#[derive(Debug)]
pub(super) struct Terminals {
    table: u64,
    name: u64,
    /// Offsets of a discipline's functions.
    functions: Range<u64>,
}

impl Source for Terminals {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("tty_ldisc_ops", "name", Optional),
            ("tty_ldisc_ops", "open", Optional),
            ("tty_ldisc_ops", "owner", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden terminal discipline";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let operations = |member| offset(profile, "tty_ldisc_ops", member);
        Some(Self {
            table: profile.symbol("tty_ldiscs")?,
            name: operations("name")?,
            functions: operations("open")?..operations("owner")?,
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        _at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        for number in 0..DISCIPLINES {
            let entry = self.table + 8 * number;
            let Some(object) = kernel.u64(entry).filter(|&object| object != 0) else { continue };
            let hook = Hook::data(kernel, entry, 0);
            let is_own = OWN.contains(&number);
            hook.into_iter().for_each(|hook| see(if is_own { hook.fixed(0) } else { hook }));
            see_functions(kernel, object, self.functions.clone().step_by(8), see);
        }
        None
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        let is_entry = (self.table..self.table + 8 * DISCIPLINES).contains(&object);
        let object = if is_entry { kernel.u64(object).unwrap_or(0) } else { object };
        let name = kernel.u64(object.wrapping_add(self.name));
        let name = name.and_then(|name| kernel.c_string(name, NAME_BYTES));
        format!("line discipline {}", name.unwrap_or_default())
    }
}
