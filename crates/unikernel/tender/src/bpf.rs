//! Builds system-call filters in the machine code of classic BPF (linux/filter.h, linux/seccomp.h).
//!
//! The crate `seccompiler` cannot build any of them. It gives a filter two actions, compares numbers one after another,
//! and kills the process on another architecture. The tender's filter has three actions (fail with `EPERM`, fail with
//! `ENOSYS` for `clone3`, and allow) and a measured dispatch tree. A guest's filter has three actions as well (trap,
//! trace, and allow). The keeper's filter has two, but fails with `EPERM` on another architecture.

use crate::error::{ensure, Present, Result};
use libc::sock_filter;
use std::io::Error;

/// Action: the call is executed.
pub const ALLOW: u32 = 0x7fff_0000;
/// Action: the process stops for its tracer.
pub const TRACE: u32 = 0x7ff0_0000;
/// Action: the thread gets SIGSYS.
pub const TRAP: u32 = 0x0003_0000;
/// Action: the call fails with this error number.
pub const fn fail_with(error: i32) -> u32 {
    0x0005_0000 | error as u32
}

/// AUDIT_ARCH_X86_64.
const ARCH: u32 = 0xc000_003e;
/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

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

    fn push(&mut self, code: u16, k: u32, yes: impl Into<Target>, no: impl Into<Target>) {
        self.rows.push((sock_filter { code, jt: 0, jf: 0, k }, yes.into(), no.into()));
    }

    fn load(&mut self, offset: u32) {
        self.push(0x20, offset, None, None);
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
            Condition::Equal(k) => (0x15, k),
            Condition::AtLeast(k) => (0x35, k),
            Condition::AnyOf(k) => (0x45, k),
        };
        self.push(code, k, yes, no);
    }

    /// Jumps to the label of the loaded number, or to `other` if no case has it. It bisects the cases, because the
    /// kernel executes a new program once for each system call to learn which calls are always allowed
    /// (kernel/seccomp.c, `seccomp_cache_prepare`).
    ///
    /// # Errors
    ///
    /// There is no case, or two cases have the same number; an error of the tender itself.
    pub fn dispatch(
        &mut self,
        mut cases: Vec<(u32, &'static str)>,
        other: &'static str,
    ) -> Result<()> {
        cases.sort_unstable();
        ensure!(Internal, !cases.is_empty(), "the filter has no cases");
        let duplicate = cases.windows(2).find(|pair| pair[0].0 == pair[1].0);
        ensure!(
            Internal,
            duplicate.is_none(),
            "the filter has two cases for a call: {duplicate:?}"
        );
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

    /// Labels the next instruction.
    pub fn label(&mut self, name: &'static str) {
        self.labels.push((name, self.rows.len()));
    }

    /// Ends the program with an action.
    pub fn end(&mut self, action: u32) {
        self.push(0x06, action, None, None);
    }

    /// The program with resolved jumps.
    ///
    /// # Errors
    ///
    /// A label is missing, or a jump goes back or too far; an error of the tender itself.
    pub fn finish(self) -> Result<Vec<sock_filter>> {
        let labels = self.labels;
        let distance = |from: usize, target: Target| -> Result<u8> {
            let distance = match target {
                Target::Skip(count) => count,
                Target::Label(name) => {
                    let at = labels.iter().find(|label| label.0 == name);
                    let at = at.present("a label of the filter is missing")?.1;
                    // Jumps count from the next instruction, and go forward only.
                    at.checked_sub(from + 1).present("a jump of the filter goes backwards")?
                }
            };
            u8::try_from(distance).ok().present("a jump of the filter is too long")
        };
        let rows = self.rows.into_iter().enumerate();
        rows.map(|(i, (row, yes, no))| {
            Ok(sock_filter { jt: distance(i, yes)?, jf: distance(i, no)?, ..row })
        })
        .collect()
    }
}

/// Installs a program for the calling thread and the threads that it creates later. The thread must have set
/// `no_new_privs`.
///
/// # Errors
///
/// The kernel refuses the program.
pub fn install(program: &[sock_filter]) -> Result<()> {
    let filter = program.as_ptr().cast_mut();
    let program = libc::sock_fprog { len: program.len() as u16, filter };
    // SAFETY: the kernel copies the program, which the caller borrows.
    let done = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    ensure!(Internal, done == 0, "seccomp: {}", Error::last_os_error());
    Ok(())
}

/// The action of a program for a call, as the kernel computes it.
#[cfg(test)]
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
            0x20 => value = u32::from_le_bytes(data[i.k as usize..][..4].try_into().unwrap()),
            0x06 => return i.k,
            0x15 => at += jump(value == i.k),
            0x35 => at += jump(value >= i.k),
            0x45 => at += jump(value & i.k != 0),
            code => panic!("{code:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_reach_their_labels() {
        let mut filter = Filter::new("other");
        filter.jump(Condition::Equal(7), Some("seven"), None);
        filter.load_low(1);
        filter.jump(Condition::AnyOf(6), Some("other"), None);
        filter.load_high(1);
        filter.jump(Condition::AtLeast(2), None, Some("seven"));
        filter.label("other");
        filter.end(TRAP);
        filter.label("seven");
        filter.end(ALLOW);
        let program = filter.finish().unwrap();
        let evaluate = |number, argument| evaluate(&program, ARCH, number, &[0, argument]);
        assert_eq!(evaluate(7, 0), ALLOW);
        assert_eq!((evaluate(8, 1), evaluate(8, 4), evaluate(8, 2 << 32)), (ALLOW, TRAP, TRAP));
        assert_eq!(super::evaluate(&program, 0x4000_0003, 7, &[]), TRAP);
    }

    #[test]
    fn dispatch_finds_the_label_of_each_number() {
        for count in 1..40 {
            let mut filter = Filter::new("other");
            let label = |i: u32| if i.is_multiple_of(3) { "trap" } else { "allow" };
            let cases = (0..count).rev().map(|i| (10 + 2 * i, label(i))).collect();
            filter.dispatch(cases, "other").unwrap();
            for (name, action) in [("trap", TRAP), ("allow", ALLOW), ("other", TRACE)] {
                filter.label(name);
                filter.end(action);
            }
            let program = filter.finish().unwrap();
            for number in 0..100 {
                let expected = match number {
                    10.. if number % 2 == 0 && number < 10 + 2 * count => match (number - 10) / 2 {
                        i if i % 3 == 0 => TRAP,
                        _ => ALLOW,
                    },
                    _ => TRACE,
                };
                assert_eq!(evaluate(&program, ARCH, number, &[]), expected, "{number} of {count}");
            }
        }
    }

    #[test]
    fn invalid_jumps_are_refused() {
        let mut back = Filter::new("start");
        back.label("start");
        back.jump(Condition::Equal(1), Some("start"), None);
        assert!(back.finish().is_err());
        let mut far = Filter::new("end");
        (0..300).for_each(|_| far.end(ALLOW));
        far.label("end");
        far.end(TRAP);
        assert!(far.finish().is_err());
        assert!(Filter::new("nowhere").finish().is_err());
        assert!(Filter::new("other").dispatch(Vec::new(), "other").is_err());
        assert!(Filter::new("other")
            .dispatch(vec![(1, "a"), (2, "b"), (1, "c")], "other")
            .is_err());
    }
}
