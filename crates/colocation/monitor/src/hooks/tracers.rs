//! Users of ftrace: functions that Linux calls at the entries of others (`include/linux/ftrace.h` of Linux).
//!
//! The check `text` reports those that lead to nobody's code. Here, a module's user is asked which functions it hooks.
//! An fprobe's user leads to Linux's own code, which calls the fprobe's handlers (`include/linux/fprobe.h`).

use super::sensitive::Sensitive;
use super::source::{
    extent, offset, visit_chain, visit_some_of_chain, Cursor, Hook, Source, Target,
};
use super::stubs::{self, Stubs, NO_STUB};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use crate::walk::{chain, hash};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use kyozon_abi::layer::RepairWord;

/// Maximum binary logarithm of the number of a filter's lists (`FTRACE_HASH_MAX_BITS` in Linux's `ftrace.c`).
const MAX_BITS: u64 = 12;
/// Users that are visited in one part: each can have a large filter.
const USERS: u32 = 1;
/// Functions of a filter that are visited. In one with more, the sensitive ones are looked up.
const MAX_FUNCTIONS: usize = 256;
/// Length of a list that one is looked up in, some times that of Linux's longest. A longer one counts as having it.
const MAX_LIST: usize = 64;
/// `call` with a distance of four bytes.
pub(super) const CALL: u8 = 0xe8;
/// Where a function's call of ftrace can be: at its beginning, or behind `endbr64`.
const ENTRIES: [u64; 2] = [0, 4];

#[derive(Debug)]
pub(super) struct Tracers {
    users: u64,
    next: u64,
    function: u64,
    /// Offset of the pointer to the code that the functions call for this user alone.
    trampoline: u64,
    /// Offset of the function that Linux keeps while it puts one of its own before it.
    saved: Option<u64>,
    /// Offsets in a trampoline at which it can call the user's function: it is a copy of `ftrace_caller` or of
    /// `ftrace_regs_caller`. The function that some trampolines call, and which reads the user's.
    calls: Vec<u64>,
    assists: Option<u64>,
    /// Functions whose results tell user space what exists.
    sensitive: Sensitive,
    /// Linux's own functions in fprobes; offsets in one of the user and of the handlers.
    probes: Option<(Vec<Range<u64>>, u64, [u64; 2])>,
    /// From a user to its filter, and from there to the lists.
    hashes: u64,
    filter: u64,
    count: u64,
    bits: u64,
    lists: u64,
    /// Offsets of the link and of the function in an entry; offset of the next link in a link.
    link: u64,
    address: u64,
    next_link: u64,
}

impl Tracers {
    /// Calls `each` with the functions that a user hooks: 0 for all, as a filter without functions means, and one of a
    /// form that Linux does not make may mean.
    fn functions<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        user: u64,
        mut each: impl FnMut(u64),
    ) {
        let word = |at: u64| kernel.u64(at).unwrap_or(0);
        let filter = word(word(user.wrapping_add(self.hashes)).wrapping_add(self.filter));
        let bits = word(filter.wrapping_add(self.bits));
        if filter == 0 || word(filter.wrapping_add(self.count)) == 0 || bits > MAX_BITS {
            return each(0);
        }
        let bits = bits as u32;
        let lists = word(filter.wrapping_add(self.lists));
        let links = |number: u64| chain(kernel, lists.wrapping_add(8 * number), self.next_link);
        let function = |link: u64| word(link.wrapping_sub(self.link).wrapping_add(self.address));
        let mut functions = (0..1 << bits).flat_map(links);
        functions.by_ref().take(MAX_FUNCTIONS).for_each(|link| each(function(link)));
        let is_cut_off = functions.next().is_some();
        // A filter can lack the functions that call its user directly: it serves nothing then.
        let trampoline = word(user.wrapping_add(self.trampoline));
        for entry in self.sensitive.starts().flat_map(|start| ENTRIES.map(|at| start + at)) {
            let is_called = || trampoline != 0 && callee(kernel, entry) == Some(trampoline);
            let is_listed = || {
                let links = links(hash(entry, bits)).take(MAX_LIST + 1).enumerate();
                links.into_iter().any(|(at, link)| at == MAX_LIST || function(link) == entry)
            };
            if is_called() && !is_listed() || is_cut_off && is_listed() {
                each(entry);
            }
        }
    }
}

impl Tracers {
    /// The words that make a user's own trampoline call `stub`, as Linux does when it changes the user's function
    /// (`arch_ftrace_update_trampoline`). The instruction is executed by nobody while the words are written.
    fn trampoline<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        stub: u64,
    ) -> Result<Vec<RepairWord>, &'static str> {
        let trampoline = kernel.u64(hook.object.wrapping_add(self.trampoline)).unwrap_or(0);
        if trampoline == 0 {
            return Ok(Vec::new());
        }
        let places = self.calls.iter().map(|call| trampoline.wrapping_add(*call));
        let mut calls = places.filter_map(|at| Some((at, callee(kernel, at)?)));
        let own = |called: u64| called == hook.value || Some(called) == self.assists;
        let (at, called) =
            calls.find(|(_, called)| own(*called)).ok_or("its trampoline has another form")?;
        if called != hook.value {
            return Ok(Vec::new());
        }
        call_stub(kernel, at, stub)
    }
}

/// The words that make the call at `at` lead to `stub`.
fn call_stub<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    at: u64,
    stub: u64,
) -> Result<Vec<RepairWord>, &'static str> {
    let distance = stub.wrapping_sub(at.wrapping_add(5)) as i64;
    let distance = i32::try_from(distance).map_err(|_| "its trampoline is too far away")?;
    let [a, b, c, d] = distance.to_le_bytes();
    stubs::bytes(kernel, at, [CALL, a, b, c, d])
}

/// What is called at `address`, if that is a call.
pub(super) fn callee<M: KernelMemory>(kernel: &Kernel<'_, M>, address: u64) -> Option<u64> {
    let [CALL, distance @ ..] = kernel.array::<5>(address)? else { return None };
    let next = address.wrapping_add(5);
    Some(next.wrapping_add_signed(i32::from_le_bytes(distance).into()))
}

impl Source for Tracers {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("fprobe", "entry_handler", Optional),
            ("fprobe", "exit_handler", Optional),
            ("fprobe", "ops", Optional),
            ("ftrace_func_entry", "hlist", Optional),
            ("ftrace_func_entry", "ip", Optional),
            ("ftrace_hash", "buckets", Optional),
            ("ftrace_hash", "count", Optional),
            ("ftrace_hash", "size_bits", Optional),
            ("ftrace_ops", "func", Optional),
            ("ftrace_ops", "func_hash", Optional),
            ("ftrace_ops", "next", Optional),
            ("ftrace_ops", "saved_func", Optional),
            ("ftrace_ops", "trampoline", Optional),
            ("ftrace_ops_hash", "filter_hash", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden ftrace handler";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let user = |member| offset(profile, "ftrace_ops", member);
        let probe = |member| offset(profile, "fprobe", member);
        let probes = || {
            let functions = ["fprobe_handler", "fprobe_kprobe_handler"];
            let functions = functions.iter().filter_map(|name| extent(profile, name)).collect();
            Some((functions, probe("ops")?, [probe("entry_handler")?, probe("exit_handler")?]))
        };
        let callers =
            [("ftrace_caller", "ftrace_call"), ("ftrace_regs_caller", "ftrace_regs_call")];
        let calls = callers.iter().filter_map(|(caller, call)| {
            profile.symbol(call)?.checked_sub(profile.symbol(caller)?)
        });
        Some(Self {
            probes: probes(),
            saved: user("saved_func"),
            calls: calls.collect(),
            assists: profile.symbol("ftrace_ops_assist_func"),
            users: profile.symbol("ftrace_ops_list")?,
            next: user("next")?,
            function: user("func")?,
            trampoline: user("trampoline")?,
            sensitive: Sensitive::new(profile),
            hashes: user("func_hash")?,
            filter: offset(profile, "ftrace_ops_hash", "filter_hash")?,
            count: offset(profile, "ftrace_hash", "count")?,
            bits: offset(profile, "ftrace_hash", "size_bits")?,
            lists: offset(profile, "ftrace_hash", "buckets")?,
            link: offset(profile, "ftrace_func_entry", "hlist")?,
            address: offset(profile, "ftrace_func_entry", "ip")?,
            next_link: offset(profile, "hlist_node", "next")?,
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let next = visit_some_of_chain(kernel, [self.users, self.next], at, USERS, |user| {
            let Some(hook) = Hook::code(kernel, user, self.function) else { return };
            // Linux's own users hook what somebody with the right to do so asked for.
            if !kernel.in_image(hook.value) && hook.value != 0 {
                self.functions(kernel, user, |function| see(hook.on(function)));
            }
            let is_probes = |own: &Vec<Range<u64>>| own.iter().any(|it| it.contains(&hook.value));
            let probes = self.probes.iter().filter(|(own, ..)| is_probes(own));
            for (_, start, handlers) in probes {
                let probe = user.wrapping_sub(*start);
                for hook in handlers.iter().filter_map(|&at| Hook::code(kernel, probe, at)) {
                    if !kernel.in_image(hook.value) && hook.value != 0 {
                        self.functions(kernel, user, |function| see(hook.on(function)));
                    }
                }
            }
        });
        Some(next).filter(|next| next.list == 0)
    }

    fn removal<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        stubs: &Stubs,
    ) -> Result<Vec<RepairWord>, &'static str> {
        let Hook { object: user, slot, value, .. } = *hook;
        if slot != user.wrapping_add(self.function) {
            // A handler of an fprobe: 0 lets Linux go on.
            return stubs.nothing(kernel, hook);
        }
        let mut words = stubs::lead(kernel, hook, stubs.traces)?;
        let stub = stubs.traces.unwrap_or(0);
        let saved = self.saved.map(|saved| user.wrapping_add(saved));
        if let Some(saved) = saved.filter(|&saved| kernel.u64(saved) == Some(value)) {
            stubs::join(&mut words, stubs::pointer(kernel, saved, value, stub)?);
        }
        stubs::join(&mut words, self.trampoline(kernel, hook, stub)?);
        Ok(words)
    }

    fn symbol<M: KernelMemory>(&self, _kernel: &Kernel<'_, M>, _object: u64) -> String {
        "ftrace".into()
    }
}

/// Calls in the users' own trampolines, to take them out. They lead to the user's function, unless somebody changed it
/// without Linux.
#[derive(Debug)]
pub(super) struct Trampolines(Tracers);

impl Source for Trampolines {
    const WANTS: Wants = Wants { symbols: &[], members: &[], constants: &[] };
    const WHAT: &'static str = "ftrace trampoline";
    const FOR_PLANS: bool = true;

    fn new(profile: &Profile<'_>) -> Option<Self> {
        Tracers::new(profile).map(Self)
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let Self(tracers) = self;
        let next = visit_chain(kernel, tracers.users, tracers.next, at, |user| {
            let word = |offset: u64| kernel.u64(user.wrapping_add(offset)).unwrap_or(0);
            let trampoline = word(tracers.trampoline);
            for call in tracers.calls.iter().filter(|_| trampoline != 0) {
                let slot = trampoline.wrapping_add(*call);
                let called = callee(kernel, slot).filter(|&value| value != word(tracers.function));
                if let Some(value) = called.filter(|&value| !kernel.in_image(value)) {
                    see(Hook { object: user, slot, value, target: Target::Code, stamp: None });
                }
            }
        });
        Some(next).filter(|next| next.list == 0)
    }

    fn removal<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        stubs: &Stubs,
    ) -> Result<Vec<RepairWord>, &'static str> {
        call_stub(kernel, hook.slot, stubs.traces.ok_or(NO_STUB)?)
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        self.0.symbol(kernel, object)
    }
}
