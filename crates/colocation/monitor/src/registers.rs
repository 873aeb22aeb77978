//! The check `registers`: control registers, the entries of system calls, and breakpoints.
//!
//! Those of the cokernel's CPU are judged at each tick. In mode none, the other CPUs show theirs in turn.
//!
//! Linux sets these registers when it brings a CPU up, and then never again: their values follow from its symbols, or
//! are those of the first look. A changed one is reported, even if it is as it was by then. Breakpoints are compared
//! with Linux's own record of them, which it writes before it enables one.
//!
//! On a host of Intel virtual machines, KVM leaves a guest's STAR, LSTAR, CSTAR and SFMASK in place while their thread
//! runs in the kernel. There these four are not judged.

use crate::check::{About, Budget, Check, Coverage, Make, Repairs, Step};
use crate::class::Class;
use crate::confirm::Confirm;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner::{self, OwnerIndex, Owners};
use crate::profile::{Profile, ProfileError};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use kyozon_abi::layer::{LinuxRegisters, Write, WRITE_CONTROL, WRITE_REGISTER};

/// Looks that make a pass.
pub(crate) const LOOKS_PER_PASS: u64 = 32;
/// Registers that a look judges.
const REGISTERS: u64 = 16;
/// Those that a guest's value may be left in.
const GUESTS: u64 = 4;
/// The lowest virtual address that the kernel uses.
const KERNEL_HALF: u64 = 1 << 63;

/// CR0: protected mode, write protection, paging. Intel SDM volume 3A, 2.5.
const CR0: [(Key, u64); 3] = [(Key::Pe, 1), (Key::Wp, 1 << 16), (Key::Pg, 1 << 31)];
/// CR4: user-mode instruction prevention; no execution of, and no access to, user pages by the kernel.
const CR4: [(Key, u64); 3] = [(Key::Umip, 1 << 11), (Key::Smep, 1 << 20), (Key::Smap, 1 << 21)];
/// CR4: events are delivered by FRED, which uses neither gates nor the entries in LSTAR, CSTAR and SYSENTER_EIP. Intel
/// FRED specification, 3.1.
pub(crate) const CR4_FRED: u64 = 1 << 32;
/// EFER: system calls, long mode enabled and active, no-execute. AMD APM 2, 3.1.7.
const EFER: u64 = 1 | 1 << 8 | 1 << 10 | 1 << 11;
/// STAR: Linux's code selectors for SYSCALL, `__KERNEL_CS`, and SYSRET, `__USER32_CS`.
const STAR: u64 = 0x10 << 32 | 0x23 << 48;

/// The numbers of the registers whose writes may be watched. AMD APM 2, appendix A.
const SYSENTER_CS_NUMBER: u32 = 0x174;
const SYSENTER_EIP_NUMBER: u32 = 0x176;
const EFER_NUMBER: u32 = 0xc000_0080;
const STAR_NUMBER: u32 = 0xc000_0081;
const LSTAR_NUMBER: u32 = 0xc000_0082;
const CSTAR_NUMBER: u32 = 0xc000_0083;
const SFMASK_NUMBER: u32 = 0xc000_0084;

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Pe,
    Wp,
    Pg,
    Umip,
    Smep,
    Smap,
    Efer,
    Star,
    Lstar,
    Cstar,
    Sfmask,
    SysenterCs,
    SysenterEip,
    Breakpoint(u8),
}

impl Key {
    /// The kind of finding.
    fn what(self) -> String {
        let name = match self {
            Self::Pe => "CR0.PE cleared",
            Self::Wp => "CR0.WP cleared",
            Self::Pg => "CR0.PG cleared",
            Self::Umip => "CR4.UMIP cleared",
            Self::Smep => "CR4.SMEP cleared",
            Self::Smap => "CR4.SMAP cleared",
            Self::Efer => "EFER changed",
            Self::Star => "STAR changed",
            Self::Lstar => "LSTAR changed",
            Self::Cstar => "CSTAR changed",
            Self::Sfmask => "SFMASK changed",
            Self::SysenterCs => "SYSENTER_CS changed",
            Self::SysenterEip => "SYSENTER_EIP changed",
            Self::Breakpoint(number) => return format!("unrecorded breakpoint DR{number}"),
        };
        name.into()
    }

    /// Whether KVM for Intel's processors leaves a guest's value in place.
    fn is_guests(self) -> bool {
        matches!(self, Self::Star | Self::Lstar | Self::Cstar | Self::Sfmask)
    }

    /// Whether it is about bits that Linux has set once and for all.
    fn is_bit(self) -> bool {
        use Key::*;
        matches!(self, Pe | Wp | Pg | Umip | Smep | Smap | Efer)
    }

    /// Whether the value is an address of code.
    fn is_address(self) -> bool {
        matches!(self, Self::Lstar | Self::Cstar | Self::SysenterEip | Self::Breakpoint(_))
    }
}

/// What Linux's symbols say.
#[derive(Clone, Copy, Debug, Default)]
struct Layout {
    /// The values that an entry may have. 0 where Linux does not set it: CSTAR on Intel's processors, and SYSENTER_EIP
    /// without 32-bit programs.
    lstar: [Option<u64>; 1],
    cstar: [Option<u64>; 3],
    sysenter: [Option<u64>; 1],
    /// `cr4_pinned_bits`: the bits that Linux itself holds.
    pinned: Option<u64>,
    /// `__per_cpu_offset`, and `cpu_debugreg` in each CPU's area.
    cpu_offsets: Option<u64>,
    breakpoints: Option<u64>,
}

/// Values of the first look.
#[derive(Clone, Copy, Debug)]
struct First {
    cr4: u64,
    sfmask: u64,
    sysenter_cs: u64,
    sysenter_eip: u64,
    lstar: u64,
    cstar: u64,
}

/// The check `registers`.
#[derive(Debug)]
pub struct RegisterCheck {
    layout: Layout,
    first: Option<First>,
    /// Bad registers, each with the number of the CPU.
    confirm: Confirm<(u64, Key)>,
    owners: Option<OwnerIndex>,
    /// KVM for Intel's processors was listed at the last report.
    hosts: bool,
    looks: u64,
    /// Other CPUs that were judged since the last pass.
    others: u64,
    coverage: Coverage,
}

/// Whether `value` is what an AMD processor keeps of `written` in a register of SYSENTER: its lower half. It does not
/// use them in 64-bit mode. AMD APM volume 2, "SYSENTER and SYSEXIT MSRs".
pub(crate) fn is_truncated(written: u64, value: u64) -> bool {
    value == written & 0xffff_ffff
}

/// The register that `write` changes, and what is judged of it.
fn written<'a>(r: &'a mut LinuxRegisters, write: &Write) -> Option<(&'a mut u64, &'static [Key])> {
    let number = u32::try_from(write.address).ok()?;
    Some(match (write.kind, number) {
        (WRITE_CONTROL, 0) => (&mut r.cr0, &[Key::Pe, Key::Wp, Key::Pg]),
        (WRITE_CONTROL, 4) => (&mut r.cr4, &[Key::Umip, Key::Smep, Key::Smap]),
        (WRITE_REGISTER, EFER_NUMBER) => (&mut r.efer, &[Key::Efer]),
        (WRITE_REGISTER, STAR_NUMBER) => (&mut r.star, &[Key::Star]),
        (WRITE_REGISTER, LSTAR_NUMBER) => (&mut r.lstar, &[Key::Lstar]),
        (WRITE_REGISTER, CSTAR_NUMBER) => (&mut r.cstar, &[Key::Cstar]),
        (WRITE_REGISTER, SFMASK_NUMBER) => (&mut r.sfmask, &[Key::Sfmask]),
        (WRITE_REGISTER, SYSENTER_CS_NUMBER) => (&mut r.sysenter_cs, &[Key::SysenterCs]),
        (WRITE_REGISTER, SYSENTER_EIP_NUMBER) => (&mut r.sysenter_eip, &[Key::SysenterEip]),
        _ => return None,
    })
}

impl RegisterCheck {
    /// Whether KVM for Intel's processors is loaded.
    fn has_guests<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> bool {
        self.owners.as_ref().is_some_and(|index| index.has_module(kernel, "kvm_intel"))
    }

    /// Shows every register to `see` that is not as it should be.
    fn judge<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        first: &First,
        r: &LinuxRegisters,
        mut see: impl FnMut(Key, u64),
    ) {
        for (key, bit) in CR0 {
            if r.cr0 & bit == 0 {
                see(key, r.cr0);
            }
        }
        let pinned = self.layout.pinned.and_then(|at| kernel.u64(at)).unwrap_or(0) | first.cr4;
        for (key, bit) in CR4 {
            if pinned & bit != 0 && r.cr4 & bit == 0 {
                see(key, r.cr4);
            }
        }
        if r.efer & EFER != EFER {
            see(Key::Efer, r.efer);
        }
        let is_entry = |allowed: &[Option<u64>], first: u64, value: u64| {
            // A processor that does not use the register may have none.
            let is_unused = value == 0 || allowed.iter().all(Option::is_none);
            let is_half = || allowed.iter().flatten().any(|entry| is_truncated(*entry, value));
            allowed.contains(&Some(value)) || first == value && (is_unused || is_half())
        };
        let entries = [
            (Key::Star, r.star & !0xffff_ffff == STAR, r.star),
            (Key::Lstar, is_entry(&self.layout.lstar, first.lstar, r.lstar), r.lstar),
            (Key::Cstar, is_entry(&self.layout.cstar, first.cstar, r.cstar), r.cstar),
            (Key::Sfmask, r.sfmask == first.sfmask, r.sfmask),
            (Key::SysenterCs, r.sysenter_cs == first.sysenter_cs, r.sysenter_cs),
            (
                Key::SysenterEip,
                is_entry(&self.layout.sysenter, first.sysenter_eip, r.sysenter_eip),
                r.sysenter_eip,
            ),
        ];
        for (key, is_good, value) in entries {
            if !is_good && r.cr4 & CR4_FRED == 0 {
                see(key, value);
            }
        }
        for (number, address) in (0..).zip(r.breakpoints) {
            let is_enabled = r.dr7 >> (2 * number) & 3 != 0;
            if is_enabled
                && address >= KERNEL_HALF
                && self.is_recorded(kernel, r.cpu, number, address) == Some(false)
            {
                see(Key::Breakpoint(number as u8), address);
            }
        }
    }

    /// Whether Linux's record of breakpoint `number` of a CPU is `address`; `None` if it cannot be read.
    fn is_recorded<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        cpu: u64,
        number: u64,
        address: u64,
    ) -> Option<bool> {
        let area = kernel.u64(self.layout.cpu_offsets?.checked_add(cpu.checked_mul(8)?)?)?;
        let record = area.wrapping_add(self.layout.breakpoints?).wrapping_add(8 * number);
        Some(kernel.u64(record)? == address)
    }

    /// The words for a changed register.
    fn finding<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        cpu: u64,
        key: Key,
        value: u64,
    ) -> Finding {
        let named = |values: &[Option<u64>]| {
            let value = values.iter().flatten().find(|&&value| value != 0);
            value.map_or_else(String::new, |&value| owner::symbol(kernel, value))
        };
        let first = |read: fn(&First) -> u64| {
            self.first.map_or_else(String::new, |first| format!("{:#x}", read(&first)))
        };
        let expected = match key {
            Key::Lstar => named(&self.layout.lstar),
            Key::Cstar => named(&self.layout.cstar),
            Key::SysenterEip => named(&self.layout.sysenter),
            Key::Star => format!("{STAR:#x}"),
            Key::Efer => format!("the bits {EFER:#x}"),
            Key::Sfmask => first(|first| first.sfmask),
            Key::SysenterCs => first(|first| first.sysenter_cs),
            _ => String::new(),
        };
        let leads = key.is_address() && value >= KERNEL_HALF;
        Finding {
            what: key.what(),
            symbol: format!("CPU {cpu}"),
            owner: match leads {
                true => owner::describe(kernel, self.owners.as_ref(), value),
                false => "nobody".into(),
            },
            expected,
            found: format!("{value:#x}"),
            ..Finding::new(Class::RegisterModified)
        }
    }
}

impl Make for RegisterCheck {
    const ABOUT: About =
        About { name: "registers", wants: &[], share: 2, pass_ms: 0, repairs: Repairs::Nothing };

    fn make(profile: &Profile<'_>, _seed: u64) -> Result<Self, ProfileError> {
        let symbol = |name| profile.symbol(name);
        Ok(Self {
            layout: Layout {
                lstar: [symbol("entry_SYSCALL_64")],
                cstar: [
                    symbol("entry_SYSCALL_compat"),
                    symbol("entry_SYSCALL32_ignore"),
                    symbol("ignore_sysret"),
                ],
                sysenter: [symbol("entry_SYSENTER_compat")],
                pinned: symbol("cr4_pinned_bits"),
                cpu_offsets: symbol("__per_cpu_offset"),
                breakpoints: symbol("cpu_debugreg"),
            },
            first: None,
            confirm: Confirm::keeping(1),
            owners: Owners::new(profile).ok().map(OwnerIndex::new),
            hosts: false,
            looks: 0,
            others: 0,
            coverage: Coverage { learning: true, ..Coverage::default() },
        })
    }
}

impl<M: KernelMemory> Check<M> for RegisterCheck {
    fn about(&self) -> &'static About {
        &Self::ABOUT
    }

    fn coverage(&self) -> Coverage {
        self.coverage
    }

    fn stands(&self, what: &str, _address: u64) -> bool {
        self.confirm.stands(|(_, key)| key.what() == what)
    }

    fn judge_writes(
        &mut self,
        kernel: &Kernel<'_, M>,
        writes: &[Write],
        found: &mut dyn FnMut(Finding),
    ) {
        let Some((first, r)) = self.first.zip(kernel.memory.registers()) else { return };
        for write in writes {
            let (mut before, mut after) = (r, r);
            let Some((register, keys)) = written(&mut after, write) else { continue };
            *register = write.after[0];
            if let Some((register, _)) = written(&mut before, write) {
                *register = write.before[0];
            }
            // While a CPU comes up, bits are not set yet.
            let mut missing = Vec::new();
            self.judge(kernel, &first, &before, |bad, _| {
                missing.extend(Some(bad).filter(|key| key.is_bit()));
            });
            self.judge(kernel, &first, &after, |bad, value| {
                if keys.contains(&bad) && !missing.contains(&bad) {
                    found(self.finding(kernel, write.cpu.into(), bad, value));
                }
            });
        }
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        retries: &mut u64,
    ) -> Step {
        self.coverage.learning = false;
        let Some(r) = kernel.memory.registers() else {
            self.coverage.unjudged = REGISTERS;
            return Step::Done(0);
        };
        let first = *self.first.get_or_insert(First {
            cr4: r.cr4,
            sfmask: r.sfmask,
            sysenter_cs: r.sysenter_cs,
            sysenter_eip: r.sysenter_eip,
            lstar: r.lstar,
            cstar: r.cstar,
        });
        let mut confirm = core::mem::replace(&mut self.confirm, Confirm::keeping(1));
        let other = kernel.memory.other_registers();
        self.others += u64::from(other.is_some());
        for r in [Some(r), other].into_iter().flatten() {
            self.judge(kernel, &first, &r, |key, value| confirm.see((r.cpu, key), value));
            confirm.end_look_at(|(cpu, _)| cpu == r.cpu);
        }
        self.confirm = confirm;
        let due = self.confirm.take_with_owners(&mut self.owners, kernel, budget, retries);
        if let Some(due) = due {
            self.hosts = self.has_guests(kernel);
            for ((cpu, key), value) in due {
                if !(self.hosts && key.is_guests()) {
                    found(self.finding(kernel, cpu, key, value));
                }
            }
        }
        let unjudged = self.hosts && self.confirm.stands(|(_, key)| key.is_guests());
        self.coverage.unjudged = if unjudged { GUESTS } else { 0 };
        self.looks += 1;
        match self.looks % LOOKS_PER_PASS {
            0 => Step::Done(REGISTERS * (1 + core::mem::take(&mut self.others))),
            _ => Step::Rests,
        }
    }
}

#[cfg(test)]
mod tests;
