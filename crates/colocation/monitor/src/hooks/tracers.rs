//! Users of ftrace: functions that Linux calls at the entries of others (`include/linux/ftrace.h` of Linux).
//!
//! The check `text` reports those that lead to nobody's code. Here, a module's user is asked which functions it hooks.
//! An fprobe's user leads to Linux's own code, which calls the fprobe's handlers (`include/linux/fprobe.h`).

use super::filter::Layout;
use super::sensitive::Sensitive;
use super::source::{
    extent, offset, static_calls, visit_chain, visit_some_of_chain, Cursor, Hook, Source, Target,
};
use super::stubs::{self, Stubs, NO_STUB};
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use kyozon_abi::layer::RepairWord;

/// Users that are visited in one part: each can have a large filter.
pub(super) const USERS: u32 = 1;
/// Functions of a filter that are visited. In one with more, the sensitive ones are looked up.
const MAX_FUNCTIONS: usize = 256;
/// Length of a list that one is looked up in, some times that of Linux's longest. A longer one counts as having it.
pub(super) const MAX_LIST: usize = 64;
/// `call` with a distance of four bytes, and its length.
pub(super) const CALL: u8 = 0xe8;
pub(super) const CALL_BYTES: u64 = 5;
/// Where a function's call of ftrace can be: at its beginning, or behind `endbr64`.
const ENTRIES: [u64; 2] = [0, 4];

/// Probes whose users of ftrace are Linux's own.
#[derive(Debug)]
struct Fprobes {
    /// The functions of such users.
    own: Vec<Range<u64>>,
    /// Offsets in a probe of the user and of the handlers.
    user: u64,
    handlers: [u64; 2],
    /// Offsets in a probe of the pointer to what catches returns, and there of that to its handler.
    returns: Option<(u64, u64)>,
}

impl Fprobes {
    fn new(profile: &Profile<'_>) -> Option<Self> {
        let probe = |member| offset(profile, "fprobe", member);
        let functions = ["fprobe_handler", "fprobe_kprobe_handler"];
        Some(Self {
            own: functions.iter().filter_map(|name| extent(profile, name)).collect(),
            user: probe("ops")?,
            handlers: [probe("entry_handler")?, probe("exit_handler")?],
            returns: probe("rethook").zip(offset(profile, "rethook", "handler")),
        })
    }

    fn are_called_by(&self, function: u64) -> bool {
        self.own.iter().any(|own| own.contains(&function))
    }

    fn handlers<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        user: u64,
    ) -> impl Iterator<Item = Hook> + use<'_, M> {
        let probe = user.wrapping_sub(self.user);
        let handlers = self.handlers.map(|at| Hook::code(kernel, probe, at));
        let returns = self.returns.and_then(|(returns, handler)| {
            Some(Hook { object: user, ..Hook::behind(kernel, probe, returns, handler)? })
        });
        handlers.into_iter().flatten().chain(returns)
    }
}

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
    /// The trampolines of static calls, which are in the image and lead anywhere.
    static_calls: Range<u64>,
    /// Functions whose results tell user space what exists.
    sensitive: Sensitive,
    probes: Option<Fprobes>,
    /// From a user to its filter.
    hashes: u64,
    filter: u64,
    table: Layout,
}

impl Tracers {
    /// The pointer to the first user, and the offset of that to the next one in a user.
    pub fn users(&self) -> [u64; 2] {
        [self.users, self.next]
    }

    /// What Linux calls for `user`, and what that calls if it is one of Linux's own that goes on with another one.
    pub fn called<'k, M: KernelMemory>(
        &self,
        kernel: &'k Kernel<'_, M>,
        user: u64,
    ) -> impl Iterator<Item = Hook> + use<'k, '_, M> {
        let code = |at| Hook::code(kernel, user, at).filter(|hook| hook.value != 0);
        let function = code(self.function);
        let saved = self.saved.and_then(code);
        let differs = |hook: &Hook| function.is_some_and(|it| it.value != hook.value);
        function.into_iter().chain(saved.filter(differs))
    }

    /// Calls `each` with the functions that a user hooks: 0 for all, as a filter without functions means, and one of a
    /// form that Linux does not make may mean.
    pub fn functions<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        user: u64,
        mut each: impl FnMut(u64),
    ) {
        let word = |at: u64| kernel.u64(at).unwrap_or(0);
        let filter = word(word(user.wrapping_add(self.hashes)).wrapping_add(self.filter));
        let Some(filter) = self.table.table(kernel, filter) else { return each(0) };
        let mut entries = filter.entries();
        entries.by_ref().take(MAX_FUNCTIONS).for_each(|(_, function)| each(function));
        let is_cut_off = entries.next().is_some();
        // A filter can lack the functions that call its user directly: it serves nothing then. What calls nobody is
        // traced by nobody, whatever a filter says.
        let trampoline = word(user.wrapping_add(self.trampoline));
        for entry in self.sensitive.starts().flat_map(|start| ENTRIES.map(|at| start + at)) {
            let Some(called) = callee(kernel, entry) else { continue };
            let is_listed = || {
                let mut entries = filter.entries_beside(entry).take(MAX_LIST + 1).enumerate();
                entries.any(|(at, (_, function))| at == MAX_LIST || function == entry)
            };
            if called == trampoline && !is_listed() || is_cut_off && is_listed() {
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
    let distance = stub.wrapping_sub(at.wrapping_add(CALL_BYTES)) as i64;
    let distance = i32::try_from(distance).map_err(|_| "its trampoline is too far away")?;
    let [a, b, c, d] = distance.to_le_bytes();
    stubs::bytes(kernel, at, [CALL, a, b, c, d])
}

/// What is called at `address`, if that is a call.
pub(super) fn callee<M: KernelMemory>(kernel: &Kernel<'_, M>, address: u64) -> Option<u64> {
    target(kernel, address, CALL)
}

/// Where the instruction at `address` leads, if it is `code` with a distance of four bytes: a call or a jump.
pub(super) fn target<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    address: u64,
    code: u8,
) -> Option<u64> {
    let [_, distance @ ..] = kernel.array::<5>(address).filter(|bytes| bytes[0] == code)?;
    let next = address.wrapping_add(CALL_BYTES);
    Some(next.wrapping_add_signed(i32::from_le_bytes(distance).into()))
}

impl Source for Tracers {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("fprobe", "entry_handler", Optional),
            ("fprobe", "exit_handler", Optional),
            ("fprobe", "ops", Optional),
            ("fprobe", "rethook", Optional),
            ("ftrace_ops", "func", Optional),
            ("ftrace_ops", "func_hash", Optional),
            ("ftrace_ops", "next", Optional),
            ("ftrace_ops", "saved_func", Optional),
            ("ftrace_ops", "trampoline", Optional),
            ("ftrace_ops_hash", "filter_hash", Optional),
            ("rethook", "handler", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "hidden ftrace handler";

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let user = |member| offset(profile, "ftrace_ops", member);
        let callers =
            [("ftrace_caller", "ftrace_call"), ("ftrace_regs_caller", "ftrace_regs_call")];
        let calls = callers.iter().filter_map(|(caller, call)| {
            profile.symbol(call)?.checked_sub(profile.symbol(caller)?)
        });
        Some(Self {
            probes: Fprobes::new(profile),
            saved: user("saved_func"),
            calls: calls.collect(),
            assists: profile.symbol("ftrace_ops_assist_func"),
            static_calls: static_calls(profile),
            users: profile.symbol("ftrace_ops_list")?,
            next: user("next")?,
            function: user("func")?,
            trampoline: user("trampoline")?,
            sensitive: Sensitive::new(profile),
            hashes: user("func_hash")?,
            filter: offset(profile, "ftrace_ops_hash", "filter_hash")?,
            table: Layout::new(profile)?,
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let next = visit_some_of_chain(kernel, [self.users, self.next], at, USERS, |user| {
            let mut see_outside = |hook: Hook| {
                // Linux's own users hook what somebody with the right to do so asked for.
                let is_own =
                    kernel.in_image(hook.value) && !self.static_calls.contains(&hook.value);
                if !is_own && hook.value != 0 {
                    self.functions(kernel, user, |function| see(hook.on(function)));
                }
            };
            for hook in self.called(kernel, user) {
                see_outside(hook);
                let Some(probes) = self.probes.as_ref().filter(|it| it.are_called_by(hook.value))
                else {
                    continue;
                };
                probes.handlers(kernel, user).for_each(&mut see_outside);
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
        let is_saved = self.saved.is_some_and(|saved| slot == user.wrapping_add(saved));
        if is_saved {
            return stubs::lead(kernel, hook, stubs.traces);
        }
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
