//! The owner of an address: looked up in Linux's lists now, or in an [`OwnerIndex`] of executable memory.

mod index;
mod layout;

pub(crate) use index::{Kind, OwnerIndex};
pub(crate) use layout::{Owners, WANTS};

use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::walk;
use alloc::format;
use alloc::string::String;

/// Maximum size of a module or BPF image, in bytes.
const LARGEST: u64 = 1 << 30;

/// End of the addresses of modules.
const MODULES_END: u64 = 0xffff_ffff_ff00_0000;

/// Flag of a live patch among a module's taints (`TAINT_LIVEPATCH` in Linux's `panic.h`).
pub(crate) const TAINT_LIVE_PATCH: u64 = 1 << 15;

/// Prefix of the preferred symbol among those of a system call.
const PREFERRED: &str = "__x64_sys_";

/// `SYMBOL+0xOFFSET` if `address` lies in the kernel's image, else the address itself.
pub(crate) fn symbol<M: KernelMemory>(kernel: &Kernel<'_, M>, address: u64) -> String {
    let Some((name, offset)) = kernel.profile.nearest(address) else {
        return format!("{address:#x}");
    };
    let start = address - offset;
    let mut same = kernel.profile.symbols_from(start).take_while(|symbol| symbol.address == start);
    let name =
        same.find(|symbol| symbol.name.starts_with(PREFERRED)).map_or(name, |symbol| symbol.name);
    match offset {
        0 => name.into(),
        _ => format!("{name}+{offset:#x}"),
    }
}

/// The symbol, module or BPF program that `address` belongs to.
pub(crate) fn name<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    owners: &Owners,
    address: u64,
) -> Option<String> {
    if kernel.in_image(address) {
        return Some(symbol(kernel, address));
    }
    outside(kernel, owners, address)
}

/// The module or BPF program that `address` belongs to.
pub(crate) fn outside<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    owners: &Owners,
    address: u64,
) -> Option<String> {
    let module = walk::entries(kernel, owners.modules)
        .find(|&module| contains(code_of_module(kernel, owners, module), address));
    if let Some(module) = module {
        let name = kernel.c_string(module.wrapping_add(owners.module_name), 56)?;
        return Some(format!("module {name}"));
    }
    let program = walk::entries(kernel, owners.bpf?)
        .find(|&ksym| contains(code_of_program(kernel, owners, ksym), address))?;
    let name = kernel.c_string(program.wrapping_add(owners.bpf_name), 64)?;
    Some(format!("bpf {name}"))
}

/// Whether `address` belongs to a listed module that Linux marks as a live patch.
pub(crate) fn is_live_patch<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    owners: &Owners,
    address: u64,
) -> bool {
    owners.module_taints.is_some_and(|taints| {
        walk::entries(kernel, owners.modules)
            .filter(|module| {
                let taints = kernel.u64(module.wrapping_add(taints));
                taints.is_some_and(|taints| taints & TAINT_LIVE_PATCH != 0)
            })
            .any(|module| contains(code_of_module(kernel, owners, module), address))
    })
}

/// Whether `address` belongs to a listed module that stays, or to a listed BPF program.
pub(crate) fn stays<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    owners: &Owners,
    address: u64,
) -> bool {
    let goes = |module: u64| {
        owners.module_state.is_some_and(|(offset, going)| {
            kernel.u32(module.wrapping_add(offset)).map(u64::from) == Some(going)
        })
    };
    let module = walk::entries(kernel, owners.modules)
        .find(|&module| contains(code_of_module(kernel, owners, module), address));
    match module {
        Some(module) => !goes(module),
        None => outside(kernel, owners, address).is_some(),
    }
}

fn contains(mut ranges: impl Iterator<Item = (u64, u64)>, address: u64) -> bool {
    ranges.any(|(start, end)| (start..end).contains(&address))
}

/// Start and end of each part of `module`.
pub(crate) fn code_of_module<'k, M: KernelMemory>(
    kernel: &'k Kernel<'_, M>,
    owners: &'k Owners,
    module: u64,
) -> impl Iterator<Item = (u64, u64)> + 'k {
    owners.module_ranges.iter().flatten().filter_map(move |&(base, bytes)| {
        let bytes = u64::from(kernel.u32(module.wrapping_add(bytes))?);
        let start = kernel.u64(module.wrapping_add(base)).filter(|_| bytes > 0)?;
        range(start, bytes)
    })
}

/// Start and end of the BPF program with symbol `ksym`.
pub(crate) fn code_of_program<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    owners: &Owners,
    ksym: u64,
) -> impl Iterator<Item = (u64, u64)> {
    let word = |offset: u64| kernel.u64(ksym.wrapping_add(offset));
    let bounds = word(owners.bpf_start).zip(word(owners.bpf_end));
    bounds.and_then(|(start, end)| range(start, end.wrapping_sub(start))).into_iter()
}

fn range(start: u64, bytes: u64) -> Option<(u64, u64)> {
    Some((start, start.checked_add(bytes).filter(|_| bytes <= LARGEST)?))
}

/// The owner of `address` in the words of a finding, by the last reading of `index`.
pub(crate) fn describe<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    index: Option<&OwnerIndex>,
    address: u64,
) -> String {
    if kernel.in_image(address) {
        return symbol(kernel, address);
    }
    let listed = |index: &OwnerIndex| {
        // The index has code only.
        index.name(kernel, address).or_else(|| outside(kernel, index.owners(), address))
    };
    index.and_then(listed).unwrap_or_else(|| unlisted(address))
}

/// The words for an address that belongs to nobody.
pub(crate) fn unlisted(address: u64) -> String {
    format!("{address:#x} in no listed module")
}

/// Whether `address` is outside the image, where Linux puts the code of modules, BPF programs and trampolines
/// (`MODULES_VADDR` to `MODULES_END` in Linux's `pgtable_64_types.h`).
pub(crate) fn is_module_space<M: KernelMemory>(kernel: &Kernel<'_, M>, address: u64) -> bool {
    (kernel.profile.image_end()..MODULES_END).contains(&address)
}
