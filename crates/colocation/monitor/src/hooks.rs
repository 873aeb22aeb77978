//! The check `hooks`: what Linux calls through pointers in writable memory belongs to somebody.
//!
//! A kind of hook is a [`Source`] in a file of its own, which visits the objects that Linux has at the moment. Each
//! pointer must lead to the kernel's image or to something with a listed owner. Where the object cannot be another one,
//! the pointer must not change. Being listed is not enough for hooks on functions whose results tell user space what
//! exists: a module that hooks one of these is reported (`sensitive`).

mod breakpoints;
mod devices;
mod diagnoses;
mod directs;
mod files;
mod filter;
mod first;
mod formats;
mod graphs;
mod hrtimers;
mod inputs;
mod interfaces;
mod kprobes;
pub mod listing;
mod live_patches;
mod mounts;
mod netfilter;
mod notifiers;
pub(crate) mod packets;
mod plan;
mod procfs;
mod protocols;
mod sensitive;
mod sockets;
mod source;
mod stubs;
mod terminals;
#[cfg(test)]
mod tests;
mod threads;
mod timers;
mod tracepoints;
mod tracers;

use crate::check::{About, Budget, Check, Coverage, Make, Pace, Repairs, Step};
use crate::class::Class;
use crate::confirm::Confirm;
use crate::disarm::{Culprit, Plan};
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::owner::{self, Kind, OwnerIndex, Owners};
use crate::profile::requirements::Wants;
use crate::profile::{Profile, ProfileError};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use first::{First, FirstLooks, Homes};
use kyozon_abi::layer::RepairWord;
use plan::Collector;
use sensitive::Sensitive;
use source::{Cursor, Hook, Source, Target};
use stubs::Stubs;

/// Steps from the beginning of one pass to that of the next. A pass with a suspect is followed at once.
const PACE: u32 = 20;
/// Passes in a row that confirm a suspect.
const PASSES: u32 = 2;
/// Maximum number of owners whose hooks are to be taken out, and of plans for it that wait.
const MAX_PLANS: usize = 8;
/// Maximum number of suspects of a source in a pass, and of pointers in a pass that are looked for among owners that
/// came since the owners were read: both cost much, and an intruder can make many.
const MAX_OF_SOURCE: u64 = 1 << 10;
const MAX_LATE: u32 = 64;
/// Maximum number of parts of a list, which one without end would exceed.
const MAX_PARTS: u32 = 1 << 10;

/// The name of the cokernel's module. Linux would end, sleep or start its crash kernel without its hooks.
const OWN_MODULE: &str = "kyozon";

const SENSITIVE: &str = "sensitive function hooked";
const CHANGED: &str = "operations changed";

macro_rules! sources {
    ($($name:ident: $source:path),* $(,)?) => {
        /// What the sources need from a profile.
        const WANTS: &[Wants] = &[filter::WANTS, first::WANTS, $(<$source as Source>::WANTS),*];

        #[derive(Debug)]
        enum AnySource {
            $($name($source)),*
        }

        impl AnySource {
            /// The sources that a kernel with `profile` has, and the number of those that it lacks.
            fn all(profile: &Profile<'_>) -> (Vec<Self>, u64) {
                let found = [$(<$source>::new(profile).map(Self::$name)),*];
                let judged = [$(!<$source as Source>::FOR_PLANS),*];
                let is_missing = |(source, judged): &(&Option<Self>, bool)| source.is_none() && *judged;
                let missing = found.iter().zip(judged).filter(is_missing).count();
                (found.into_iter().flatten().collect(), missing as u64)
            }

            fn what(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => <$source as Source>::WHAT),*
                }
            }

            /// Whether it is visited only while a plan is made.
            fn is_for_plans(&self) -> bool {
                match self {
                    $(Self::$name(_) => <$source as Source>::FOR_PLANS),*
                }
            }

            fn removal<M: KernelMemory>(
                &self,
                kernel: &Kernel<'_, M>,
                hook: &Hook,
                stubs: &Stubs,
            ) -> Result<Vec<RepairWord>, &'static str> {
                match self {
                    $(Self::$name(source) => source.removal(kernel, hook, stubs)),*
                }
            }

            fn restoration<M: KernelMemory>(
                &self,
                kernel: &Kernel<'_, M>,
                hook: &Hook,
                before: u64,
            ) -> Result<Vec<RepairWord>, &'static str> {
                match self {
                    $(Self::$name(source) => source.restoration(kernel, hook, before)),*
                }
            }

            fn visit<M: KernelMemory>(
                &self,
                kernel: &Kernel<'_, M>,
                at: Cursor,
                see: &mut dyn FnMut(Hook),
            ) -> Option<Cursor> {
                match self {
                    $(Self::$name(source) => source.visit(kernel, at, see)),*
                }
            }

            fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
                match self {
                    $(Self::$name(source) => source.symbol(kernel, object)),*
                }
            }
        }
    };
}

sources! {
    Breakpoints: breakpoints::Breakpoints,
    Diagnoses: diagnoses::Diagnoses,
    Directs: directs::Directs,
    Files: files::Files,
    Formats: formats::Formats,
    Graphs: graphs::Graphs,
    Hrtimers: hrtimers::Hrtimers,
    Inputs: inputs::Inputs,
    Interfaces: interfaces::Interfaces,
    Kprobes: kprobes::Kprobes,
    LivePatches: live_patches::LivePatches,
    Mounts: mounts::Mounts,
    Netfilter: netfilter::Netfilter,
    Notifiers: notifiers::Notifiers,
    Packets: packets::Packets,
    Procfs: procfs::Procfs,
    Protocols: protocols::Protocols,
    Sockets: sockets::Sockets,
    Terminals: terminals::Terminals,
    Threads: threads::Threads,
    Timers: timers::Timers,
    Tracepoints: tracepoints::Tracepoints,
    Tracers: tracers::Tracers,
    Trampolines: tracers::Trampolines,
}

/// What is wrong with a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// It leads to nobody's code or data.
    Hidden,
    /// A listed module has hooked a function that tells user space what exists.
    Sensitive,
    /// It differs from the first look.
    Changed,
}

/// Who owns what a hook leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owned {
    /// The kernel's image.
    ByKernel,
    /// The code of a listed module.
    ByModule,
    /// Something else that Linux lists.
    Listed,
    ByNobody,
}

/// `jmp` with a distance of four bytes.
const JUMP: u8 = 0xe9;

/// The kernel's code.
#[derive(Debug)]
struct Text {
    all: Range<u64>,
    /// The trampolines of static calls: each jumps to the function that is called at the moment.
    trampolines: Range<u64>,
}

impl Text {
    fn new(profile: &Profile<'_>) -> Self {
        let all = profile.text_base()..profile.symbol("_etext").unwrap_or(0);
        Self { all, trampolines: source::static_calls(profile) }
    }

    /// The code that a pointer to `value` leads to.
    fn leads<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, value: u64) -> u64 {
        let is_trampoline = self.trampolines.contains(&value);
        let target = || tracers::target(kernel, value, JUMP);
        is_trampoline.then(target).flatten().unwrap_or(value)
    }
}

/// Who owns what `hook` leads to, by the last reading of `index`. The kernel's code is `text`. So many times as `late`
/// says, an owner that came since that reading is looked for.
fn owned<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    index: &OwnerIndex,
    text: &Text,
    hook: &Hook,
    late: &mut u32,
) -> Owned {
    let is_own = match hook.target {
        Target::Data => kernel.in_image(hook.value),
        _ => text.all.contains(&hook.value),
    };
    if is_own {
        return Owned::ByKernel;
    }
    let code = index.find(hook.value).filter(|code| match hook.target {
        Target::Data => code.kind != Kind::Pack,
        _ => !matches!(code.kind, Kind::Data | Kind::Pack),
    });
    match code {
        Some(code) if code.kind == Kind::Module => Owned::ByModule,
        Some(_) => Owned::Listed,
        // Since that reading, it may have come. The next pass knows it.
        None if *late == 0 => Owned::ByNobody,
        None => {
            *late -= 1;
            match owner::outside(kernel, index.owners(), hook.value) {
                Some(_) => Owned::Listed,
                None => Owned::ByNobody,
            }
        }
    }
}

/// Whether one of `ranges` has `address`.
fn has(ranges: &Option<Vec<Range<u64>>>, address: u64) -> bool {
    ranges.iter().flatten().any(|range| range.contains(&address))
}

/// What is judged: a pointer of a source's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    wrong: Wrong,
    source: usize,
    object: u64,
    slot: u64,
    /// The hooked function; 0 if the hook is none of a function.
    function: u64,
}

impl Key {
    /// The address of the finding.
    fn address(&self) -> u64 {
        match self.wrong {
            Wrong::Sensitive => self.function,
            _ => self.object,
        }
    }
}

/// Where a pass is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Between two passes.
    Rests,
    /// The owners are read.
    Owners,
    /// A source, the place in it, and the number of parts of that list so far.
    Source(usize, Cursor, u32),
    /// The owners are read again, for a report: a module can have come meanwhile.
    Report,
}

/// The check `hooks`.
#[derive(Debug)]
pub struct HookCheck {
    text: Text,
    sensitive: Sensitive,
    sources: Vec<AnySource>,
    owners: Option<OwnerIndex>,
    stage: Stage,
    pass: u32,
    /// Pointers of this pass, and lists of which it did not reach the end.
    pointers: u64,
    cut_off: u64,
    /// Suspects of the source so far; pointers for which owners that came late may be looked for.
    of_source: u64,
    late: u32,
    /// Sources that the profile does not describe.
    missing: u64,
    first: FirstLooks,
    homes: Homes,
    confirm: Confirm<Key>,
    stubs: Stubs,
    /// What the cokernel's own module has, by the first reading of the owners: whoever blames it gets no plan. `None`
    /// before that.
    own: Option<Vec<Range<u64>>>,
    /// The owners whose hooks are to be taken out; what this pass collects of one; the plans.
    wanted: Vec<Culprit>,
    collector: Option<Collector>,
    plans: Vec<Plan>,
    pace: Pace,
    coverage: Coverage,
}

impl HookCheck {
    /// Visits the next part of a source.
    fn advance<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        index: &OwnerIndex,
        number: usize,
        at: Cursor,
    ) -> Option<Cursor> {
        let Self {
            text,
            sensitive,
            pass,
            pointers,
            first,
            homes,
            confirm,
            collector,
            stubs,
            own,
            ..
        } = self;
        let (of_source, late, cut_off) = (&mut self.of_source, &mut self.late, &mut self.cut_off);
        let source = self.sources.get(number)?;
        source.visit(kernel, at, &mut |hook| {
            if hook.value == 0 {
                return;
            }
            let leads = match hook.target {
                Target::Data => hook.value,
                _ => text.leads(kernel, hook.value),
            };
            if let Some(collector) = collector.as_mut().filter(|_| !has(own, leads)) {
                let is_sensitive = match hook.target {
                    Target::Hooks(function) => sensitive.shows(function).is_some(),
                    _ => false,
                };
                let source = (number, source, &*stubs);
                collector.see(kernel, index, source, (hook, leads), is_sensitive, first);
            }
            if source.is_for_plans() {
                return;
            }
            *pointers += 1;
            let mut see = |wrong, function| {
                let Hook { object, slot, .. } = hook;
                *of_source += 1;
                if *of_source > MAX_OF_SOURCE {
                    *cut_off += 1;
                    return;
                }
                confirm.see(Key { wrong, source: number, object, slot, function }, leads);
            };
            let home = |value| homes.of(kernel, index, value);
            let owned = owned(kernel, index, text, &Hook { value: leads, ..hook }, late);
            if owned == Owned::ByNobody {
                // What it was before is what to put back.
                let known = first.follow(hook.slot);
                let known = known.filter(|known| Some(known.stamp) == hook.stamp);
                known.into_iter().for_each(|known| known.pass = *pass);
                return see(Wrong::Hidden, 0);
            }
            if let Target::Hooks(function) = hook.target {
                if owned == Owned::ByModule && sensitive.shows(function).is_some() {
                    see(Wrong::Sensitive, function);
                }
            }
            let Some(stamp) = hook.stamp else { return };
            match first.follow(hook.slot) {
                Some(known) if known.stamp == stamp && known.value == hook.value => {
                    known.pass = *pass;
                }
                // Of a module that is gone, the object is gone, too, and its memory may be another's.
                Some(known) if known.stamp == stamp && home(known.value) == Some(known.home) => {
                    known.pass = *pass;
                    see(Wrong::Changed, 0);
                }
                known => {
                    // An owner that came since the last reading is known to the next pass.
                    let Some(home) = home(hook.value) else { return };
                    let new = First { stamp, value: hook.value, home, pass: *pass };
                    match known {
                        Some(other) => *other = new,
                        None => first.insert(hook.slot, new),
                    }
                }
            }
        })
    }

    /// Begins the plan that was asked for first.
    fn begin_plan(&mut self) {
        let next = if self.wanted.is_empty() { None } else { Some(self.wanted.remove(0)) };
        self.collector = next.map(Collector::new);
    }

    /// Completes the plan of this pass.
    fn end_plan<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, index: &OwnerIndex) {
        let Some(collector) = self.collector.take() else { return };
        if self.plans.len() < MAX_PLANS {
            self.plans.push(collector.plan(kernel, index, &self.sources, &self.stubs));
        }
    }

    /// The words for a suspect; `None` if it has an owner by now.
    fn finding<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        key: Key,
        value: u64,
    ) -> Option<Finding> {
        let source = self.sources.get(key.source)?;
        let index = self.owners.as_ref();
        let leads = || owner::describe(kernel, index, value);
        let nearby = |address| owner::symbol(kernel, address);
        let class = match key.wrong {
            Wrong::Hidden => Class::HookHidden,
            Wrong::Sensitive => Class::HookSensitive,
            Wrong::Changed => Class::HookModified,
        };
        let finding = Finding {
            address: key.address(),
            found: nearby(value),
            owner: leads(),
            culprit: if class.blames_module() { value } else { 0 },
            ..Finding::new(class)
        };
        Some(match key.wrong {
            Wrong::Hidden => {
                if index.is_some_and(|index| index.code(value).is_some()) {
                    return None;
                }
                Finding {
                    what: source.what().into(),
                    symbol: source.symbol(kernel, key.object),
                    owner: owner::unlisted(value),
                    ..finding
                }
            }
            Wrong::Sensitive => {
                // The module can be gone by now, and its hook with it.
                if index.is_some_and(|index| index.code(value).is_none()) {
                    return None;
                }
                Finding {
                    what: SENSITIVE.into(),
                    symbol: match key.function {
                        0 => "all functions".into(),
                        function => nearby(function),
                    },
                    found: format!(
                        "by {}, which can change {}",
                        source.symbol(kernel, key.object),
                        self.sensitive.shows(key.function)?
                    ),
                    ..finding
                }
            }
            Wrong::Changed => Finding {
                what: CHANGED.into(),
                symbol: source.symbol(kernel, key.object),
                expected: nearby(self.first.get(key.slot)?.value),
                ..finding
            },
        })
    }
}

impl Make for HookCheck {
    const ABOUT: About =
        About { name: "hooks", wants: WANTS, share: 15, pass_ms: 150, repairs: Repairs::Nothing };

    fn make(profile: &Profile<'_>, seed: u64) -> Result<Self, ProfileError> {
        let (sources, missing) = AnySource::all(profile);
        Ok(Self {
            text: Text::new(profile),
            sensitive: Sensitive::new(profile),
            sources,
            owners: Owners::new(profile).ok().map(OwnerIndex::new),
            stage: Stage::Rests,
            pass: 0,
            pointers: 0,
            cut_off: 0,
            of_source: 0,
            late: MAX_LATE,
            missing,
            first: FirstLooks::default(),
            homes: Homes::new(profile),
            confirm: Confirm::new(PASSES).seeded(seed),
            stubs: Stubs::new(profile),
            own: None,
            wanted: Vec::new(),
            collector: None,
            plans: Vec::new(),
            pace: Pace::every(PACE),
            coverage: Coverage { learning: true, unjudged: missing, ..Coverage::default() },
        })
    }
}

impl<M: KernelMemory> Check<M> for HookCheck {
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
        self.confirm.stands(|key| {
            let name = match key.wrong {
                Wrong::Hidden => self.sources.get(key.source).map_or("", AnySource::what),
                Wrong::Sensitive => SENSITIVE,
                Wrong::Changed => CHANGED,
            };
            name == what && key.address() == address
        })
    }

    fn culprit(&self, kernel: &Kernel<'_, M>, address: u64) -> Option<Culprit> {
        let culprit = plan::culprit(kernel, self.owners.as_ref()?, address)?;
        let is_own = [address, culprit.start].map(|at| has(&self.own, at)).contains(&true);
        (!is_own).then_some(culprit)
    }

    fn disarm(&mut self, culprit: Culprit) -> bool {
        if self.wanted.len() == MAX_PLANS {
            return false;
        }
        self.wanted.push(culprit);
        self.pace.hurry();
        true
    }

    fn plan(&mut self) -> Option<Plan> {
        self.plans.pop()
    }

    fn step(
        &mut self,
        kernel: &Kernel<'_, M>,
        budget: &mut dyn Budget,
        found: &mut dyn FnMut(Finding),
        _retries: &mut u64,
    ) -> Step {
        if self.pace.rests(!matches!(self.stage, Stage::Rests)) {
            return Step::Rests;
        }
        let Some(mut index) = self.owners.take() else {
            self.coverage.learning = false;
            return Step::Done(0);
        };
        let done = loop {
            match self.stage {
                Stage::Rests => {
                    (self.stage, self.pointers, self.cut_off) = (Stage::Owners, 0, 0);
                    self.late = MAX_LATE;
                    self.pass = self.pass.wrapping_add(1);
                    self.begin_plan();
                }
                Stage::Owners => {
                    if index.advance(kernel) {
                        self.own.get_or_insert_with(|| index.of_module(kernel, OWN_MODULE));
                        if let Some(collector) = &mut self.collector {
                            collector.begin(kernel, &index);
                        }
                        self.stage = Stage::Source(0, Cursor::default(), 0);
                    }
                }
                Stage::Source(number, ..) if number == self.sources.len() => {
                    // What is in the image is not freed, whether it is linked or not. A place there that had something
                    // of a module's may be empty, and get another module's.
                    let pass = self.pass;
                    let stays = |slot, value| kernel.in_image(slot) && kernel.in_image(value);
                    self.first.retain(|slot, first| first.pass == pass || stays(slot, first.value));
                    self.confirm.end_look();
                    self.end_plan(kernel, &index);
                    if self.confirm.is_waiting() || !self.wanted.is_empty() {
                        self.pace.hurry();
                    }
                    if !self.confirm.is_due() {
                        break true;
                    }
                    self.stage = Stage::Report;
                }
                Stage::Report => {
                    if index.advance(kernel) {
                        break true;
                    }
                }
                Stage::Source(number, ..)
                    if self.collector.is_none()
                        && self.sources.get(number).is_some_and(AnySource::is_for_plans) =>
                {
                    self.stage = Stage::Source(number + 1, Cursor::default(), 0);
                }
                Stage::Source(number, at, parts) => {
                    let next = self.advance(kernel, &index, number, at);
                    self.stage = match next {
                        None => {
                            self.of_source = 0;
                            Stage::Source(number + 1, Cursor::default(), 0)
                        }
                        Some(next) if next.list != at.list => Stage::Source(number, next, 0),
                        Some(next) if parts < MAX_PARTS => Stage::Source(number, next, parts + 1),
                        Some(next) => {
                            self.cut_off += 1;
                            Stage::Source(number, next.next_list(), 0)
                        }
                    };
                }
            }
            if budget.spent() {
                break false;
            }
        };
        self.owners = Some(index);
        if !done {
            return Step::Spent;
        }
        self.stage = Stage::Rests;
        self.coverage.learning = false;
        self.coverage.unjudged = self.missing + self.cut_off + self.confirm.dropped();
        for (key, value) in self.confirm.take() {
            self.finding(kernel, key, value).into_iter().for_each(&mut *found);
        }
        Step::Done(self.pointers)
    }
}
