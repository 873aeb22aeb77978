//! The patch-site rules: what Linux's current records allow at a site.

use super::code::{target, Code, CALL, JMP};
use super::layout::{Ftrace, TextLayout};
use super::owner;
use super::sites::{Site, SiteKind, SITE_BYTES};
use super::walk;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use alloc::vec::Vec;

/// Flags in ftrace's record of a function (`ftrace.h`): a call is enabled; the call saves all registers.
const ENABLED: u64 = 1 << 31;
const REGISTERS: u64 = 1 << 29;
/// Maximum bytes of code before a function's entry that falls into it (call depth tracking).
const PADDING: u64 = 16;
/// Fruitless searches per slice: forged lists must not use up the monitor's time.
const MAX_MISSES: usize = 32;
/// Maximum number of direct calls in one hash bucket.
const MAX_DIRECT_CALLS: usize = 1024;

/// The judgement of a site's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The first bytes are allowed; this is their number.
    Allowed(usize),
    /// They are not allowed; this code is expected.
    Forbidden(Code),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Function,
    Trampoline,
}

/// The rules for one slice; they cache the contents of Linux's lists.
pub(super) struct SiteRules<'a, 'k, M> {
    pub kernel: &'a Kernel<'k, M>,
    pub layout: &'a TextLayout,
    /// Functions, trampolines and direct calls of ftrace's users, read at the first use.
    handlers: Option<Vec<(Role, u64)>>,
    /// Functions outside the kernel's image that belong to listed code.
    listed: Vec<u64>,
    /// Fruitless searches so far.
    misses: usize,
}

impl<'a, 'k, M: KernelMemory> SiteRules<'a, 'k, M> {
    pub fn new(kernel: &'a Kernel<'k, M>, layout: &'a TextLayout) -> Self {
        Self { kernel, layout, handlers: None, listed: Vec::new(), misses: 0 }
    }

    /// Judges `live`, the bytes at `site`; `before` are the copied ones.
    pub fn judge(
        &mut self,
        site: &Site,
        live: &[u8; SITE_BYTES],
        before: &[u8; SITE_BYTES],
    ) -> Verdict {
        match site.kind {
            SiteKind::Jump { key, target, branch } => {
                self.jump(site.address, key, target, branch, live, before)
            }
            SiteKind::Call { key, tail } => self.call(site.address, key, tail, live, before),
            SiteKind::Trampoline { key } => self.call(site.address, key, true, live, before),
            SiteKind::Entry { record } => match &self.layout.ftrace {
                Some(ftrace) => self.entry(ftrace, site.address, record, live, before),
                None => only(Code::new(&before[..5]), live),
            },
            SiteKind::Ftrace => self.within_ftrace(site.address, live, before),
        }
    }

    fn jump(
        &self,
        at: u64,
        key: u64,
        to: u64,
        branch: bool,
        live: &[u8; SITE_BYTES],
        before: &[u8; SITE_BYTES],
    ) -> Verdict {
        let enabled =
            self.kernel.u32(key + self.layout.key_enabled).is_some_and(|count| count != 0);
        // The length was chosen at build time. A breakpoint in the copy hides only the first byte.
        let (nop, jump) = (Code::nop2(), Code::short_jump(at, to));
        let short = |code: &Code| {
            let first = [code.bytes()[0], super::code::INT3].contains(&before[0]);
            first && before[1] == code.bytes()[1]
        };
        let (nop, jump) = if short(&nop) || short(&jump) {
            (nop, jump)
        } else {
            (Code::nop5(), Code::near(JMP, at, to))
        };
        let order = if enabled != branch { [jump, nop] } else { [nop, jump] };
        any_of(&order, live)
    }

    fn call(
        &mut self,
        at: u64,
        key: u64,
        tail: bool,
        live: &[u8; SITE_BYTES],
        before: &[u8; SITE_BYTES],
    ) -> Verdict {
        let Some(function) = self.kernel.u64(key.wrapping_add(self.layout.call_func)) else {
            return only(Code::new(&before[..5]), live);
        };
        let thunk = self.layout.return_thunk.and_then(|at| self.kernel.u64(at)).unwrap_or(0);
        if live[0] == 0x0f && live[1] & 0xf0 == 0x80 && before[..2] == live[..2] {
            return self.conditional(at, function, thunk, live);
        }
        let expected = match (function, tail) {
            (0, false) => Code::nop5(),
            (0, true) if live[0] == JMP && thunk != 0 => Code::near(JMP, at, thunk),
            (0, true) => Code::ret(),
            (_, false) if self.layout.call_return_0 == Some(function) => Code::zero(),
            (_, true) => Code::near(JMP, at, function),
            (_, false) => Code::near(CALL, at, function),
        };
        let known = function == 0 || self.is_code(function);
        let padded = matches!(expected.bytes(), [CALL | JMP, ..])
            && live[0] == expected.bytes()[0]
            && target(at, live)
                .is_some_and(|to| (1..=PADDING).contains(&function.wrapping_sub(to)));
        match only(expected, live) {
            _ if !known => Verdict::Forbidden(Code::new(&before[..5])),
            Verdict::Forbidden(_) if padded => Verdict::Allowed(5),
            verdict => verdict,
        }
    }

    /// Judges a conditional jump to the function, or to a return.
    fn conditional(&self, at: u64, function: u64, thunk: u64, live: &[u8; SITE_BYTES]) -> Verdict {
        let return_target = self.layout.call_return.unwrap_or(thunk);
        let expected = if function == 0 { return_target } else { function };
        let to = target(at, live);
        if to == Some(expected) || (function == 0 && to == Some(thunk)) {
            return Verdict::Allowed(6);
        }
        let [a, b, c, d] = (expected.wrapping_sub(at).wrapping_sub(6) as u32).to_le_bytes();
        Verdict::Forbidden(Code::new(&[live[0], live[1], a, b, c, d]))
    }

    fn entry(
        &mut self,
        ftrace: &Ftrace,
        at: u64,
        record: u64,
        live: &[u8; SITE_BYTES],
        before: &[u8; SITE_BYTES],
    ) -> Verdict {
        if live[..5] == *Code::nop5().bytes() {
            return Verdict::Allowed(5);
        }
        let mine = self.kernel.u64(record.wrapping_add(ftrace.ip)) == Some(at);
        let flags =
            self.kernel.u64(record.wrapping_add(ftrace.flags)).filter(|_| mine).unwrap_or(0);
        if live[0] == CALL && mine {
            let to = target(at, live).unwrap_or(0);
            let allowed = to == ftrace.caller
                || to == ftrace.regs_caller
                || self.is_handler(Role::Trampoline, to)
                || self.search(|rules| rules.is_direct(ftrace, at, to));
            if allowed {
                return Verdict::Allowed(5);
            }
        }
        Verdict::Forbidden(match flags & (ENABLED | REGISTERS) {
            ENABLED if before[0] != CALL => Code::near(CALL, at, ftrace.caller),
            flags if flags & ENABLED != 0 && before[0] == CALL => Code::new(&before[..5]),
            flags if flags & ENABLED != 0 => Code::near(CALL, at, ftrace.regs_caller),
            _ => Code::nop5(),
        })
    }

    fn within_ftrace(
        &mut self,
        at: u64,
        live: &[u8; SITE_BYTES],
        before: &[u8; SITE_BYTES],
    ) -> Verdict {
        let to = target(at, live).unwrap_or(0);
        let own = self
            .kernel
            .profile
            .nearest(to)
            .is_some_and(|(name, offset)| offset == 0 && name.contains("ftrace_"));
        if (live[0] == CALL && (own || self.is_handler(Role::Function, to)))
            || (live[0] == JMP && own)
        {
            return Verdict::Allowed(5);
        }
        only(Code::new(&before[..5]), live)
    }

    fn is_handler(&mut self, role: Role, address: u64) -> bool {
        self.handlers
            .get_or_insert_with(|| handlers(self.kernel, self.layout))
            .contains(&(role, address))
    }

    /// Whether `condition` holds; false without evaluating it after too many fruitless searches.
    fn search(&mut self, condition: impl FnOnce(&Self) -> bool) -> bool {
        let found = self.misses < MAX_MISSES && condition(self);
        self.misses += usize::from(!found);
        found
    }

    /// Whether a direct call from `at` to `to` is registered.
    fn is_direct(&self, ftrace: &Ftrace, at: u64, to: u64) -> bool {
        let word = |address: u64| self.kernel.u64(address);
        let bucket = || {
            let hash = word(ftrace.directs?).filter(|&hash| hash != 0)?;
            let bits = word(hash.wrapping_add(ftrace.hash_bits)).filter(|&bits| bits <= 16)?;
            let bucket = walk::hash(at, bits as u32);
            Some(word(hash.wrapping_add(ftrace.hash_buckets))?.wrapping_add(bucket * 8))
        };
        let Some(bucket) = bucket() else { return false };
        walk::chain(self.kernel, bucket, 0).take(MAX_DIRECT_CALLS).any(|link| {
            let entry = link.wrapping_sub(ftrace.direct_link);
            word(entry.wrapping_add(ftrace.direct_ip)) == Some(at)
                && word(entry.wrapping_add(ftrace.direct)) == Some(to)
        })
    }

    /// Whether `address` is text of the kernel, of a listed module, or of a listed BPF program.
    fn is_code(&mut self, address: u64) -> bool {
        if (self.layout.stext..self.layout.etext).contains(&address)
            || self.listed.contains(&address)
        {
            return true;
        }
        let listed = self
            .search(|rules| owner::outside(rules.kernel, &rules.layout.owners, address).is_some());
        if listed {
            self.listed.push(address);
        }
        listed
    }
}

/// Functions and trampolines of ftrace's registered users, and of those whose trampolines are not freed yet.
fn handlers<M: KernelMemory>(kernel: &Kernel<'_, M>, layout: &TextLayout) -> Vec<(Role, u64)> {
    let mut found = Vec::new();
    let Some(ftrace) = &layout.ftrace else { return found };
    let leaving = ftrace.trampolines.into_iter().flat_map(|list| walk::list(kernel, list));
    for ops in walk::chain(kernel, ftrace.ops, ftrace.ops_next).take(256).chain(leaving.take(256)) {
        let mut add = |role, offset| {
            let value = kernel.u64(ops.wrapping_add(offset)).filter(|&value| value != 0);
            found.extend(value.map(|value| (role, value)));
        };
        add(Role::Function, ftrace.ops_func);
        add(Role::Trampoline, ftrace.ops_trampoline);
        if let Some(direct) = ftrace.ops_direct {
            add(Role::Trampoline, direct);
        }
    }
    found
}

fn only(code: Code, live: &[u8; SITE_BYTES]) -> Verdict {
    any_of(&[code], live)
}

/// Allows any of `codes`; if none matches, the first is expected.
fn any_of(codes: &[Code], live: &[u8; SITE_BYTES]) -> Verdict {
    match codes.iter().find(|code| live.starts_with(code.bytes())) {
        Some(code) => Verdict::Allowed(code.bytes().len()),
        None => Verdict::Forbidden(codes.first().copied().unwrap_or(Code::nop5())),
    }
}
