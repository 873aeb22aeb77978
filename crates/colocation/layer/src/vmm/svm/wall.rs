//! Linux's accesses to hidden memory, and its writes to guarded registers.
//!
//! The instruction runs once on a decoy page, in a view of memory that only its CPU has. So it need not be decoded, and
//! hidden memory looks like no memory. What it wrote to a device is found by comparison, and passed on if harmless.

use super::access::{Access, Target};
use super::cpu::Cpu;
use super::entry::{at, count, entry, iommus, lies_in, list};
use super::log;
use super::memory::{Lock, POOL};
use super::names::{self, Or};
use super::tables::tables;
use super::vmcb::*;
use super::watch;
use crate::arch::x86_64 as arch;
use crate::vmm::filter::{self, hpet, ioapic, Verdict, WINDOW};
use crate::vmm::nested::{Rights, PAGE, PRESENT};
use kyozon_abi::vmm::*;

/// Bits of [`Vmcb::exit_info_1`] for a nested page fault: the access was a write, or a fetch. APM 2, 15.25.6.
const WRITE: u64 = 1 << 1;
const FETCH: u64 = 1 << 4;
/// The access was to a table of the guest's, in a walk.
const WALK: u64 = 1 << 33;

/// The tick's devices. A write is judged by what another register contains, such as the IO-APIC's selection. No other
/// CPU may write between the judgement and the write.
static DEVICES: Lock<()> = Lock::new(());

fn page(address: u64) -> u64 {
    address & !(PAGE - 1)
}

fn target_of(gpa: u64) -> Option<Target> {
    let e = entry();
    let timer = &e.timer;
    if lies_in(list(&e.guest, e.guest_count), gpa) || lies_in(list(&e.host, e.host_count), gpa) {
        Some(Target::Hidden)
    } else if iommus().any(|registers| lies_in(&[registers], gpa)) {
        Some(Target::Iommu)
    } else if lies_in(list(&e.read_only, e.read_only_count), gpa) {
        Some(Target::ReadOnly)
    } else if page(gpa) == page(timer.registers) {
        Some(Target::Timer)
    } else if timer.ioapic != 0 && page(gpa) == page(timer.ioapic) {
        Some(Target::IoApic)
    } else if watch::covers(gpa) {
        Some(Target::Watched)
    } else {
        None
    }
}

/// A nested page fault of Linux.
pub fn on_fault(cpu: &mut Cpu) {
    let vmcb = cpu.vmcb();
    let (gpa, info) = (vmcb.exit_info_2, vmcb.exit_info_1);
    match target_of(gpa).filter(|_| cpu.sealed) {
        Some(target) => begin(cpu, target, gpa, info),
        None => map(cpu, gpa),
    }
}

/// Maps memory or a device at the first access.
fn map(cpu: &mut Cpu, gpa: u64) {
    count(EXIT_MAP);
    let tables = tables();
    let nested = if cpu.sealed { &tables.sealed } else { &tables.open };
    let mut pool = POOL.lock();
    let known = match nested.ensure(&mut *pool, gpa, Rights::ALL) {
        Some(true) => true,
        // Another CPU mapped it meanwhile, or a view is older than the tables.
        Some(false) => {
            nested.lookup(&mut *pool, gpa).is_some_and(|(_, entry)| entry & PRESENT != 0)
        }
        None => false,
    };
    if known && cpu.access.is_some() {
        cpu.step.follow(&mut *pool, nested, gpa);
    }
    drop(pool);
    if !known {
        cpu.end_step();
        cpu.give(exception(GENERAL_PROTECTION, 0));
    } else if cpu.access.is_none() {
        cpu.show_shared();
    }
}

fn begin(cpu: &mut Cpu, target: Target, gpa: u64, info: u64) {
    // An event's handler begins without the trap that ends a step, and a walk is not the instruction's own access: they
    // must not make watched memory writable.
    let by_itself = cpu.vmcb().exit_int_info & EVENT_VALID != 0
        || info & WALK != 0
        || cpu.access.as_ref().is_some_and(|access| access.target == Target::Frame);
    let target = match target {
        Target::Watched if by_itself => Target::Frame,
        target => target,
    };
    if target == Target::Watched && !watch::begin(cpu, gpa) {
        return;
    }
    count(match target {
        Target::Hidden => EXIT_HIDDEN,
        Target::Watched => EXIT_WATCH,
        _ => EXIT_WRITE,
    });
    if matches!(target, Target::Hidden | Target::Iommu | Target::ReadOnly | Target::Frame) {
        report(cpu, target, gpa, info);
    }
    let used = cpu.access.as_ref().map_or(0, |access| access.used);
    let shown = cpu.decoys.get(used).copied().is_some_and(|decoy| {
        let (to, rights) = match target {
            Target::Watched => (page(gpa), Rights::ALL),
            Target::Hidden => (decoy, Rights::ALL),
            _ => (decoy, Rights::DATA),
        };
        cpu.step.show(&mut *POOL.lock(), &tables().sealed, gpa, to, rights)
    });
    let vmcb = cpu.vmcb();
    if !shown {
        // No honest instruction accesses more pages than there are decoys.
        if cpu.end_step().is_none() {
            cpu.show_shared();
        }
        watch::give_up(cpu.index);
        return cpu.give(exception(GENERAL_PROTECTION, 0));
    }
    let marked = fill(cpu.decoys[used], target, gpa);
    let stepping = cpu.nmis.is_stepping();
    let trap = vmcb.rflags & FLAG_TRAP != 0 && !stepping;
    let access = cpu.access.get_or_insert_with(|| Access {
        decoy: used,
        marked,
        ..Access::new(vmcb, trap, target, gpa)
    });
    access.used = used + 1;
    if target == Target::Watched {
        access.watched[used] = page(gpa);
    }
    vmcb.nested_cr3 = cpu.step.root().expect("shown");
    vmcb.tlb_control = FLUSH_ALL;
    Access::step(vmcb);
}

/// Fills the page at `decoy` for the instruction; returns the marks of a device's registers.
fn fill(decoy: u64, target: Target, gpa: u64) -> [u8; WINDOW] {
    // SAFETY: a page of this CPU.
    let bytes = unsafe { core::slice::from_raw_parts_mut(at::<u8>(decoy), PAGE as usize) };
    match target {
        // A control register has no memory.
        Target::Hidden | Target::Iommu | Target::Control => bytes.fill(0xff),
        // SAFETY: a page of Linux's memory that the window maps.
        Target::ReadOnly | Target::Watched | Target::Frame => unsafe {
            let page = at::<[u64; 512]>(page(gpa));
            bytes.as_mut_ptr().cast::<[u64; 512]>().copy_from_nonoverlapping(page, 1);
        },
        Target::Timer | Target::IoApic => {
            let first = window(gpa);
            let mut actual = [0; WINDOW];
            for (i, four) in actual.chunks_mut(4).enumerate() {
                let address = first + 4 * i as u64;
                if page(address) == page(gpa) {
                    // SAFETY: a device's registers, in the window; reading them changes nothing.
                    let value = unsafe { at::<u32>(address).read_volatile() };
                    four.copy_from_slice(&value.to_le_bytes());
                }
            }
            let marked = filter::mark(&actual, arch::tsc());
            bytes.fill(0);
            let offset = (first - page(gpa)) as usize;
            let end = (offset + WINDOW).min(bytes.len());
            bytes[offset..end].copy_from_slice(&marked[..end - offset]);
            return marked;
        }
    }
    [0; WINDOW]
}

/// Address at which the marks around `gpa` begin.
fn window(gpa: u64) -> u64 {
    gpa & !7
}

fn report(cpu: &mut Cpu, target: Target, gpa: u64, info: u64) {
    let rip = cpu.vmcb().rip;
    let access = match info {
        _ if info & FETCH != 0 => "execution of",
        _ if info & WRITE != 0 => "write to",
        _ => "read of",
    };
    let of = match target {
        Target::Hidden => "the cokernel's memory",
        Target::Iommu => "the IOMMU",
        Target::Frame => "watched memory, for a frame or as a page table",
        _ => "the event ring",
    };
    let task = names::current(cpu);
    log::report(format_args!(
        "wall: {access} {gpa:#x} from CPU {}, rip {rip:#x}, task {}: {of}",
        cpu.index,
        Or(task)
    ));
}

/// The instruction has run. What it wrote to a device is passed on.
pub fn finish(access: Access, cpu: &mut Cpu) {
    if !matches!(access.target, Target::Timer | Target::IoApic) {
        return;
    }
    let first = window(access.gpa);
    let mut after = access.marked;
    let offset = (first - page(access.gpa)) as usize;
    for (i, byte) in after.iter_mut().enumerate().take(PAGE as usize - offset) {
        // SAFETY: a page of this CPU.
        *byte = unsafe { at::<u8>(cpu.decoys[access.decoy] + (offset + i) as u64).read() };
    }
    let Some(written) = filter::written(&access.marked, &after, (access.gpa - first) as usize)
    else {
        return;
    };
    let register = (offset + written.offset) as u32;
    let timer = &entry().timer;
    let devices = DEVICES.lock();
    let (device, name, verdict) = match access.target {
        Target::Timer => {
            let current = |offset: u32| read(page(timer.registers) + u64::from(offset));
            let verdict = hpet::write(ours(), register, written.bytes, written.value, current);
            (timer.registers, "timer", verdict)
        }
        _ => {
            let ours = ioapic::Ours { pin: Some(timer.pin) };
            let select = read(page(timer.ioapic) + u64::from(ioapic::SELECT));
            let verdict = ioapic::write(ours, select, register, written.bytes, written.value);
            (timer.ioapic, "IO-APIC", verdict)
        }
    };
    let to = page(device) + u64::from(register);
    if let Verdict::Pass(value) | Verdict::Changed(value) = verdict {
        // SAFETY: the filter allows this value, in the width of the write, for this register.
        unsafe {
            match written.bytes {
                8 => at::<u64>(to).write_volatile(value),
                _ => at::<u32>(to).write_volatile(value as u32),
            }
        }
    }
    drop(devices);
    if !matches!(verdict, Verdict::Pass(_)) {
        let task = names::current(cpu);
        log::report(format_args!(
            "wall: write to the {name} from CPU {}, rip {:#x}, task {}: {:#x} at {register:#x}",
            cpu.index,
            cpu.vmcb().rip,
            Or(task),
            written.value
        ));
    }
}

/// The timers of the cokernel.
fn ours() -> hpet::Ours {
    hpet::Ours { timers: 1 << crate::hpet::TICK | 1 << entry().timer.guard }
}

/// Turns messages that Linux's timers send elsewhere to the APICs: from now on, Linux can turn them nowhere else.
pub fn close_routes() {
    let registers = page(entry().timer.registers);
    let current = |offset: u32| read(registers + u64::from(offset));
    let last = current(0) >> 8 & 0x1f;
    let _devices = DEVICES.lock();
    for (offset, value) in hpet::stray_routes(ours(), last + 1, current) {
        // SAFETY: a timer's register, in the window.
        unsafe { at::<u32>(registers + u64::from(offset)).write_volatile(value) };
    }
}

fn read(register: u64) -> u32 {
    // SAFETY: a device's register, in the window.
    unsafe { at::<u32>(register).read_volatile() }
}
