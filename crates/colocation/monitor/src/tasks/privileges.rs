//! Privileges that a task gained, or restrictions that it lost, in a way that Linux does not know.
//!
//! A task without privileges (no user 0, no capabilities) gets some by executing a program that gives them (set-user-ID
//! or file capabilities; Linux tells the program so, by `AT_SECURE`), or in another user namespace. Without either,
//! somebody wrote its credentials, or gave it others, from within the kernel. The same holds for one that has some and
//! gets more; but user 0 gets capabilities by any program, and who has `CAP_SETUID` may become user 0. No task comes
//! back to the first user namespace. A filter of system calls (seccomp) is never taken away from a task, nor suspended
//! without a tracer, and what it lets pass without asking does not change. And no task in user mode has the credentials
//! with which the kernel begins (`init_cred`).
//!
//! All of it is about a live task that was seen before; `docs/limits.md` says what that misses. While a task executes
//! another program, its members do not fit together: it is not looked at.

use super::layout::TaskLayout;
use super::{repair, task};
use crate::class::Class;
use crate::confirm::Confirm;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::{mixed, KernelMemory};
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::{Field, Profile};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Passes in a row that confirm a suspect: memory that was freed and belongs to another task meanwhile is not seen
/// twice.
const PASSES: u32 = 3;
/// Tasks that ended which are forgotten for each new one.
const FORGET: usize = 4;

/// Looks in a row at a task that seems to execute another program, after which it is judged: none takes that long.
const MAX_EXECUTING: u8 = 8;
/// Programs that a task has executed between two looks if the first one of them is not known. It may even be another
/// task: threads that execute programs in turn take over their first thread's start time.
const UNKNOWN: u64 = 2;
/// The key of the auxiliary vector that says whether the program has privileges, one that Linux writes later
/// (`AT_SECURE` and `AT_EXECFN` of Linux's `auxvec.h`), and the most keys that are read.
const AT_SECURE: u64 = 23;
const AT_EXECFN: u64 = 31;
const MAX_KEYS: u64 = 32;

/// The capability to become any user (`CAP_SETUID` of Linux's `capability.h`).
const SETUID: u64 = 1 << 7;
/// Flags of a task that has a tracer, and of one whose filter it has suspended (`PT_PTRACED` and `PT_SUSPEND_SECCOMP`
/// of Linux's `ptrace.h`).
const TRACED: u32 = 1;
const SUSPENDED: u32 = 1 << 24;
/// Words of the calls that a filter lets pass without asking, at most.
const MAX_WORDS: u64 = 16;

const GAINED: &str = "privileges gained";
const LIFTED: &str = "system call filter lifted";

pub(super) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("task_struct", "mm", Optional),
        ("seccomp_filter", "cache.allow_native", Optional),
        ("task_struct", "ptrace", Optional),
        ("task_struct", "real_cred", Optional),
        ("task_struct", "seccomp.filter", Optional),
        ("task_struct", "seccomp.mode", Optional),
        ("task_struct", "self_exec_id", Optional),
        ("task_struct", "stack_canary", Optional),
        ("task_struct", "thread_info.syscall_work", Optional),
        ("cred", "cap_effective", Optional),
        ("cred", "cap_permitted", Optional),
        ("cred", "euid", Optional),
        ("cred", "fsuid", Optional),
        ("cred", "suid", Optional),
        ("cred", "uid", Optional),
        ("cred", "user_ns", Optional),
        ("mm_struct", "saved_auxv", Optional),
    ],
    constants: &[("SYSCALL_WORK_BIT_SECCOMP", Optional)],
};

#[derive(Debug)]
struct Layout {
    /// Addresses of the kernel's own credentials, and of the first user namespace.
    kernels: u64,
    first_namespace: u64,
    // In `task_struct`.
    memory: u64,
    credentials: u64,
    executions: Field,
    /// A random number that a task keeps from its beginning to its end; `None` if the kernel has none.
    mark: Option<u64>,
    /// Offset of the filter's mode; offset of the flags that say what a system call has to do, and the filter's flag.
    filter: Option<(u64, u64, u64)>,
    /// Offset of the flags of tracers.
    tracer: Option<u64>,
    /// Offset of the pointer to the filter; offset and words in it of the calls that it lets pass without asking.
    passing: Option<(u64, u64, u64)>,
    // In `cred`.
    users: [u64; 4],
    capabilities: [u64; 2],
    namespace: u64,
    /// Offset of the auxiliary vector in `mm_struct`.
    vector: u64,
}

impl Layout {
    fn new(profile: &Profile<'_>) -> Option<Self> {
        let task = |path| profile.field("task_struct", path);
        let cred = |path| Some(profile.field("cred", path)?.offset);
        let filter = || {
            let flag = profile.constant("SYSCALL_WORK_BIT_SECCOMP").filter(|bit| *bit < 64)?;
            Some((
                task("seccomp.mode")?.offset,
                task("thread_info.syscall_work")?.offset,
                1u64 << flag,
            ))
        };
        Some(Self {
            kernels: profile.symbol("init_cred")?,
            first_namespace: profile.symbol("init_user_ns")?,
            memory: task("mm")?.offset,
            credentials: task("real_cred")?.offset,
            executions: task("self_exec_id")?,
            mark: task("stack_canary").map(|field| field.offset),
            filter: filter(),
            tracer: task("ptrace").map(|field| field.offset),
            passing: task("seccomp.filter")
                .zip(profile.field("seccomp_filter", "cache.allow_native"))
                .map(|(of_task, field)| {
                    (of_task.offset, field.offset, (field.bytes / 8).min(MAX_WORDS))
                }),
            users: [cred("uid")?, cred("suid")?, cred("euid")?, cred("fsuid")?],
            capabilities: [cred("cap_permitted")?, cred("cap_effective")?],
            namespace: cred("user_ns")?,
            vector: profile.field("mm_struct", "saved_auxv")?.offset,
        })
    }

    /// The filter of the task at `task`, and a sum of the calls that it lets pass without asking; 0 for none.
    fn passing<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, task: u64) -> Option<(u64, u64)> {
        let Some((of_task, start, words)) = self.passing else { return Some((0, 0)) };
        let filter = kernel.u64(task.wrapping_add(of_task))?;
        let mut sum = 0u64;
        for word in (0..words).filter(|_| filter != 0) {
            let word = kernel.u64(filter.wrapping_add(start + 8 * word))?;
            sum = mixed(sum, word);
        }
        Some((filter, sum))
    }

    /// The value that the auxiliary vector at `at` has for `key`.
    fn value<M: KernelMemory>(kernel: &Kernel<'_, M>, at: u64, key: u64) -> Option<u64> {
        // A key and a value, of 32 bits each in a program of 32 bits.
        let is_short = kernel.u64(at).is_some_and(|first| first > u64::from(u32::MAX));
        let bytes = if is_short { 4 } else { 8 };
        let word = |number: u64| kernel.uint(at.wrapping_add(number * bytes), bytes);
        let place = (0..MAX_KEYS).find(|place| word(2 * place) == Some(key))?;
        word(2 * place + 1)
    }

    /// Whether the program with the auxiliary vector `at` was given privileges when it was executed.
    fn is_secure<M: KernelMemory>(kernel: &Kernel<'_, M>, at: u64) -> bool {
        Self::value(kernel, at, AT_SECURE).is_some_and(|value| value != 0)
    }

    /// Whether Linux has written the auxiliary vector at `at`: it does so at the end of an execution.
    fn is_written<M: KernelMemory>(kernel: &Kernel<'_, M>, at: u64) -> bool {
        Self::value(kernel, at, AT_EXECFN).is_some()
    }
}

/// What a task may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Start time in nanoseconds, and the random number; 0 if there is none.
    start: u64,
    mark: u64,
    executions: u64,
    namespace: u64,
    /// Address of the credentials.
    credentials: u64,
    user: u32,
    is_root: bool,
    capabilities: u64,
    /// Address of the program's auxiliary vector.
    vector: u64,
    is_filtered: bool,
    /// The filter, and a sum of the calls that it lets pass without asking.
    passing: (u64, u64),
}

impl State {
    /// `None` for a task without memory of its own, one that begins or ends, and memory that holds no task.
    fn read<M: KernelMemory>(
        kernel: &Kernel<'_, M>,
        tasks: &TaskLayout,
        layout: &Layout,
        task: u64,
    ) -> Option<Self> {
        let word = |offset: u64| kernel.u64(task.wrapping_add(offset));
        let Field { offset, bytes } = layout.executions;
        let executed = || kernel.uint(task.wrapping_add(offset), bytes);
        let memory = word(layout.memory).filter(|memory| *memory != 0)?;
        task::is_settled(kernel, tasks, task).filter(|settled| *settled)?;
        let executions = executed()?;
        let vector = memory.wrapping_add(layout.vector);
        let credentials = word(layout.credentials)?;
        let of_credentials = |offset: u64| credentials.wrapping_add(offset);
        let users = layout.users.map(|user| kernel.u32(of_credentials(user)));
        let capabilities = layout.capabilities.map(|set| kernel.u64(of_credentials(set)));
        let tracer = layout.tracer.and_then(|at| kernel.u32(task.wrapping_add(at))).unwrap_or(0);
        let is_suspended = tracer & (TRACED | SUSPENDED) == SUSPENDED;
        let filter = layout.filter.map(|(mode, work, flag)| {
            let mode = kernel.u32(task.wrapping_add(mode));
            Some(mode? != 0 && word(work)? & flag != 0 && !is_suspended)
        });
        let is_filtered = filter.flatten().unwrap_or(false);
        let state = Self {
            start: word(tasks.start_time)?,
            mark: layout.mark.map_or(Some(0), word)?,
            executions,
            namespace: kernel.u64(of_credentials(layout.namespace))?,
            credentials,
            user: users[0]?,
            is_root: users.contains(&Some(0)),
            capabilities: capabilities[0]? | capabilities[1]?,
            vector,
            is_filtered,
            passing: if is_filtered { layout.passing(kernel, task)? } else { (0, 0) },
        };
        // Another CPU may execute the task.
        let same = executed()? == executions && word(layout.credentials)? == credentials;
        same.then_some(state)
    }

    fn is_privileged(&self) -> bool {
        self.is_root || self.capabilities != 0
    }

    /// Whether it may do what it could not do at `before`, and needs a reason for that.
    fn exceeds(&self, before: &Self) -> bool {
        let becomes_root = self.is_root && !before.is_root && before.capabilities & SETUID == 0;
        becomes_root || self.capabilities & !before.capabilities != 0
    }

    /// Whether there is no reason for privileges. In another namespace than the `first` one, its user 0 gets them by
    /// executing any program.
    fn is_plain(&self, first: u64) -> bool {
        !self.is_privileged() && self.namespace == first
    }
}

/// What is known of a task.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The last look, and what the threads of the process share.
    state: State,
    signal: u64,
    /// The last look at which it had a reason for all that it may do.
    reasoned: State,
    /// The filter when it was seen first.
    passing: (u64, u64),
    /// The user that it had without privileges, and the programs that it had executed by then, unless there is a
    /// reason why it has some.
    user: Option<(u32, u64)>,
    /// It was in another user namespace than the first one.
    was_confined: bool,
    was_filtered: bool,
    /// Looks in a row that saw it execute a program.
    executing: u8,
    /// The pass of the last look.
    pass: u32,
}

/// What is wrong with the task at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Gained(u64),
    Lifted(u64),
}

/// What the tasks of the last passes may do.
#[derive(Debug)]
pub(super) struct Privileges {
    layout: Option<Layout>,
    known: BTreeMap<u64, Known>,
    /// Maximum number of tasks that are known.
    room: usize,
    /// Where to look next for tasks that ended.
    ended: u64,
    pass: u32,
    confirm: Confirm<Key>,
}

impl Privileges {
    /// Nothing is known; of more than `room` tasks, some stay unknown.
    pub fn new(profile: &Profile<'_>, room: usize) -> Self {
        Self {
            layout: Layout::new(profile),
            known: BTreeMap::new(),
            room,
            ended: 0,
            pass: 0,
            confirm: Confirm::new(PASSES),
        }
    }

    /// Number of kinds of findings that this kernel's profile does not allow.
    pub fn lacking(&self) -> u64 {
        match &self.layout {
            Some(layout) => u64::from(layout.filter.is_none()),
            None => 2,
        }
    }

    /// Looks at the task at `task`.
    pub fn look<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, tasks: &TaskLayout, task: u64) {
        let Some(layout) = &self.layout else { return };
        let Some(state) = State::read(kernel, tasks, layout, task) else { return };
        let first = layout.first_namespace;
        let signal = || kernel.u64(task.wrapping_add(tasks.signal)).unwrap_or(0);
        let known = self.known.get_mut(&task);
        // A thread that executes a program takes the place of the process's first one, with its start time. Without
        // the random number, it may be another thread, in the memory of one that ended.
        let is_same = |known: &&mut Known| {
            let Known { state: before, signal: process, .. } = known;
            let goes_on = layout.mark.is_some() && state.start < before.start;
            before.mark == state.mark
                && (before.start == state.start || goes_on && *process == signal())
        };
        let known = known.filter(is_same);
        // A kernel thread can work in the memory of a process. No task of user mode becomes one, whatever it says.
        if known.is_none() && task::says_kernel(kernel, tasks, task) != Some(false) {
            return;
        }
        if state.credentials == layout.kernels {
            self.confirm.see(Key::Gained(task), 0);
        }
        let Some(known) = known else {
            let signal = signal();
            let is_plain = state.is_plain(first) && Layout::is_written(kernel, state.vector);
            self.add(task, state, signal, is_plain, first);
            return;
        };
        known.pass = self.pass;
        let is_new = state.executions != known.state.executions;
        known.executing = match is_new && !Layout::is_written(kernel, state.vector) {
            true => known.executing.saturating_add(1),
            false => 0,
        };
        if (1..MAX_EXECUTING).contains(&known.executing) {
            return;
        }
        let before = core::mem::replace(&mut known.state, state);
        let has_other_past = state.executions.wrapping_sub(before.executions) >= UNKNOWN;
        if has_other_past {
            known.was_filtered = false;
        }
        // Anybody can write the auxiliary vector of his own program: it tells about one that was executed since.
        let by_program = |executions: u64| {
            executions != state.executions && Layout::is_secure(kernel, state.vector)
        };
        if state.is_plain(first) {
            known.user = Some((state.user, state.executions));
        } else if known.user.is_some_and(|(_, executions)| {
            has_other_past || state.namespace != first || by_program(executions)
        }) {
            known.user = None;
        }
        let reasoned = &known.reasoned;
        let executed = state.executions.wrapping_sub(reasoned.executions);
        let may_grow = state.namespace != reasoned.namespace
            || executed >= UNKNOWN
            || executed != 0
                // It may have become root before.
                && (reasoned.is_root
                    || reasoned.capabilities & SETUID != 0
                    || state.namespace != first
                    || Layout::is_secure(kernel, state.vector));
        let has_grown = state.exceeds(reasoned) && !may_grow;
        if !has_grown {
            known.reasoned = state;
        }
        known.was_confined |= state.namespace != first;
        let has_escaped = known.was_confined && state.namespace == first;
        if has_grown || has_escaped || known.user.is_some() && state.is_privileged() {
            self.confirm.see(Key::Gained(task), 0);
        }
        if known.passing.0 != state.passing.0 && state.is_filtered {
            known.passing = state.passing;
        }
        let passes_more = state.is_filtered && known.passing != state.passing;
        if known.was_filtered && !state.is_filtered || passes_more {
            self.confirm.see(Key::Lifted(task), 0);
        }
        known.was_filtered |= state.is_filtered;
    }

    /// Notes a task that is not known, in the place of tasks that ended. `is_plain`: there is no reason for privileges.
    fn add(&mut self, task: u64, state: State, signal: u64, is_plain: bool, first: u64) {
        for _ in 0..FORGET {
            let next = self.known.range(self.ended..).next();
            let Some((&at, known)) = next else {
                self.ended = 0;
                break;
            };
            self.ended = at + 1;
            if self.pass.wrapping_sub(known.pass) > 1 {
                self.known.remove(&at);
            }
        }
        if self.known.len() < self.room || self.known.contains_key(&task) {
            let user = is_plain.then_some((state.user, state.executions));
            let was_confined = state.namespace != first;
            let was_filtered = state.is_filtered;
            self.known.insert(
                task,
                Known {
                    state,
                    signal,
                    reasoned: state,
                    passing: state.passing,
                    user,
                    was_confined,
                    was_filtered,
                    executing: 0,
                    pass: self.pass,
                },
            );
        }
    }

    /// Whether a suspect needs more passes.
    pub fn is_waiting(&self) -> bool {
        self.confirm.is_waiting()
    }

    /// Ends a pass, and reports what is confirmed.
    pub fn end_pass<M: KernelMemory>(
        &mut self,
        kernel: &Kernel<'_, M>,
        tasks: &TaskLayout,
        found: &mut dyn FnMut(Finding),
    ) {
        self.pass = self.pass.wrapping_add(1);
        self.confirm.end_look();
        for (key, _) in self.confirm.take() {
            let Some(layout) = &self.layout else { return };
            found(self.finding(kernel, tasks, layout, key));
        }
    }

    /// Whether the finding of this kind and address was seen in the last pass.
    pub fn stands(&self, what: &str, address: u64) -> bool {
        let Some(layout) = &self.layout else { return false };
        self.confirm.stands(|key| (what, address) == (key.what(), key.address(layout)))
    }

    fn finding<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        tasks: &TaskLayout,
        layout: &Layout,
        key: Key,
    ) -> Finding {
        let (Key::Gained(task) | Key::Lifted(task)) = key;
        let known = self.known.get(&task);
        let number = kernel.u32(task.wrapping_add(tasks.pid)).unwrap_or(0);
        let (expected, is) = match key {
            Key::Gained(_) => {
                let state = known.map(|known| known.state);
                let is = match state {
                    Some(state) if state.credentials == layout.kernels => {
                        "the kernel's own (init_cred)".into()
                    }
                    Some(state) => possession(&state),
                    None => String::new(),
                };
                let expected = match known {
                    Some(Known { user: Some((user, _)), .. }) => {
                        format!("user {user} without capabilities, as before")
                    }
                    Some(known) if known.was_confined => {
                        "another user namespace than the first one, as before".into()
                    }
                    Some(Known { state, reasoned, .. }) if state.exceeds(reasoned) => {
                        format!("{}, as before", possession(reasoned))
                    }
                    _ => "credentials of its own".into(),
                };
                (expected, is)
            }
            Key::Lifted(_) => {
                let is = match known {
                    Some(known) if known.state.is_filtered => "one that lets other calls pass",
                    _ => "none",
                };
                ("the filter that it had".into(), is.into())
            }
        };
        // The memory may be another task's by now.
        let known = known.map(|known| known.state);
        let now = State::read(kernel, tasks, layout, task);
        let is_it =
            |state: &State| now.is_some_and(|it| (it.start, it.mark) == (state.start, state.mark));
        let start = known.filter(is_it).map(|state| state.start);
        Finding {
            what: key.what().into(),
            address: key.address(layout),
            symbol: match start {
                Some(_) => format!("{}, pid {number}", task::name(kernel, tasks, task)),
                None => "a task that ended".into(),
            },
            expected,
            found: is,
            stop: start.map_or_else(Vec::new, |start| repair::stop(kernel, tasks, task, start)),
            ..Finding::new(key.class())
        }
    }
}

/// The user and the capabilities of `state`.
fn possession(state: &State) -> String {
    let others = if state.is_root && state.user != 0 { ", and 0" } else { "" };
    match state.capabilities {
        0 => format!("user {}{others}", state.user),
        capabilities => format!("user {}{others}, capabilities {capabilities:#x}", state.user),
    }
}

impl Key {
    fn what(self) -> &'static str {
        match self {
            Self::Gained(_) => GAINED,
            Self::Lifted(_) => LIFTED,
        }
    }

    fn class(self) -> Class {
        match self {
            Self::Gained(_) => Class::PrivilegesGained,
            Self::Lifted(_) => Class::FilterLifted,
        }
    }

    /// The address of the member that is wrong.
    fn address(self, layout: &Layout) -> u64 {
        match self {
            Self::Gained(task) => task.wrapping_add(layout.credentials),
            Self::Lifted(task) => task.wrapping_add(layout.filter.map_or(0, |(mode, ..)| mode)),
        }
    }
}

#[cfg(test)]
impl Privileges {
    /// Number of known tasks.
    pub fn known(&self) -> usize {
        self.known.len()
    }
}
