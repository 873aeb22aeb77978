//! Handlers of input devices, which see each key (`include/linux/input.h` of Linux).

use super::source::{offset, see_functions, visit_list, Cursor, Hook, Source};
use super::stubs;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::List;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// Bytes of the longest name that is shown.
const NAME_BYTES: usize = 32;
const FUNCTIONS: [&str; 7] =
    ["connect", "disconnect", "event", "events", "filter", "match", "start"];

#[derive(Debug)]
pub(super) struct Inputs {
    list: List,
    name: u64,
    functions: Vec<u64>,
    /// Those that make a device's handle, start it, and take it back.
    of_handles: [u64; 3],
}

impl Source for Inputs {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("input_handler", "connect", Optional),
            ("input_handler", "disconnect", Optional),
            ("input_handler", "event", Optional),
            ("input_handler", "events", Optional),
            ("input_handler", "filter", Optional),
            ("input_handler", "match", Optional),
            ("input_handler", "name", Optional),
            ("input_handler", "node", Optional),
            ("input_handler", "start", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden input handler";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let handler = |member| offset(profile, "input_handler", member);
        let list = List { head: profile.symbol("input_handler_list")?, link: handler("node")? };
        let functions = FUNCTIONS.into_iter().map(handler).collect::<Option<_>>()?;
        let of_handles = [handler("connect")?, handler("disconnect")?, handler("start")?];
        Some(Self { list, name: handler("name")?, functions, of_handles })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let next = visit_list(kernel, self.list.head, at, |link| {
            let object = link.wrapping_sub(self.list.link);
            see_functions(kernel, object, self.functions.iter().copied(), see);
        });
        Some(next).filter(|next| next.list == 0)
    }

    fn restoration<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        before: u64,
    ) -> Result<Vec<RepairWord>, &'static str> {
        if self.of_handles.iter().any(|at| hook.slot == hook.object.wrapping_add(*at)) {
            return Err("one function may not take back what the other one made");
        }
        stubs::pointer(kernel, hook.slot, hook.value, before)
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        let name = kernel.u64(object.wrapping_add(self.name));
        let name = name.and_then(|name| kernel.c_string(name, NAME_BYTES));
        format!("input handler {}", name.unwrap_or_default())
    }
}
