//! Privileges that a task gained, or restrictions that it lost, in a way that Linux does not know.
//!
//! A task without privileges (no user 0, no capabilities) gets some by executing another program or in another user
//! namespace: without either, somebody wrote its credentials, or gave it others, from within the kernel. It becomes
//! user 0 by executing a program that has user 0's set-user-ID bit. A filter of system calls (seccomp) is never taken
//! away from a task. And no task in user mode has the credentials with which the kernel begins (`init_cred`).
//!
//! All of it is about a live task that was seen before: who gains privileges before the first look is not noticed, nor
//! who executes two programs between two looks, nor who forges the start time or the number of executions as well.

use super::layout::TaskLayout;
use super::task::{self, TaskState};
use crate::class::Class;
use crate::confirm::Confirm;
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::{Field, Profile};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

/// Passes in a row that confirm a suspect: memory that was freed and belongs to another task meanwhile is not seen
/// twice.
const PASSES: u32 = 3;
/// Tasks that ended which are forgotten for each new one.
const FORGET: usize = 4;

/// The set-user-ID bit of a file's mode.
const S_ISUID: u16 = 0o4000;

const GAINED: &str = "privileges gained";
const LIFTED: &str = "system call filter lifted";

pub(super) const WANTS: Wants = Wants {
    symbols: &[],
    members: &[
        ("task_struct", "mm", Optional),
        ("task_struct", "real_cred", Optional),
        ("task_struct", "seccomp.mode", Optional),
        ("task_struct", "self_exec_id", Optional),
        ("task_struct", "thread_info.syscall_work", Optional),
        ("cred", "cap_permitted", Optional),
        ("cred", "euid", Optional),
        ("cred", "fsuid", Optional),
        ("cred", "suid", Optional),
        ("cred", "uid", Optional),
        ("cred", "user_ns", Optional),
        ("file", "f_inode", Optional),
        ("inode", "i_mode", Optional),
        ("inode", "i_uid", Optional),
        ("mm_struct", "exe_file", Optional),
    ],
    constants: &[("SYSCALL_WORK_BIT_SECCOMP", Optional)],
};

#[derive(Debug)]
struct Layout {
    /// Address of the kernel's own credentials.
    kernels: u64,
    // In `task_struct`.
    memory: u64,
    credentials: u64,
    executions: Field,
    /// Offset of the filter's mode; offset of the flags that say what a system call has to do, and the filter's flag.
    filter: Option<(u64, u64, u64)>,
    // In `cred`.
    users: [u64; 4],
    permitted: u64,
    namespace: u64,
    program: Option<Program>,
}

/// The way from a task's memory to the mode and the owner of the program that it executes.
#[derive(Debug)]
struct Program {
    file: u64,
    inode: u64,
    mode: u64,
    owner: u64,
}

impl Program {
    fn new(profile: &Profile<'_>) -> Option<Self> {
        let offset = |structure, member| Some(profile.field(structure, member)?.offset);
        Some(Self {
            file: offset("mm_struct", "exe_file")?,
            inode: offset("file", "f_inode")?,
            mode: offset("inode", "i_mode")?,
            owner: offset("inode", "i_uid")?,
        })
    }

    /// Whether the program that the task with this memory executes makes it user 0.
    fn is_set_user_id<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, memory: u64) -> Option<bool> {
        let file = kernel.u64(memory.wrapping_add(self.file))?;
        let inode = kernel.u64(file.wrapping_add(self.inode))?;
        let mode = kernel.u16(inode.wrapping_add(self.mode))?;
        Some(mode & S_ISUID != 0 && kernel.u32(inode.wrapping_add(self.owner))? == 0)
    }
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
            memory: task("mm")?.offset,
            credentials: task("real_cred")?.offset,
            executions: task("self_exec_id")?,
            filter: filter(),
            users: [cred("uid")?, cred("suid")?, cred("euid")?, cred("fsuid")?],
            permitted: cred("cap_permitted")?,
            namespace: cred("user_ns")?,
            program: Program::new(profile),
        })
    }
}

/// What a task may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Start time in nanoseconds, programs executed, user namespace: what tells a task in one program from others.
    start: u64,
    executions: u64,
    namespace: u64,
    /// Addresses of its memory and of its credentials.
    memory: u64,
    credentials: u64,
    user: u32,
    is_root: bool,
    capabilities: u64,
    is_filtered: bool,
}

impl State {
    /// `None` for a task of the kernel, one that begins or ends, and memory that holds no task.
    fn read<M: KernelMemory>(
        kernel: &Kernel<'_, M>,
        tasks: &TaskLayout,
        layout: &Layout,
        task: u64,
    ) -> Option<Self> {
        let word = |offset: u64| kernel.u64(task.wrapping_add(offset));
        let state = TaskState::read(kernel, tasks, task)?;
        let memory = word(layout.memory)?;
        let is_kernels = state.is_kernel_thread() || memory == 0;
        if is_kernels || state.is_new() || state.is_exiting() || state.is_dead() {
            return None;
        }
        let credentials = word(layout.credentials)?;
        let Field { offset, bytes } = layout.executions;
        let users = layout.users.map(|user| kernel.u32(credentials.wrapping_add(user)));
        let filter = layout.filter.map(|(mode, work, flag)| {
            let mode = kernel.u32(task.wrapping_add(mode));
            Some(mode? != 0 && word(work)? & flag != 0)
        });
        Some(Self {
            start: word(tasks.start_time)?,
            executions: kernel.uint(task.wrapping_add(offset), bytes)?,
            namespace: kernel.u64(credentials.wrapping_add(layout.namespace))?,
            memory,
            credentials,
            user: users[0]?,
            is_root: users.contains(&Some(0)),
            capabilities: kernel.u64(credentials.wrapping_add(layout.permitted))?,
            is_filtered: filter.flatten().unwrap_or(false),
        })
    }

    fn is_privileged(&self) -> bool {
        self.is_root || self.capabilities != 0
    }

    /// Whether the task can have gained the privileges of `self` since it was in the state `before`, without any.
    fn may_follow<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        layout: &Layout,
        before: &Self,
    ) -> bool {
        if self.namespace != before.namespace {
            return true;
        }
        match self.executions.wrapping_sub(before.executions) {
            0 => false,
            1 if self.is_root => {
                let program = layout.program.as_ref();
                program.and_then(|p| p.is_set_user_id(kernel, self.memory)).unwrap_or(true)
            }
            _ => true,
        }
    }
}

/// What is known of a task.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// The last look.
    state: State,
    /// The user that it had without privileges, unless there is a reason why it has some.
    user: Option<u32>,
    was_filtered: bool,
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

    /// Looks at the task at `task`.
    pub fn look<M: KernelMemory>(&mut self, kernel: &Kernel<'_, M>, tasks: &TaskLayout, task: u64) {
        let Some(layout) = &self.layout else { return };
        let Some(state) = State::read(kernel, tasks, layout, task) else { return };
        let mut has_gained = state.credentials == layout.kernels;
        let is_new =
            match self.known.get_mut(&task).filter(|known| known.state.start == state.start) {
                Some(known) => {
                    let before = core::mem::replace(&mut known.state, state);
                    if !state.is_privileged() {
                        known.user = Some(state.user);
                    } else if state.may_follow(kernel, layout, &before) {
                        known.user = None;
                    }
                    has_gained |= known.user.is_some() && state.is_privileged();
                    if known.was_filtered && !state.is_filtered {
                        self.confirm.see(Key::Lifted(task), 0);
                    }
                    known.was_filtered |= state.is_filtered;
                    known.pass = self.pass;
                    false
                }
                None => true,
            };
        if has_gained {
            self.confirm.see(Key::Gained(task), 0);
        }
        if is_new {
            self.add(task, state);
        }
    }

    /// Notes a task that is not known, in the place of tasks that ended.
    fn add(&mut self, task: u64, state: State) {
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
            let user = (!state.is_privileged()).then_some(state.user);
            let was_filtered = state.is_filtered;
            self.known.insert(task, Known { state, user, was_filtered, pass: self.pass });
        }
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
                let before = known.and_then(|known| known.user);
                let expected = before.map_or("credentials of its own".into(), |user| {
                    format!("user {user} without capabilities, as before")
                });
                (expected, is)
            }
            Key::Lifted(_) => ("the filter that it had".into(), "none".into()),
        };
        Finding {
            what: key.what().into(),
            address: key.address(layout),
            symbol: format!("{}, pid {number}", task::name(kernel, tasks, task)),
            expected,
            found: is,
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
