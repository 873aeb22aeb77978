//! Compares the copy with the fingerprints of the kernel package's image, to find tampering from before the load.
//!
//! A fingerprint only says that bytes differ, not what they should be, so there is no repair.

use super::baseline::Baseline;
use super::code;
use super::layout::TextLayout;
use super::thunks::Thunks;
use crate::class::Class;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES};
use crate::owner;
use crate::profile::fingerprints::{
    chunk_words, fingerprint, Chunk, ChunkCursor, Key, Mask, MaskKind, CHUNK, CHUNK_WORDS,
};
use crate::profile::Profile;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// The end of the kind of every finding of this comparison.
const BEFORE_LOAD: &str = " changed before load";

/// Whether `what` is the kind of a finding of this comparison.
pub(super) fn is_before_load(what: &str) -> bool {
    what.ends_with(BEFORE_LOAD)
}

/// Chunks per unit of work.
const BATCH: usize = PAGE_BYTES as usize / CHUNK;
/// Maximum number of findings, and bytes per finding: if more differs, the image is another one.
const MAX_FINDINGS: usize = 64;
const MAX_RANGE_BYTES: u64 = 4096;
/// Why a change from before the load is not repaired.
const NO_BYTES: &str = "fingerprints show a change, not the original bytes";
/// Maximum number of symbols in a finding.
const MAX_NAMES: usize = 4;

/// The state of the comparison.
#[derive(Debug, Default)]
pub(super) struct PackageComparison {
    cursor: ChunkCursor,
    key: Key,
    thunks: Thunks,
    /// The current range of consecutive differing chunks.
    open: Option<Range<u64>>,
    reported: usize,
    /// The chunk that was compared last; it keeps its memory.
    chunk: Chunk,
    /// By page: where its first chunk is.
    index: Vec<Option<ChunkCursor>>,
    /// The pages in which the copy differs from the image, sorted.
    refuted: Vec<usize>,
}

/// What the image tells about the copy of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// The image has the same bytes.
    Proven,
    /// The image has other bytes.
    Refuted,
    /// There is no image, it does not cover the bytes, or Linux chose them at boot.
    Unknown,
}

impl PackageComparison {
    /// The comparison with the fingerprints of `profile`; `None` if it has none.
    pub fn new(profile: &Profile<'_>) -> Option<Self> {
        let key = profile.fingerprint_key()?;
        Some(Self { key, thunks: Thunks::new(profile), ..Self::default() })
    }

    /// The percentage of chunks that are compared.
    pub fn progress(&self, profile: &Profile<'_>) -> u64 {
        profile.chunks_passed(&self.cursor)
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
            let before = self.cursor;
            let mut chunk = core::mem::take(&mut self.chunk);
            let more = kernel.profile.read_chunk(&mut self.cursor, &mut chunk);
            if !more || self.reported == MAX_FINDINGS {
                self.report(kernel, layout, baseline, found);
                return true;
            }
            self.compare(kernel, layout, baseline, &chunk, before, found);
            self.chunk = chunk;
        }
        false
    }

    /// Compares `chunk`, which is at `cursor`.
    fn compare<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &TextLayout,
        baseline: &mut Baseline,
        chunk: &Chunk,
        cursor: ChunkCursor,
        found: &mut dyn FnMut(Finding),
    ) {
        let Some(page) = baseline.page_number(chunk.address) else { return };
        if self.index.is_empty() {
            self.index.resize(baseline.page_count(), None);
        }
        if let Some(entry) = self.index.get_mut(page) {
            entry.get_or_insert(cursor);
        }
        if self.matches_image(kernel, baseline, chunk) {
            return;
        }
        if self.refuted.last() != Some(&page) {
            self.refuted.push(page);
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

    /// Whether the copy of `chunk` matches the package's image, or cannot be compared. A copy made in the middle of
    /// Linux's patching is corrected.
    fn matches_image<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        baseline: &mut Baseline,
        chunk: &Chunk,
    ) -> bool {
        let Some(words) = copied_words(baseline, chunk.address) else { return true };
        let copied = |at, into: &mut [u8]| baseline.bytes(at, into);
        if self.matches(kernel.profile, chunk, words, copied) {
            return true;
        }
        let live = self.live_match(kernel, chunk);
        if let Some(words) = live {
            let bytes = words.map(u64::to_le_bytes);
            baseline.correct(chunk.address, bytes.as_flattened());
        }
        live.is_some()
    }

    /// The live words of `chunk` if they match the image.
    fn live_match<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        chunk: &Chunk,
    ) -> Option<[u64; CHUNK_WORDS]> {
        let mut bytes = [0; CHUNK];
        let live = |at, into: &mut [u8]| kernel.bytes(at, into);
        live(chunk.address, &mut bytes)?;
        let words = chunk_words(&bytes);
        self.matches(kernel.profile, chunk, words, live).then_some(words)
    }

    /// The chunk that contains `address`.
    fn chunk_at<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        baseline: &Baseline,
        address: u64,
    ) -> Option<Chunk> {
        let mut cursor = (*self.index.get(baseline.page_number(address)?)?)?;
        let mut chunk = Chunk::default();
        for _ in 0..BATCH {
            if !kernel.profile.read_chunk(&mut cursor, &mut chunk) || chunk.address > address {
                return None;
            }
            if address - chunk.address < CHUNK as u64 {
                return Some(chunk);
            }
        }
        None
    }

    /// What the image tells about the copy of `range`.
    pub fn evidence<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        baseline: &Baseline,
        range: &Range<u64>,
    ) -> Evidence {
        let mut evidence = Evidence::Proven;
        for at in (range.start & !(CHUNK as u64 - 1)..range.end).step_by(CHUNK) {
            let chunk = self.chunk_at(kernel, baseline, at);
            let Some((chunk, words)) = chunk.zip(copied_words(baseline, at)) else {
                evidence = Evidence::Unknown;
                continue;
            };
            if !self.matches(kernel.profile, &chunk, words, |at, into| baseline.bytes(at, into)) {
                return Evidence::Refuted;
            }
            let is_masked = |mask: &Mask| mask.start < range.end && range.start < mask.end();
            if chunk.masks.iter().any(is_masked) {
                evidence = Evidence::Unknown;
            }
        }
        evidence
    }

    /// Whether the copy of page `number` differed from the image.
    pub fn is_refuted(&self, number: usize) -> bool {
        self.refuted.binary_search(&number).is_ok()
    }

    /// Makes the live bytes the copy where they match the image and the copy does not. Returns these ranges of page
    /// `number`.
    pub fn restored<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        baseline: &mut Baseline,
        number: usize,
    ) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut is_left = false;
        let Some(mut cursor) = self.index.get(number).copied().flatten() else { return ranges };
        let mut chunk = Chunk::default();
        let end = baseline.address(number) + PAGE_BYTES;
        while kernel.profile.read_chunk(&mut cursor, &mut chunk) && chunk.address < end {
            let at = chunk.address;
            let Some(words) = copied_words(baseline, at) else { continue };
            if self.matches(kernel.profile, &chunk, words, |at, into| baseline.bytes(at, into)) {
                continue;
            }
            let Some(live) = self.live_match(kernel, &chunk) else {
                is_left = true;
                continue;
            };
            baseline.correct(at, live.map(u64::to_le_bytes).as_flattened());
            match ranges.last_mut().filter(|last| last.end == at) {
                Some(last) => last.end += CHUNK as u64,
                None => ranges.push(at..at + CHUNK as u64),
            }
        }
        if !is_left {
            self.refuted.retain(|&page| page != number);
        }
        ranges
    }

    /// Whether `words` match `chunk`. `read` reads there, and a little before and after.
    fn matches(
        &mut self,
        profile: &Profile<'_>,
        chunk: &Chunk,
        words: [u64; CHUNK_WORDS],
        read: impl Fn(u64, &mut [u8]) -> Option<()>,
    ) -> bool {
        let mut is_allowed = |mask: &Mask| {
            let mut code = [0; 8];
            let Some(code) = code.get_mut(..mask.bytes.into()) else {
                return mask.kind == MaskKind::Any;
            };
            match mask.kind {
                MaskKind::Any => true,
                _ if read(mask.start, code).is_none() => true,
                MaskKind::Return => self.thunks.is_return(mask.start, code),
                MaskKind::Indirect => self.thunks.is_indirect(profile, mask.start, code),
            }
        };
        chunk.masks.iter().all(&mut is_allowed)
            && fingerprint(&self.key, chunk.address, words, &chunk.masks) == chunk.fingerprint
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
        let (class, what) = match is_text {
            true => (Class::TextModifiedBeforeLoad, "kernel text"),
            false => (Class::RodataModifiedBeforeLoad, "read-only data"),
        };
        let bytes = range.end - range.start;
        let extent = if bytes == CHUNK as u64 { "block" } else { "range" };
        found(Finding {
            what: format!("{what}{BEFORE_LOAD}"),
            address: range.start,
            symbol: owner::symbol(kernel, range.start),
            owner: leads_to(kernel, layout, baseline, &range).unwrap_or_else(|| "nobody".into()),
            found: format!(
                "{bytes}-byte {extent} differs from the kernel package's image{}",
                symbols_in(kernel, &range)
            ),
            held: NO_BYTES,
            ..Finding::new(class)
        });
    }
}

/// The symbols that begin in `range`.
pub(super) fn symbols_in<M: KernelMemory>(kernel: &Kernel<'_, M>, range: &Range<u64>) -> String {
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

/// The code outside the kernel's image that a call or jump in `range` leads to.
fn leads_to<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &TextLayout,
    baseline: &Baseline,
    range: &Range<u64>,
) -> Option<String> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    baseline.bytes(range.start, &mut bytes)?;
    let mut targets = (0..bytes.len()).filter_map(|skip| {
        let to = code::target(range.start + skip as u64, bytes.get(skip..)?)?;
        (!kernel.in_image(to)).then_some(to)
    });
    let mut unlisted = None;
    let owned = targets.find_map(|to| {
        let name = owner::name(kernel, &layout.owners, to);
        if name.is_none() && unlisted.is_none() && owner::is_module_space(kernel, to) {
            unlisted = Some(to);
        }
        name
    });
    owned.or_else(|| unlisted.map(owner::unlisted))
}

/// The copied words of the chunk at `address`.
fn copied_words(baseline: &Baseline, address: u64) -> Option<[u64; CHUNK_WORDS]> {
    let page = baseline.page(baseline.page_number(address)?)?;
    page.get((address % PAGE_BYTES / 8) as usize..)?.first_chunk().copied()
}
