//! The extended feature enable register. Linux's is in its control block, and VMRUN refuses a block with a value that a
//! processor would not have taken: so each value is judged before it is stored.
//!
//! Reference: AMD APM 2, 3.1.7 (bits and features) and 15.5.1 (what VMRUN checks).

use super::Write;

/// SVM is on.
pub const SVME: u64 = 1 << 12;
pub(in crate::vmm) const LONG_MODE_ENABLE: u64 = 1 << 8;
pub(in crate::vmm) const LONG_MODE_ACTIVE: u64 = 1 << 10;
const CR0_PAGING: u64 = 1 << 31;

/// What the processor says about its features, by CPUID.
#[derive(Clone, Copy, Debug, Default)]
pub struct Features {
    /// ECX of function 8000_0001.
    pub extended_ecx: u32,
    /// EDX of function 8000_0001.
    pub extended_edx: u32,
    /// EBX of function 8000_0008.
    pub sizes_ebx: u32,
    /// EAX of function 8000_0021, 0 if there is none.
    pub more_eax: u32,
}

/// The bits that a processor with these features has, but for LMSLE (bit 13): Linux does not use it, and new processors
/// lack it (CPUID 8000_0008, EBX bit 20). QEMU lacks it, too, does not say so, and refuses it at VMRUN.
pub fn bits(features: &Features) -> u64 {
    let f = features;
    let bit = |register: u32, from: u32, to: u32| u64::from(register >> from & 1) << to;
    bit(f.extended_edx, 11, 0)          // SCE
        | bit(f.extended_edx, 29, 8)    // LME
        | bit(f.extended_edx, 29, 10)   // LMA
        | bit(f.extended_edx, 20, 11)   // NXE
        | bit(f.extended_ecx, 2, 12)    // SVME
        | bit(f.extended_edx, 25, 14)   // FFXSR
        | bit(f.extended_ecx, 17, 15)   // TCE
        | bit(f.sizes_ebx, 8, 17)       // MCOMMIT
        | bit(f.sizes_ebx, 13, 18)      // INTWB
        | bit(f.more_eax, 7, 20)        // UAIE
        | bit(f.more_eax, 8, 21) // AIBRSE
}

/// Decides about a write of `value`. `bits` are those that the processor has. A processor ignores a change of LMA.
pub fn write(value: u64, current: u64, cr0: u64, bits: u64) -> Write {
    let value = value & !LONG_MODE_ACTIVE | current & LONG_MODE_ACTIVE;
    let changed = value ^ current;
    if value & !bits != 0 || changed & LONG_MODE_ENABLE != 0 && cr0 & CR0_PAGING != 0 {
        return Write::Fault;
    }
    match changed {
        0 => Write::Keep,
        // Linux runs as a guest, so SVM stays on.
        _ if value & SVME == 0 => Write::Refuse,
        _ => Write::Pass(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTECTED: u64 = 1;
    const ALL: Features = Features {
        extended_ecx: u32::MAX,
        extended_edx: u32::MAX,
        sizes_ebx: u32::MAX,
        more_eax: u32::MAX,
    };
    /// A 64-bit Linux's: SCE, LME, LMA, NXE, SVME.
    const LINUX: u64 = 0x1d01;

    #[test]
    fn each_bit_has_its_feature() {
        assert_eq!(bits(&ALL), 0x36_dd01);
        let none = Features::default();
        assert_eq!(bits(&none), 0);
        for (features, bit) in [
            (Features { extended_edx: 1 << 11, ..none }, 1),
            (Features { extended_edx: 1 << 29, ..none }, 1 << 8 | 1 << 10),
            (Features { extended_edx: 1 << 20, ..none }, 1 << 11),
            (Features { extended_ecx: 1 << 2, ..none }, 1 << 12),
            (Features { extended_edx: 1 << 25, ..none }, 1 << 14),
            (Features { extended_ecx: 1 << 17, ..none }, 1 << 15),
            (Features { sizes_ebx: 1 << 8, ..none }, 1 << 17),
            (Features { sizes_ebx: 1 << 13, ..none }, 1 << 18),
            (Features { more_eax: 1 << 7, ..none }, 1 << 20),
            (Features { more_eax: 1 << 8, ..none }, 1 << 21),
        ] {
            assert_eq!(bits(&features), bit, "{features:?}");
        }
    }

    #[test]
    fn bits_that_the_processor_lacks_fault() {
        for has in [bits(&ALL), LINUX] {
            for bit in (0..64).filter(|bit| LINUX >> bit & 1 == 0) {
                let value = LINUX | 1 << bit;
                let expected = if has >> bit & 1 == 0 { Write::Fault } else { Write::Pass(value) };
                for cr0 in [PROTECTED, PROTECTED | CR0_PAGING] {
                    assert_eq!(write(value, LINUX, cr0, has), expected, "bit {bit} of {has:#x}");
                }
            }
        }
    }

    #[test]
    fn long_mode_changes_only_without_paging() {
        let legacy = LINUX & !LONG_MODE_ENABLE & !LONG_MODE_ACTIVE;
        let paging = PROTECTED | CR0_PAGING;
        assert_eq!(write(LINUX & !LONG_MODE_ENABLE, LINUX, paging, bits(&ALL)), Write::Fault);
        assert_eq!(write(legacy | LONG_MODE_ENABLE, legacy, paging, bits(&ALL)), Write::Fault);
        let enabled = legacy | LONG_MODE_ENABLE;
        assert_eq!(write(enabled, legacy, PROTECTED, bits(&ALL)), Write::Pass(enabled));
        assert_eq!(write(legacy, enabled, PROTECTED, bits(&ALL)), Write::Pass(legacy));
    }

    #[test]
    fn long_mode_active_is_read_only() {
        let paging = PROTECTED | CR0_PAGING;
        assert_eq!(write(LINUX & !LONG_MODE_ACTIVE, LINUX, paging, bits(&ALL)), Write::Keep);
        let legacy = LINUX & !LONG_MODE_ACTIVE;
        assert_eq!(write(LINUX, legacy, PROTECTED, bits(&ALL)), Write::Keep);
    }

    #[test]
    fn svm_stays_on() {
        let paging = PROTECTED | CR0_PAGING;
        assert_eq!(write(LINUX & !SVME, LINUX, paging, bits(&ALL)), Write::Refuse);
        assert_eq!(write(LINUX & !SVME & !1, LINUX, paging, bits(&ALL)), Write::Refuse);
    }

    /// No value that passes makes VMRUN refuse the block.
    #[test]
    fn stored_values_are_valid() {
        for cr0 in [PROTECTED, PROTECTED | CR0_PAGING] {
            for current in [LINUX, LINUX & !LONG_MODE_ACTIVE & !LONG_MODE_ENABLE] {
                for low in 0..1u64 << 22 {
                    let value = low | if low & 3 == 3 { 1 << 40 } else { 0 };
                    if let Write::Pass(stored) = write(value, current, cr0, LINUX | 1 << 14) {
                        assert_eq!(stored & !(LINUX | 1 << 14), 0, "{value:#x}");
                        assert_ne!(stored & SVME, 0, "{value:#x}");
                        let same = (stored ^ current) & LONG_MODE_ENABLE == 0;
                        assert!(same || cr0 & CR0_PAGING == 0, "{value:#x}");
                    }
                }
            }
        }
    }
}
