//! Linux's accesses to model-specific registers: which of them exit, and what becomes of those that do.
//!
//! Most registers are Linux's own. An exit costs much, so the registers that Linux writes while it works do not exit.
//! A *guarded* register could undo the isolation, move the clock of the ticks, or change how memory that is not
//! Linux's is accessed. Linux can read it, and can write the value that it has; other writes have no effect and are
//! reported. Writes to a *watched* register exit, have their effect, and are shown to the cokernel. In AMD's own range,
//! all registers are guarded except those listed here.
//!
//! Reference: AMD APM 2, 15.11 and appendix A; the processor programming references (PPR) of families 17h and 19h.

pub mod efer;

use crate::vmm::svm::vmcb::msr_bit;

#[allow(missing_docs)]
pub const APIC_BASE: u32 = 0x1b;
#[allow(missing_docs)]
pub const SPEC_CTRL: u32 = 0x48;
#[allow(missing_docs)]
pub const DEBUG_CONTROL: u32 = 0x1d9;
#[allow(missing_docs)]
pub const EFER: u32 = 0xc000_0080;
#[allow(missing_docs)]
pub const VM_CR: u32 = 0xc001_0114;
#[allow(missing_docs)]
pub const VM_HSAVE_PA: u32 = 0xc001_0117;
const SYSENTER_CS: u32 = 0x174;
const SYSENTER_EIP: u32 = 0x176;
const STAR: u32 = 0xc000_0081;
const SFMASK: u32 = 0xc000_0084;
const TSC: u32 = 0x10;
const TSC_ADJUST: u32 = 0x3b;
const TSC_RATIO: u32 = 0xc000_0104;
const DEBUG_EXTENSIONS: u32 = 0xc000_010f;
const HARDWARE_CONFIGURATION: u32 = 0xc001_0015;

/// DEBUGCTL.BTF: single steps end at branches only. Linux steps processes by it.
pub const STEP_BRANCHES: u64 = 1 << 1;
/// Bits of HWCR that change nothing but Linux's own time and reports: McStatusWrEn, CpbDis, IRPerfEn.
const HARDWARE_CHOICES: u64 = 1 << 18 | 1 << 25 | 1 << 30;

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// The register gets this value, unless the processor refuses it: then Linux gets a general protection fault.
    Pass(u64),
    /// Nothing changes: the register has this value.
    Keep,
    /// Nothing changes, and it is reported.
    Refuse,
    /// Linux gets a general protection fault, as without a hypervisor.
    Fault,
}

/// Whether Linux's writes to `msr` exit. Accesses to registers outside of the permission map always do.
pub fn is_guarded(msr: u32) -> bool {
    match msr {
        TSC | TSC_ADJUST | TSC_RATIO => true,
        APIC_BASE | EFER | DEBUG_CONTROL | DEBUG_EXTENSIONS => true,
        // Memory type range registers.
        0x200..=0x21f | 0x250 | 0x258 | 0x259 | 0x268..=0x26f | 0x2ff => true,
        0xc001_0000..=0xc001_1fff => !is_linuxs(msr),
        _ => false,
    }
}

/// Whether the cokernel learns of Linux's writes to `msr`: EFER, and the entries of system calls, which Linux sets when
/// it brings a CPU up.
pub fn is_watched(msr: u32) -> bool {
    matches!(msr, EFER | STAR..=SFMASK | SYSENTER_CS..=SYSENTER_EIP)
}

/// Registers of AMD's own range that Linux writes while it works.
fn is_linuxs(msr: u32) -> bool {
    matches!(
        msr,
        0xc001_0000..=0xc001_0007       // performance counters
        | 0xc001_0062                   // the requested performance state
        | 0xc001_011f                   // VIRT_SPEC_CTRL
        | 0xc001_0200..=0xc001_020b     // performance counters: cores, caches, data fabric, memory controllers
        | 0xc001_0230..=0xc001_023b
        | 0xc001_0240..=0xc001_0247
        | 0xc001_0800..=0xc001_08ff
        | 0xc001_02b1                   // performance control (CPPC): enable, request
        | 0xc001_02b3
        | 0xc001_1019..=0xc001_101b     // address masks of breakpoints
        | 0xc001_1027
        | 0xc001_1020                   // LS_CFG: speculative stores, at task switches
    )
}

/// Registers that exist although they cannot be read: the microcode loader, SMM_CTL, the keys, the AVIC's doorbell,
/// VMPAGE_FLUSH.
fn is_write_only(msr: u32) -> bool {
    matches!(msr, 0xc001_0020 | 0xc001_0116 | 0xc001_0118 | 0xc001_0119 | 0xc001_011b | 0xc001_011e)
}

/// Banks of machine checks (SMCA), which Linux polls. They are outside of the permission map.
fn is_machine_check(msr: u32) -> bool {
    matches!(msr, 0xc000_2000..=0xc000_23ff)
}

/// Whether a read that exited may reach the register. If not, or if the processor refuses it, Linux gets a general
/// protection fault.
pub fn may_read(msr: u32) -> bool {
    msr_bit(msr).is_some() || is_machine_check(msr)
}

/// Decides about a write that exited, except to [`EFER`]. `current`: the register's value, if it can be read.
pub fn write(msr: u32, value: u64, current: Option<u64>) -> Write {
    if is_machine_check(msr) {
        return Write::Pass(value);
    }
    if is_write_only(msr) {
        return Write::Refuse;
    }
    let Some(current) = current.filter(|_| is_guarded(msr)) else { return Write::Fault };
    let changed = value ^ current;
    match msr {
        _ if changed == 0 => Write::Keep,
        // A record of branches (LBR) would show Linux the cokernel's. It may be switched off.
        DEBUG_CONTROL if value & !current & !STEP_BRANCHES == 0 => Write::Pass(value),
        HARDWARE_CONFIGURATION if changed & !HARDWARE_CHOICES == 0 => Write::Pass(value),
        _ => Write::Refuse,
    }
}

#[cfg(test)]
mod tests;
