//! The CPUID leaves of a guest's processor. They are few, because guests take their features from the boot block.
//!
//! KVM checks control registers against CPUID, so the leaves contain each feature that the tender enables there.
//! `KVM_GET_SUPPORTED_CPUID` executes `cpuid` a hundred times, which is slow if each one exits. The tender therefore
//! reads a handful of leaves from the processor and masks them to the features that every KVM passes on.

use crate::clock::steady;
use crate::error::{Error, Result};
use kvm_bindings::{kvm_cpuid_entry2, CpuId, KVM_CPUID_FLAG_SIGNIFCANT_INDEX};
use kyozon_abi::unikernel::{FEATURE_AVX2, FEATURE_FSGSBASE};
use std::arch::x86_64::{__cpuid, _xgetbv};

/// Leaf 1, ECX: SSE3, PCLMULQDQ, SSSE3, FMA, CMPXCHG16B, SSE4.1, SSE4.2, MOVBE, POPCNT, AES, AVX, F16C, RDRAND.
const LEAF_1_ECX: u32 =
    1 | 1 << 1 | 1 << 9 | 1 << 12 | 1 << 13 | 3 << 19 | 1 << 22 | 1 << 23 | 1 << 25 | 7 << 28;
/// Leaf 1, ECX: the processor has XSAVE.
const XSAVE: u32 = 1 << 26;
/// Leaf 1, ECX: Linux has enabled XSAVE.
const OSXSAVE: u32 = 1 << 27;
const AVX: u32 = 1 << 28;
/// Leaf 1, EDX: FPU, DE, PSE, TSC, MSR, PAE, CX8, PGE, CMOV, PAT, PSE-36, CLFSH, MMX, FXSR, SSE, SSE2.
const LEAF_1_EDX: u32 = 1
    | 1 << 2
    | 1 << 3
    | 1 << 4
    | 1 << 5
    | 1 << 6
    | 1 << 8
    | 1 << 13
    | 1 << 15
    | 3 << 16
    | 1 << 19
    | 0xf << 23;
/// Leaf 7, EBX: FSGSBASE, BMI1, AVX2, BMI2, ERMS, RDSEED, ADX, CLFLUSHOPT, CLWB, SHA.
const FSGSBASE: u32 = 1;
const AVX2: u32 = 1 << 5;
const LEAF_7_EBX: u32 =
    FSGSBASE | 1 << 3 | AVX2 | 1 << 8 | 1 << 9 | 1 << 18 | 1 << 19 | 1 << 23 | 1 << 24 | 1 << 29;
/// Leaf 8000_0001: LAHF and LZCNT in ECX; NX, 1 GiB pages, RDTSCP and LM in EDX, beside the bits of leaf 1 that AMD
/// repeats.
const EXTENDED_ECX: u32 = 1 | 1 << 5;
const EXTENDED_EDX: u32 = 1 << 20 | 1 << 26 | 1 << 27 | 1 << 29;

/// CPUID leaves, and the values derived from them for control registers and the boot block.
pub struct Processor {
    /// The leaves for `KVM_SET_CPUID2`.
    pub cpuid: CpuId,
    /// `FEATURE_*` bits for the boot block.
    pub features: u64,
    /// XCR0; 0 without XSAVE.
    pub xcr0: u64,
}

/// A leaf without subleaves, with its four registers.
fn leaf(function: u32, [eax, ebx, ecx, edx]: [u32; 4]) -> kvm_cpuid_entry2 {
    kvm_cpuid_entry2 { function, eax, ebx, ecx, edx, ..Default::default() }
}

/// The subleaf `index` of a leaf.
fn subleaf(function: u32, index: u32, registers: [u32; 4]) -> kvm_cpuid_entry2 {
    let flags = KVM_CPUID_FLAG_SIGNIFCANT_INDEX;
    kvm_cpuid_entry2 { index, flags, ..leaf(function, registers) }
}

/// A leaf of this machine's processor, reduced to the bits of the given masks.
fn masked(function: u32, [eax, ebx, ecx, edx]: [u32; 4]) -> [u32; 4] {
    let host = __cpuid(function);
    [host.eax & eax, host.ebx & ebx, host.ecx & ecx, host.edx & edx]
}

/// XCR0 as Linux has set it.
///
/// # Safety
///
/// CPUID must report OSXSAVE.
#[target_feature(enable = "xsave")]
unsafe fn enabled_states() -> u32 {
    // SAFETY: the caller checked OSXSAVE; register 0 exists (Intel SDM volume 2, XGETBV).
    unsafe { _xgetbv(0) as u32 }
}

impl Processor {
    /// Reads this machine's processor.
    ///
    /// # Errors
    ///
    /// There are too many leaves for KVM; an error of the tender itself.
    pub fn new() -> Result<Self> {
        let mut first = masked(0, [u32::MAX; 4]);
        first[0] = first[0].min(0xd);
        let mut basic = masked(1, [u32::MAX, 0xff00, LEAF_1_ECX | XSAVE | OSXSAVE, LEAF_1_EDX]);
        // SAFETY: the function is called only if CPUID reports OSXSAVE.
        let states = if basic[2] & OSXSAVE == 0 { 0 } else { unsafe { enabled_states() } };
        basic[2] &= !OSXSAVE;
        let mut structured = masked(7, [0, LEAF_7_EBX, 0, 0]);
        let xsave = basic[2] & XSAVE != 0 && states & 3 == 3 && first[0] >= 0xd;
        let avx = xsave && basic[2] & AVX != 0 && states & 4 != 0;
        if !xsave {
            basic[2] &= !XSAVE;
        }
        if !avx {
            basic[2] &= !(AVX | 1 << 12 | 1 << 29);
            structured[1] &= !AVX2;
        }
        let mut leaves = vec![leaf(0, first), leaf(1, basic), subleaf(7, 0, structured)];
        if xsave {
            // KVM requires consistent sizes: x87, SSE and the header have 576 bytes (Intel SDM volume 1, 13.4), and AVX
            // has the next 256 on every processor with AVX.
            let (states, bytes) = if avx { (7, 832) } else { (3, 576) };
            leaves.push(subleaf(0xd, 0, [states, bytes, bytes, 0]));
            leaves.push(subleaf(0xd, 2, if avx { [256, 576, 0, 0] } else { [0; 4] }));
        }
        // Every processor with 64-bit mode has these leaves; the last one holds the width of addresses (AMD APM
        // volume 3, E.4; Intel SDM volume 2, CPUID).
        leaves.push(leaf(0x8000_0000, [0x8000_0008, 0, 0, 0]));
        leaves.push(leaf(
            0x8000_0001,
            masked(0x8000_0001, [u32::MAX, 0, EXTENDED_ECX, LEAF_1_EDX | EXTENDED_EDX]),
        ));
        leaves.push(leaf(0x8000_0007, [0, 0, 0, u32::from(steady()) << 8]));
        leaves.push(leaf(0x8000_0008, masked(0x8000_0008, [0xffff, 0, 0, 0])));
        let bit = |on: bool, bit| if on { bit } else { 0 };
        let features = bit(avx && structured[1] & AVX2 != 0, FEATURE_AVX2)
            | bit(structured[1] & FSGSBASE != 0, FEATURE_FSGSBASE);
        let xcr0 = bit(xsave, 3) | bit(avx, 4);
        let cpuid = CpuId::from_entries(&leaves)
            .map_err(|_| Error::Internal("too many leaves for KVM_SET_CPUID2".into()))?;
        Ok(Self { cpuid, features, xcr0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enabled_features_are_in_the_leaves() {
        let processor = Processor::new().unwrap();
        let leaves = processor.cpuid.as_slice();
        let find =
            |function| leaves.iter().find(|l| l.function == function && l.index == 0).unwrap();
        assert_eq!(find(0x8000_0001).edx & 1 << 29, 1 << 29, "64-bit mode");
        assert!((32..=52).contains(&(find(0x8000_0008).eax & 0xff)));
        assert_eq!(processor.xcr0 != 0, find(1).ecx & XSAVE != 0);
        assert_eq!(processor.xcr0 & 4 != 0, find(1).ecx & AVX != 0);
        assert_eq!(processor.features & FEATURE_AVX2 != 0, find(7).ebx & AVX2 != 0);
        assert_eq!(processor.features & FEATURE_FSGSBASE != 0, find(7).ebx & FSGSBASE != 0);
        if processor.xcr0 != 0 {
            assert_eq!(u64::from(find(0xd).eax) & processor.xcr0, processor.xcr0);
        }
        // No bits of hypervisors, debugging, monitoring or the APIC.
        assert_eq!(find(1).ecx & (1 << 31 | 1 << 21 | 1 << 3 | 1 << 5), 0);
    }
}
