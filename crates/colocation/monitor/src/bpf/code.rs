//! The code of programs: it stays what it was at its first look, but for what Linux patches.
//!
//! Linux patches five bytes: at the beginning of a function, where other programs attach to it, and where the program's
//! table of tail calls says. It writes no-operations there, and calls and jumps to code of BPF's. A program keeps its
//! ID, and no other one gets it. Linux calls a program through a pointer, which leads to the listed code and stays.
//!
//! A program calls Linux's helpers directly. By two of them, it can deceive processes as a rootkit in the kernel can.

use super::layout::Layout;
use crate::class::Class;
use crate::confirm::Confirm;
use crate::finding::{hex, Finding};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::Profile;
use crate::text::near_target;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// Bytes that are read together.
const CHUNK: usize = 4096;
/// Maximum number of bytes of all copies; further code is not judged.
const MAX_BYTES: usize = 2 << 20;
/// Maximum number of functions of a program, itself included (`BPF_MAX_SUBPROGS` in Linux's `bpf_verifier.h`, and one).
const MAX_FUNCTIONS: u64 = 258;
/// Bytes of a place that Linux patches, and what it writes there: a no-operation, or the first byte of a call or jump.
const SITE: usize = 5;
const NOP: [u8; SITE] = [0x0f, 0x1f, 0x44, 0, 0];
const CALL: u8 = 0xe8;
/// What Linux writes in the place of the first byte while it patches. Programs can have it do that without a pause:
/// passes in a row that must see it.
const INT3: u8 = 0xcc;
pub(super) const BREAKPOINT_PASSES: u32 = 20;
const JMP: u8 = 0xe9;
/// What a function begins with where indirect branches are tracked (ENDBR64).
const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// Maximum number of copies, and of entries of a table of tail calls.
const MAX_COPIES: usize = 1 << 14;
const MAX_TAIL_CALLS: u64 = 1 << 10;
/// Bytes of a finding that are shown.
const SHOWN: usize = 8;

pub(super) const CHANGED: &str = "BPF program changed";
pub(super) const SENSITIVE: &str = "sensitive BPF program";

/// Helpers by which a program changes more than its own data, and what they do.
const HELPERS: [(&str, &str); 2] = [
    ("bpf_probe_write_user", "writes to the memory of processes"),
    ("bpf_override_return", "decides what functions return"),
];

/// A change of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// Its code, at this offset.
    Code(usize),
    /// Linux calls, or lists, code that begins here.
    Elsewhere(u64),
    /// A breakpoint stays where Linux writes one only while it patches.
    Breakpoint,
    /// The program does not list it any more, or it is no memory.
    Missing,
}

/// The copy of a function's code.
#[derive(Debug)]
struct Copy {
    /// The ID of its program, and its number among the program's functions.
    id: u64,
    function: u64,
    start: u64,
    /// Number of bytes of the code, and those that were copied so far.
    length: usize,
    bytes: Vec<u8>,
    /// The offsets of the places that Linux patches, in their order.
    sites: Vec<usize>,
    /// Whether this pass found it.
    is_there: bool,
    /// The first change that this pass found.
    changed: Option<Change>,
    /// Whether this pass found a breakpoint where Linux patches, and passes in a row that did.
    has_breakpoint: bool,
    breakpoints: u32,
    /// The number of the first sensitive helper that it calls.
    helper: Option<usize>,
}

/// Where the walk over all code is: the place of the program, the number of the function, and the offset in its code.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    program: usize,
    function: u64,
    offset: usize,
}

/// The copies, and what is changed.
#[derive(Debug)]
pub(super) struct Codes {
    /// By ID and number.
    copies: Vec<Copy>,
    /// Bytes of all copies.
    size: usize,
    /// Whether the list of code was not read to its end.
    list_is_cut: bool,
    /// The code that Linux lists in this pass, trampolines too: start and end, by address.
    listed: Vec<(u64, u64)>,
    /// Changed functions: where each begins, and the ID of its program.
    pub changed: Confirm<(u64, u64)>,
    /// The addresses of [`HELPERS`], and the functions that call one.
    helpers: [Option<u64>; HELPERS.len()],
    pub sensitive: Confirm<(u64, u64)>,
    /// Functions of this pass that are not judged.
    pub unjudged: u64,
}

impl Codes {
    /// No copies; `passes` passes in a row confirm a change.
    pub fn new(profile: &Profile<'_>, passes: u32) -> Self {
        let changed = Confirm::new(passes);
        Self {
            copies: Vec::new(),
            size: 0,
            list_is_cut: false,
            listed: Vec::new(),
            changed,
            helpers: HELPERS.map(|(helper, _)| profile.symbol(helper)),
            sensitive: Confirm::new(passes),
            unjudged: 0,
        }
    }

    /// The list of code cannot be read to its end.
    pub fn cut_list(&mut self) {
        self.list_is_cut = true;
    }

    /// Begins a pass.
    pub fn begin(&mut self) {
        self.list_is_cut = false;
        self.listed.clear();
        self.unjudged = 0;
        for copy in &mut self.copies {
            (copy.is_there, copy.changed) = (false, None);
            if !core::mem::take(&mut copy.has_breakpoint) {
                copy.breakpoints = 0;
            }
        }
    }

    /// Notes that Linux lists this code.
    pub fn add_listed(&mut self, (start, end): (u64, u64)) {
        let place = self.listed.partition_point(|&(other, _)| other < start);
        self.listed.insert(place, (start, end));
    }

    fn is_listed(&self, address: u64) -> bool {
        let behind = self.listed.partition_point(|&(start, _)| start <= address);
        let range = behind.checked_sub(1).and_then(|at| self.listed.get(at));
        range.is_some_and(|&(_, end)| address < end)
    }

    /// Copies or compares a part of the code of the programs `indexed`; returns the place of the next part.
    pub fn advance<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        indexed: &[(u64, u64)],
        place: Place,
    ) -> Option<Place> {
        let &(id, program) = indexed.get(place.program)?;
        let next_program = Some(Place { program: place.program + 1, ..Place::default() });
        let function = match place.function {
            0 => Some(program),
            number if number < MAX_FUNCTIONS => layout.function(kernel, program, number - 1),
            _ => None,
        };
        // A program that has ended since is none any more.
        let Some(function) = function.filter(|_| layout.is_at(kernel, id, program)) else {
            return next_program;
        };
        let rest = self.part(kernel, layout, (id, program), function, place);
        Some(match rest {
            Some(offset) => Place { offset, ..place },
            None => Place { function: place.function + 1, offset: 0, ..place },
        })
    }

    /// Copies or compares a part of the function with `aux`; returns where the next one begins.
    fn part<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        (id, program): (u64, u64),
        aux: u64,
        place: Place,
    ) -> Option<usize> {
        let (start, end) =
            layout.code(kernel, aux).filter(|_| layout.has_listed_code(kernel, aux))?;
        let length = end.checked_sub(start).and_then(|length| usize::try_from(length).ok());
        let length = length.unwrap_or(0);
        let known = self.find(id, place.function);
        let Some(at) = known.or_else(|| self.add(id, place.function, start, length)) else {
            self.unjudged += 1;
            return None;
        };
        let copy = self.copies.get_mut(at)?;
        copy.is_there = true;
        if copy.helper.is_some() && place.offset == 0 {
            self.sensitive.see((copy.start, id), 0);
        }
        let called = match place.function {
            0 => layout.entry(kernel, id).unwrap_or(0),
            _ => copy.start,
        };
        let elsewhere = [called, start].into_iter().find(|&address| address != copy.start);
        if let Some(address) = elsewhere.or((length != copy.length).then_some(start)) {
            copy.changed = Some(Change::Elsewhere(address));
            self.changed.see((copy.start, id), 0);
            return None;
        }
        let offset = place.offset;
        if copy.bytes.len() < length {
            let from = copy.bytes.len();
            let mut part = vec![0; CHUNK.min(length - from)];
            if kernel.bytes(start + from as u64, &mut part).is_none() {
                self.unjudged += 1;
                return None;
            }
            copy.bytes.extend_from_slice(&part);
            // The last bytes of the part before can begin a call.
            let from = from.saturating_sub(SITE - 1);
            copy.helper = copy.helper.or_else(|| called_of(&self.helpers, copy, from));
            // What is copied is compared in the next pass.
            if copy.bytes.len() < length {
                return Some(0);
            }
            copy.sites = sites(kernel, layout, program, copy.start, &copy.bytes);
            return None;
        }
        if let Some(change) = self.first_change(kernel, at, offset) {
            let copy = self.copies.get_mut(at)?;
            copy.changed = Some(change);
            self.changed.see((start, id), 0);
            return None;
        }
        let next = offset + CHUNK;
        (next < length).then_some(next)
    }

    /// The place of the copy of a function.
    fn find(&self, id: u64, function: u64) -> Option<usize> {
        self.copies.binary_search_by_key(&(id, function), |copy| (copy.id, copy.function)).ok()
    }

    /// Adds an empty copy, if there is room for it.
    fn add(&mut self, id: u64, function: u64, start: u64, length: usize) -> Option<usize> {
        let mut bytes = Vec::new();
        let has_room = length <= MAX_BYTES.saturating_sub(self.size);
        if length == 0 || !has_room || self.copies.len() == MAX_COPIES {
            return None;
        }
        bytes.try_reserve_exact(length).ok()?;
        let place = self.copies.partition_point(|copy| (copy.id, copy.function) < (id, function));
        let new = Copy {
            id,
            function,
            start,
            length,
            bytes,
            sites: Vec::new(),
            is_there: true,
            changed: None,
            has_breakpoint: false,
            breakpoints: 0,
            helper: None,
        };
        self.size += length;
        self.copies.insert(place, new);
        Some(place)
    }

    /// The first change that Linux does not make, in the part from `offset` on.
    fn first_change<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        at: usize,
        offset: usize,
    ) -> Option<Change> {
        let mut breakpoint = false;
        let copy = self.copies.get(at)?;
        // A place that Linux patches can reach into the parts before and behind.
        let from = offset.saturating_sub(SITE - 1);
        let to = (offset + CHUNK + SITE - 1).min(copy.bytes.len());
        let old = copy.bytes.get(from..to)?;
        let mut now = vec![0; old.len()];
        if kernel.bytes(copy.start + from as u64, &mut now).is_none() {
            return Some(Change::Missing);
        }
        if old == now {
            return None;
        }
        let mut next = offset - from;
        let end = (next + CHUNK).min(old.len());
        while let Some(first) = (next..end).find(|&byte| old.get(byte) != now.get(byte)) {
            let before = copy.sites.partition_point(|&site| site <= from + first);
            let site = before.checked_sub(1).and_then(|at| copy.sites.get(at));
            let site = site.filter(|&&site| from + first < site + SITE && site >= from);
            let begin = site.map(|site| site - from).filter(|&begin| {
                let code = now.get(begin..).and_then(|code| code.first_chunk());
                let is_patched = code.is_some_and(|code: &[u8; SITE]| code[0] == INT3);
                breakpoint |= is_patched;
                is_patched
                    || code
                        .is_some_and(|code| self.is_patch(copy.start + (from + begin) as u64, code))
            });
            match begin {
                Some(begin) => next = begin + SITE,
                None => return Some(Change::Code(from + first)),
            }
        }
        let copy = self.copies.get_mut(at).filter(|_| breakpoint)?;
        copy.breakpoints += u32::from(!core::mem::replace(&mut copy.has_breakpoint, true));
        (copy.breakpoints > BREAKPOINT_PASSES).then_some(Change::Breakpoint)
    }

    /// Whether Linux writes `code` at places that it patches.
    fn is_patch(&self, address: u64, code: &[u8; SITE]) -> bool {
        let leads = matches!(code[0], CALL | JMP);
        *code == NOP || leads && (self.list_is_cut || self.is_listed(target(address, code)))
    }

    /// Ends a pass over the programs `indexed`; `is_cut`: there are more, which acquits nobody.
    pub fn end<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        indexed: &[(u64, u64)],
        is_cut: bool,
    ) {
        if is_cut {
            self.sensitive.end_look_at(|_| false);
            return self.changed.end_look_at(|_| false);
        }
        self.sensitive.end_look();
        let Self { copies, size, changed, .. } = self;
        copies.retain_mut(|copy| {
            if copy.is_there {
                return true;
            }
            // Linux takes a program's ID before it takes its code.
            let program = indexed.binary_search_by_key(&copy.id, |(id, _)| *id);
            let program = program.ok().and_then(|at| indexed.get(at));
            let stays = program.is_some_and(|(id, aux)| layout.is_at(kernel, *id, *aux));
            if stays {
                copy.changed = Some(Change::Missing);
                changed.see((copy.start, copy.id), 0);
            } else {
                *size -= copy.length;
            }
            stays
        });
        changed.end_look();
    }

    /// The copy of the function of program `id` that begins at `start`.
    fn copy(&self, start: u64, id: u64) -> Option<&Copy> {
        self.copies.iter().find(|copy| (copy.start, copy.id) == (start, id))
    }

    /// The words for the function that begins at `start` and calls a sensitive helper; `None` if it is gone.
    pub fn sensitive_finding(&self, name: &str, start: u64, id: u64) -> Option<Finding> {
        let copy = self.copy(start, id)?;
        let (helper, does) = HELPERS.get(copy.helper?)?;
        Some(Finding {
            what: SENSITIVE.into(),
            address: start,
            symbol: format!("{name}{}, ID {id}", copy.name_of_function()),
            found: format!("a call of {helper}, which {does}"),
            owner: format!("bpf {name}"),
            ..Finding::new(Class::BpfProgramSensitive)
        })
    }

    /// The words for the changed function that begins at `start`; `None` if it is gone.
    pub fn finding<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        name: &str,
        start: u64,
        id: u64,
    ) -> Option<Finding> {
        let copy = self.copy(start, id)?;
        let function = copy.name_of_function();
        let (place, expected, found) = match copy.changed? {
            Change::Code(at) => {
                let old = copy.bytes.get(at..(at + SHOWN).min(copy.bytes.len()))?;
                let mut now = vec![0; old.len()];
                kernel.bytes(start + at as u64, &mut now)?;
                (format!("+{at:#x}"), hex(old), hex(&now))
            }
            Change::Elsewhere(address) => {
                (String::new(), format!("code at {start:#x}"), format!("code at {address:#x}"))
            }
            Change::Breakpoint => {
                (String::new(), "no breakpoint".into(), "a breakpoint that stays".into())
            }
            Change::Missing => (String::new(), format!("code at {start:#x}"), "none".into()),
        };
        Some(Finding {
            what: CHANGED.into(),
            address: start,
            symbol: format!("{name}{function}{place}, ID {id}"),
            expected,
            found,
            ..Finding::new(Class::BpfProgramModified)
        })
    }
}

impl Copy {
    /// What follows its program's name.
    fn name_of_function(&self) -> String {
        match self.function {
            0 => String::new(),
            number => format!(", function {}", number - 1),
        }
    }
}

/// Where the call or jump `code` at `address` leads.
fn target(address: u64, code: &[u8; SITE]) -> u64 {
    let [_, distance @ ..] = *code;
    near_target(address.wrapping_add(SITE as u64), distance)
}

/// The number of the first of `helpers` that `copy` calls from offset `from` on. Bytes that are no call look like one
/// once in billions.
fn called_of(helpers: &[Option<u64>], copy: &Copy, from: usize) -> Option<usize> {
    let bytes = copy.bytes.get(from..)?;
    bytes.windows(SITE).enumerate().find_map(|(at, code)| {
        let code = code.first_chunk().filter(|code: &&[u8; SITE]| code[0] == CALL)?;
        let target = target(copy.start + (from + at) as u64, code);
        helpers.iter().position(|helper| *helper == Some(target))
    })
}

/// The offsets in the code `bytes` at `start` that Linux patches, of a program with `aux`.
fn sites<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    layout: &Layout,
    aux: u64,
    start: u64,
    bytes: &[u8],
) -> Vec<usize> {
    let entry = if bytes.starts_with(&LANDING) { LANDING.len() } else { 0 };
    let calls = (0..MAX_TAIL_CALLS).map_while(|number| layout.tail_call(kernel, aux, number));
    let offsets = calls.flatten().filter_map(|at| usize::try_from(at.checked_sub(start)?).ok());
    let mut sites: Vec<usize> = offsets.filter(|&offset| offset < bytes.len()).collect();
    sites.push(entry);
    sites.sort_unstable();
    sites
}
