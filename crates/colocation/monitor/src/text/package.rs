//! Compares the copy with the fingerprints of the kernel package's image, to find tampering from before the load.
//!
//! A fingerprint only says that bytes differ, not what they should be, so there is no repair.

use super::baseline::Baseline;
use super::code::{self, CALL, INT3, JMP};
use super::layout::TextLayout;
use super::owner;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES};
use crate::profile::fingerprints::{fingerprint, Chunk, ChunkCursor, Mask, MaskKind, CHUNK};
use crate::profile::Profile;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Chunks per unit of work.
const BATCH: usize = PAGE_BYTES as usize / CHUNK;
/// Maximum number of findings, and bytes per finding: if more differs, the image is another one.
const MAX_FINDINGS: usize = 64;
const MAX_RANGE_BYTES: u64 = 4096;
/// Maximum number of symbols in a finding.
const MAX_NAMES: usize = 4;

/// The thunks that a return may jump to.
const RETURN_THUNKS: [&str; 6] = [
    "__x86_return_thunk",
    "retbleed_return_thunk",
    "srso_return_thunk",
    "srso_alias_return_thunk",
    "call_depth_return_thunk",
    "its_return_thunk",
];
/// Prefix of the names of thunks for calls and jumps through a register.
const INDIRECT_THUNK: &str = "__x86_indirect_";

/// The state of the comparison.
#[derive(Debug, Default)]
pub(super) struct PackageComparison {
    cursor: ChunkCursor,
    key: [u64; 2],
    return_thunks: Vec<u64>,
    /// The current range of consecutive differing chunks.
    open: Option<Range<u64>>,
    reported: usize,
}

impl PackageComparison {
    /// The comparison with the fingerprints of `profile`; `None` if it has none.
    pub fn new(profile: &Profile<'_>) -> Option<Self> {
        let return_thunks = RETURN_THUNKS.iter().filter_map(|name| profile.symbol(name)).collect();
        Some(Self { key: profile.fingerprint_key()?, return_thunks, ..Self::default() })
    }

    /// Compares some chunks; returns true when all are done.
    pub fn advance<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TextLayout,
        baseline: &mut Baseline,
        found: &mut dyn FnMut(Finding),
    ) -> bool {
        for _ in 0..BATCH {
            let chunk = kernel
                .profile
                .next_chunk(&mut self.cursor)
                .filter(|_| self.reported < MAX_FINDINGS);
            let Some(chunk) = chunk else {
                self.report(kernel, layout, baseline, found);
                return true;
            };
            if self.matches_image(kernel, baseline, &chunk) {
                continue;
            }
            let end = chunk.address + CHUNK as u64;
            match &mut self.open {
                Some(open) if open.end == chunk.address && end - open.start <= MAX_RANGE_BYTES => {
                    open.end = end
                }
                _ => {
                    self.report(kernel, layout, baseline, found);
                    self.open = Some(chunk.address..end);
                }
            }
        }
        false
    }

    /// Whether the copy of `chunk` matches the package's image, or cannot be compared. A copy made in the middle of
    /// Linux's patching is corrected.
    fn matches_image<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        baseline: &mut Baseline,
        chunk: &Chunk,
    ) -> bool {
        let mut bytes = [0; CHUNK];
        if baseline.bytes(chunk.address, &mut bytes).is_none() {
            return true;
        }
        let copied = |at, into: &mut [u8]| baseline.bytes(at, into);
        if self.matches(kernel.profile, chunk, &bytes, copied) {
            return true;
        }
        let live = |at, into: &mut [u8]| kernel.bytes(at, into);
        let matches = live(chunk.address, &mut bytes).is_some()
            && self.matches(kernel.profile, chunk, &bytes, live);
        if matches {
            baseline.correct(chunk.address, &bytes);
        }
        matches
    }

    /// Whether `bytes` match `chunk`. `read` reads there, and a little before and after.
    fn matches(
        &self,
        profile: &Profile<'_>,
        chunk: &Chunk,
        bytes: &[u8; CHUNK],
        read: impl Fn(u64, &mut [u8]) -> Option<()>,
    ) -> bool {
        let is_allowed = |mask: &Mask| {
            let mut code = [0; 8];
            let Some(code) = code.get_mut(..mask.bytes.into()) else {
                return mask.kind == MaskKind::Any;
            };
            match mask.kind {
                MaskKind::Any => true,
                _ if read(mask.start, code).is_none() => true,
                MaskKind::Return => self.is_return(mask.start, code),
                MaskKind::Indirect => is_indirect(profile, mask.start, code),
            }
        };
        fingerprint(self.key, chunk.address, bytes, &chunk.masks) == chunk.fingerprint
            && chunk.masks.iter().all(is_allowed)
    }

    fn is_return(&self, at: u64, bytes: &[u8]) -> bool {
        match bytes {
            [0xc3, rest @ ..] => rest.iter().all(|&byte| byte == INT3),
            [JMP, ..] => code::target(at, bytes).is_some_and(|to| self.return_thunks.contains(&to)),
            _ => false,
        }
    }

    /// Reports the current range.
    fn report<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TextLayout,
        baseline: &Baseline,
        found: &mut dyn FnMut(Finding),
    ) {
        let Some(range) = self.open.take() else { return };
        self.reported += 1;
        let is_text = layout.text.contains(&range.start);
        let what = if is_text { "kernel text" } else { "read-only data" };
        let bytes = range.end - range.start;
        let extent = if bytes == CHUNK as u64 { "block" } else { "range" };
        found(Finding {
            what: format!("{what} changed before load"),
            address: range.start,
            symbol: owner::symbol(kernel, range.start),
            owner: leads_to(kernel, layout, baseline, &range).unwrap_or_else(|| "nobody".into()),
            expected: String::new(),
            found: format!(
                "{bytes}-byte {extent} differs from the kernel package's image{}",
                symbols_in(kernel, &range)
            ),
            repairs: Vec::new(),
        });
    }
}

/// The symbols that begin in `range`.
fn symbols_in<M: KernelMemory>(kernel: &Kernel<'_, M>, range: &Range<u64>) -> String {
    let symbols = kernel.profile.symbols_from(range.start);
    let inside = symbols.take_while(|symbol| symbol.address < range.end);
    // The padding before a function has a symbol of its own.
    let named = inside.filter(|symbol| !symbol.name.starts_with("__pfx_"));
    let mut names: Vec<String> = Vec::new();
    for name in named.map(|symbol| owner::symbol(kernel, symbol.address)) {
        if names.last() != Some(&name) {
            names.push(name);
        }
        if names.len() > MAX_NAMES {
            names[MAX_NAMES] = "...".into();
            break;
        }
    }
    match names.as_slice() {
        [] => String::new(),
        names => format!(" (contains {})", names.join(", ")),
    }
}

/// The owner of code outside the kernel's image that a call or jump in `range` leads to.
fn leads_to<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    baseline: &Baseline,
    range: &Range<u64>,
) -> Option<String> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    baseline.bytes(range.start, &mut bytes)?;
    (0..bytes.len()).find_map(|skip| {
        let to = code::target(range.start + skip as u64, bytes.get(skip..)?)?;
        let outside = !kernel.in_image(to);
        outside.then(|| owner::name(kernel, &layout.owners, to))?
    })
}

/// Whether `bytes` at `at` are a call or jump through a register, by a thunk or directly, followed by filler.
fn is_indirect(profile: &Profile<'_>, at: u64, bytes: &[u8]) -> bool {
    let (at, direct) = match bytes {
        [0x2e, rest @ ..] => (at.wrapping_add(1), rest),
        _ => (at, bytes),
    };
    if let [CALL | JMP, ..] = direct {
        let to = code::target(at, direct).and_then(|to| profile.nearest(to));
        return to.is_some_and(|(name, offset)| name.starts_with(INDIRECT_THUNK) && offset < 64);
    }
    let plain = bytes.strip_prefix(&[0x0f, 0xae, 0xe8]).unwrap_or(bytes);
    let plain = plain.strip_prefix(&[0x41]).unwrap_or(plain);
    match plain {
        [0xff, 0xd0..=0xd7 | 0xe0..=0xe7, rest @ ..] => is_filler(rest),
        _ => false,
    }
}

/// Whether `bytes` are only breakpoints and no-operations.
fn is_filler(mut bytes: &[u8]) -> bool {
    loop {
        bytes = match bytes {
            [] => return true,
            [INT3 | 0x90, rest @ ..] => rest,
            [0x66, 0x90, rest @ ..]
            | [0x0f, 0x1f, 0x00, rest @ ..]
            | [0x0f, 0x1f, 0x40, 0x00, rest @ ..] => rest,
            _ => return false,
        };
    }
}
