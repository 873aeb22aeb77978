//! The virtual machine control block. AMD APM 2, appendix B.

use core::mem::offset_of;
use core::ops::RangeInclusive;

/// A segment register, table B-2.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    /// Selector.
    pub selector: u16,
    /// Bits 40..47 and 52..55 of a descriptor.
    pub attributes: u16,
    /// Limit in bytes.
    pub limit: u32,
    /// Base.
    pub base: u64,
}

/// The block: control area, then the guest's state.
#[repr(C, align(4096))]
#[allow(missing_docs)] // the names are the manual's
pub struct Vmcb {
    pub intercept_cr: u32,
    pub intercept_dr: u32,
    pub intercept_exceptions: u32,
    pub intercept_1: u32,
    pub intercept_2: u32,
    pub intercept_3: u32,
    _reserved_018: [u8; 0x28],
    pub iopm: u64,
    pub msrpm: u64,
    pub tsc_offset: u64,
    pub asid: u32,
    pub tlb_control: u32,
    pub virtual_interrupt: u64,
    pub interrupt_shadow: u64,
    pub exit_code: u64,
    pub exit_info_1: u64,
    pub exit_info_2: u64,
    pub exit_int_info: u64,
    pub nested_control: u64,
    _reserved_098: [u8; 0x10],
    pub event_inj: u64,
    pub nested_cr3: u64,
    pub lbr_control: u64,
    pub clean: u64,
    pub next_rip: u64,
    _reserved_0d0: [u8; 0x330],

    pub es: Segment,
    pub cs: Segment,
    pub ss: Segment,
    pub ds: Segment,
    pub fs: Segment,
    pub gs: Segment,
    pub gdtr: Segment,
    pub ldtr: Segment,
    pub idtr: Segment,
    pub tr: Segment,
    _reserved_4a0: [u8; 0x2b],
    pub cpl: u8,
    _reserved_4cc: [u8; 4],
    pub efer: u64,
    _reserved_4d8: [u8; 0x70],
    pub cr4: u64,
    pub cr3: u64,
    pub cr0: u64,
    pub dr7: u64,
    pub dr6: u64,
    pub rflags: u64,
    pub rip: u64,
    _reserved_580: [u8; 0x58],
    pub rsp: u64,
    pub s_cet: u64,
    pub ssp: u64,
    pub isst: u64,
    pub rax: u64,
    pub star: u64,
    pub lstar: u64,
    pub cstar: u64,
    pub sfmask: u64,
    pub kernel_gs_base: u64,
    pub sysenter_cs: u64,
    pub sysenter_esp: u64,
    pub sysenter_eip: u64,
    pub cr2: u64,
    _reserved_648: [u8; 0x20],
    pub pat: u64,
    pub debug_control: u64,
    _reserved_678: [u8; 0x68],
    pub spec_ctrl: u64,
    _reserved_6e8: [u8; 0x918],
}

/// See [`Vmcb::controls`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Controls {
    /// CR0 and CR4.
    pub registers: [u64; 2],
    /// Base and limit of each table register, in the order of `TABLE_*`.
    pub tables: [[u64; 2]; 3],
}

impl Vmcb {
    /// CR0, CR4, and bases and limits of IDTR, GDTR and TR.
    pub fn controls(&self) -> Controls {
        let table = |segment: &Segment| [segment.base, segment.limit.into()];
        Controls {
            registers: [self.cr0, self.cr4],
            tables: [table(&self.idtr), table(&self.gdtr), table(&self.tr)],
        }
    }
}

const _: () = {
    assert!(size_of::<Vmcb>() == 4096);
    assert!(offset_of!(Vmcb, iopm) == 0x40 && offset_of!(Vmcb, exit_code) == 0x70);
    assert!(offset_of!(Vmcb, event_inj) == 0xa8 && offset_of!(Vmcb, next_rip) == 0xc8);
    assert!(offset_of!(Vmcb, es) == 0x400 && offset_of!(Vmcb, cpl) == 0x4cb);
    assert!(offset_of!(Vmcb, efer) == 0x4d0 && offset_of!(Vmcb, cr4) == 0x548);
    assert!(offset_of!(Vmcb, rip) == 0x578 && offset_of!(Vmcb, rsp) == 0x5d8);
    assert!(offset_of!(Vmcb, rax) == 0x5f8 && offset_of!(Vmcb, cr2) == 0x640);
    assert!(offset_of!(Vmcb, pat) == 0x668 && offset_of!(Vmcb, spec_ctrl) == 0x6e0);
};

/// [`Vmcb::intercept_cr`]: writes of CR4.
pub const INTERCEPT_CR4: u32 = 1 << (16 + 4);
/// [`Vmcb::intercept_1`]: writes of CR0 that change more than TS and MP, LIDT, LGDT and LTR. 15.9, table B-1.
pub const INTERCEPT_CONTROLS: u32 = 1 << 5 | 1 << 10 | 1 << 11 | 1 << 13;
#[allow(missing_docs)]
pub const INTERCEPT_NMI: u32 = 1 << 1;
#[allow(missing_docs)]
pub const INTERCEPT_INIT: u32 = 1 << 3;
#[allow(missing_docs)]
pub const INTERCEPT_IRET: u32 = 1 << 20;
#[allow(missing_docs)]
pub const INTERCEPT_INVD: u32 = 1 << 22;
#[allow(missing_docs)]
pub const INTERCEPT_HLT: u32 = 1 << 24;
#[allow(missing_docs)]
pub const INTERCEPT_PORTS: u32 = 1 << 27;
#[allow(missing_docs)]
pub const INTERCEPT_MSRS: u32 = 1 << 28;
#[allow(missing_docs)]
pub const INTERCEPT_SHUTDOWN: u32 = 1 << 31;
/// [`Vmcb::efer`]: SYSCALL and SYSRET exist.
pub const EFER_SCE: u64 = 1;
/// [`Vmcb::intercept_1`]: instructions after which a single step does not trap: INTn, HLT.
pub const INTERCEPT_UNSTEPPED_1: u32 = 1 << 21 | INTERCEPT_HLT;
/// [`Vmcb::intercept_2`]: the same: ICEBP, MONITOR, MWAIT in both forms.
pub const INTERCEPT_UNSTEPPED_2: u32 = 1 << 8 | 1 << 10 | 1 << 11 | 1 << 12;
/// [`Vmcb::intercept_2`]: VMRUN, which must be set, VMMCALL, VMLOAD, VMSAVE, STGI, CLGI, SKINIT.
pub const INTERCEPT_SVM: u32 = 0x7f;
/// WBINVD, MONITOR, MWAIT, XSETBV.
pub const INTERCEPT_REST: u32 = 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12 | 1 << 13;

/// [`Vmcb::exit_code`]: CR4 is written. Appendix C.
pub const VMEXIT_CR4: u64 = 0x14;
/// CR0 is written, and more than TS and MP change.
pub const VMEXIT_CR0: u64 = 0x65;
/// LIDT.
pub const VMEXIT_IDTR: u64 = 0x6a;
/// LGDT.
pub const VMEXIT_GDTR: u64 = 0x6b;
/// LTR.
pub const VMEXIT_TR: u64 = 0x6d;
#[allow(missing_docs)]
pub const VMEXIT_EXCEPTION: u64 = 0x40;
#[allow(missing_docs)]
pub const VMEXIT_NMI: u64 = 0x61;
#[allow(missing_docs)]
pub const VMEXIT_INIT: u64 = 0x63;
#[allow(missing_docs)]
pub const VMEXIT_IRET: u64 = 0x74;
#[allow(missing_docs)]
pub const VMEXIT_INVD: u64 = 0x76;
#[allow(missing_docs)]
pub const VMEXIT_PORT: u64 = 0x7b;
#[allow(missing_docs)]
pub const VMEXIT_MSR: u64 = 0x7c;
#[allow(missing_docs)]
pub const VMEXIT_SHUTDOWN: u64 = 0x7f;
#[allow(missing_docs)]
pub const VMEXIT_VMRUN: u64 = 0x80;
#[allow(missing_docs)]
pub const VMEXIT_VMMCALL: u64 = 0x81;
#[allow(missing_docs)]
pub const VMEXIT_SKINIT: u64 = 0x86;
#[allow(missing_docs)]
pub const VMEXIT_NESTED_FAULT: u64 = 0x400;
/// INTn.
pub const VMEXIT_SOFTWARE_INTERRUPT: u64 = 0x75;
/// HLT.
pub const VMEXIT_HLT: u64 = 0x78;
/// ICEBP.
pub const VMEXIT_ICEBP: u64 = 0x88;
/// MONITOR.
pub const VMEXIT_MONITOR: u64 = 0x8a;
/// MWAIT while the monitor is armed.
pub const VMEXIT_MWAIT_ARMED: u64 = 0x8c;
/// Bytes of the instruction VMMCALL.
pub const VMMCALL_BYTES: u64 = 3;
/// VMRUN has refused the block.
pub const VMEXIT_INVALID: u64 = u64::MAX;

/// [`Vmcb::event_inj`] and [`Vmcb::exit_int_info`], 15.20: the field is valid.
pub const EVENT_VALID: u64 = 1 << 31;
/// In the same fields: the upper half is an error code.
pub const EVENT_ERROR: u64 = 1 << 11;
/// In the same fields: mask of the type.
pub const EVENT_TYPE: u64 = 7 << 8;
/// Type of a non-maskable interrupt.
pub const EVENT_NMI: u64 = 2 << 8;
/// Type of an exception.
pub const EVENT_EXCEPTION: u64 = 3 << 8;

/// [`Vmcb::virtual_interrupt`]: the host's flag, not the guest's, masks physical interrupts.
pub const VIRTUAL_MASKING: u64 = 1 << 24;
/// [`Vmcb::tlb_control`]: flush the translations of all guests.
pub const FLUSH_ALL: u32 = 1;

/// Vectors.
pub const DEBUG: u64 = 1;
#[allow(missing_docs)]
pub const NMI: u64 = 2;
#[allow(missing_docs)]
pub const BREAKPOINT: u64 = 3;
#[allow(missing_docs)]
pub const OVERFLOW: u64 = 4;
#[allow(missing_docs)]
pub const INVALID_OPCODE: u64 = 6;
#[allow(missing_docs)]
pub const GENERAL_PROTECTION: u64 = 13;
#[allow(missing_docs)]
pub const PAGE_FAULT: u64 = 14;
#[allow(missing_docs)]
pub const MACHINE_CHECK: u64 = 18;

/// Exceptions with an error code: 8, 10..=14, 17, 21, 29, 30. APM 2 8.2.
const WITH_ERROR: u32 = 1 << 8 | 0x1f << 10 | 1 << 17 | 1 << 21 | 1 << 29 | 1 << 30;

/// The event that gives the guest exception `vector`.
pub const fn exception(vector: u64, error: u64) -> u64 {
    let event = EVENT_VALID | EVENT_EXCEPTION | vector;
    if WITH_ERROR >> vector & 1 != 0 {
        event | EVENT_ERROR | error << 32
    } else {
        event
    }
}

/// RFLAGS.TF, RF and IF.
pub const FLAG_TRAP: u64 = 1 << 8;
#[allow(missing_docs)]
pub const FLAG_RESUME: u64 = 1 << 16;
/// DR6.BS: a single step.
pub const DEBUG_STEP: u64 = 1 << 14;
/// In DR6: every cause of a debug exception that a processor reports there. It never clears them.
pub const DEBUG_CAUSES: u64 = 0b1111 | 1 << 13 | DEBUG_STEP | 1 << 15;

/// Whether a debug exception was the end of a step that began without [`DEBUG_CAUSES`]. Bochs exits before it sets any.
pub const fn is_step(dr6: u64) -> bool {
    dr6 & DEBUG_STEP != 0 || dr6 & DEBUG_CAUSES == 0
}
/// EFER.SVME.
pub const EFER_SVME: u64 = 1 << 12;

/// The registers that a permission map has. 15.11.
pub const MAPPED: [RangeInclusive<u32>; 3] =
    [0..=0x1fff, 0xc000_0000..=0xc000_1fff, 0xc001_0000..=0xc001_1fff];

/// Index of a register's first bit in a permission map of two pages: it is for reads, the next bit for writes.
pub fn msr_bit(msr: u32) -> Option<usize> {
    let part = MAPPED.iter().position(|range| range.contains(&msr))?;
    Some((part * 0x800 * 4 + (msr - MAPPED[part].start()) as usize) * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_with_an_error_code_carry_it() {
        assert_eq!(exception(INVALID_OPCODE, 7), 0x8000_0306);
        assert_eq!(exception(PAGE_FAULT, 7), 7 << 32 | 0x8000_0b0e);
    }

    #[test]
    fn a_breakpoint_alone_is_no_step() {
        const NONE: u64 = 0xffff_0ff0;
        assert!(is_step(NONE) && is_step(NONE | DEBUG_STEP) && is_step(NONE | DEBUG_STEP | 1));
        for cause in [1, 1 << 3, 1 << 13, 1 << 15] {
            assert!(!is_step(NONE | cause), "{cause:#x}");
        }
    }

    #[test]
    fn registers_have_their_place_in_the_map() {
        assert_eq!(msr_bit(0x1b), Some(0x36));
        assert_eq!(msr_bit(0xc000_0080), Some(0x800 * 8 + 0x100));
        assert_eq!(msr_bit(0xc001_0117), Some(0x1000 * 8 + 0x22e));
        assert_eq!(msr_bit(0x4000_0000), None);
    }
}
