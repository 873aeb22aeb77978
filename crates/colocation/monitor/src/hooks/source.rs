//! What a kind of hook is.

use super::stubs::{self, Stubs, NO_STEP};
use crate::kernel::Kernel;
use crate::memory::{mixed, KernelMemory};
use crate::owner;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::Trees;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::ops::Range;
use kyozon_abi::layer::RepairWord;

/// Objects of a list that are visited in one part.
pub(super) const BATCH: u32 = 16;

/// Bytes of a name that tell an object from others.
const NAME_BYTES: u64 = 64;

/// The offset of a member.
pub(super) fn offset(profile: &Profile<'_>, structure: &str, member: &str) -> Option<u64> {
    profile.field(structure, member).map(|field| field.offset)
}

/// The code of the function called `name`. Whoever enters it behind its first instruction calls it as well.
pub(super) fn extent(profile: &Profile<'_>, name: &str) -> Option<Range<u64>> {
    let start = profile.symbol(name)?;
    let end = profile.symbols_from(start).find(|next| next.address > start)?.address;
    Some(start..end)
}

/// The trampolines of static calls: each jumps to the function that is called at the moment.
pub(super) fn static_calls(profile: &Profile<'_>) -> Range<u64> {
    let symbol = |name| profile.symbol(name).unwrap_or(0);
    symbol("__static_call_text_start")..symbol("__static_call_text_end")
}

/// A place in a source. `Cursor::default()` is the beginning; the source knows the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    /// Which of the source's lists.
    pub list: u64,
    /// The next link in it; 0 at its beginning.
    pub link: u64,
    /// The place in a list of the object with that link, if it has one; 0 at its beginning.
    pub inner: u64,
}

impl Cursor {
    /// The beginning of the list after this one.
    pub fn next_list(self) -> Self {
        Self { list: self.list + 1, link: 0, inner: 0 }
    }
}

/// What a pointer should lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Code.
    Code,
    /// Code that is called at, or in place of, the function at this address.
    Hooks(u64),
    /// A table of functions.
    Data,
}

/// A pointer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hook {
    /// The object that has it.
    pub object: u64,
    /// The pointer's address.
    pub slot: u64,
    /// What it leads to.
    pub value: u64,
    pub target: Target,
    /// If Linux never changes the pointer: what tells the object from another one in the same memory.
    pub stamp: Option<u64>,
}

impl Hook {
    /// The pointer to code at `offset` of `object`.
    pub fn code<M: KernelMemory>(kernel: &Kernel<'_, M>, object: u64, offset: u64) -> Option<Self> {
        let slot = object.wrapping_add(offset);
        Some(Self { object, slot, value: kernel.u64(slot)?, target: Target::Code, stamp: None })
    }

    /// The pointer to code at `offset` of what the pointer at `pointer` of `object` leads to.
    pub fn behind<M: KernelMemory>(
        kernel: &Kernel<'_, M>,
        object: u64,
        pointer: u64,
        offset: u64,
    ) -> Option<Self> {
        let other = kernel.u64(object.wrapping_add(pointer)).filter(|&other| other != 0)?;
        Some(Self { object, ..Self::code(kernel, other, offset)? })
    }

    /// The pointer to a table at `offset` of `object`.
    pub fn data<M: KernelMemory>(kernel: &Kernel<'_, M>, object: u64, offset: u64) -> Option<Self> {
        Some(Self { target: Target::Data, ..Self::code(kernel, object, offset)? })
    }

    /// The same, of an object that `stamp` tells from others, and whose pointer never changes.
    pub fn fixed(self, stamp: u64) -> Self {
        Self { stamp: Some(stamp), ..self }
    }

    /// The same, of code for the function at `function`.
    pub fn on(self, function: u64) -> Self {
        Self { target: Target::Hooks(function), ..self }
    }
}

/// A kind of hook: where Linux has pointers of that kind.
pub(super) trait Source: Sized + Debug {
    /// What it needs from a profile. A kernel that lacks a part of it lacks the source.
    const WANTS: Wants;
    /// The kind of finding if a pointer leads to nobody's code or data.
    const WHAT: &'static str;
    /// Whether it is visited only to take hooks out: another check judges what it sees.
    const FOR_PLANS: bool = false;

    /// The source in a kernel with `profile`.
    fn new(profile: &Profile<'_>) -> Option<Self>;

    /// Calls `see` with the pointers of some objects from `at` on. Returns where the next part begins; `None` at the
    /// end.
    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor>;

    /// The words of the transaction that takes `hook` out, after which Linux can run on whatever its CPUs were doing.
    ///
    /// # Errors
    ///
    /// Why the hook must stay.
    fn removal<M: KernelMemory>(
        &self,
        _kernel: &Kernel<'_, M>,
        _hook: &Hook,
        _stubs: &Stubs,
    ) -> Result<Vec<RepairWord>, &'static str> {
        Err(NO_STEP)
    }

    /// The words of the transaction that makes `hook` lead to `before` again, as at the first look, after which Linux
    /// can run on whatever its CPUs were doing.
    ///
    /// # Errors
    ///
    /// Why the hook must stay.
    fn restoration<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        before: u64,
    ) -> Result<Vec<RepairWord>, &'static str> {
        stubs::pointer(kernel, hook.slot, hook.value, before)
    }

    /// What `object` is, in the words of a finding.
    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        owner::symbol(kernel, object)
    }
}

/// Calls `see` with the pointers to code at `offsets` of `object`. Those of the image never change and are not freed.
pub(super) fn see_functions<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    object: u64,
    offsets: impl IntoIterator<Item = u64>,
    see: &mut dyn FnMut(Hook),
) {
    for hook in offsets.into_iter().filter_map(|at| Hook::code(kernel, object, at)) {
        see(if kernel.in_image(object) { hook.fixed(0) } else { hook });
    }
}

/// A stamp of the text at `name`, up to its end: an object in the memory of one that is gone has another.
pub(super) fn named<M: KernelMemory>(kernel: &Kernel<'_, M>, name: u64, seed: u64) -> u64 {
    let mut stamp = seed;
    for at in (0..NAME_BYTES).step_by(8) {
        let word = kernel.u64(name.wrapping_add(at)).unwrap_or(0);
        let end = word.to_le_bytes().iter().position(|&byte| byte == 0);
        // What is behind the end belongs to nobody.
        let kept = end.map_or(word, |end| word & ((1 << (8 * end)) - 1));
        stamp = mixed(stamp, kept);
        if end.is_some() {
            break;
        }
    }
    stamp
}

/// Whether two tables have the same functions at `offsets`; not if those are not known.
pub(super) fn agree<M: KernelMemory, const N: usize>(
    kernel: &Kernel<'_, M>,
    one: u64,
    other: u64,
    offsets: Option<[u64; N]>,
) -> bool {
    let function = |table: u64, at: u64| kernel.u64(table.wrapping_add(at));
    let is_same = |at| function(one, at).is_some_and(|it| function(other, at) == Some(it));
    offsets.is_some_and(|offsets| offsets.into_iter().all(is_same))
}

/// Visits some entries of the circular list at `head` from `at` on. `each` gets the links. Continues with the next list
/// behind the last entry.
pub(super) fn visit_list<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    head: u64,
    at: Cursor,
    each: impl FnMut(u64),
) -> Cursor {
    visit_some(kernel, head, at, BATCH, each)
}

/// The same, of at most `entries` entries.
pub(super) fn visit_some<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    head: u64,
    at: Cursor,
    entries: u32,
    mut each: impl FnMut(u64),
) -> Cursor {
    let mut link = if at.link == 0 { kernel.u64(head).unwrap_or(0) } else { at.link };
    for _ in 0..entries {
        if link == head || link == 0 {
            return at.next_list();
        }
        each(link);
        link = kernel.u64(link).unwrap_or(0);
    }
    match link {
        0 => at.next_list(),
        _ => Cursor { link, ..at },
    }
}

/// The same for the null-terminated chain whose first pointer is at `first`; the pointer to the next entry is at
/// `next` of an entry.
pub(super) fn visit_chain<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    first: u64,
    next: u64,
    at: Cursor,
    each: impl FnMut(u64),
) -> Cursor {
    visit_some_of_chain(kernel, [first, next], at, BATCH, each)
}

/// The same, of at most `entries` entries.
pub(super) fn visit_some_of_chain<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    [first, next]: [u64; 2],
    at: Cursor,
    entries: u32,
    mut each: impl FnMut(u64),
) -> Cursor {
    let mut entry = if at.link == 0 { kernel.u64(first).unwrap_or(0) } else { at.link };
    for _ in 0..entries {
        if entry == 0 {
            return at.next_list();
        }
        each(entry);
        entry = kernel.u64(entry.wrapping_add(next)).unwrap_or(0);
    }
    match entry {
        0 => at.next_list(),
        _ => Cursor { link: entry, ..at },
    }
}

/// The same for the red-black tree whose root pointer is at `root`. `each` gets the nodes.
pub(super) fn visit_tree<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    trees: &Trees,
    root: u64,
    at: Cursor,
    mut each: impl FnMut(u64),
) -> Cursor {
    let mut node = if at.link == 0 { trees.first(kernel, root) } else { Some(at.link) };
    for _ in 0..BATCH {
        let Some(found) = node else { break };
        each(found);
        node = trees.next(kernel, found);
    }
    node.map_or(at.next_list(), |link| Cursor { link, ..at })
}
