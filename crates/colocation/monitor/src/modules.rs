//! The check `modules`: the places in which Linux keeps a module agree, and no taint is taken back.
//!
//! Linux keeps a module in the list that `lsmod` prints, in the tree by which it finds the module of an address, and,
//! once its initialization is over, in sysfs. A module that is in some of them only hides from those who read the
//! others. One that is in none is the business of the check `mappings`.
//!
//! A module can also say that it is *unformed*. Then `lsmod` leaves it out, although it is in the list. Linux says so
//! of a module before it is in sysfs, and after it left sysfs.
//!
//! Linux sets the bits of `tainted_mask` and clears none, and each listed module keeps the bits that it set.

mod layout;
pub mod listing;
mod notes;
#[cfg(test)]
mod tests;

use crate::check::{until_done, About, Budget, Check, Coverage, Make, Pace, Repairs, Step};
use crate::class::Class;
use crate::confirm::Confirm;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::{Profile, ProfileError};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use layout::Layout;
pub(crate) use notes::Notes;

/// Steps from the beginning of one pass to that of the next.
const PACE: u32 = 24;
/// Passes in a row that confirm a suspect. Of a module that is coming or going, Linux changes the places in many steps.
const PASSES: u32 = 3;
const PASSES_IN_CHANGE: u32 = 50;
/// The same of a module that says that Linux is still making it, which may wait half a minute for another module.
const PASSES_UNFORMED: u32 = 500;
/// Maximum number of entries of each place, more than any intact kernel has; further ones are ignored.
const MAX_ENTRIES: usize = 4096;
/// Maximum length of a module's name with its end (`MODULE_NAME_LEN` in Linux's `module.h`).
const NAME_BYTES: usize = 56;

const HIDDEN: &str = "hidden module";
const CLEARED: &str = "taint cleared";
/// What should be said of a module's state, and what is wrong with it.
const UNFORMED: (&str, &str) = ("formed", "unformed, which lsmod leaves out");

/// The places, as bits.
const LIST: u64 = 1;
const TREE: u64 = 2;
const SYSFS: u64 = 4;
const PLACES: [(u64, &str); 3] =
    [(LIST, "the module list"), (TREE, "the module tree"), (SYSFS, "sysfs")];

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// The module at this address.
    Module(u64),
    /// The kernel's taints.
    Taints,
}

/// Where a pass is.
#[derive(Debug, Default)]
enum Stage {
    #[default]
    Begin,
    /// The next link, and the number of entries so far.
    List(u64, usize),
    /// Which of the two copies, the next node, and the number of nodes so far.
    Tree(u64, Option<u64>, usize),
    /// The head, the next link, and the number of entries so far.
    Sysfs(u64, u64, usize),
}

/// The check `modules`.
#[derive(Debug)]
pub struct ModuleCheck {
    layout: Option<Layout>,
    stage: Stage,
    /// The modules of this pass, in the order in which they were found, each with the places that have it.
    modules: Vec<(u64, u64)>,
    /// The taints that Linux has or had.
    taints: u64,
    /// Those that this pass misses.
    cleared: u64,
    confirm: Confirm<Key>,
    in_change: Confirm<Key>,
    unformed: Confirm<Key>,
    pace: Pace,
    coverage: Coverage,
}

/// The names of `places`.
fn names(places: u64) -> String {
    let mut text = String::new();
    for (_, name) in PLACES.iter().filter(|(place, _)| places & place != 0) {
        text.push_str(if text.is_empty() { "in " } else { ", " });
        text.push_str(name);
    }
    text
}

impl ModuleCheck {
    /// Notes that `place` has `module`.
    fn add(&mut self, module: u64, place: u64) {
        let known = self.modules.iter_mut().find(|(known, _)| *known == module);
        if let Some((_, places)) = known {
            *places |= place;
        } else if self.modules.len() < MAX_ENTRIES {
            self.modules.push((module, place));
        }
    }

    /// Reads one more entry; returns true when the pass has read all.
    fn advance<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, layout: &Layout) -> bool {
        let list = layout.list();
        self.stage = match core::mem::take(&mut self.stage) {
            Stage::Begin => {
                self.modules.clear();
                Stage::List(kernel.u64(list.head).unwrap_or(0), 0)
            }
            Stage::List(link, count) => {
                if link == list.head || link == 0 || count == MAX_ENTRIES {
                    begin_tree(kernel, layout)
                } else {
                    self.add(link.wrapping_sub(list.link), LIST);
                    Stage::List(kernel.u64(link).unwrap_or(0), count + 1)
                }
            }
            Stage::Tree(copy, node, count) => {
                match layout.tree.zip(node).filter(|_| count < MAX_ENTRIES) {
                    Some((tree, node)) => {
                        let first = node.wrapping_sub(copy * tree.node_bytes);
                        if let Some(module) = kernel.u64(first.wrapping_add(tree.module)) {
                            self.add(module, TREE);
                        }
                        Stage::Tree(copy, tree.nodes.next(kernel, node), count + 1)
                    }
                    None => begin_sysfs(kernel, layout),
                }
            }
            Stage::Sysfs(head, link, count) => {
                let ends = link == head || link == 0 || count == MAX_ENTRIES;
                let Some(sysfs) = layout.sysfs.filter(|_| !ends) else { return true };
                // Code that is built in has an entry without a module.
                let module = kernel.u64(link.wrapping_add(sysfs.module));
                if let Some(module) = module.filter(|&module| module != 0) {
                    self.add(module, SYSFS);
                }
                Stage::Sysfs(head, kernel.u64(link).unwrap_or(0), count + 1)
            }
        };
        false
    }

    /// Judges what the pass has read.
    fn judge<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, layout: &Layout) {
        let mut taints = self.taints;
        for &(module, places) in &self.modules {
            let state = layout.state_of(kernel, module);
            let is_live = state == Some(layout.live);
            let own =
                layout.owners.module_taints.and_then(|at| kernel.u64(module.wrapping_add(at)));
            if is_live && places & LIST != 0 {
                taints |= own.unwrap_or(0);
            }
            let expected = layout.expected(is_live);
            if places & expected != expected {
                // A module can move from place to place, and say now this, now that.
                if is_live {
                    self.confirm.see(Key::Module(module), 0);
                }
                self.in_change.see(Key::Module(module), 0);
            } else if state.is_some() && state == layout.unformed {
                if places & SYSFS != 0 {
                    self.confirm.see(Key::Module(module), 0);
                }
                self.unformed.see(Key::Module(module), 0);
            }
        }
        if let Some(now) = layout.taints.and_then(|at| kernel.u64(at)) {
            self.taints |= now;
            self.cleared = taints & !now;
            if self.cleared != 0 {
                self.confirm.see(Key::Taints, 0);
            }
        }
        self.confirm.end_look();
        self.in_change.end_look();
        self.unformed.end_look();
    }

    /// The words for a suspect.
    fn finding<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        key: Key,
    ) -> Finding {
        match key {
            Key::Module(module) => {
                let places = self.modules.iter().find(|(known, _)| *known == module);
                let places = places.map_or(0, |(_, places)| *places);
                let at = module.wrapping_add(layout.owners.module_name);
                let name = kernel.c_string(at, NAME_BYTES).filter(|name| !name.is_empty());
                let code = layout.owners.module_code;
                let code = code.and_then(|(base, _)| kernel.u64(module.wrapping_add(base)));
                let missing = PLACES.iter().fold(0, |all, (place, _)| all | place & !places);
                let state = layout.state_of(kernel, module);
                let is_unformed = state.is_some()
                    && state == layout.unformed
                    && places & layout.expected(false) == layout.expected(false);
                let (expected, found) = if is_unformed {
                    (UNFORMED.0.into(), format!("{}, {}", UNFORMED.1, names(places)))
                } else {
                    (names(missing), format!("only {}", names(places)))
                };
                Finding {
                    what: HIDDEN.into(),
                    address: module,
                    symbol: name.unwrap_or_else(|| "without a name".into()),
                    expected,
                    found,
                    culprit: code.unwrap_or(0),
                    ..Finding::new(Class::ModuleHidden)
                }
            }
            Key::Taints => Finding {
                what: CLEARED.into(),
                address: layout.taints.unwrap_or(0),
                symbol: "tainted_mask".into(),
                found: format!("without {:#x}", self.cleared),
                ..Finding::new(Class::TaintCleared)
            },
        }
    }
}

fn begin_tree<M: KernelMemory>(kernel: &Kernel<'_, M>, layout: &Layout) -> Stage {
    let Some(tree) = layout.tree else { return begin_sysfs(kernel, layout) };
    let copy = kernel.u32(tree.sequence).map_or(0, |sequence| u64::from(sequence & 1));
    let root = tree.root + copy * tree.root_bytes;
    Stage::Tree(copy, tree.nodes.first(kernel, root), 0)
}

fn begin_sysfs<M: KernelMemory>(kernel: &Kernel<'_, M>, layout: &Layout) -> Stage {
    let set = layout.sysfs.and_then(|sysfs| Some(kernel.u64(sysfs.set)?.wrapping_add(sysfs.list)));
    let head = set.unwrap_or(0);
    Stage::Sysfs(head, kernel.u64(head).unwrap_or(0), 0)
}

impl Make for ModuleCheck {
    const ABOUT: About = About {
        name: "modules",
        wants: &[layout::WANTS, notes::WANTS],
        share: 5,
        pass_ms: 0,
        repairs: Repairs::Nothing,
    };

    fn make(profile: &Profile<'_>, _seed: u64) -> Result<Self, ProfileError> {
        Ok(Self {
            layout: Layout::new(profile),
            stage: Stage::Begin,
            modules: Vec::new(),
            taints: 0,
            cleared: 0,
            confirm: Confirm::new(PASSES),
            in_change: Confirm::new(PASSES_IN_CHANGE),
            unformed: Confirm::new(PASSES_UNFORMED),
            pace: Pace::every(PACE),
            coverage: Coverage { learning: true, ..Coverage::default() },
        })
    }
}

impl<M: KernelMemory> Check<M> for ModuleCheck {
    fn about(&self) -> &'static About {
        &Self::ABOUT
    }

    fn coverage(&self) -> Coverage {
        self.coverage
    }

    fn waiting(&self) -> u64 {
        // A module that is being made is no suspect before it takes long.
        let is_new = |key: &Key| !self.confirm.stands(|known| known == *key);
        self.confirm.waiting().chain(self.in_change.waiting().filter(is_new)).count() as u64
    }

    fn stands(&self, what: &str, address: u64) -> bool {
        let is = |key| match key {
            Key::Module(module) => what == HIDDEN && module == address,
            Key::Taints => what == CLEARED,
        };
        self.confirm.stands(is) || self.in_change.stands(is) || self.unformed.stands(is)
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
            self.coverage.learning = false;
            self.judge(kernel, &layout);
            let mut due = self.confirm.take();
            for late in [&mut self.in_change, &mut self.unformed] {
                let confirm = &self.confirm;
                let late = late.take().into_iter();
                due.extend(late.filter(|(key, _)| !confirm.stands(|known| known == *key)));
            }
            due.iter().for_each(|(key, _)| found(self.finding(kernel, &layout, *key)));
        }
        self.layout = Some(layout);
        if done {
            Step::Done(self.modules.len() as u64)
        } else {
            Step::Spent
        }
    }
}
