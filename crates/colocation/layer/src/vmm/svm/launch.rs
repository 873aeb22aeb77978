//! Makes a CPU a guest under its running Linux, and gives it back.
//!
//! The guest starts with the state at the entry: the trampoline's world, with the hypervisor's page tables. The
//! trampoline then returns to Linux, without hypervisor code in between. The unload is the reverse: the CPU enters this
//! world through the trampoline, and the hypervisor gives it back there.

use super::cokernel::Cokernel;
use super::cpu::{self, Cpu};
use super::segments::{data_segment, CODE};
use super::vmcb::*;
use super::{entry, log, tables};
use crate::arch::x86_64::svm::{self, Bare, Table};
use crate::arch::x86_64::CR4_PKE;
use crate::owned::Owned;
use crate::vmm::registers::{self, DEBUG_CONTROL, SPEC_CTRL, STEP_BRANCHES, VM_CR, VM_HSAVE_PA};
use kyozon_abi::vmm::*;

/// An INIT becomes an exception, which the host can take harmlessly. APM 2 15.30.1.
const VM_CR_R_INIT: u64 = 1 << 1;

/// The hypervisor's descriptor tables, the same for every CPU. They switch no stack and have no task state segment.
static GATES: Owned<[[u64; 2]; 256]> = Owned::new([[0; 2]; 256]);
static SEGMENTS: Owned<[u64; 8]> =
    Owned::new([0, 0, 0x00af_9b00_0000_ffff, 0x00cf_9300_0000_ffff, 0, 0, 0, 0]);

/// Makes this CPU's state that of a guest. Returns the top of the host's stack for this CPU, or 0 on failure.
#[no_mangle]
extern "C" fn hypervisor_launch(from: *mut HostEntry, stack: u64) -> u64 {
    // SAFETY: the module's structure, for this entry.
    let (version, index) = unsafe { ((*from).version, (*from).cpu) };
    let refuse = || {
        // SAFETY: as above.
        unsafe { (*from).result = HOST_REFUSED };
        0
    };
    if version != VMM_VERSION || index as usize >= HOST_MAX_CPUS {
        return refuse();
    }
    if index == 0 && make(from).is_none() {
        return refuse();
    }
    let Some(cpu) = Cpu::make(index) else { return refuse() };
    // SAFETY: this CPU, which has no reference; EFER, VM_HSAVE_PA and the page exist.
    unsafe {
        svm::wrmsr(registers::EFER, svm::rdmsr(registers::EFER) | EFER_SVME);
        svm::wrmsr(VM_HSAVE_PA, cpu.host_save);
        svm::wrmsr(VM_CR, svm::rdmsr(VM_CR) | VM_CR_R_INIT);
        let cpu = cpu::of(index as usize).insert(cpu);
        capture(cpu.vmcb(), stack);
        (*from).result = HOST_DONE;
    }
    HOST_STACKS + (u64::from(index) + 1) * HOST_STACK_STRIDE
}

/// Makes everything that all CPUs share. `None` if memory ran out.
fn make(from: *mut HostEntry) -> Option<()> {
    entry::set(from);
    tables::make()?;
    // SAFETY: the first CPU's first entry.
    unsafe {
        log::open();
        Cokernel::make()
    }
}

/// Makes the hypervisor's descriptor tables live on this CPU.
pub fn enter_host() {
    // SAFETY: every CPU writes the same values; the loaded selectors have the same meaning in both tables.
    unsafe {
        let gates = GATES.get();
        for (vector, gate) in gates.iter_mut().enumerate().take(32) {
            *gate = svm::gate(vector);
        }
        let table = |base: u64, bytes: usize| Table { limit: bytes as u16 - 1, base };
        let segments = SEGMENTS.get();
        svm::set_tables(
            table(segments.as_ptr() as u64, size_of_val(segments)),
            table(gates.as_ptr() as u64, size_of_val(gates)),
        );
        // An IOMMU uses the protection-key bits of nested entries.
        svm::set_cr4(svm::cr4() & !CR4_PKE);
    }
    stop_records();
}

/// Linux gets no record of branches (LBR) as a guest: it would show the cokernel's, too. See `registers`.
fn stop_records() {
    let control = svm::try_rdmsr(DEBUG_CONTROL).unwrap_or(0);
    if control & !STEP_BRANCHES != 0 {
        // SAFETY: a value that the register had, without the bits that record. The hypervisor's tables are live.
        unsafe { svm::try_wrmsr(DEBUG_CONTROL, control & STEP_BRANCHES) };
    }
}

/// Linux's controls of speculation on this CPU, if control blocks have them. The processor combines the guest's value
/// with the host's: with a host's value of 0, Linux alone decides for itself. APM 2 15.34.
fn exchange_spec_ctrl(to: u64) -> u64 {
    if !svm::has_virtual_spec_ctrl() {
        return 0;
    }
    // SAFETY: the register exists, and has had the value, or 0 after the reset.
    unsafe {
        let was = svm::rdmsr(SPEC_CTRL);
        svm::wrmsr(SPEC_CTRL, to);
        was
    }
}

fn capture(vmcb: &mut Vmcb, stack: u64) {
    const PAT: u32 = 0x277;
    let (gdt, idt) = svm::tables();
    let (es, ds) = svm::data_selectors();
    let table =
        |t: Table| Segment { limit: u32::from(t.limit), base: t.base, ..Segment::default() };
    vmcb.es = data_segment(es);
    vmcb.ds = data_segment(ds);
    vmcb.cs = CODE;
    vmcb.ss = data_segment(svm::KERNEL_DATA);
    vmcb.gdtr = table(gdt);
    vmcb.idtr = table(idt);
    vmcb.cpl = 0;
    // SAFETY: these exist on every CPU with nested paging.
    unsafe {
        vmcb.efer = svm::rdmsr(registers::EFER);
        vmcb.pat = svm::rdmsr(PAT);
    }
    vmcb.spec_ctrl = exchange_spec_ctrl(0);
    vmcb.cr0 = svm::cr0();
    vmcb.cr2 = svm::cr2();
    vmcb.cr3 = crate::arch::x86_64::cr3();
    vmcb.cr4 = svm::cr4();
    vmcb.dr6 = svm::dr6();
    vmcb.dr7 = svm::dr7();
    vmcb.rflags = 2;
    vmcb.rip = svm::guest_start();
    vmcb.rsp = stack;
    vmcb.rax = 0;
}

/// Continues with the guest's state, without a hypervisor, after the VMMCALL that asked for it.
pub fn give_back(cpu: &mut Cpu) -> ! {
    let registers = cpu.registers;
    let vmcb = cpu.vmcb();
    let bare = Bare {
        registers,
        rax: vmcb.rax,
        rflags: vmcb.rflags,
        rip: vmcb.rip + VMMCALL_BYTES,
        rsp: vmcb.rsp,
    };
    exchange_spec_ctrl(vmcb.spec_ctrl);
    let table = |s: Segment| Table { limit: s.limit as u16, base: s.base };
    // Only selectors of the live table: a selector of a local table cannot be loaded here.
    let known = |s: Segment| if matches!(s.selector, 0x18 | 0x2b) { s.selector } else { 0 };
    // SAFETY: the guest is in this world, in kernel mode, with interrupts off: its page tables map everything that it
    // and this code need, and its descriptor tables are the trampoline's.
    unsafe {
        svm::set_cr0(vmcb.cr0);
        svm::set_cr4(vmcb.cr4);
        svm::set_cr2(vmcb.cr2);
        svm::set_dr6(vmcb.dr6);
        svm::set_dr7(vmcb.dr7);
        svm::set_tables(table(vmcb.gdtr), table(vmcb.idtr));
        svm::set_data_selectors(svm::KERNEL_DATA, known(vmcb.es), known(vmcb.ds));
        svm::give_back(&bare)
    }
}

/// The first code that runs on the CPU after the hypervisor has left it.
#[no_mangle]
extern "C" fn hypervisor_left() {
    // SAFETY: neither is used any more.
    unsafe {
        svm::wrmsr(VM_CR, svm::rdmsr(VM_CR) & !VM_CR_R_INIT);
        svm::wrmsr(VM_HSAVE_PA, 0);
        svm::wrmsr(registers::EFER, svm::rdmsr(registers::EFER) & !EFER_SVME);
    }
}
