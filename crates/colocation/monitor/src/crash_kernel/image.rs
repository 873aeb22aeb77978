//! Where Linux keeps the image of its crash kernel (Linux: `kernel/kexec_core.c`, `struct kimage`).
//!
//! The image lies in memory that Linux reserved at boot. Its segments are what the crash kernel consists of. Linux has
//! also put there, before the first segments, what leads to it: the page tables of the way, and a page of code that
//! Linux writes when it crashes. Four page tables lie elsewhere.

use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES};
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

/// Maximum number of pages that are judged, of all segments together (256 MiB), and of segments
/// (`KEXEC_SEGMENT_MAX`).
const MAX_PAGES: u64 = 1 << 16;
const MAX_SEGMENTS: u64 = 16;
/// Pages behind the contents of a segment that are judged. What follows are zeros, of the kernel's place for its
/// unpacked self, which it writes before it reads them.
const TAIL_PAGES: u64 = 16;
/// What the headers of the core file begin with (`ELFMAG`).
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");

pub(super) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("kexec_segment", "bufsz", Optional),
        ("kexec_segment", "mem", Optional),
        ("kexec_segment", "memsz", Optional),
        ("kimage", "arch.p4d", Optional),
        ("kimage", "arch.pmd", Optional),
        ("kimage", "arch.pte", Optional),
        ("kimage", "arch.pud", Optional),
        ("kimage", "control_code_page", Optional),
        ("kimage", "control_page", Optional),
        ("kimage", "elfcorehdr_index", Optional),
        ("kimage", "head", Optional),
        ("kimage", "nr_segments", Optional),
        ("kimage", "segment", Optional),
        ("kimage", "start", Optional),
        ("kimage", "vmcoreinfo_data_copy", Optional),
        ("resource", "end", Optional),
        ("resource", "start", Optional),
    ],
    constants: &[],
};

/// Members that Linux never changes, and that are the same in two images with the same segments: where the image is
/// entered, what is copied before, and where the way to it lies.
pub(super) const FIXED: [&str; 4] = ["start", "head", "control_code_page", "control_page"];
/// The member of [`FIXED`] behind the last page that the way to the image takes.
const WAY_END: usize = 3;
/// The page tables that lie elsewhere.
const TABLES: [&str; 4] = ["arch.p4d", "arch.pud", "arch.pmd", "arch.pte"];

/// Where the members are.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Address of the pointer to the image.
    pub image: u64,
    /// Addresses of the setting that lets nobody load another image, and of what is not 0 while one is loaded.
    disabled: Option<(u64, u64)>,
    /// Addresses of the first and the last byte of the reserved memory.
    reserved: [u64; 2],
    fixed: [u64; FIXED.len()],
    tables: [Option<u64>; TABLES.len()],
    information: Option<u64>,
    count: u64,
    /// The first segment, and the bytes of each one.
    segments: u64,
    segment_bytes: u64,
    memory: u64,
    memory_bytes: u64,
    contents_bytes: u64,
    /// The number of the segment that Linux writes when CPUs or memory come or go.
    core_headers: Option<u64>,
}

impl Layout {
    /// Looks it up in `profile`; `None` if the kernel has no crash kernels, or does not describe them.
    pub fn new(profile: &Profile<'_>) -> Option<Self> {
        let member = |structure, member| profile.field(structure, member).map(|it| it.offset);
        let image = |name| member("kimage", name);
        let reserved = profile.symbol("crashk_res")?;
        let mut fixed = [0; FIXED.len()];
        for (offset, name) in fixed.iter_mut().zip(FIXED) {
            *offset = image(name)?;
        }
        Some(Self {
            image: profile.symbol("kexec_crash_image")?,
            disabled: profile.symbol("kexec_load_disabled").zip(profile.symbol("__kexec_lock")),
            reserved: [
                reserved.wrapping_add(member("resource", "start")?),
                reserved.wrapping_add(member("resource", "end")?),
            ],
            fixed,
            tables: TABLES.map(image),
            information: image("vmcoreinfo_data_copy"),
            count: image("nr_segments")?,
            segments: image("segment")?,
            segment_bytes: profile.size_of("kexec_segment")?,
            memory: member("kexec_segment", "mem")?,
            memory_bytes: member("kexec_segment", "memsz")?,
            contents_bytes: member("kexec_segment", "bufsz")?,
            core_headers: image("elfcorehdr_index"),
        })
    }

    /// Whether Linux lets nobody load or unload an image until the next boot, and nobody does.
    pub fn is_sealed<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> bool {
        let Some((disabled, lock)) = self.disabled else { return false };
        (kernel.u32(disabled), kernel.u32(lock)) == (Some(1), Some(0))
    }

    /// Address of the image; 0 if there is none.
    pub fn address<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> u64 {
        kernel.u64(self.image).unwrap_or(0)
    }

    /// The image; `None` if there is none.
    pub fn read<M: KernelMemory>(&self, kernel: &Kernel<'_, M>) -> Option<Image> {
        let address = Some(self.address(kernel)).filter(|&address| address != 0)?;
        let member = |offset: u64| kernel.u64(address.wrapping_add(offset)).unwrap_or(0);
        let count = member(self.count);
        let words = count.min(MAX_SEGMENTS) * (self.segment_bytes / 8);
        let mut loaded = Vec::from([count]);
        loaded.extend((0..words).map(|at| member(self.segments.wrapping_add(8 * at))));
        loaded.extend(self.information.map(member));
        let tables = self.tables.map(|offset| offset.map_or(0, member));
        let fixed = self.fixed.map(member);
        Some(Image { address, loaded, tables, fixed })
    }

    /// The parts of `image` that stay as they are, and the number of pages that are left out; `None` if Linux makes no
    /// such image.
    pub fn parts<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        image: &Image,
    ) -> Option<(Vec<Part>, u64)> {
        let [start, last] = self.reserved.map(|at| kernel.u64(at));
        let reserved = start?..last?.checked_add(1)?;
        let segments = self.segments(image)?;
        let core_headers = self.core_headers(kernel, image, &segments);
        let mut parts = Parts { list: Vec::new(), pages: 0, left_out: 0 };
        for (number, segment) in segments.iter().enumerate() {
            let Range { start, end } = segment.memory;
            let is_good = start % PAGE_BYTES == 0 && end % PAGE_BYTES == 0;
            if !is_good || start < reserved.start || end > reserved.end {
                return None;
            }
            let judged = (start / PAGE_BYTES)..segment.judged_end.div_ceil(PAGE_BYTES);
            if Some(number) != core_headers {
                parts.add(What::Segment(number), judged);
            }
        }
        let way = image.fixed[WAY_END].div_ceil(PAGE_BYTES).min(reserved.end / PAGE_BYTES);
        let mut from = reserved.start / PAGE_BYTES;
        let mut places: Vec<_> = segments.iter().map(|it| it.memory.clone()).collect();
        places.sort_by_key(|place| place.start);
        for place in places {
            parts.add(What::Way, from..way.min(place.start / PAGE_BYTES));
            from = from.max(place.end / PAGE_BYTES);
        }
        parts.add(What::Way, from..way);
        for (name, address) in TABLES.into_iter().zip(image.tables) {
            let page =
                Some(address).filter(|&address| address != 0).and_then(|at| kernel.physical(at));
            let page = page.map(|physical| physical / PAGE_BYTES);
            page.into_iter().for_each(|page| parts.add(What::Table(name), page..page + 1));
        }
        Some((parts.list, parts.left_out))
    }

    /// The segments of `image`; `None` if they are no segments.
    fn segments(&self, image: &Image) -> Option<Vec<Segment>> {
        let (&count, words) = image.loaded.split_first()?;
        if count == 0 || count > MAX_SEGMENTS {
            return None;
        }
        let member = |words: &[u64], offset: u64| words.get(offset as usize / 8).copied();
        let segment = |words: &[u64]| {
            let start = member(words, self.memory)?;
            let bytes = member(words, self.memory_bytes)?;
            let contents = member(words, self.contents_bytes)?.min(bytes);
            let end = start.checked_add(bytes)?;
            let judged_end = (start + contents).checked_next_multiple_of(PAGE_BYTES)?;
            let judged_end = judged_end.saturating_add(TAIL_PAGES * PAGE_BYTES).min(end);
            Some(Segment { memory: start..end, judged_end })
        };
        let all = words.chunks_exact((self.segment_bytes as usize / 8).max(1));
        let segments: Vec<_> = all.take(count as usize).map_while(segment).collect();
        (segments.len() as u64 == count).then_some(segments)
    }

    /// The number of the segment that Linux writes when CPUs or memory come or go. Before it does so for the first
    /// time, it can be one without a number: the last one that begins as a core file.
    fn core_headers<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        image: &Image,
        segments: &[Segment],
    ) -> Option<usize> {
        let number = kernel.u32(image.address.wrapping_add(self.core_headers?))?;
        let known = usize::try_from(number).ok().filter(|&number| number < segments.len());
        known.or_else(|| {
            let is_core = |segment: &Segment| {
                kernel.physical_word(segment.memory.start).is_some_and(|word| word as u32 == ELF)
            };
            segments.iter().rposition(is_core)
        })
    }
}

/// A segment: physical addresses of its memory, and of the end of what is judged.
struct Segment {
    memory: Range<u64>,
    judged_end: u64,
}

/// What Linux says about the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Image {
    pub address: u64,
    /// The number of its segments, their members, and what else differs from load to load.
    loaded: Vec<u64>,
    tables: [u64; TABLES.len()],
    /// The values of [`FIXED`].
    pub fixed: [u64; FIXED.len()],
}

impl Image {
    /// Whether one load made both.
    pub fn is_same_load(&self, other: &Self) -> bool {
        (self.address, &self.loaded, self.tables) == (other.address, &other.loaded, other.tables)
    }

    /// The number of its segments.
    pub fn segment_count(&self) -> u64 {
        self.loaded.first().copied().unwrap_or(0)
    }
}

/// What a part of the image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The segment with this number.
    Segment(usize),
    /// The way to the image.
    Way,
    /// A page table of the way that lies elsewhere.
    Table(&'static str),
}

/// A part of the image, by its physical pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub what: What,
    /// The number of the first page's sum.
    pub at: usize,
    pub pages: Range<u64>,
}

impl Part {
    /// The number of the sum behind its last page's.
    pub fn end(&self) -> usize {
        self.at.saturating_add((self.pages.end - self.pages.start) as usize)
    }

    /// The physical address of the page with sum number `at`, if it is one of these.
    pub fn physical(&self, at: usize) -> Option<u64> {
        let page = self.pages.start + at.checked_sub(self.at)? as u64;
        self.pages.contains(&page).then_some(page * PAGE_BYTES)
    }

    /// The name of the page with sum number `at`.
    pub fn name(&self, at: usize) -> String {
        let offset = at.saturating_sub(self.at) as u64 * PAGE_BYTES;
        match self.what {
            What::Segment(number) => format!("segment {number}+{offset:#x}"),
            What::Way => format!("the way to it+{offset:#x}"),
            What::Table(name) => format!("the page table {name}"),
        }
    }
}

struct Parts {
    list: Vec<Part>,
    pages: u64,
    left_out: u64,
}

impl Parts {
    /// Adds a part, as far as there is room for it.
    fn add(&mut self, what: What, pages: Range<u64>) {
        let count = pages.end.saturating_sub(pages.start);
        let taken = count.min(MAX_PAGES - self.pages);
        self.left_out = self.left_out.saturating_add(count - taken);
        if taken > 0 {
            let (at, end) = (self.pages as usize, pages.start + taken);
            self.list.push(Part { what, at, pages: pages.start..end });
            self.pages += taken;
        }
    }
}
