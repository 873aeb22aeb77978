//! Breakpoints of the processor that code in the kernel has set (`kernel/events/hw_breakpoint.c` of Linux).

use super::source::{offset, Cursor, Hook, Source};
use super::stubs::Stubs;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::Areas;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// Breakpoints of a CPU (`HBP_NUM` in Linux's `hw_breakpoint.h`).
const BREAKPOINTS: u64 = 4;
/// The kind that waits for an instruction (`HW_BREAKPOINT_X` there).
const OF_CODE: u32 = 4;

#[derive(Debug)]
pub(super) struct Breakpoints {
    areas: Areas,
    /// Offset of the pointers to the CPU's events in an area.
    table: u64,
    handler: u64,
    address: u64,
    kind: u64,
}

impl Source for Breakpoints {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("perf_event", "attr", Optional),
            ("perf_event", "overflow_handler", Optional),
            ("perf_event_attr", "bp_addr", Optional),
            ("perf_event_attr", "bp_type", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden breakpoint handler";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let attributes = offset(profile, "perf_event", "attr")?;
        let attribute =
            |member| Some(attributes.wrapping_add(offset(profile, "perf_event_attr", member)?));
        Some(Self {
            areas: Areas::new(profile)?,
            table: profile.symbol("bp_per_reg")?,
            handler: offset(profile, "perf_event", "overflow_handler")?,
            address: attribute("bp_addr")?,
            kind: attribute("bp_type")?,
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let table = self.areas.of(kernel, at.list)?.wrapping_add(self.table);
        for number in 0..BREAKPOINTS {
            let event = kernel.u64(table.wrapping_add(8 * number)).filter(|&event| event != 0);
            let hook = event.and_then(|event| Hook::code(kernel, event, self.handler));
            let Some(hook) = hook else { continue };
            let kind = kernel.u32(hook.object.wrapping_add(self.kind));
            let address = kernel.u64(hook.object.wrapping_add(self.address));
            let function = address.filter(|&at| at != 0 && kind == Some(OF_CODE));
            see(function.map_or(hook, |function| hook.on(function)));
        }
        Some(at.next_list())
    }

    fn removal<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        stubs: &Stubs,
    ) -> Result<Vec<RepairWord>, &'static str> {
        // Linux lets the CPU go on itself, and the handler returns nothing.
        stubs.nothing(kernel, hook)
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        let address = kernel.u64(object.wrapping_add(self.address)).unwrap_or(0);
        format!("breakpoint at {}", owner::symbol(kernel, address))
    }
}
