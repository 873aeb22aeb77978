//! The processor of a virtual machine.

use super::cpuid::Processor;
use super::tables::{self, CODE, DATA, GDT_LIMIT, IDT_LIMIT, TASK, TSS_LIMIT};
use crate::backend::{Cpu, Event, Kick, Reason, Registers};
use crate::error::{Context, Error, Result};
use crate::layout::{system, PAGE};
use crate::memory::{system_address, Block, Memory};
use kvm_bindings::{
    kvm_device_attr, kvm_dtable, kvm_msr_entry, kvm_regs, kvm_segment, kvm_sregs, kvm_xcr,
    kvm_xcrs, Msrs, KVM_VCPU_TSC_CTRL, KVM_VCPU_TSC_OFFSET,
};
use kvm_ioctls::{SyncReg, VcpuExit, VcpuFd};
use kyozon_abi::unikernel::*;
use std::arch::x86_64::_rdtsc;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicI32, AtomicU8, Ordering};
use std::sync::Arc;
use vm_memory::VolatileMemory;

/// PE, MP, ET, NE, WP, AM, PG (Intel SDM volume 3, 2.5).
const CR0: u64 = 0x8005_0033;
/// PAE, OSFXSR, OSXMMEXCPT.
const CR4: u64 = 0x620;
const CR4_FSGSBASE: u64 = 1 << 16;
const CR4_OSXSAVE: u64 = 1 << 18;
/// LME, LMA, NXE. Without SCE there is no `syscall`.
const EFER: u64 = 0xd00;
/// The reset value on the bootstrap processor (Intel SDM volume 3, 11.4.4). Nothing is mapped at this address.
const APIC_BASE: u64 = 0xfee0_0900;
/// IOPL 3, in addition to the port bitmap: see the parent module.
const RFLAGS: u64 = 0x3002;
/// MSR of the time-stamp counter (Intel SDM volume 4, table 2-2).
const MSR_TSC: u32 = 0x10;
/// `_IOW(KVMIO, 0xe1, struct kvm_device_attr)` of linux/kvm.h: `kvm-ioctls` offers it only for processors of other
/// architectures.
const KVM_SET_DEVICE_ATTR: libc::c_ulong = 0x4018_aee1;

/// The processor of one virtual machine.
pub struct KvmCpu {
    fd: VcpuFd,
    block: Block,
    /// Set if the last event was an exception.
    frame: Option<Frame>,
    kick: Arc<KvmKick>,
}

/// The frame that the processor pushed for an exception.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    error: u64,
    rip: u64,
    rflags: u64,
    rsp: u64,
}

struct KvmKick {
    /// Address of `immediate_exit` in the processor's page, which lives as long as its [`VcpuFd`]; then 0.
    exit: std::sync::Mutex<usize>,
    /// Id of the thread that runs the processor; 0 if none does.
    thread: AtomicI32,
}

impl Kick for KvmKick {
    fn kick(&self) {
        let exit = self.exit.lock().unwrap_or_else(|e| e.into_inner());
        if *exit != 0 {
            // SAFETY: the page is mapped as long as the address is not 0, and KVM only reads this byte.
            unsafe { AtomicU8::from_ptr(*exit as *mut u8) }.store(1, Ordering::SeqCst);
        }
        let thread = self.thread.load(Ordering::SeqCst);
        if thread != 0 {
            // SAFETY: the call sends a signal that has a handler to a thread of this process; if the thread has ended,
            // the call fails.
            unsafe {
                libc::syscall(
                    libc::SYS_tgkill,
                    libc::getpid(),
                    thread,
                    crate::signals::kick_signal(),
                )
            };
        }
    }
}

impl Drop for KvmCpu {
    fn drop(&mut self) {
        *self.kick.exit.lock().unwrap_or_else(|e| e.into_inner()) = 0;
    }
}

impl KvmCpu {
    /// A prepared processor with the registers of a guest's first instruction.
    pub(super) fn new(mut fd: VcpuFd, processor: &Processor, memory: &Memory, root: u64) -> Self {
        let bit = |on: bool, bit| if on { bit } else { 0 };
        let cr4 = CR4
            | bit(processor.xcr0 != 0, CR4_OSXSAVE)
            | bit(processor.features & FEATURE_FSGSBASE != 0, CR4_FSGSBASE);
        // KVM takes all registers with the first KVM_RUN. A separate ioctl for each would load the processor's state
        // each time.
        let initial = fd.sync_regs_mut();
        initial.sregs = initial_sregs(cr4, root, memory.layout.thread);
        initial.regs = kvm_regs {
            rip: memory.layout.entry,
            rsp: memory.layout.stack_top() - 8,
            rdi: system_address(system::BOOT),
            rsi: memory.layout.argument,
            rflags: RFLAGS,
            ..Default::default()
        };
        fd.set_sync_dirty_reg(SyncReg::Register);
        fd.set_sync_dirty_reg(SyncReg::SystemRegister);
        let exit = std::ptr::from_mut(&mut fd.get_kvm_run().immediate_exit) as usize;
        let kick = Arc::new(KvmKick { exit: exit.into(), thread: AtomicI32::new(0) });
        Self { fd, block: memory.block.clone(), frame: None, kick }
    }

    /// Rate of the time-stamp counter in kHz, if KVM knows it.
    pub fn khz(&self) -> Option<u64> {
        self.fd.get_tsc_khz().ok().map(u64::from)
    }

    /// The frame of an exception. The guest can write to its stack, so only the one valid position is read, and the
    /// content is untrusted.
    fn frame(&self, vector: u32, rsp: u64) -> Option<Frame> {
        let words = if vector < 32 && VECTORS_WITH_ERROR & 1 << vector != 0 { 6 } else { 5 };
        if rsp != (tables::fault_stack_top() & !15) - words * 8 {
            return None;
        }
        let top = system::FAULT_STACK + PAGE;
        let word =
            |back: u64| self.block.get_ref::<u64>((top - back * 8) as usize).map(|r| r.load());
        let error = if words == 6 { word(6).ok()? } else { 0 };
        Some(Frame { error, rip: word(5).ok()?, rflags: word(3).ok()?, rsp: word(2).ok()? })
    }

    fn exception(&mut self, vector: u32) -> Result<Event> {
        let rsp = self.fd.get_regs().context("KVM_GET_REGS")?.rsp;
        let Some(frame) = self.frame(vector, rsp) else {
            // There was no exception: the guest itself used the port.
            return Ok(Event::Crash(Reason::Port(PORT_FAULT + vector as u16)));
        };
        let address = self.fd.get_sregs().context("KVM_GET_SREGS")?.cr2;
        self.frame = Some(frame);
        Ok(Event::Crash(Reason::Exception { vector, error: frame.error, address }))
    }
}

/// Sets CPUID, XCR0 and the time-stamp counter of a new processor.
pub(super) fn prepare(fd: &VcpuFd, processor: &Processor) -> Result<()> {
    fd.set_cpuid2(&processor.cpuid).context("KVM_SET_CPUID2")?;
    if processor.xcr0 != 0 {
        let mut xcrs = kvm_xcrs { nr_xcrs: 1, ..Default::default() };
        xcrs.xcrs[0] = kvm_xcr { xcr: 0, value: processor.xcr0, ..Default::default() };
        fd.set_xcrs(&xcrs).context("KVM_SET_XCRS")?;
    }
    match_host_counter(fd)
}

/// Initial segments, control registers and descriptor tables.
fn initial_sregs(cr4: u64, root: u64, thread: u64) -> kvm_sregs {
    let data = kvm_segment {
        limit: u32::MAX,
        selector: DATA,
        type_: 3,
        present: 1,
        dpl: 3,
        s: 1,
        db: 1,
        g: 1,
        ..Default::default()
    };
    let task = kvm_segment {
        base: system_address(system::TSS),
        limit: TSS_LIMIT,
        selector: TASK,
        type_: 11,
        present: 1,
        ..Default::default()
    };
    let table = |at, limit| kvm_dtable { base: system_address(at), limit, ..Default::default() };
    kvm_sregs {
        cs: kvm_segment { selector: CODE, type_: 11, db: 0, l: 1, ..data },
        ds: data,
        es: data,
        fs: kvm_segment { base: thread, ..data },
        gs: data,
        ss: data,
        tr: task,
        ldt: kvm_segment { type_: 2, unusable: 1, ..Default::default() },
        gdt: table(system::GDT, GDT_LIMIT),
        idt: table(system::IDT, IDT_LIMIT),
        cr0: CR0,
        cr3: root,
        cr4,
        efer: EFER,
        apic_base: APIC_BASE,
        ..Default::default()
    }
}

/// Lets the guest read the host's time-stamp counter, so that all peers have the same clock. If KVM cannot set the
/// offset, the counter itself is set, which is off by the microseconds that the call takes.
fn match_host_counter(fd: &VcpuFd) -> Result<()> {
    let offset = 0_u64;
    let attribute = kvm_device_attr {
        group: KVM_VCPU_TSC_CTRL,
        attr: u64::from(KVM_VCPU_TSC_OFFSET),
        addr: std::ptr::from_ref(&offset) as u64,
        flags: 0,
    };
    // SAFETY: KVM reads the structure and the offset that it points to; both live in this function.
    if unsafe { libc::ioctl(fd.as_raw_fd(), KVM_SET_DEVICE_ATTR, &attribute) } == 0 {
        return Ok(());
    }
    // SAFETY: reads a counter.
    let data = unsafe { _rdtsc() };
    let entry = kvm_msr_entry { index: MSR_TSC, data, ..Default::default() };
    let msrs = Msrs::from_entries(&[entry])
        .map_err(|_| Error::Internal("cannot build the list for KVM_SET_MSRS".into()))?;
    fd.set_msrs(&msrs).context("KVM_SET_MSRS")?;
    Ok(())
}

impl Cpu for KvmCpu {
    fn enter(&mut self) -> Result<Event> {
        let exit = match self.fd.run() {
            Ok(exit) => exit,
            Err(error) if matches!(error.errno(), libc::EINTR | libc::EAGAIN) => {
                return Ok(Event::Interrupted);
            }
            Err(error) => {
                // KVM clears the dirty bits once it has taken the registers.
                let first = self.fd.get_kvm_run().kvm_dirty_regs != 0;
                let what = if first { "KVM_RUN, with the first registers" } else { "KVM_RUN" };
                return Err(std::io::Error::from_raw_os_error(error.errno())).context(what);
            }
        };
        let reason = match exit {
            VcpuExit::IoOut(PORT_CALL, _) => return Ok(Event::Call),
            VcpuExit::IoOut(PORT_DOORBELL, &[a, b, c, d]) => {
                return Ok(Event::Doorbell(u32::from_le_bytes([a, b, c, d])));
            }
            VcpuExit::IoOut(port @ 0..=255, _) => return self.exception(u32::from(port)),
            VcpuExit::IoOut(port, _) | VcpuExit::IoIn(port, _) => Reason::Port(port),
            VcpuExit::MmioRead(address, _) | VcpuExit::MmioWrite(address, _) => {
                Reason::Revoked(address)
            }
            VcpuExit::Intr => return Ok(Event::Interrupted),
            _ => Reason::KvmExit(self.fd.get_kvm_run().exit_reason),
        };
        Ok(Event::Crash(reason))
    }

    fn registers(&mut self) -> Result<Registers> {
        let r = self.fd.get_regs().context("KVM_GET_REGS")?;
        let s = self.fd.get_sregs().context("KVM_GET_SREGS")?;
        let mut registers = Registers {
            rax: r.rax,
            rbx: r.rbx,
            rcx: r.rcx,
            rdx: r.rdx,
            rsi: r.rsi,
            rdi: r.rdi,
            rbp: r.rbp,
            rsp: r.rsp,
            r8: r.r8,
            r9: r.r9,
            r10: r.r10,
            r11: r.r11,
            r12: r.r12,
            r13: r.r13,
            r14: r.r14,
            r15: r.r15,
            rip: r.rip,
            rflags: r.rflags,
            fs_base: s.fs.base,
            gs_base: s.gs.base,
        };
        if let Some(frame) = self.frame {
            (registers.rip, registers.rsp, registers.rflags) = (frame.rip, frame.rsp, frame.rflags);
        }
        Ok(registers)
    }

    fn kick(&mut self) -> Box<dyn Kick> {
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        self.kick.thread.store(thread, Ordering::SeqCst);
        Box::new(KickHandle(self.kick.clone()))
    }
}

struct KickHandle(Arc<KvmKick>);

impl Kick for KickHandle {
    fn kick(&self) {
        self.0.kick();
    }
}
