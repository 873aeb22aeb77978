//! The check `bpf`: the places in which Linux keeps a BPF program agree.
//!
//! Linux finds a program by its ID in an index: that is what user space can ask for. The code of each compiled program
//! is in a list besides. A program that is in one of them only hides from those who read the other. Linux puts a
//! program into the index before the list, and takes it out in the same order. It lists the functions of a program as
//! well, which have no ID.

mod layout;
pub mod listing;
#[cfg(test)]
mod tests;

use crate::check::{until_done, About, Budget, Check, Coverage, Make, Pace, Repairs, Step};
use crate::class::Class;
use crate::confirm::Confirm;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::{Profile, ProfileError};
use crate::walk::XArrayEntry;
use alloc::format;
use alloc::vec::Vec;
use layout::Layout;

/// Steps from the beginning of one pass to that of the next.
const PACE: u32 = 24;
/// Passes in a row that confirm a suspect: of a program that comes or goes, Linux changes one place after the other.
const PASSES: u32 = 3;
/// Maximum number of entries of each place; further ones are not judged.
const MAX_ENTRIES: usize = 1 << 14;

const HIDDEN: &str = "hidden BPF program";

/// The places.
const INDEX: &str = "the index of IDs";
const LIST: &str = "the list of code";

/// What is judged: the program at this address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// It is not in the index.
    NotIndexed(u64),
    /// Its code is not in the list.
    NotListed(u64),
}

impl Key {
    /// The program, and the place that lacks it.
    fn parts(self) -> (u64, &'static str) {
        match self {
            Self::NotIndexed(program) => (program, INDEX),
            Self::NotListed(program) => (program, LIST),
        }
    }
}

/// A program in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Listed {
    /// Address of its `struct bpf_prog_aux`.
    aux: u64,
    is_indexed: bool,
}

/// Where a pass is.
#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    #[default]
    Begin,
    /// The next link of the list, and the number of entries so far.
    List(u64, usize),
    /// The next ID, and the number of searches so far.
    Index(u64, usize),
    /// The next of the listed programs, of which those are judged that the index lacks.
    Rest(usize),
}

/// The check `bpf`.
#[derive(Debug)]
pub struct BpfCheck {
    layout: Option<Layout>,
    stage: Stage,
    /// The listed programs of this pass, by address after the list's end.
    listed: Vec<Listed>,
    /// ID and address of each program in the index.
    indexed: Vec<(u64, u64)>,
    /// Whether this pass could not walk to the end of a place.
    is_cut: bool,
    confirm: Confirm<Key>,
    pace: Pace,
    coverage: Coverage,
}

impl BpfCheck {
    /// Reads one more entry; returns true when the pass has read all.
    fn advance<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, layout: &Layout) -> bool {
        self.stage = match self.stage {
            Stage::Begin => {
                self.listed.clear();
                self.indexed.clear();
                self.is_cut = false;
                Stage::List(kernel.u64(layout.list.head).unwrap_or(0), 0)
            }
            Stage::List(link, _) if link == layout.list.head => {
                self.listed.sort_unstable();
                self.listed.dedup();
                Stage::Index(0, 0)
            }
            Stage::List(link, count) => match kernel.u64(link) {
                Some(next) if count < MAX_ENTRIES => {
                    let aux = layout.aux_of(kernel, link.wrapping_sub(layout.list.link));
                    self.listed.extend(aux.map(|aux| Listed { aux, is_indexed: false }));
                    Stage::List(next, count + 1)
                }
                _ => {
                    self.is_cut = true;
                    Stage::List(layout.list.head, 0)
                }
            },
            Stage::Index(id, count) => match layout.index.next(kernel, layout.ids, id) {
                Ok(XArrayEntry::End) => Stage::Rest(0),
                Ok(XArrayEntry::Found(id, program)) if count < MAX_ENTRIES => {
                    self.indexed.push((id, program));
                    self.see_indexed(kernel, layout, id, program);
                    Stage::Index(id + 1, count + 1)
                }
                Ok(XArrayEntry::Gap(id)) if count < MAX_ENTRIES => Stage::Index(id, count + 1),
                _ => {
                    self.is_cut = true;
                    Stage::Rest(0)
                }
            },
            Stage::Rest(number) => {
                let Some(listed) = self.listed.get(number).copied() else { return true };
                if !listed.is_indexed && !self.is_cut {
                    self.see_not_indexed(kernel, layout, listed.aux);
                }
                Stage::Rest(number + 1)
            }
        };
        false
    }

    /// Judges `program`, which the index has at `id`.
    fn see_indexed<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        id: u64,
        program: u64,
    ) {
        let Some(aux) = layout.aux(kernel, program) else { return };
        if let Ok(found) = self.listed.binary_search_by_key(&aux, |listed| listed.aux) {
            self.listed[found].is_indexed = true;
        } else if layout.has_listed_code(kernel, aux) && !self.is_cut {
            // Of another program at this address, the ID is another.
            self.confirm.see(Key::NotListed(program), id);
        }
    }

    /// Judges a listed program that the index did not have when it was read.
    fn see_not_indexed<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        aux: u64,
    ) {
        let Some((id, program)) = layout.id_and_program(kernel, aux) else { return };
        let is_indexed = || layout.at_id(kernel, id) == Some(program);
        // It can have come since then, or go now.
        if id != 0 && !is_indexed() && layout.id_and_program(kernel, aux) == Some((id, program)) {
            self.confirm.see(Key::NotIndexed(program), id);
        }
    }
}

/// The words for a suspect with this ID.
fn finding<M: KernelMemory>(kernel: &Kernel<'_, M>, layout: &Layout, key: Key, id: u64) -> Finding {
    let (program, missing) = key.parts();
    let other = if missing == INDEX { LIST } else { INDEX };
    let name = layout.aux(kernel, program).and_then(|aux| layout.name(kernel, aux));
    Finding {
        what: HIDDEN.into(),
        address: program,
        symbol: format!("{}, ID {id}", name.unwrap_or_else(|| "without a name".into())),
        expected: format!("in {missing}"),
        found: format!("only in {other}"),
        ..Finding::new(Class::BpfProgramHidden)
    }
}

impl Make for BpfCheck {
    const ABOUT: About =
        About { name: "bpf", wants: &[layout::WANTS], share: 5, repairs: Repairs::Nothing };

    fn make(profile: &Profile<'_>, _seed: u64) -> Result<Self, ProfileError> {
        Ok(Self {
            layout: Layout::new(profile),
            stage: Stage::Begin,
            listed: Vec::new(),
            indexed: Vec::new(),
            is_cut: false,
            confirm: Confirm::new(PASSES),
            pace: Pace::every(PACE),
            coverage: Coverage { learning: true, ..Coverage::default() },
        })
    }
}

impl<M: KernelMemory> Check<M> for BpfCheck {
    fn about(&self) -> &'static About {
        &Self::ABOUT
    }

    fn coverage(&self) -> Coverage {
        self.coverage
    }

    fn waiting(&self) -> u64 {
        self.confirm.waiting().count() as u64
    }

    fn stands(&self, what: &str, address: u64) -> bool {
        what == HIDDEN && self.confirm.stands(|key| key.parts().0 == address)
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        _retries: &mut u64,
    ) -> Step {
        if self.pace.rests(!matches!(self.stage, Stage::Begin)) {
            return Step::Rests;
        }
        let Some(layout) = self.layout.take() else {
            self.coverage = Coverage { unjudged: 1, ..Coverage::default() };
            return Step::Done(0);
        };
        let done = until_done(budget, || self.advance(kernel, &layout));
        if done {
            self.stage = Stage::Begin;
            self.coverage.learning = false;
            self.coverage.unjudged = u64::from(self.is_cut);
            self.confirm.end_look();
            let due = self.confirm.take().into_iter();
            due.for_each(|(key, id)| found(finding(kernel, &layout, key, id)));
        }
        self.layout = Some(layout);
        if done {
            Step::Done(self.indexed.len() as u64)
        } else {
            Step::Spent
        }
    }
}
