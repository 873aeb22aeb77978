//! Filters of system calls, in the machine code of classic BPF (linux/filter.h, linux/seccomp.h).
//!
//! The crate `seccompiler` builds none of them with the same result. It gives a filter two actions, compares numbers
//! one after another, and kills the process on another architecture. The tender's filter has three actions (`EPERM`,
//! `ENOSYS` for `clone3`, and to go on) and a measured tree; a guest's has three as well (trap, trace, and to go on);
//! the keeper's has two, but fails with `EPERM` on another architecture.

use crate::error::{ensure, Present, Result};
use libc::sock_filter;
use std::io::Error;

/// The call goes on.
pub const ALLOW: u32 = 0x7fff_0000;
/// The call stops for the tracer.
pub const TRACE: u32 = 0x7ff0_0000;
/// The call is an exception of the program's.
pub const TRAP: u32 = 0x0003_0000;
/// The call fails with this error.
pub const fn fails(error: i32) -> u32 {
    0x0005_0000 | error as u32
}

/// AUDIT_ARCH_X86_64.
const ARCH: u32 = 0xc000_003e;
/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// A condition on what was loaded.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// It is this number.
    Equal(u32),
    /// It is this number or above.
    AtLeast(u32),
    /// It has one of these bits.
    AnyOf(u32),
}

/// Where a jump goes.
#[derive(Clone, Copy, Debug)]
enum To {
    /// To what is called so.
    Label(&'static str),
    /// Over this many instructions.
    Over(usize),
}

impl From<Option<&'static str>> for To {
    fn from(label: Option<&'static str>) -> Self {
        label.map_or(Self::Over(0), Self::Label)
    }
}

/// Up to this many numbers are compared one after another.
const FEW: usize = 3;

/// A filter that is being written.
#[derive(Debug, Default)]
pub struct Filter {
    rows: Vec<(sock_filter, To, To)>,
    labels: Vec<(&'static str, usize)>,
}

impl Filter {
    /// A filter that has loaded the call's number; on another architecture, where numbers mean something else, it
    /// ends with `other`.
    pub fn new(other: &'static str) -> Self {
        let mut filter = Self::default();
        filter.load(ARCHITECTURE);
        filter.jump(When::Equal(ARCH), None, Some(other));
        filter.load(NUMBER);
        filter
    }

    fn push(&mut self, code: u16, k: u32, yes: impl Into<To>, no: impl Into<To>) {
        self.rows.push((sock_filter { code, jt: 0, jf: 0, k }, yes.into(), no.into()));
    }

    fn load(&mut self, offset: u32) {
        self.push(0x20, offset, None, None);
    }

    /// Loads the low half of an argument.
    pub fn low(&mut self, argument: u32) {
        self.load(ARGUMENTS + argument * 8);
    }

    /// Loads the high half of an argument.
    pub fn high(&mut self, argument: u32) {
        self.load(ARGUMENTS + argument * 8 + 4);
    }

    /// Goes on at what is called so, or with the next instruction.
    pub fn jump(&mut self, when: When, yes: Option<&'static str>, no: Option<&'static str>) {
        let (code, k) = match when {
            When::Equal(k) => (0x15, k),
            When::AtLeast(k) => (0x35, k),
            When::AnyOf(k) => (0x45, k),
        };
        self.push(code, k, yes, no);
    }

    /// Goes on where what was loaded leads, `other` for a number that is not there, by few steps for each: to learn
    /// which calls are always allowed, the kernel tries a new program with all of them (kernel/seccomp.c,
    /// `seccomp_cache_prepare`).
    ///
    /// # Errors
    ///
    /// There are no cases, or two for one number.
    pub fn dispatch(
        &mut self,
        mut cases: Vec<(u32, &'static str)>,
        other: &'static str,
    ) -> Result<()> {
        cases.sort_unstable();
        ensure!(Internal, !cases.is_empty(), "a filter for no call");
        let twice = cases.windows(2).find(|pair| pair[0].0 == pair[1].0);
        ensure!(Internal, twice.is_none(), "a filter has a call twice: {twice:?}");
        self.halves(&cases, other);
        Ok(())
    }

    fn halves(&mut self, cases: &[(u32, &'static str)], other: &'static str) {
        if cases.len() <= FEW {
            for (at, (number, to)) in cases.iter().enumerate() {
                let no = (at + 1 == cases.len()).then_some(other);
                self.jump(When::Equal(*number), Some(to), no);
            }
            return;
        }
        let (low, high) = cases.split_at(cases.len() / 2);
        let branch = self.rows.len();
        self.jump(When::AtLeast(high[0].0), None, None);
        self.halves(low, other);
        self.rows[branch].1 = To::Over(self.rows.len() - branch - 1);
        self.halves(high, other);
    }

    /// The next instruction is called so.
    pub fn label(&mut self, name: &'static str) {
        self.labels.push((name, self.rows.len()));
    }

    /// Ends with this.
    pub fn end(&mut self, action: u32) {
        self.push(0x06, action, None, None);
    }

    /// The program.
    pub fn finish(self) -> Result<Vec<sock_filter>> {
        let labels = self.labels;
        let distance = |from: usize, to: To| -> Result<u8> {
            let distance = match to {
                To::Over(count) => count,
                To::Label(name) => {
                    let at = labels.iter().find(|label| label.0 == name);
                    let at = at.present("a label of the filter is missing")?.1;
                    // Jumps count from the next instruction, and go forward only.
                    at.checked_sub(from + 1).present("a jump of the filter goes back")?
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

/// Puts a program before all calls of this thread, and of those that it will make. Privileges must have been given up.
pub fn install(program: &[sock_filter]) -> Result<()> {
    let filter = program.as_ptr().cast_mut();
    let program = libc::sock_fprog { len: program.len() as u16, filter };
    // SAFETY: the kernel copies the program, which lives in the caller.
    let done = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    };
    ensure!(Internal, done == 0, "seccomp: {}", Error::last_os_error());
    Ok(())
}

/// What a program says of a call, as the kernel would.
#[cfg(test)]
pub fn judge(program: &[sock_filter], arch: u32, number: u32, arguments: &[u64]) -> u32 {
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
    fn jumps_lead_to_labels() {
        let mut filter = Filter::new("other");
        filter.jump(When::Equal(7), Some("seven"), None);
        filter.low(1);
        filter.jump(When::AnyOf(6), Some("other"), None);
        filter.high(1);
        filter.jump(When::AtLeast(2), None, Some("seven"));
        filter.label("other");
        filter.end(TRAP);
        filter.label("seven");
        filter.end(ALLOW);
        let program = filter.finish().unwrap();
        let judge = |number, argument| judge(&program, ARCH, number, &[0, argument]);
        assert_eq!(judge(7, 0), ALLOW);
        assert_eq!((judge(8, 1), judge(8, 4), judge(8, 2 << 32)), (ALLOW, TRAP, TRAP));
        assert_eq!(super::judge(&program, 0x4000_0003, 7, &[]), TRAP);
    }

    #[test]
    fn each_number_leads_where_it_should() {
        for count in 1..40 {
            let mut filter = Filter::new("other");
            let label = |i: u32| if i % 3 == 0 { "trap" } else { "allow" };
            let cases = (0..count).rev().map(|i| (10 + 2 * i, label(i))).collect();
            filter.dispatch(cases, "other").unwrap();
            for (name, action) in [("trap", TRAP), ("allow", ALLOW), ("other", TRACE)] {
                filter.label(name);
                filter.end(action);
            }
            let program = filter.finish().unwrap();
            for number in 0..100 {
                let want = match number {
                    10.. if number % 2 == 0 && number < 10 + 2 * count => match (number - 10) / 2 {
                        i if i % 3 == 0 => TRAP,
                        _ => ALLOW,
                    },
                    _ => TRACE,
                };
                assert_eq!(judge(&program, ARCH, number, &[]), want, "{number} of {count}");
            }
        }
    }

    #[test]
    fn jumps_that_cannot_be_are_refused() {
        let mut back = Filter::new("start");
        back.label("start");
        back.jump(When::Equal(1), Some("start"), None);
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
