//! A virtual machine without any code at CPL 0.
//!
//! The guest begins in 64-bit mode at CPL 3. Descriptors, task state and page tables are the tender's; the first
//! three are mapped as supervisor pages, the page tables not at all. The gates of all exceptions lead to code at CPL 3,
//! one `out` each: the tender learns the vector from the port and the rest from the frame on the exception stack.
//!
//! The backend does not rely on behaviour that differs between hosts:
//!
//! - KVM without hardware virtualization drops IOPL, and some emulators ignore the TSS bitmap: both allow the ports.
//! - After an exit by `out`, `rip` is either at the instruction or behind it.
//! - CPUID may not be maskable.

mod cpu;
mod cpuid;
mod pages;
mod tables;

use crate::backend::{Mapping, Space};
use crate::error::{bail, Context, Result};
use crate::layout::{system, Layout, LARGE_PAGE, PAGE, SYSTEM_BYTES};
use crate::memory::{system_address, Block, Memory};
use cpuid::Processor;
use kvm_bindings::{
    kvm_enable_cap, kvm_userspace_memory_region, KVM_CAP_SPLIT_IRQCHIP, KVM_MEM_READONLY,
};
use kvm_ioctls::{Cap, IoEventAddress, Kvm, VcpuFd, VmFd};
use kyozon_abi::unikernel::*;
use pages::{Access, PageTables, BLOCK_BASE};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use vm_memory::VolatileMemory;
use vmm_sys_util::eventfd::EventFd;

pub use cpu::KvmCpu;
pub use tables::{DOOR, DOORBELL};

/// First memory slot of regions; slot 0 is the guest's block, at [`BLOCK_BASE`]. A region's guest-physical address
/// equals its virtual address.
const REGION_SLOT: u32 = 1;
/// Slot of the memory that a spawned peer shares with its family.
const SHARED_SLOT: u32 = REGION_SLOT + MAX_REGIONS as u32;
/// Guest-physical address of the family's block. The slot leaves out the tender's pages at its beginning.
const SHARED_BASE: u64 = 0x20_0000_0000;
/// Minimum heap size in bytes for large pages of the host. Small programs stay in the beginning of the heap, which
/// keeps small pages.
const MIN_LARGE_PAGE_HEAP: u64 = 16 << 20;

/// Attempts to create a virtual machine if a signal is pending.
const MAX_ATTEMPTS: usize = 5;

/// `/dev/kvm`, opened once per group.
pub struct Host {
    kvm: Kvm,
    processor: Processor,
}

impl Host {
    /// Opens `/dev/kvm` and reads the host's CPUID.
    ///
    /// # Errors
    ///
    /// `/dev/kvm` cannot be opened or lacks a required feature.
    pub fn open() -> Result<Self> {
        let kvm = Kvm::new().map_err(|e| std::io::Error::from_raw_os_error(e.errno()));
        let kvm = kvm.context("cannot open /dev/kvm")?;
        let version = kvm.get_api_version();
        if version != 12 {
            bail!(
                Backend,
                "/dev/kvm has interface version {version} instead of 12: run another Linux kernel"
            );
        }
        if !kvm.check_extension(Cap::SyncRegs) {
            bail!(Backend, "/dev/kvm lacks KVM_CAP_SYNC_REGS: run Linux 4.17 or newer");
        }
        if !kvm.check_extension(Cap::ReadonlyMem) {
            bail!(Backend, "/dev/kvm lacks KVM_CAP_READONLY_MEM: run another Linux kernel");
        }
        Ok(Self { kvm, processor: Processor::new()? })
    }

    fn create_vm(&self) -> Result<VmFd> {
        let mut attempts = MAX_ATTEMPTS;
        loop {
            attempts -= 1;
            match self.kvm.create_vm() {
                // A signal is pending. If it is to end a guest, that guest ends later.
                Err(error) if error.errno() == libc::EINTR && attempts > 0 => {}
                result => return result.context("KVM_CREATE_VM"),
            }
        }
    }

    /// Creates a machine with one processor, without memory and register state.
    ///
    /// # Errors
    ///
    /// KVM refuses one of the requests.
    pub fn create_bare(&self) -> Result<BareMachine> {
        let vm = self.create_vm()?;
        // The guest has no use for a local APIC. But for each processor without one, Linux patches its own code, which
        // synchronizes all CPUs (arch/x86/kvm/lapic.c, `kvm_has_noapic_vcpu`). For processors with a software-disabled
        // APIC it does so once for all that are created within a second (`apic_sw_disabled`). The split irqchip adds no
        // other interrupt controller.
        let apic = kvm_enable_cap { cap: KVM_CAP_SPLIT_IRQCHIP, ..Default::default() };
        match vm.enable_cap(&apic) {
            // The capability is optional.
            Err(error) if error.errno() == libc::EINVAL => {}
            result => result.context("KVM_ENABLE_CAP")?,
        }
        let cpu = vm.create_vcpu(0).context("KVM_CREATE_VCPU")?;
        cpu::prepare(&cpu, &self.processor)?;
        Ok(BareMachine { vm, cpu })
    }
}

/// A machine without memory and register state. Creating it is the slowest part of a start, so it can be prepared.
pub struct BareMachine {
    vm: VmFd,
    cpu: VcpuFd,
}

/// The address space of a virtual machine.
pub struct KvmSpace {
    vm: VmFd,
    tables: Mutex<PageTables>,
    features: u64,
    /// Bits of the doorbells that KVM itself rings: first word peers, second word queues.
    doorbells: [AtomicU64; 2],
}

impl KvmSpace {
    /// Gives a bare machine its memory and initial registers.
    ///
    /// # Errors
    ///
    /// KVM refuses the memory, or the page tables need more room than they have.
    pub fn new(host: &Host, bare: BareMachine, memory: &Memory) -> Result<(Arc<Self>, KvmCpu)> {
        let BareMachine { vm, cpu } = bare;
        let mut tables = PageTables::new(memory.block.clone());
        map_system(&mut tables)?;
        map_pieces(&mut tables, memory)?;
        tables::fill(memory)?;
        set_slot(&vm, 0, BLOCK_BASE, &memory.block, true)?;
        if memory.is_spawned() {
            let (host, bytes) = (memory.shared.as_ptr() as u64, memory.shared.size() as u64);
            let skip = SYSTEM_BYTES;
            set_slot_range(&vm, SHARED_SLOT, SHARED_BASE + skip, host + skip, bytes - skip, 0)?;
        } else {
            advise_large_pages(&memory.block, &memory.layout);
        }
        let cpu = KvmCpu::new(cpu, &host.processor, memory, tables.root());
        let features = FEATURE_REGIONS | host.processor.features;
        Ok((
            Arc::new(Self {
                vm,
                tables: Mutex::new(tables),
                features,
                doorbells: Default::default(),
            }),
            cpu,
        ))
    }
}

fn set_slot(vm: &VmFd, slot: u32, base: u64, block: &Block, write: bool) -> Result<()> {
    let flags = if write { 0 } else { KVM_MEM_READONLY };
    set_slot_range(vm, slot, base, block.as_ptr() as u64, block.size() as u64, flags)
}

/// Maps `bytes` bytes from the host address `host` at the guest-physical address `base`. With 0 bytes, KVM removes the
/// slot and every translation that it derived from it.
fn set_slot_range(
    vm: &VmFd,
    slot: u32,
    base: u64,
    host: u64,
    bytes: u64,
    flags: u32,
) -> Result<()> {
    let region = kvm_userspace_memory_region {
        slot,
        guest_phys_addr: base,
        memory_size: bytes,
        userspace_addr: host,
        flags,
    };
    // SAFETY: the block outlives the machine: a peer drops its space before its memory, and a group drops its peers
    // before its regions.
    unsafe { vm.set_user_memory_region(region) }.context("KVM_SET_USER_MEMORY_REGION")
}

fn map_system(tables: &mut PageTables) -> Result<()> {
    for (offset, bytes, access) in [
        (system::BOOT, PAGE, Access::Read),
        (system::CALL, PAGE, Access::Write),
        (system::PEERS, PAGE, Access::Read),
        (system::ARGUMENTS, system::ARGUMENTS_BYTES, Access::Read),
        (system::DOOR, 2 * PAGE, Access::Execute),
        (system::IDT, PAGE, Access::Hidden),
        (system::GDT, PAGE, Access::Hidden),
        (system::TSS, PAGE, Access::Hidden),
        (system::FAULT_STACK, PAGE, Access::Write),
    ] {
        tables.map(system_address(offset), BLOCK_BASE + offset, bytes, access)?;
    }
    Ok(())
}

fn map_pieces(tables: &mut PageTables, memory: &Memory) -> Result<()> {
    for piece in &memory.layout.pieces {
        let access = match (piece.write, piece.execute) {
            (true, _) => Access::Write,
            (_, true) => Access::Execute,
            _ => Access::Read,
        };
        let shared = memory.is_spawned() && !piece.private;
        let physical = piece.offset + if shared { SHARED_BASE } else { BLOCK_BASE };
        tables.map(piece.base, physical, piece.bytes, access)?;
    }
    Ok(())
}

/// Asks Linux to back a large heap with large pages. A failure is harmless.
fn advise_large_pages(block: &Block, layout: &Layout) {
    if layout.heap.bytes < MIN_LARGE_PAGE_HEAP {
        return;
    }
    let bytes = (layout.heap.bytes - LARGE_PAGE) as usize;
    if let Ok(slice) = block.get_slice((SYSTEM_BYTES + LARGE_PAGE) as usize, bytes) {
        // SAFETY: the call gives advice about this block's pages and does not change their content.
        unsafe { libc::madvise(slice.ptr_guard_mut().as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

impl Space for KvmSpace {
    fn features(&self) -> u64 {
        self.features
    }

    /// The caller registers a doorbell only when the guest first rings it: one registered doorbell delays the end of
    /// the machine by milliseconds.
    fn doorbell(&self, number: usize, bell: &EventFd) -> Result<()> {
        let Some(registered) = self.doorbells.get(number / 64) else { return Ok(()) };
        if registered.fetch_or(1 << (number % 64), Ordering::Relaxed) >> (number % 64) & 1 == 0 {
            let port = IoEventAddress::Pio(u64::from(PORT_DOORBELL));
            self.vm.register_ioevent(bell, &port, number as u32).context("KVM_IOEVENTFD")?;
        }
        Ok(())
    }

    fn map(&self, mapping: &Mapping) -> Result<()> {
        let mut tables = self.tables.lock().unwrap_or_else(|e| e.into_inner());
        let Mapping { number, address, bytes, .. } = *mapping;
        // The guest's page tables forbid writes, too. The slot forbids them if those tables were wrong.
        set_slot(&self.vm, REGION_SLOT + number as u32, address, &mapping.block, mapping.write)?;
        let access = if mapping.write { Access::Write } else { Access::Read };
        tables.map(address, address, PAGE, Access::Read)?;
        tables.map(address + PAGE, address + PAGE, bytes - PAGE, access)
    }

    fn unmap(&self, mapping: &Mapping) -> Result<bool> {
        let mut tables = self.tables.lock().unwrap_or_else(|e| e.into_inner());
        let Mapping { number, address, bytes, .. } = *mapping;
        tables.unmap(address, bytes)?;
        // By removing the slot KVM flushes, on every processor, the translations derived from the old tables. After
        // the return the guest cannot reach the region.
        set_slot_range(&self.vm, REGION_SLOT + number as u32, address, 0, 0, 0)?;
        Ok(true)
    }
}

const _: () = assert!(SYSTEM_BYTES.is_multiple_of(LARGE_PAGE));
const _: () = assert!(BLOCK_BASE + SYSTEM_BYTES + GUEST_MAX_MEMORY <= SHARED_BASE);
const _: () = assert!(SHARED_BASE + SYSTEM_BYTES + GUEST_MAX_MEMORY <= REGION_BASE);

#[cfg(test)]
mod tests;
