//! What Linux makes of returns, and of calls and jumps through a register, when it boots or loads a module.

use super::code::{self, CALL, INT3, JMP, NEAR_BYTES};
use crate::profile::Profile;
use alloc::vec::Vec;

/// The thunks that a return may jump to.
const RETURN_THUNKS: [&str; 7] = [
    "__x86_return_thunk",
    "retbleed_return_thunk",
    "srso_return_thunk",
    "srso_alias_return_thunk",
    "__x86_return_skl",
    "call_depth_return_thunk",
    "its_return_thunk",
];
/// Prefix of the names of thunks for calls and jumps through a register.
const INDIRECT_THUNK: &str = "__x86_indirect_";
/// What may precede a call or jump through a register (`lfence`), a register above the eighth, and what only makes the
/// instruction longer.
const LFENCE: [u8; 3] = [0x0f, 0xae, 0xe8];
const HIGH: u8 = 0x41;
const PREFIX: u8 = 0x2e;
/// Maximum number of thunks that are remembered.
const MAX_THUNKS: usize = 256;

/// The kernel's thunks.
#[derive(Clone, Debug, Default)]
pub struct Thunks {
    returns: Vec<u64>,
    /// Those for calls and jumps through a register that were met so far, sorted.
    indirect: Vec<u64>,
}

impl Thunks {
    /// Those of the kernel with `profile`.
    pub fn new(profile: &Profile<'_>) -> Self {
        let returns = RETURN_THUNKS.iter().filter_map(|name| profile.symbol(name)).collect();
        Self { returns, indirect: Vec::new() }
    }

    /// Whether `bytes` at address `at` are a return, by a thunk or directly, followed by filler.
    pub fn is_return(&self, at: u64, bytes: &[u8]) -> bool {
        match bytes {
            [0xc3, rest @ ..] => rest.iter().all(|&byte| byte == INT3),
            [JMP, ..] => code::target(at, bytes).is_some_and(|to| self.returns.contains(&to)),
            _ => false,
        }
    }

    /// Whether `bytes` at address `at` are a call or jump through a register, by a thunk or directly, followed by
    /// filler.
    pub fn is_indirect(&mut self, profile: &Profile<'_>, at: u64, bytes: &[u8]) -> bool {
        if let Some(to) = direct(at, bytes) {
            return self.is_thunk(profile, to);
        }
        let plain = bytes.strip_prefix(&LFENCE).unwrap_or(bytes);
        let plain = plain.strip_prefix(&[HIGH]).unwrap_or(plain);
        match plain {
            [0xff, 0xd0..=0xd7 | 0xe0..=0xe7, rest @ ..] => is_filler(rest),
            _ => false,
        }
    }

    /// The same, if `bytes` also do what `before` did there, through the same register. What cannot be told is
    /// believed.
    pub fn is_same_indirect(
        &mut self,
        profile: &Profile<'_>,
        at: u64,
        bytes: &[u8],
        before: &[u8],
    ) -> bool {
        let is_same = match (through(profile, at, bytes), through(profile, at, before)) {
            (Some(now), Some(before)) => now == before,
            _ => true,
        };
        is_same && self.is_indirect(profile, at, bytes)
    }

    /// Whether a thunk for calls and jumps through a register is at `to`. There are some dozen, for tens of thousands
    /// of calls.
    fn is_thunk(&mut self, profile: &Profile<'_>, to: u64) -> bool {
        let Err(place) = self.indirect.binary_search(&to) else { return true };
        let symbol = profile.nearest(to);
        let is_thunk =
            symbol.is_some_and(|(name, offset)| name.starts_with(INDIRECT_THUNK) && offset < 64);
        if is_thunk && self.indirect.len() < MAX_THUNKS {
            self.indirect.insert(place, to);
        }
        is_thunk
    }
}

/// Names of the registers, by their numbers.
const REGISTERS: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// Whether `bytes` at `at` are a call, as opposed to a jump, and the number of the register that they lead through, by
/// a thunk that has a name or directly (`ff /2`, `ff /4`; Intel SDM volume 2, CALL and JMP). `None` if that cannot be
/// told.
fn through(profile: &Profile<'_>, at: u64, bytes: &[u8]) -> Option<(bool, usize)> {
    if let Some(to) = direct(at, bytes) {
        let code = bytes.strip_prefix(&[PREFIX]).unwrap_or(bytes);
        let here = profile.symbols_from(to).take_while(|symbol| symbol.address == to);
        let mut thunks = here.filter(|symbol| symbol.name.starts_with(INDIRECT_THUNK));
        let register = thunks.find_map(|symbol| {
            let (_, name) = symbol.name.rsplit_once('_')?;
            REGISTERS.iter().position(|register| *register == name)
        })?;
        return Some((code.first() == Some(&CALL), register));
    }
    let plain = bytes.strip_prefix(&LFENCE).unwrap_or(bytes);
    let (high, plain) = plain.strip_prefix(&[HIGH]).map_or((0, plain), |rest| (8, rest));
    match plain {
        [0xff, code @ 0xd0..=0xd7, ..] => Some((true, high + usize::from(code - 0xd0))),
        [0xff, code @ 0xe0..=0xe7, ..] => Some((false, high + usize::from(code - 0xe0))),
        _ => None,
    }
}

/// What the call or jump at `at` leads to, with or without a prefix that only makes it longer, if filler follows.
pub(super) fn direct(at: u64, bytes: &[u8]) -> Option<u64> {
    let (at, bytes) = match bytes {
        [PREFIX, rest @ ..] => (at.wrapping_add(1), rest),
        _ => (at, bytes),
    };
    match bytes {
        [CALL | JMP, ..] => {
            let is_alone = bytes.get(NEAR_BYTES..).is_some_and(is_filler);
            code::target(at, bytes).filter(|_| is_alone)
        }
        _ => None,
    }
}

/// Whether `bytes` are only breakpoints and no-operations.
fn is_filler(mut bytes: &[u8]) -> bool {
    loop {
        bytes = match bytes {
            [] => return true,
            [INT3 | 0x90, rest @ ..] => rest,
            [0x66, 0x90, rest @ ..]
            | [0x0f, 0x1f, 0x00, rest @ ..]
            | [0x0f, 0x1f, 0x40, 0x00, rest @ ..] => rest,
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{self, TEXT};

    const RAX: u64 = TEXT + 0x1000;
    const R11: u64 = TEXT + 0x1020;
    const SITE: u64 = TEXT + 0x2000;

    /// A call or jump from the site to `to`.
    fn to(code: u8, to: u64) -> Vec<u8> {
        let distance = to.wrapping_sub(SITE + NEAR_BYTES as u64) as u32;
        [&[code][..], &distance.to_le_bytes()].concat()
    }

    #[test]
    fn what_leads_through_a_register_keeps_it() {
        let symbols = [
            (TEXT, b'T', "_text"),
            (RAX, b'T', "__x86_indirect_thunk_array"),
            (RAX, b'T', "__x86_indirect_thunk_rax"),
            (R11, b'T', "__x86_indirect_thunk_r11"),
        ];
        let bytes = fake::profile(&symbols, &[]);
        let profile = Profile::decode(&bytes).unwrap();
        let mut thunks = Thunks::new(&profile);
        let mut is_same =
            |now: &[u8], before: &[u8]| thunks.is_same_indirect(&profile, SITE, now, before);
        let call = to(CALL, RAX);
        for good in [&call[..], &[0xff, 0xd0, 0x90, 0x90, 0x90], &[0x0f, 0xae, 0xe8, 0xff, 0xd0]] {
            assert!(is_same(good, &call), "{good:x?}");
        }
        for bad in [
            &to(JMP, RAX)[..],
            &to(CALL, R11),
            &[0xff, 0xd3, 0x90, 0x90, 0x90],
            &[0xff, 0xe0, 0xcc, 0xcc, 0xcc],
            &[0x41, 0xff, 0xd0, 0x90, 0x90],
            &[0; 5],
        ] {
            assert!(!is_same(bad, &call), "{bad:x?}");
        }
        let jump = to(JMP, R11);
        assert!(is_same(&[0x41, 0xff, 0xe3, 0xcc, 0xcc], &jump));
        assert!(!is_same(&[0xff, 0xe3, 0xcc, 0xcc, 0xcc], &jump));
    }
}
