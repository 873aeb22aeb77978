//! The patch-site rules: what Linux's current records allow at a site.

use super::code::{target, Code, CALL, JMP, NEAR_BYTES};
use super::layout::{Ftrace, TextLayout};
use super::records::{Records, Role};
use super::sites::{Site, SiteKind, SITE_BYTES};
use super::walk;
use crate::kernel::{Kernel, KERNEL_HALF};
use crate::memory::{KernelMemory, Page, PAGE_BYTES};
use crate::owner;
use crate::walk::chain;
use alloc::vec::Vec;
use core::sync::atomic::Ordering::Relaxed;

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

/// The rules for one slice.
pub(super) struct SiteRules<'a, 'k, M> {
    pub kernel: &'a Kernel<'k, M>,
    pub layout: &'a TextLayout,
    pub records: &'a mut Records,
    slice: u64,
    /// The page of ftrace's records that was read last: neighbouring sites have neighbouring records.
    record_page: Option<(u64, &'k Page)>,
    /// The target of a call that was allowed last: sites of one user have the same.
    last_handler: Option<u64>,
    /// Functions outside the kernel's image that belong to listed code.
    listed: Vec<u64>,
    /// Fruitless searches so far.
    misses: usize,
}

impl<'a, 'k, M: KernelMemory> SiteRules<'a, 'k, M> {
    pub fn new(
        kernel: &'a Kernel<'k, M>,
        layout: &'a TextLayout,
        records: &'a mut Records,
        slice: u64,
    ) -> Self {
        Self {
            kernel,
            layout,
            records,
            slice,
            record_page: None,
            last_handler: None,
            listed: Vec::new(),
            misses: 0,
        }
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
            SiteKind::ModuleTrampoline => self.module_trampoline(site.address, live, before),
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
        let enabled = self
            .kernel
            .u32(key.wrapping_add(self.layout.key_enabled))
            .is_some_and(|count| count != 0);
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
        let known = function == 0 || self.is_code(function) || self.is_left(at, function);
        if live[0] == 0x0f && live[1] & 0xf0 == 0x80 && before[..2] == live[..2] {
            return match known {
                true => self.conditional(at, function, thunk, live),
                false => Verdict::Forbidden(Code::new(&before[..6])),
            };
        }
        let expected = match (function, tail) {
            (0, false) => Code::nop5(),
            (0, true) if live[0] == JMP && thunk != 0 => Code::near(JMP, at, thunk),
            (0, true) => Code::ret(),
            (_, false) if self.layout.call_return_0 == Some(function) => Code::zero(),
            (_, true) => Code::near(JMP, at, function),
            (_, false) => Code::near(CALL, at, function),
        };
        let padded = matches!(expected.bytes(), [CALL | JMP, ..])
            && live[0] == expected.bytes()[0]
            && target(at, live).is_some_and(|to| {
                (1..=PADDING).contains(&function.wrapping_sub(to)) && self.is_code(to)
            });
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

    /// Whether `live` at the function entry `site`, the first byte lowest, is the call that was allowed last. All that
    /// [`SiteRules::judge`] would do is done for it, fast: a traced kernel has tens of thousands of them.
    #[inline]
    pub fn is_usual_call(&mut self, site: &Site, live: u64) -> bool {
        let (SiteKind::Entry { record }, Some(to)) = (site.kind, self.last_handler) else {
            return false;
        };
        let distance = to.wrapping_sub(site.address).wrapping_sub(NEAR_BYTES as u64) as u32;
        let call = u64::from(distance) << 8 | u64::from(CALL);
        let Some(ftrace) = &self.layout.ftrace else { return false };
        live & ((1 << (8 * NEAR_BYTES)) - 1) == call
            && self.record_word(record.wrapping_add(ftrace.ip)) == Some(site.address)
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
        let mine = self.record_word(record.wrapping_add(ftrace.ip)) == Some(at);
        if live[0] == CALL && mine {
            let to = target(at, live).unwrap_or(0);
            if self.last_handler == Some(to) {
                return Verdict::Allowed(5);
            }
            if to == ftrace.caller
                || to == ftrace.regs_caller
                || self.is_handler(Role::Trampoline, to)
            {
                self.last_handler = Some(to);
                return Verdict::Allowed(5);
            }
            if self.search(|rules| rules.is_direct(ftrace, at, to)) && self.is_code(to) {
                return Verdict::Allowed(5);
            }
        }
        let flags =
            self.kernel.u64(record.wrapping_add(ftrace.flags)).filter(|_| mine).unwrap_or(0);
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

    /// Judges a jump to the function, or a return.
    fn module_trampoline(
        &mut self,
        at: u64,
        live: &[u8; SITE_BYTES],
        before: &[u8; SITE_BYTES],
    ) -> Verdict {
        match target(at, live) {
            Some(to) if live[0] == JMP && (self.is_code(to) || self.is_left(at, to)) => {
                Verdict::Allowed(NEAR_BYTES)
            }
            _ => any_of(&[Code::new(&before[..NEAR_BYTES]), Code::ret()], live),
        }
    }

    /// Whether the static call at `at`, in a module, leads to a module that is gone: KVM leaves its calls so when the
    /// module for the processor is removed.
    fn is_left(&self, at: u64, to: u64) -> bool {
        !self.layout.text.contains(&at) && to >= KERNEL_HALF && self.kernel.physical(to).is_none()
    }

    /// The word at `address` in ftrace's records.
    fn record_word(&mut self, address: u64) -> Option<u64> {
        let page = address & !(PAGE_BYTES - 1);
        let known =
            self.record_page.filter(|&(known, _)| known == page && address.is_multiple_of(8));
        if let Some((_, words)) = known {
            return Some(words.get((address % PAGE_BYTES / 8) as usize)?.load(Relaxed));
        }
        let words = self.kernel.memory.page(self.kernel.physical(page)?)?;
        self.record_page = Some((page, words));
        self.kernel.u64(address)
    }

    pub fn is_handler(&mut self, role: Role, address: u64) -> bool {
        self.records.is_handler(self.kernel, self.layout, role, address, self.slice)
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
        chain(self.kernel, bucket, 0).take(MAX_DIRECT_CALLS).any(|link| {
            let entry = link.wrapping_sub(ftrace.direct_link);
            word(entry.wrapping_add(ftrace.direct_ip)) == Some(at)
                && word(entry.wrapping_add(ftrace.direct)) == Some(to)
        })
    }

    /// Whether `address` is code of a listed BPF program.
    pub fn is_program(&mut self, address: u64) -> bool {
        self.search(|rules| {
            let owner = owner::outside(rules.kernel, &rules.layout.owners, address);
            owner.is_some_and(|owner| owner.starts_with("bpf "))
        })
    }

    /// Whether `address` is text of the kernel, of a listed module, or of a listed BPF program.
    pub fn is_code(&mut self, address: u64) -> bool {
        if self.records.is_listed(self.layout, address) || self.listed.contains(&address) {
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
