//! The check `crash-kernel`: the image of the crash kernel stays what Linux loaded.
//!
//! A restart starts that image, so whoever changes it has the machine afterwards. Each of its pages is compared with a
//! sum of its first look. Linux itself writes none of them until it crashes, except for the headers of the core file
//! when CPUs or memory come or go. A load of another image takes the pointer to this one away first; root may load
//! images, so another one is learned anew, and a note says so. Once `kexec_load_disabled` is set, Linux loads none.

mod image;
mod sums;
#[cfg(test)]
mod tests;

use crate::check::{About, Budget, Check, Coverage, Make, Repairs, Step};
use crate::class::Class;
use crate::confirm::Confirm;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, PAGE_BYTES};
use crate::profile::{Profile, ProfileError};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use image::{Image, Layout, Part, FIXED};
use sums::Key;

/// Milliseconds from one page of a pass to the next, and pages in a row after a pause. A page takes some 2,400
/// instructions.
const PAGE_MS: u64 = 10;
const MAX_PAGES_AT_ONCE: u64 = 8;
/// Pages of a slice while an image is learned.
const LEARN_PAGES: u64 = 16;
/// Milliseconds from the beginning of one pass to that of the next, at least.
const PASS_MS: u64 = 10_000;
/// Milliseconds between two looks at what Linux says about the image, and at suspects.
const LOOK_MS: u64 = 200;
/// Looks in a row that confirm a change, another image, and that there is none: of the last, a load takes time.
const LOOKS: u32 = 3;
const NO_IMAGE_LOOKS: u32 = 10;

const CHANGED: &str = "crash kernel changed";
const REPLACED: &str = "crash kernel replaced";
const POINTER: &str = "kexec_crash_image";

/// A page that differs from its first look. There is one for each part of the image.
#[derive(Clone, Copy, Debug)]
struct Suspect {
    part: usize,
    /// The number of its sum, and its virtual address.
    page: usize,
    address: u64,
    looks: u32,
    reported: bool,
    /// Whether this pass found a difference in the part.
    seen: bool,
}

/// An image and its sums.
#[derive(Debug, Default)]
struct Known {
    image: Option<Image>,
    parts: Vec<Part>,
    /// The sums of the first pages, which are all once it is learned.
    sums: Vec<u32>,
    /// Number of pages.
    pages: usize,
    /// Items that are not judged.
    unjudged: u64,
    /// Linux was without an image since the last complete pass: what differs can be another image.
    was_away: bool,
    /// It is not learned, and a note is to say so when it is.
    is_learning: bool,
    is_new: bool,
}

impl Known {
    /// Whether Linux may have loaded another image in its place: then a difference is no finding.
    fn may_be_another(&self, is_sealed: bool) -> bool {
        self.was_away && !is_sealed
    }

    /// The part with sum number `page`, and the page's physical address.
    fn place(&self, page: usize) -> Option<(usize, u64)> {
        let behind = self.parts.partition_point(|part| part.at <= page);
        let number = behind.checked_sub(1)?;
        Some((number, self.parts.get(number)?.physical(page)?))
    }

    /// The sum of page number `page` now. One that cannot be read has the sum 0.
    fn sum_now<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, key: &Key, page: usize) -> u32 {
        let place = self.place(page);
        place.and_then(|(_, physical)| kernel.memory.page(physical)).map_or(0, |it| key.sum(it))
    }

    fn differs<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, key: &Key, page: usize) -> bool {
        self.sums.get(page).is_some_and(|&sum| sum != self.sum_now(kernel, key, page))
    }

    /// The members of [`FIXED`] that differ from those of `now`, each with its value there.
    fn changed_members(&self, now: Option<&Image>) -> Vec<(usize, u64)> {
        let Some((old, new)) = self.image.as_ref().zip(now) else { return Vec::new() };
        let both = old.fixed.iter().zip(new.fixed).enumerate();
        both.filter(|(_, (old, new))| **old != *new).map(|(at, (_, new))| (at, new)).collect()
    }
}

/// The check `crash-kernel`.
#[derive(Debug)]
pub struct CrashKernelCheck {
    layout: Option<Layout>,
    /// The kernel has crash kernels, and does not describe them.
    is_undescribed: bool,
    key: Key,
    /// `None` before the first look.
    known: Option<Known>,
    suspects: Vec<Suspect>,
    /// Changed members of [`FIXED`].
    members: Confirm<usize>,
    /// What the last looks saw instead of the known image, and how many of them in a row.
    other: Option<Image>,
    other_looks: u32,
    /// Linux lets nobody load an image, since a look that saw the known one.
    is_sealed: bool,
    /// Another image was found although Linux lets nobody load one.
    was_replaced: bool,
    /// A pass is complete, and the next one has not begun.
    rests: bool,
    /// The next page of the pass, and when the pass and the last look began.
    next: usize,
    began_ms: u64,
    looked_ms: u64,
    /// Number of pages for which the time since the pass began was used, or is lost.
    paid: u64,
    /// The next page of the look before a restart.
    sound: usize,
}

impl CrashKernelCheck {
    /// Looks at what Linux says about the image, and at suspects.
    fn look<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        found: &mut dyn FnMut(Finding),
    ) {
        let now = layout.read(kernel);
        let Some(known) = &self.known else {
            self.is_sealed = layout.is_sealed(kernel);
            return self.learn(kernel, layout, now, false);
        };
        let is_known = match (&known.image, &now) {
            (None, None) => true,
            (Some(known), Some(now)) => known.is_same_load(now),
            _ => false,
        };
        if !is_known {
            return self.see_other(kernel, layout, now, found);
        }
        self.other_looks = 0;
        self.is_sealed |= layout.is_sealed(kernel);
        let changed = known.changed_members(now.as_ref());
        changed.into_iter().for_each(|(number, value)| self.members.see(number, value));
        self.members.end_look();
        let members = self.members.take();
        let is_confirmed = self.look_at_suspects(kernel);
        let Some(known) = &self.known else { return };
        if known.may_be_another(self.is_sealed) {
            if is_confirmed || !members.is_empty() {
                self.learn(kernel, layout, now, true);
            }
            return;
        }
        members.into_iter().filter_map(|it| member_finding(known, it)).for_each(&mut *found);
        for suspect in self.suspects.iter_mut().filter(|it| it.looks >= LOOKS && !it.reported) {
            suspect.reported = true;
            page_finding(known, suspect).into_iter().for_each(&mut *found);
        }
    }

    /// Looks once more at pages that differ. Returns whether one did so for long enough and was not reported.
    fn look_at_suspects<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>) -> bool {
        let Self { known: Some(known), suspects, key, .. } = self else { return false };
        suspects.retain_mut(|suspect| {
            suspect.looks = suspect.looks.saturating_add(1);
            suspect.reported || known.differs(kernel, key, suspect.page)
        });
        suspects.iter().any(|suspect| suspect.looks >= LOOKS && !suspect.reported)
    }

    /// Linux has another image than the known one, or none.
    fn see_other<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        now: Option<Image>,
        found: &mut dyn FnMut(Finding),
    ) {
        let is_same = self.other_looks > 0 && self.other == now;
        self.other_looks = if is_same { self.other_looks.saturating_add(1) } else { 1 };
        let needed = if now.is_none() { NO_IMAGE_LOOKS } else { LOOKS };
        self.other = now;
        if self.other_looks < needed {
            return;
        }
        let now = self.other.take();
        let name = |image: &Option<Image>| match image {
            Some(image) => format!("one with {} segments", image.segment_count()),
            None => "none".into(),
        };
        if self.is_sealed {
            self.was_replaced = true;
            let old = self.known.as_ref().map_or_else(String::new, |known| name(&known.image));
            found(Finding {
                what: REPLACED.into(),
                address: layout.image,
                symbol: POINTER.into(),
                expected: format!("{old}, for kexec_load_disabled is set"),
                found: name(&now),
                ..Finding::new(Class::CrashKernelModified)
            });
        } else if now.is_none() {
            found(note("crash kernel unloaded", layout, name(&now)));
        }
        let is_new = !self.is_sealed && now.is_some();
        self.learn(kernel, layout, now, is_new);
    }

    /// Begins to learn `image`. A note says when it `is_new` and learned.
    fn learn<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        image: Option<Image>,
        is_new: bool,
    ) {
        let mut known = Known { image, is_new, is_learning: true, ..Known::default() };
        if let Some(image) = &known.image {
            match layout.parts(kernel, image) {
                Some((parts, left_out)) => (known.parts, known.unjudged) = (parts, left_out),
                None => known.unjudged = 1,
            }
        }
        let pages = known.parts.last().map_or(0, Part::end);
        if known.sums.try_reserve_exact(pages).is_ok() {
            known.pages = pages;
        } else {
            known.unjudged = known.unjudged.saturating_add(pages as u64);
            known.parts.clear();
        }
        self.known = Some(known);
        self.suspects.clear();
        self.members = Confirm::new(LOOKS);
        self.other_looks = 0;
    }

    /// Adds the sums of the next pages. Returns whether the image is learned.
    fn go_on_learning<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
    ) -> bool {
        let Some(known) = &mut self.known else { return false };
        for _ in 0..LEARN_PAGES {
            let page = known.sums.len();
            if page >= known.pages {
                break;
            }
            let readable = known.place(page).and_then(|(_, at)| kernel.memory.page(at));
            known.unjudged += u64::from(readable.is_none());
            known.sums.push(readable.map_or(0, |it| self.key.sum(it)));
            if budget.spent() {
                break;
            }
        }
        if known.sums.len() < known.pages {
            return false;
        }
        known.is_learning = false;
        if let Some(image) = known.image.as_ref().filter(|_| known.is_new) {
            let text = format!("{} pages in {} segments", known.pages, image.segment_count());
            found(note("crash kernel loaded", layout, text));
        }
        true
    }

    /// Compares the pages that are due. Returns whether the pass is complete.
    fn compare<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        now_ms: u64,
    ) -> bool {
        let Self { known: Some(known), suspects, key, .. } = self else { return false };
        let due = now_ms.wrapping_sub(self.began_ms) / PAGE_MS;
        let count = due.saturating_sub(self.paid).min(MAX_PAGES_AT_ONCE);
        self.paid = due;
        for _ in 0..count {
            if self.next >= known.pages {
                break;
            }
            let page = self.next;
            self.next += 1;
            let place = known.place(page).filter(|_| known.differs(kernel, key, page));
            if let Some((part, physical)) = place {
                match suspects.iter_mut().find(|suspect| suspect.part == part) {
                    Some(suspect) => suspect.seen = true,
                    None => suspects.push(Suspect {
                        part,
                        page,
                        address: kernel.direct(physical),
                        looks: 1,
                        reported: false,
                        seen: true,
                    }),
                }
            }
            if budget.spent() {
                break;
            }
        }
        if self.next < known.pages {
            return false;
        }
        // What a suspect waits for is not over with the pass.
        known.was_away &= suspects.iter().any(|suspect| !suspect.reported);
        suspects.retain_mut(|suspect| core::mem::take(&mut suspect.seen) || !suspect.reported);
        true
    }

    /// Linux has another pointer than that to the known image, or none. Nothing is compared meanwhile.
    fn wait(&mut self) {
        let Some(known) = &mut self.known else { return };
        known.was_away = true;
        if known.is_learning {
            known.sums.clear();
        }
        self.suspects.retain(|suspect| suspect.reported);
        self.next = 0;
    }

    /// [`Check::is_sound`] of the known image, unless Linux has another one, or none, by now: root may load that.
    fn known_is_sound<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        budget: &mut dyn Budget,
    ) -> Option<bool> {
        let Some(known) = self.known.as_ref().filter(|known| !known.is_learning) else {
            return Some(true);
        };
        let now = layout.read(kernel);
        let is_same =
            known.image.as_ref().zip(now.as_ref()).is_some_and(|(it, now)| it.is_same_load(now));
        if !is_same {
            return Some(!self.is_sealed || known.image.is_none());
        }
        while self.sound < known.pages {
            if known.differs(kernel, &self.key, self.sound) {
                return Some(false);
            }
            self.sound += 1;
            if budget.spent() {
                return None;
            }
        }
        Some(known.changed_members(now.as_ref()).is_empty())
    }

    /// [`Check::step`] at the time `now_ms`.
    fn step_with<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        now_ms: u64,
    ) -> Step {
        if self.known.is_none() || now_ms.wrapping_sub(self.looked_ms) >= LOOK_MS {
            self.looked_ms = now_ms;
            self.look(kernel, layout, found);
        }
        let Some(known) = &self.known else { return Step::Rests };
        let (pages, is_learning) = (known.pages as u64, known.is_learning);
        if layout.address(kernel) != known.image.as_ref().map_or(0, |image| image.address) {
            self.wait();
            return Step::Rests;
        }
        if is_learning {
            if !self.go_on_learning(kernel, layout, budget, found) {
                return Step::Spent;
            }
            (self.rests, self.began_ms) = (true, now_ms);
            return Step::Done(pages);
        }
        if self.rests {
            if now_ms.wrapping_sub(self.began_ms) < PASS_MS {
                return Step::Rests;
            }
            (self.rests, self.began_ms, self.next, self.paid) = (false, now_ms, 0, 0);
        }
        self.rests = self.compare(kernel, budget, now_ms);
        if self.rests {
            Step::Done(pages)
        } else {
            Step::Rests
        }
    }
}

/// Whether Linux could start its crash kernel now. It does not while somebody loads one, or holds the lock against
/// that.
pub fn can_start<M: KernelMemory>(kernel: &Kernel<'_, M>) -> bool {
    let lock = kernel.profile.symbol("__kexec_lock").and_then(|lock| kernel.u32(lock));
    lock.is_none_or(|lock| lock == 0)
}

/// The words for a changed member of [`FIXED`], by its number and value.
fn member_finding(known: &Known, (number, value): (usize, u64)) -> Option<Finding> {
    let image = known.image.as_ref()?;
    Some(Finding {
        what: CHANGED.into(),
        address: image.address,
        symbol: format!("{POINTER}->{}", FIXED.get(number)?),
        expected: format!("{:#x}", image.fixed.get(number)?),
        found: format!("{value:#x}"),
        ..Finding::new(Class::CrashKernelModified)
    })
}

/// The words for a page that differs.
fn page_finding(known: &Known, suspect: &Suspect) -> Option<Finding> {
    let (_, physical) = known.place(suspect.page)?;
    let name = known.parts.get(suspect.part)?.name(suspect.page);
    Some(Finding {
        what: CHANGED.into(),
        address: suspect.address,
        symbol: format!("{name}, physical {physical:#x}"),
        expected: "the page of the first look".into(),
        found: "another".into(),
        ..Finding::new(Class::CrashKernelModified)
    })
}

/// A note about the image that Linux has now.
fn note(what: &str, layout: &Layout, found: String) -> Finding {
    Finding {
        what: what.into(),
        address: layout.image,
        symbol: POINTER.into(),
        found,
        restored: true,
        ..Finding::new(Class::CrashKernelModified)
    }
}

impl Make for CrashKernelCheck {
    const ABOUT: About = About {
        name: "crash-kernel",
        wants: &[image::WANTS],
        share: 2,
        pass_ms: 0,
        repairs: Repairs::Nothing,
    };

    fn make(profile: &Profile<'_>, seed: u64) -> Result<Self, ProfileError> {
        let layout = Layout::new(profile);
        Ok(Self {
            is_undescribed: layout.is_none() && profile.symbol(POINTER).is_some(),
            layout,
            key: Key::new(seed),
            known: None,
            suspects: Vec::new(),
            members: Confirm::new(LOOKS),
            other: None,
            other_looks: 0,
            is_sealed: false,
            was_replaced: false,
            rests: false,
            next: 0,
            began_ms: 0,
            looked_ms: 0,
            paid: 0,
            sound: 0,
        })
    }
}

impl<M: KernelMemory> Check<M> for CrashKernelCheck {
    fn about(&self) -> &'static About {
        &Self::ABOUT
    }

    fn coverage(&self) -> Coverage {
        let known = self.known.as_ref();
        let learned = known.map_or(0, |it| it.sums.len() * 100 / it.pages.max(1));
        Coverage {
            learning: known.is_some_and(|known| known.is_learning),
            learned: learned as u8,
            item_bytes: PAGE_BYTES,
            unjudged: u64::from(self.is_undescribed) + known.map_or(0, |known| known.unjudged),
            ..Coverage::default()
        }
    }

    fn waiting(&self) -> u64 {
        let pages = self.suspects.iter().filter(|suspect| !suspect.reported).count();
        (pages + self.members.waiting().count()) as u64
    }

    fn stands(&self, what: &str, address: u64) -> bool {
        let Some(known) = self.known.as_ref().filter(|_| what == CHANGED) else {
            return what == REPLACED && self.was_replaced;
        };
        let image = known.image.as_ref();
        let has_member = image.is_some_and(|image| image.address == address);
        let is_page = |suspect: &Suspect| suspect.reported && suspect.address == address;
        has_member && self.members.stands(|_| true) || self.suspects.iter().any(is_page)
    }

    fn is_sound(&mut self, kernel: &Kernel<'_, M>, budget: &mut dyn Budget) -> Option<bool> {
        let Some(layout) = self.layout.take() else { return Some(true) };
        let sound = self.known_is_sound(kernel, &layout, budget);
        self.layout = Some(layout);
        if sound.is_some() {
            self.sound = 0;
        }
        sound
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        _retries: &mut u64,
    ) -> Step {
        let now_ms = budget.clock_ms();
        let Some(layout) = self.layout.take() else {
            if self.rests && now_ms.wrapping_sub(self.began_ms) < PASS_MS {
                return Step::Rests;
            }
            (self.rests, self.began_ms) = (true, now_ms);
            return Step::Done(0);
        };
        let step = self.step_with(kernel, &layout, budget, found, now_ms);
        self.layout = Some(layout);
        step
    }
}
