//! State of Linux that only the cokernel's user mode can change, or use to read or harm Linux.
//!
//! It is switched before the first entry into user mode of a trip, and restored at the trip's end. A trip without
//! user mode touches none of it.
//!
//! | state | Linux's | while the cokernel has user mode | why |
//! |---|---|---|---|
//! | CR0.TS | 0 | 1 | the FPU's registers are Linux's: their use traps, see [`vectors`](super::vectors) |
//! | CR0.EM, CR4.OSFXSR, EFER.FFXSR | 0, 1, 0 | the same | a Linux that set them otherwise would break the exchange |
//! | CR4.OSXSAVE | 1 | 0 | no instruction can name the upper halves of the vector registers, or read XCR0 |
//! | CR4.TSD | the task's | 0 | the cokernel reads the time-stamp counter; a task can deny it to itself |
//! | EFER.SCE | 1 | 0 | `syscall` would enter Linux's entry code |
//! | IA32_SYSENTER_CS | set | 0 | so would `sysenter` |
//! | PKRU | the task's | 0 | keys are Linux's |
//! | U_CET | the task's | 0 | so are shadow stacks |
//! | FS, GS base | Linux's | the cokernel's | `rdgsbase` would reveal them |
//! | data selectors, LDT | Linux's | null | `iretq` and user mode change them; the trampoline restores them |

use super::{CR0_EM, CR0_TS, CR4_CET, CR4_OSFXSR, CR4_OSXSAVE, CR4_PKE, CR4_TSD, EFER_FFXSR};
use core::arch::asm;
use kyozon_abi::layer::{LinuxRegisters, UserState, USER_SWITCHED};

const EFER: u32 = 0xc000_0080;
const EFER_SCE: u64 = 1;
const SYSENTER_CS: u32 = 0x174;
const FS_BASE: u32 = 0xc000_0100;
const GS_BASE: u32 = 0xc000_0101;
const U_CET: u32 = 0x6a0;
const CR4_FSGSBASE: u64 = 1 << 16;

/// What was saved beside [`UserState`], which the trampoline puts back.
#[derive(Clone, Copy)]
pub struct Saved {
    cr0: u64,
    cr4: u64,
    efer: u64,
    sysenter_cs: u64,
    pkru: u32,
    u_cet: u64,
    /// What single steps of user mode leave behind.
    dr6: u64,
    /// The cokernel's own, from trip to trip.
    fs_base: u64,
    gs_base: u64,
}

impl Saved {
    /// Nothing is saved yet.
    pub const NONE: Self = Self {
        cr0: 0,
        cr4: 0,
        efer: 0,
        sysenter_cs: 0,
        pkru: 0,
        u_cet: 0,
        dr6: 0,
        fs_base: 0,
        gs_base: 0,
    };
}

fn rdmsr(msr: u32) -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: called with registers that exist on every CPU in 64-bit mode, or whose feature CR4 says is on.
    unsafe {
        asm!("rdmsr", in("ecx") msr, out("eax") low, out("edx") high, options(nostack, preserves_flags))
    };
    u64::from(high) << 32 | u64::from(low)
}

/// # Safety
///
/// The value must be one under which both kernels can run until it is put back.
unsafe fn wrmsr(msr: u32, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!("wrmsr", in("ecx") msr, in("eax") value as u32, in("edx") (value >> 32) as u32,
             options(nostack, preserves_flags));
    }
}

pub(super) fn cr0() -> u64 {
    let value;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, cr0", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

fn dr6() -> u64 {
    let value;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, dr6", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

fn cr4() -> u64 {
    let value;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, cr4", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

/// # Safety
///
/// Only TS and EM may differ from the present value.
pub(super) unsafe fn set_cr0(value: u64) {
    // SAFETY: the caller's promise.
    unsafe { asm!("mov cr0, {}", in(reg) value, options(nostack, preserves_flags)) };
}

/// # Safety
///
/// Only OSFXSR, OSXSAVE and TSD may differ from the present value.
unsafe fn set_cr4(value: u64) {
    // SAFETY: the caller's promise.
    unsafe { asm!("mov cr4, {}", in(reg) value, options(nostack, preserves_flags)) };
}

fn pkru() -> u32 {
    let value;
    // SAFETY: called where CR4.PKE is set; ECX must be 0.
    unsafe {
        asm!("rdpkru", in("ecx") 0, out("eax") value, out("edx") _, options(nomem, nostack, preserves_flags))
    };
    value
}

/// # Safety
///
/// CR4.PKE must be set.
unsafe fn set_pkru(value: u32) {
    // SAFETY: ECX and EDX must be 0.
    unsafe {
        asm!("wrpkru", in("eax") value, in("ecx") 0, in("edx") 0, options(nostack, preserves_flags))
    };
}

fn bases(cr4: u64) -> (u64, u64) {
    if cr4 & CR4_FSGSBASE == 0 {
        return (rdmsr(FS_BASE), rdmsr(GS_BASE));
    }
    let (fs, gs);
    // SAFETY: the feature is on.
    unsafe {
        asm!("rdfsbase {}", "rdgsbase {}", out(reg) fs, out(reg) gs, options(nomem, nostack, preserves_flags));
    }
    (fs, gs)
}

/// # Safety
///
/// Both must be canonical, and no code may use the segments until Linux's are back.
unsafe fn set_bases(cr4: u64, fs: u64, gs: u64) {
    if cr4 & CR4_FSGSBASE == 0 {
        // SAFETY: the caller's promise.
        unsafe {
            wrmsr(FS_BASE, fs);
            wrmsr(GS_BASE, gs);
        }
        return;
    }
    // SAFETY: the feature is on; the caller's promise.
    unsafe {
        asm!("wrfsbase {}", "wrgsbase {}", in(reg) fs, in(reg) gs, options(nostack, preserves_flags));
    }
}

/// The system registers of this CPU, without the descriptor tables. `saved` is what was switched for user mode, if it
/// was in this trip.
pub fn system_registers(saved: Option<&Saved>) -> LinuxRegisters {
    let dr7;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, dr7", out(reg) dr7, options(nomem, nostack, preserves_flags)) };
    LinuxRegisters {
        cr0: saved.map_or_else(cr0, |saved| saved.cr0),
        cr4: saved.map_or_else(cr4, |saved| saved.cr4),
        efer: saved.map_or_else(|| rdmsr(EFER), |saved| saved.efer),
        star: rdmsr(0xc000_0081),
        lstar: rdmsr(0xc000_0082),
        cstar: rdmsr(0xc000_0083),
        sfmask: rdmsr(0xc000_0084),
        sysenter_cs: saved.map_or_else(|| rdmsr(SYSENTER_CS), |saved| saved.sysenter_cs),
        sysenter_esp: rdmsr(0x175),
        sysenter_eip: rdmsr(0x176),
        breakpoints: super::breakpoints(),
        dr7,
        ..LinuxRegisters::default()
    }
}

/// Saves Linux's state and puts the cokernel's in place.
///
/// # Safety
///
/// On the cokernel's CPU, in its world, with the state Linux's.
pub unsafe fn to_cokernel(saved: &mut Saved, linux: &mut UserState) {
    let cr4 = cr4();
    // SAFETY: selectors are stored. They stay loaded, for loading one again may fail: 64-bit mode uses only the bases
    // of FS and GS, which are set here. IRET makes null those that user mode may not have (Intel SDM 2A, IRET).
    unsafe {
        asm!(
            "mov {0:x}, ds", "mov [{1}], {0:x}",
            "mov {0:x}, es", "mov [{2}], {0:x}",
            "mov {0:x}, fs", "mov [{3}], {0:x}",
            "mov {0:x}, gs", "mov [{4}], {0:x}",
            "sldt {0:x}", "mov [{5}], {0:x}",
            out(reg) _,
            in(reg) &mut linux.ds, in(reg) &mut linux.es, in(reg) &mut linux.fs, in(reg) &mut linux.gs,
            in(reg) &mut linux.ldt,
            options(nostack, preserves_flags)
        );
    }
    (linux.fs_base, linux.gs_base) = bases(cr4);
    linux.switched = USER_SWITCHED;
    (saved.cr0, saved.cr4) = (cr0(), cr4);
    saved.dr6 = dr6();
    saved.efer = rdmsr(EFER);
    saved.sysenter_cs = rdmsr(SYSENTER_CS);
    // SAFETY: each is put back by `to_linux` or the trampoline, and neither the layer nor a cokernel's kernel mode
    // depends on any.
    unsafe {
        if linux.ldt != 0 {
            asm!("lldt {0:x}", in(reg) 0, options(nostack, preserves_flags));
        }
        set_bases(cr4, saved.fs_base, saved.gs_base);
        set_cr0((saved.cr0 | CR0_TS) & !CR0_EM);
        set_cr4((cr4 | CR4_OSFXSR) & !(CR4_OSXSAVE | CR4_TSD));
        wrmsr(EFER, saved.efer & !(EFER_SCE | EFER_FFXSR));
        wrmsr(SYSENTER_CS, 0);
        if cr4 & CR4_PKE != 0 {
            saved.pkru = pkru();
            set_pkru(0);
        }
        if cr4 & CR4_CET != 0 {
            saved.u_cet = rdmsr(U_CET);
            wrmsr(U_CET, 0);
        }
    }
}

/// Puts back what the trampoline does not.
///
/// # Safety
///
/// After [`to_cokernel`] with the same `saved`.
pub unsafe fn to_linux(saved: &mut Saved) {
    let cr4 = cr4();
    (saved.fs_base, saved.gs_base) = bases(cr4);
    // SAFETY: these are the values that Linux ran with.
    unsafe {
        if cr4 & CR4_CET != 0 {
            wrmsr(U_CET, saved.u_cet);
        }
        if cr4 & CR4_PKE != 0 {
            set_pkru(saved.pkru);
        }
        wrmsr(SYSENTER_CS, saved.sysenter_cs);
        wrmsr(EFER, saved.efer);
        set_cr4(saved.cr4);
        set_cr0(saved.cr0);
        if dr6() != saved.dr6 {
            asm!("mov dr6, {}", in(reg) saved.dr6, options(nomem, nostack, preserves_flags));
        }
    }
}
