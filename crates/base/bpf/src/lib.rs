//! System-call filters (seccomp) in the machine code of classic BPF: built, installed, and evaluated for tests.
//! Sources: linux/filter.h, linux/seccomp.h.
//!
//! The tender's filters jump to labels. The filter of a confined kernel is a list of rules.
//!
//! The crate `seccompiler` cannot build any of them. It gives a filter two actions, compares numbers one after another,
//! and kills the process on another architecture. The tender's filter has three actions (fail with `EPERM`, fail with
//! `ENOSYS` for `clone3`, and allow) and a measured dispatch tree. A guest's filter has three actions as well (trap,
//! trace, and allow). The keeper's filter has two, but fails with `EPERM` on another architecture. A confined kernel's
//! has its busiest calls first.
//!
//! Invariants:
//!
//! 1. A program with a missing label, or with a jump that is too long or goes back, is an error, never a wrong filter.
//! 2. Calls of other architectures, whose numbers mean other calls, never get to the rules.
//!
//! This crate must not know which calls a process needs.

use libc::sock_filter;
use std::{fmt, io};

/// An inconsistent filter: an error of the program that builds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

fn wrong<T>(what: impl Into<String>) -> Result<T> {
    Err(Error(what.into()))
}

/// Action: the call is executed.
pub const ALLOW: u32 = 0x7fff_0000;
/// Action: the process dies.
pub const KILL: u32 = 0x8000_0000;
/// Action: the process stops for its tracer.
pub const TRACE: u32 = 0x7ff0_0000;
/// Action: the thread gets SIGSYS.
pub const TRAP: u32 = 0x0003_0000;
/// Action: the call fails with this error number.
pub const fn fail_with(error: i32) -> u32 {
    0x0005_0000 | error as u32
}

/// AUDIT_ARCH_X86_64, the architecture of a filter's calls.
pub const ARCH: u32 = 0xc000_003e;
/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;
/// Instructions: load a word of the data, jump if equal, if at least, if any bit is set, return.
const LOAD: u16 = 0x20;
const EQUAL: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const ANY_OF: u16 = 0x45;
const RETURN: u16 = 0x06;

/// A condition on the loaded value.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    /// The value equals this number.
    Equal(u32),
    /// The value is at least this number.
    AtLeast(u32),
    /// The value has at least one of these bits.
    AnyOf(u32),
}

/// What an argument must be, by its low 32 bits: descriptors, rights and modes are of type int.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// It is this value.
    Is(u32, i32),
    /// None of these bits is set.
    Without(u32, i32),
}

/// The target of a jump.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// The instruction with this label.
    Label(&'static str),
    /// The instruction after skipping this many.
    Skip(usize),
}

impl From<Option<&'static str>> for Target {
    fn from(label: Option<&'static str>) -> Self {
        label.map_or(Self::Skip(0), Self::Label)
    }
}

/// Maximum count of numbers that are compared one after another.
const MAX_LINEAR: usize = 3;

/// A filter under construction.
#[derive(Debug, Default)]
pub struct Filter {
    rows: Vec<(sock_filter, Target, Target)>,
    labels: Vec<(&'static str, usize)>,
}

impl Filter {
    /// A filter that loads the system-call number. On another architecture, whose numbers mean other calls, it jumps to
    /// the label `other`.
    pub fn new(other: &'static str) -> Self {
        let mut filter = Self::default();
        filter.load(ARCHITECTURE);
        filter.jump(Condition::Equal(ARCH), None, Some(other));
        filter.load(NUMBER);
        filter
    }

    /// A filter that ends with `action` on another architecture, and then loads the number. The rest may be of any
    /// length.
    pub fn ending(action: u32) -> Self {
        let mut filter = Self::default();
        filter.load(ARCHITECTURE);
        filter.push(EQUAL, ARCH, Target::Skip(1), None);
        filter.end(action);
        filter.load(NUMBER);
        filter
    }

    fn push(&mut self, code: u16, k: u32, yes: impl Into<Target>, no: impl Into<Target>) {
        self.rows.push((sock_filter { code, jt: 0, jf: 0, k }, yes.into(), no.into()));
    }

    fn load(&mut self, offset: u32) {
        self.push(LOAD, offset, None, None);
    }

    /// Loads the low 32 bits of an argument.
    pub fn load_low(&mut self, argument: u32) {
        self.load(ARGUMENTS + argument * 8);
    }

    /// Loads the high 32 bits of an argument.
    pub fn load_high(&mut self, argument: u32) {
        self.load(ARGUMENTS + argument * 8 + 4);
    }

    /// Jumps to the label `yes` or `no`; `None` is the next instruction.
    pub fn jump(
        &mut self,
        condition: Condition,
        yes: Option<&'static str>,
        no: Option<&'static str>,
    ) {
        let (code, k) = match condition {
            Condition::Equal(k) => (EQUAL, k),
            Condition::AtLeast(k) => (AT_LEAST, k),
            Condition::AnyOf(k) => (ANY_OF, k),
        };
        self.push(code, k, yes, no);
    }

    /// Jumps to the label of the loaded number, or to `other` if no case has it. It bisects the cases, because the
    /// kernel executes a new program once for each system call to learn which calls are always allowed
    /// (kernel/seccomp.c, `seccomp_cache_prepare`).
    ///
    /// # Errors
    ///
    /// There is no case, or two cases have the same number.
    pub fn dispatch(
        &mut self,
        mut cases: Vec<(u32, &'static str)>,
        other: &'static str,
    ) -> Result<()> {
        cases.sort_unstable();
        if cases.is_empty() {
            return wrong("the filter has no cases");
        }
        if let Some(pair) = cases.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return wrong(format!("the filter has two cases for a call: {pair:?}"));
        }
        self.bisect(&cases, other);
        Ok(())
    }

    fn bisect(&mut self, cases: &[(u32, &'static str)], other: &'static str) {
        if cases.len() <= MAX_LINEAR {
            for (i, (number, label)) in cases.iter().enumerate() {
                let no = (i + 1 == cases.len()).then_some(other);
                self.jump(Condition::Equal(*number), Some(label), no);
            }
            return;
        }
        let (low, high) = cases.split_at(cases.len() / 2);
        let branch = self.rows.len();
        self.jump(Condition::AtLeast(high[0].0), None, None);
        self.bisect(low, other);
        self.rows[branch].1 = Target::Skip(self.rows.len() - branch - 1);
        self.bisect(high, other);
    }

    /// Ends with `action` if the loaded number is `call` and all tests of its arguments hold. Otherwise the next
    /// instruction decides, for which the number is loaded.
    pub fn rule(&mut self, call: i64, tests: &[Test], action: u32) {
        let inside = 2 * tests.len();
        // Over the tests, the action, and the load behind it.
        let next = if tests.is_empty() { 1 } else { inside + 2 };
        self.push(EQUAL, call as u32, None, Target::Skip(next));
        for (index, test) in tests.iter().enumerate() {
            // To the load.
            let failed = Target::Skip(inside - 2 * (index + 1) + 1);
            match *test {
                Test::Is(argument, value) => {
                    self.load_low(argument);
                    self.push(EQUAL, value as u32, None, failed);
                }
                Test::Without(argument, bits) => {
                    self.load_low(argument);
                    self.push(ANY_OF, bits as u32, failed, None);
                }
            }
        }
        self.end(action);
        if !tests.is_empty() {
            self.load(NUMBER);
        }
    }

    /// Labels the next instruction.
    pub fn label(&mut self, name: &'static str) {
        self.labels.push((name, self.rows.len()));
    }

    /// Ends the program with an action.
    pub fn end(&mut self, action: u32) {
        self.push(RETURN, action, None, None);
    }

    /// The program with resolved jumps.
    ///
    /// # Errors
    ///
    /// A label is missing, or a jump goes back or too far.
    pub fn finish(self) -> Result<Vec<sock_filter>> {
        let labels = self.labels;
        let distance = |from: usize, target: Target| -> Result<u8> {
            let distance = match target {
                Target::Skip(count) => count,
                Target::Label(name) => {
                    let Some((_, at)) = labels.iter().find(|label| label.0 == name) else {
                        return wrong(format!("the filter's label {name} is missing"));
                    };
                    // Jumps count from the next instruction, and go forward only.
                    let Some(distance) = at.checked_sub(from + 1) else {
                        return wrong("a jump of the filter goes backwards");
                    };
                    distance
                }
            };
            u8::try_from(distance).or_else(|_| wrong("a jump of the filter is too long"))
        };
        let rows = self.rows.into_iter().enumerate();
        rows.map(|(i, (row, yes, no))| {
            Ok(sock_filter { jt: distance(i, yes)?, jf: distance(i, no)?, ..row })
        })
        .collect()
    }
}

/// Whom a filter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// The calling thread, and those that it creates later.
    Calling,
    /// All threads of the process.
    All,
}

/// Installs a program, for ever. The thread must have set `no_new_privs`.
///
/// # Errors
///
/// The kernel refuses the program, or one of the threads cannot take it.
pub fn install(program: &[sock_filter], threads: Threads) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    let how = if threads == Threads::All { libc::SECCOMP_FILTER_FLAG_TSYNC } else { 0 };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the kernel copies the program, which the caller borrows.
    match unsafe { libc::syscall(libc::SYS_seccomp, mode, how, &raw const program) } {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        thread => Err(io::Error::other(format!("thread {thread} cannot take the filter"))),
    }
}

/// The action of a program for a call, as the kernel computes it: for tests of filters.
///
/// # Panics
///
/// The program has an instruction that this crate does not make.
pub fn evaluate(program: &[sock_filter], arch: u32, number: u32, arguments: &[u64]) -> u32 {
    let mut data = [number.to_le_bytes(), arch.to_le_bytes(), [0; 4], [0; 4]].concat();
    data.extend(arguments.iter().flat_map(|a| a.to_le_bytes()));
    data.resize(64, 0);
    let (mut at, mut value) = (0, 0_u32);
    loop {
        let i = &program[at];
        let jump = |yes: bool| usize::from(if yes { i.jt } else { i.jf });
        at += 1;
        match i.code {
            LOAD => {
                value = u32::from_le_bytes(data[i.k as usize..][..4].try_into().expect("4 bytes"))
            }
            RETURN => return i.k,
            EQUAL => at += jump(value == i.k),
            AT_LEAST => at += jump(value >= i.k),
            ANY_OF => at += jump(value & i.k != 0),
            code => panic!("{code:#x}"),
        }
    }
}

#[cfg(test)]
mod tests;
