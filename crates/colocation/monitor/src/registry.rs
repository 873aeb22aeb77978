//! The checks. A new one is a line here: what it needs and may use, it declares itself.

use crate::check::{About, Check, Make};
use crate::memory::KernelMemory;
use crate::profile::{Profile, ProfileError};
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

macro_rules! checks {
    ($($check:path),* $(,)?) => {
        /// What the checks declare, in the order in which they get their shares of a slice.
        pub const ABOUT: &[About] = &[$(<$check as Make>::ABOUT),*];

        /// Makes every check for a kernel with `profile`, in the order of [`ABOUT`]. Linux must not know `seed`.
        ///
        /// # Errors
        ///
        /// [`ProfileError`] if the profile lacks something that a check cannot do without.
        pub fn make<M: KernelMemory>(
            profile: &Profile<'_>,
            seed: u64,
        ) -> Result<Vec<Box<dyn Check<M>>>, ProfileError> {
            Ok(vec![$(Box::new(<$check>::make(profile, seed)?)),*])
        }

        /// Checks that `profile` has what every check needs.
        ///
        /// # Errors
        ///
        /// [`ProfileError`] if it lacks something that a check cannot do without.
        pub fn require(profile: &Profile<'_>) -> Result<(), ProfileError> {
            $(<$check>::make(profile, 0)?;)*
            Ok(())
        }
    };
}

checks![
    crate::registers::RegisterCheck,
    crate::gates::GateCheck,
    crate::descriptors::DescriptorCheck,
    crate::liveness::LivenessCheck,
    crate::settings::SettingCheck,
    crate::tasks::TaskCheck,
    crate::modules::ModuleCheck,
    crate::bpf::BpfCheck,
    crate::text::modules::ModuleTextCheck,
    crate::mappings::MappingCheck,
    crate::crash_kernel::CrashKernelCheck,
    crate::hooks::HookCheck,
    crate::text::TextCheck,
];
