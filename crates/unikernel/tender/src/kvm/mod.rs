//! A virtual machine without any code at CPL 0.
//!
//! The guest begins in 64-bit mode at CPL 3. Descriptors, task state and page tables are the tender's; the first
//! three are mapped for the processor alone, the last not at all. The gates of all exceptions lead to code at CPL 3,
//! one `out` each: the tender learns the vector from the port and the rest from the frame on a stack of its own.
//!
//! What differs between hosts, and is therefore not relied on: IOPL is dropped where KVM has no hardware
//! virtualization, and TSS bitmaps are not looked at by some emulators, so both allow ports; `rip` at an exit by
//! `out` is before or behind the instruction; CPUID may not be maskable.

mod cpu;
mod cpuid;
mod pages;
mod tables;

use crate::backend::{Mapping, Space};
use crate::error::{bail, Context, Result};
use crate::layout::{system, Layout, LARGE_PAGE, PAGE, SYSTEM_BYTES};
use crate::memory::{system_address, Block, Memory};
use cpuid::Processor;
use kvm_bindings::{kvm_enable_cap, kvm_userspace_memory_region, KVM_CAP_SPLIT_IRQCHIP};
use kvm_ioctls::{Cap, IoEventAddress, Kvm, VcpuFd, VmFd};
use kyozon_abi::unikernel::*;
use pages::{PageTables, Right, BLOCK_BASE};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use vm_memory::VolatileMemory;
use vmm_sys_util::eventfd::EventFd;

pub use cpu::KvmCpu;
pub use tables::{DOOR, DOORBELL};

/// Memory slots: the guest's block, at [`BLOCK_BASE`], and from here on regions, whose virtual addresses are physical
/// ones, too.
const REGION_SLOT: u32 = 1;
/// The slot of what a spawned peer shares with its family, and the physical address of its family's block, of which
/// the tender's pages are left out.
const SHARED_SLOT: u32 = REGION_SLOT + MAX_REGIONS as u32;
const SHARED_BASE: u64 = 0x20_0000_0000;
/// A heap of this many bytes is worth large pages of the host, behind its beginning, which small programs stay in.
const DENSE_HEAP: u64 = 16 << 20;

/// How often KVM is asked for a machine, where a signal comes meanwhile.
const TRIES: usize = 5;

/// `/dev/kvm`, opened once for a group.
pub struct Host {
    kvm: Kvm,
    processor: Processor,
}

impl Host {
    /// Opens it.
    pub fn open() -> Result<Self> {
        let kvm = Kvm::new().map_err(|e| std::io::Error::from_raw_os_error(e.errno()));
        let kvm = kvm.context("cannot open /dev/kvm")?;
        let version = kvm.get_api_version();
        if version != 12 {
            bail!(Backend, "/dev/kvm speaks version {version} of its interface, not 12");
        }
        if !kvm.check_extension(Cap::SyncRegs) {
            bail!(
                Backend,
                "/dev/kvm does not take registers at an entry (Linux 4.17 and newer do)"
            );
        }
        Ok(Self { kvm, processor: Processor::new()? })
    }

    fn vm(&self) -> Result<VmFd> {
        let mut tries = TRIES;
        loop {
            tries -= 1;
            match self.kvm.create_vm() {
                // A signal is pending: the guest that it ends is ended later.
                Err(error) if error.errno() == libc::EINTR && tries > 0 => {}
                made => return made.context("KVM_CREATE_VM"),
            }
        }
    }

    /// A new machine.
    pub fn bare(&self) -> Result<Bare> {
        let vm = self.vm()?;
        // The guest has no use for a local APIC, but a processor without one makes Linux change its own code and tell
        // all CPUs, each time (arch/x86/kvm/lapic.c, `kvm_has_noapic_vcpu`); with one whose software has not enabled
        // it, once for all that come within a second (`apic_sw_disabled`). The other controllers stay out.
        let apic = kvm_enable_cap { cap: KVM_CAP_SPLIT_IRQCHIP, ..Default::default() };
        match vm.enable_cap(&apic) {
            // It works without.
            Err(error) if error.errno() == libc::EINVAL => {}
            done => done.context("KVM_ENABLE_CAP")?,
        }
        let cpu = vm.create_vcpu(0).context("KVM_CREATE_VCPU")?;
        cpu::prepare(&cpu, &self.processor)?;
        Ok(Bare { vm, cpu })
    }
}

/// A machine without memory and state: what takes KVM longest to make.
pub struct Bare {
    vm: VmFd,
    cpu: VcpuFd,
}

/// A virtual machine, but for its processor.
pub struct KvmSpace {
    vm: VmFd,
    tables: Mutex<PageTables>,
    features: u64,
    /// Doorbells that KVM rings: of peers, of queues.
    doorbells: [AtomicU64; 2],
}

impl KvmSpace {
    /// A machine with this memory, in which nothing has run.
    pub fn new(host: &Host, bare: Bare, memory: &Memory) -> Result<(Arc<Self>, KvmCpu)> {
        let Bare { vm, cpu } = bare;
        let mut tables = PageTables::new(memory.block.clone());
        map_system(&mut tables)?;
        map_own(&mut tables, memory)?;
        tables::fill(memory)?;
        set_slot(&vm, 0, BLOCK_BASE, &memory.block)?;
        if memory.is_spawned() {
            let (host, bytes) = (memory.shared.as_ptr() as u64, memory.shared.size() as u64);
            let left_out = SYSTEM_BYTES;
            slot_of(&vm, SHARED_SLOT, SHARED_BASE + left_out, host + left_out, bytes - left_out)?;
        } else {
            advise(&memory.block, &memory.layout);
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

fn set_slot(vm: &VmFd, slot: u32, base: u64, block: &Block) -> Result<()> {
    slot_of(vm, slot, base, block.as_ptr() as u64, block.size() as u64)
}

/// Sets a memory slot; of no bytes, it goes, and with it all that KVM remembers of mappings there.
fn slot_of(vm: &VmFd, slot: u32, base: u64, host: u64, bytes: u64) -> Result<()> {
    let region = kvm_userspace_memory_region {
        slot,
        guest_phys_addr: base,
        memory_size: bytes,
        userspace_addr: host,
        flags: 0,
    };
    // SAFETY: the block lives as long as the machine: a peer drops its space before its memory, a group its peers
    // before its regions.
    unsafe { vm.set_user_memory_region(region) }.context("KVM_SET_USER_MEMORY_REGION")
}

fn map_system(tables: &mut PageTables) -> Result<()> {
    for (offset, bytes, right) in [
        (system::BOOT, PAGE, Right::Read),
        (system::CALL, PAGE, Right::Write),
        (system::ARGUMENTS, system::ARGUMENTS_BYTES, Right::Read),
        (system::DOOR, 2 * PAGE, Right::Execute),
        (system::IDT, PAGE, Right::Hidden),
        (system::GDT, PAGE, Right::Hidden),
        (system::TSS, PAGE, Right::Hidden),
        (system::FAULT_STACK, PAGE, Right::Write),
    ] {
        tables.map(system_address(offset), BLOCK_BASE + offset, bytes, right)?;
    }
    Ok(())
}

fn map_own(tables: &mut PageTables, memory: &Memory) -> Result<()> {
    for piece in &memory.layout.pieces {
        let right = match (piece.write, piece.execute) {
            (true, _) => Right::Write,
            (_, true) => Right::Execute,
            _ => Right::Read,
        };
        let elsewhere = memory.is_spawned() && !piece.private;
        let physical = piece.offset + if elsewhere { SHARED_BASE } else { BLOCK_BASE };
        tables.map(piece.base, physical, piece.bytes, right)?;
    }
    Ok(())
}

/// Asks for large pages of the host where the heap is dense. It works without.
fn advise(block: &Block, layout: &Layout) {
    if layout.heap.bytes < DENSE_HEAP {
        return;
    }
    let bytes = (layout.heap.bytes - LARGE_PAGE) as usize;
    if let Ok(slice) = block.get_slice((SYSTEM_BYTES + LARGE_PAGE) as usize, bytes) {
        // SAFETY: advice about this block's pages, whose content does not change.
        unsafe { libc::madvise(slice.ptr_guard_mut().as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
    }
}

impl Space for KvmSpace {
    fn features(&self) -> u64 {
        self.features
    }

    /// Not before the first time that it is rung: a machine in which KVM rings any takes milliseconds longer to end.
    fn doorbell(&self, number: usize, bell: &EventFd) -> Result<()> {
        let Some(rings) = self.doorbells.get(number / 64) else { return Ok(()) };
        if rings.fetch_or(1 << (number % 64), Ordering::Relaxed) >> (number % 64) & 1 == 0 {
            let port = IoEventAddress::Pio(u64::from(PORT_DOORBELL));
            self.vm.register_ioevent(bell, &port, number as u32).context("KVM_IOEVENTFD")?;
        }
        Ok(())
    }

    fn map(&self, mapping: &Mapping) -> Result<()> {
        let mut tables = self.tables.lock().unwrap_or_else(|e| e.into_inner());
        let Mapping { number, address, bytes, .. } = *mapping;
        set_slot(&self.vm, REGION_SLOT + number as u32, address, &mapping.block)?;
        let right = if mapping.write { Right::Write } else { Right::Read };
        tables.map(address, address, PAGE, Right::Read)?;
        tables.map(address + PAGE, address + PAGE, bytes - PAGE, right)
    }

    fn unmap(&self, mapping: &Mapping) -> Result<bool> {
        let mut tables = self.tables.lock().unwrap_or_else(|e| e.into_inner());
        let Mapping { number, address, bytes, .. } = *mapping;
        tables.unmap(address, bytes)?;
        // With the slot KVM forgets, on every processor, what it derived from the tables before: on return nothing
        // leads there.
        slot_of(&self.vm, REGION_SLOT + number as u32, address, 0, 0)?;
        Ok(true)
    }
}

const _: () = assert!(SYSTEM_BYTES % LARGE_PAGE == 0);
const _: () = assert!(BLOCK_BASE + SYSTEM_BYTES + GUEST_MAX_MEMORY <= SHARED_BASE);
const _: () = assert!(SHARED_BASE + SYSTEM_BYTES + GUEST_MAX_MEMORY <= REGION_BASE);
