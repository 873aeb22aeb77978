//! The bytes of its own code that Linux patches at boot, from the tables in the image. The running kernel no longer has
//! them: it frees their memory after boot.

use super::LoadedImage;
use crate::profile::btf::Btf;
use crate::profile::fingerprints::{Mask, MaskKind};
use crate::profile::listing::SymbolNames;
use crate::profile::ProfileError;
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of a near call or jump; of a conditional jump.
const NEAR: u8 = 5;
const NEAR_CONDITIONAL: u8 = 6;
/// Bytes before a function's entry, where Linux may put the code that counts calls and redirect calls to it.
const PADDING: u8 = 16;
/// Bytes of an `ENDBR64`.
const ENDBR: u8 = 4;

/// The masks, sorted by address, without overlaps.
pub(super) fn masks(
    loaded: &LoadedImage,
    names: &SymbolNames<'_>,
    btf: &Btf<'_>,
    calls_changed: bool,
) -> Result<Vec<Mask>, ProfileError> {
    let mut all = MaskCollector { loaded, masks: Vec::new() };
    let table = |start, end| names.range(start, end).unwrap_or_default();
    all.alternatives(table("__alt_instructions", "__alt_instructions_end"), btf)?;
    all.paravirt(table("__parainstructions", "__parainstructions_end"), btf)?;
    all.sites(table("__return_sites", "__return_sites_end"), MaskKind::Return);
    all.sites(table("__retpoline_sites", "__retpoline_sites_end"), MaskKind::Indirect);
    all.relative(table("__smp_locks", "__smp_locks_end"), 4, |_| 1);
    all.relative(table("__ibt_endbr_seal", "__ibt_endbr_seal_end"), 4, |_| ENDBR);
    all.entries(table("__start_mcount_loc", "__stop_mcount_loc"));
    all.relative(table("__start___jump_table", "__stop___jump_table"), 16, |code| match code {
        [0xeb, ..] | [0x66, 0x90, ..] => 2,
        _ => NEAR,
    });
    all.relative(table("__start_static_call_sites", "__stop_static_call_sites"), 8, near);
    for (address, _) in names.with_prefix("__SCT__") {
        all.any(address, NEAR);
    }
    for name in ["ftrace_call", "ftrace_regs_call", "ftrace_graph_call"] {
        names.get(name).into_iter().for_each(|address| all.any(address, NEAR));
    }
    // Runtime constants within instructions, known at boot only: pointers and shift counts.
    for (start, stop, bytes) in [
        ("__start_runtime_ptr_", "__stop_runtime_ptr_", 8),
        ("__start_runtime_shift_", "__stop_runtime_shift_", 1),
    ] {
        for (from, name) in names.with_prefix(start) {
            let to = names.with_prefix(stop).find(|(_, other)| *other == name);
            all.relative(from..to.map_or(from, |(to, _)| to), 4, |_| bytes);
        }
    }
    if calls_changed {
        all.relative(table("__call_sites", "__call_sites_end"), 4, near);
        let entries = names.with_prefix("__pfx_").map(|(address, _)| address);
        entries.for_each(|address| all.any(address, PADDING));
    }
    Ok(tidy(all.masks))
}

fn near(code: &[u8; 2]) -> u8 {
    if matches!(code, [0x0f, 0x80..=0x8f]) {
        NEAR_CONDITIONAL
    } else {
        NEAR
    }
}

struct MaskCollector<'a> {
    loaded: &'a LoadedImage,
    masks: Vec<Mask>,
}

impl MaskCollector<'_> {
    fn any(&mut self, at: u64, bytes: u8) {
        self.masks.push(Mask { start: at, bytes, kind: MaskKind::Any });
    }

    /// Adds the code at each entry of a table whose entries, of `size` bytes, begin with a relative code address.
    fn relative(&mut self, table: Range<u64>, size: usize, bytes: impl Fn(&[u8; 2]) -> u8) {
        for entry in self.inside(table).step_by(size) {
            let Some(at) = self.loaded.relative(entry) else { continue };
            let Some(code) = self.loaded.bytes_at(at) else { continue };
            self.any(at, bytes(code));
        }
    }

    /// Adds the sites in a table of returns, or of calls and jumps through a register.
    fn sites(&mut self, table: Range<u64>, kind: MaskKind) {
        for entry in self.inside(table).step_by(4) {
            let Some(at) = self.loaded.relative(entry) else { continue };
            let Some(code) = self.loaded.bytes_at::<2>(at) else { continue };
            let mask = match code {
                // The prefix of a call or jump through r8 to r15.
                [0x2e, _] if kind == MaskKind::Indirect => {
                    Mask { start: at, bytes: NEAR_CONDITIONAL, kind }
                }
                [0xe8 | 0xe9, _] => Mask { start: at, bytes: NEAR, kind },
                _ => Mask { start: at, bytes: near(code), kind: MaskKind::Any },
            };
            self.masks.push(mask);
        }
    }

    fn entries(&mut self, table: Range<u64>) {
        for entry in self.inside(table).step_by(8) {
            if let Some(at) = self.loaded.bytes_at(entry) {
                self.any(u64::from_le_bytes(*at), NEAR);
            }
        }
    }

    fn alternatives(&mut self, table: Range<u64>, btf: &Btf<'_>) -> Result<(), ProfileError> {
        let table = self.inside(table);
        if table.is_empty() {
            return Ok(());
        }
        let size = size(btf, "alt_instr")?;
        let (code, length) =
            (offset(btf, "alt_instr", "instr_offset")?, offset(btf, "alt_instr", "instrlen")?);
        for entry in table.step_by(size) {
            let (at, bytes) =
                (self.loaded.relative(entry + code), self.loaded.bytes_at::<1>(entry + length));
            if let (Some(at), Some(&[bytes])) = (at, bytes) {
                self.any(at, bytes);
            }
        }
        Ok(())
    }

    fn paravirt(&mut self, table: Range<u64>, btf: &Btf<'_>) -> Result<(), ProfileError> {
        let table = self.inside(table);
        if table.is_empty() {
            return Ok(());
        }
        let size = size(btf, "paravirt_patch_site")?;
        let code = offset(btf, "paravirt_patch_site", "instr")?;
        let length = offset(btf, "paravirt_patch_site", "len")?;
        for entry in table.step_by(size) {
            let (at, bytes) =
                (self.loaded.bytes_at(entry + code), self.loaded.bytes_at::<1>(entry + length));
            if let (Some(at), Some(&[bytes])) = (at, bytes) {
                self.any(u64::from_le_bytes(*at), bytes);
            }
        }
        Ok(())
    }

    /// The part of `table` that lies in the image.
    fn inside(&self, table: Range<u64>) -> Range<u64> {
        table.start.max(self.loaded.base)..table.end.min(self.loaded.end())
    }
}

fn offset(btf: &Btf<'_>, structure: &str, member: &str) -> Result<u64, ProfileError> {
    let found = btf.member(structure, member).map(|(offset, _)| offset);
    found.ok_or_else(|| ProfileError::Missing(alloc::format!("member {structure}.{member}")))
}

fn size(btf: &Btf<'_>, structure: &str) -> Result<usize, ProfileError> {
    let found = btf.size_of(structure).filter(|&size| size > 0);
    let found = found.and_then(|size| usize::try_from(size).ok());
    found.ok_or_else(|| ProfileError::Missing(alloc::format!("structure {structure}")))
}

/// Sorts the masks and merges overlapping ones into masks of any contents.
fn tidy(mut masks: Vec<Mask>) -> Vec<Mask> {
    masks.retain(|mask| mask.bytes > 0);
    masks.sort();
    masks.dedup();
    let mut tidy: Vec<Mask> = Vec::new();
    for mut mask in masks {
        if let Some(last) = tidy.last_mut().filter(|last| mask.start < last.end()) {
            let end = last.end().max(mask.end());
            last.kind = MaskKind::Any;
            last.bytes = (end - last.start).min(u8::MAX.into()) as u8;
            if last.end() == end {
                continue;
            }
            mask = Mask { start: last.end(), bytes: (end - last.end()) as u8, kind: MaskKind::Any };
        }
        tidy.push(mask);
    }
    tidy
}
