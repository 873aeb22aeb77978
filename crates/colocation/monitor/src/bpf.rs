//! The check `bpf`: the places in which Linux keeps a BPF program agree, and its code stays what it was.
//!
//! Linux finds a program by its ID in an index: that is what user space can ask for. The code of each compiled program
//! is in a list besides. A program that is in one of them only hides from those who read the other. Linux puts a
//! program into the index before the list, and takes it out in the same order. It lists the functions of a program as
//! well, which have no ID.

mod code;
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
use code::{Codes, Place, CHANGED, SENSITIVE};
use layout::Layout;

/// Steps from the beginning of one pass to that of the next.
const PACE: u32 = 24;
/// Passes in a row that confirm a suspect: of a program that comes or goes, Linux changes one place after the other.
const PASSES: u32 = 3;
/// Maximum number of entries of each place; a place that has more is not walked to its end.
const MAX_ENTRIES: usize = 1 << 14;

const HIDDEN: &str = "hidden BPF program";

/// The places.
const INDEX: &str = "the index of IDs";
const LIST: &str = "the list of code";

/// A program in the list.
#[derive(Clone, Copy, Debug)]
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
    /// The next part of the programs' code.
    Code(Place),
}

/// The check `bpf`.
#[derive(Debug)]
pub struct BpfCheck {
    layout: Option<Layout>,
    stage: Stage,
    /// The listed programs of this pass, by address.
    listed: Vec<Listed>,
    /// ID and `struct bpf_prog_aux` of each program in the index.
    indexed: Vec<(u64, u64)>,
    /// Whether this pass could not walk to the end of the list, or of the index.
    list_is_cut: bool,
    index_is_cut: bool,
    /// Programs that the index or the list lacks, by the address of their `struct bpf_prog_aux`, with their IDs.
    not_indexed: Confirm<(u64, u64)>,
    not_listed: Confirm<(u64, u64)>,
    codes: Codes,
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
                self.codes.begin();
                (self.list_is_cut, self.index_is_cut) = (false, false);
                Stage::List(kernel.u64(layout.list.head).unwrap_or(0), 0)
            }
            Stage::List(link, _) if link == layout.list.head => Stage::Index(0, 0),
            Stage::List(link, count) => match kernel.u64(link) {
                Some(next) if count < MAX_ENTRIES => {
                    let ksym = link.wrapping_sub(layout.list.link);
                    let code = layout.range(kernel, ksym);
                    code.into_iter().for_each(|code| self.codes.add_listed(code));
                    let aux = layout.aux_of(kernel, ksym);
                    aux.into_iter().for_each(|aux| self.add_listed(aux));
                    Stage::List(next, count + 1)
                }
                _ => {
                    self.list_is_cut = true;
                    self.codes.cut_list();
                    Stage::List(layout.list.head, 0)
                }
            },
            Stage::Index(id, count) => match layout.index.next(kernel, layout.ids, id) {
                Ok(XArrayEntry::End) => Stage::Rest(0),
                Ok(XArrayEntry::Found(id, program)) if count < MAX_ENTRIES => {
                    self.see_indexed(kernel, layout, id, program);
                    Stage::Index(id.saturating_add(1), count + 1)
                }
                Ok(XArrayEntry::Gap(id)) if count < MAX_ENTRIES => Stage::Index(id, count + 1),
                _ => {
                    self.index_is_cut = true;
                    Stage::Rest(0)
                }
            },
            Stage::Rest(number) => {
                let Some(listed) = self.listed.get(number).copied() else {
                    self.stage = Stage::Code(Place::default());
                    return false;
                };
                if !listed.is_indexed {
                    self.see_not_indexed(kernel, layout, listed.aux);
                }
                Stage::Rest(number + 1)
            }
            Stage::Code(place) => match self.codes.advance(kernel, layout, &self.indexed, place) {
                Some(next) => Stage::Code(next),
                None => return true,
            },
        };
        false
    }

    /// Notes that the list has the program with this `struct bpf_prog_aux`.
    fn add_listed(&mut self, aux: u64) {
        if let Err(place) = self.listed.binary_search_by_key(&aux, |listed| listed.aux) {
            self.listed.insert(place, Listed { aux, is_indexed: false });
        }
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
        self.indexed.push((id, aux));
        if let Ok(found) = self.listed.binary_search_by_key(&aux, |listed| listed.aux) {
            self.listed[found].is_indexed |= layout.is_at(kernel, id, aux);
        } else if layout.has_listed_code(kernel, aux) && !self.list_is_cut {
            // Of another program at this address, the ID is another.
            self.not_listed.see((aux, id), 0);
        }
    }

    /// Judges a listed program that the index did not have when it was read.
    fn see_not_indexed<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        aux: u64,
    ) {
        let Some(id) = layout.id(kernel, aux) else { return };
        // It can have come since then, or go now.
        if id != 0 && !layout.is_at(kernel, id, aux) && layout.id(kernel, aux) == Some(id) {
            self.not_indexed.see((aux, id), 0);
        }
    }

    /// Ends the looks of a pass. What could not be walked to its end acquits nobody.
    fn end_looks(&mut self) {
        self.not_indexed.end_look();
        if !self.list_is_cut && !self.index_is_cut {
            self.not_listed.end_look();
        } else {
            self.not_listed.end_look_at(|_| false);
        }
    }
}

/// The words for a program with this ID that `missing` lacks.
fn finding<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    missing: &str,
    aux: u64,
    id: u64,
) -> Finding {
    let other = if missing == INDEX { LIST } else { INDEX };
    let name = layout.name(kernel, aux).unwrap_or_else(|| "without a name".into());
    Finding {
        what: HIDDEN.into(),
        address: aux,
        symbol: format!("{name}, ID {id}"),
        expected: format!("in {missing}"),
        found: format!("only in {other}"),
        ..Finding::new(Class::BpfProgramHidden)
    }
}

impl Make for BpfCheck {
    const ABOUT: About = About {
        name: "bpf",
        wants: &[layout::WANTS],
        share: 5,
        pass_ms: 0,
        repairs: Repairs::Nothing,
    };

    fn make(profile: &Profile<'_>, _seed: u64) -> Result<Self, ProfileError> {
        Ok(Self {
            layout: Layout::new(profile),
            stage: Stage::Begin,
            listed: Vec::new(),
            indexed: Vec::new(),
            list_is_cut: false,
            index_is_cut: false,
            not_indexed: Confirm::new(PASSES),
            not_listed: Confirm::new(PASSES),
            codes: Codes::new(profile, PASSES),
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
        let hidden = self.not_indexed.waiting().chain(self.not_listed.waiting());
        let Codes { changed, sensitive, .. } = &self.codes;
        hidden.chain(changed.waiting()).chain(sensitive.waiting()).count() as u64
    }

    fn stands(&self, what: &str, address: u64) -> bool {
        let is = |(at, _)| at == address;
        what == CHANGED && self.codes.changed.stands(is)
            || what == SENSITIVE && self.codes.sensitive.stands(is)
            || what == HIDDEN && (self.not_indexed.stands(is) || self.not_listed.stands(is))
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
            let cut = u64::from(self.list_is_cut) + u64::from(self.index_is_cut);
            self.coverage.unjudged = cut + self.codes.unjudged;
            self.end_looks();
            self.codes.end(kernel, &layout, &self.indexed, self.index_is_cut);
            for (confirm, missing) in [(&mut self.not_indexed, INDEX), (&mut self.not_listed, LIST)]
            {
                let due = confirm.take().into_iter();
                due.for_each(|((aux, id), _)| found(finding(kernel, &layout, missing, aux, id)));
            }
            let Self { codes, indexed, .. } = self;
            let name = |id| {
                let program = indexed.iter().find(|(other, _)| *other == id);
                let name = program.and_then(|(_, aux)| layout.name(kernel, *aux));
                name.unwrap_or_else(|| "without a name".into())
            };
            for ((start, id), _) in codes.changed.take() {
                codes.finding(kernel, &name(id), start, id).into_iter().for_each(&mut *found);
            }
            for ((start, id), _) in codes.sensitive.take() {
                codes.sensitive_finding(&name(id), start, id).into_iter().for_each(&mut *found);
            }
        }
        self.layout = Some(layout);
        if done {
            Step::Done(self.indexed.len() as u64)
        } else {
            Step::Spent
        }
    }
}
