//! The owner of an address.

use super::layout::Owners;
use super::walk;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use alloc::format;
use alloc::string::String;

/// Maximum size of a module or BPF image, in bytes.
const LARGEST: u64 = 1 << 30;

/// Prefix of the preferred symbol among those of a system call.
const PREFERRED: &str = "__x64_sys_";

/// `SYMBOL+0xOFFSET` if `address` lies in the kernel's image, else the address itself.
pub(super) fn symbol<M: KernelMemory>(kernel: &Kernel<'_, M>, address: u64) -> String {
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
pub(super) fn name<M: KernelMemory>(
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
pub(super) fn outside<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    owners: &Owners,
    address: u64,
) -> Option<String> {
    let within = |start: u64, bytes: u64| bytes <= LARGEST && address.wrapping_sub(start) < bytes;
    for module in walk::list(kernel, owners.modules) {
        let mut ranges = owners.module_ranges.iter().flatten().filter_map(|&(base, bytes)| {
            let start = kernel.u64(module.wrapping_add(base))?;
            Some((start, u64::from(kernel.u32(module.wrapping_add(bytes))?)))
        });
        if ranges.any(|(start, bytes)| within(start, bytes)) {
            let name = kernel.c_string(module.wrapping_add(owners.module_name), 56)?;
            return Some(format!("module {name}"));
        }
    }
    walk::list(kernel, owners.bpf?).find_map(|ksym| {
        let start = kernel.u64(ksym.wrapping_add(owners.bpf_start))?;
        let end = kernel.u64(ksym.wrapping_add(owners.bpf_end))?;
        within(start, end.wrapping_sub(start)).then_some(())?;
        Some(format!("bpf {}", kernel.c_string(ksym.wrapping_add(owners.bpf_name), 64)?))
    })
}
