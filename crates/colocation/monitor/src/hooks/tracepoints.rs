//! Probes of tracepoints (`include/linux/tracepoint.h` of Linux), to take them out. The check `text` reports those that
//! lead to nobody's code.
//!
//! A tracepoint with one probe calls it directly, by a static call: an instruction at each place of the tracepoint, and
//! one in a trampoline. They are led to the tracepoint's own function, which calls each probe of the list, as they are
//! when there are several. Linux's record of the static call changes with them (`tracepoint_update_call`).

use super::source::{offset, Cursor, Hook, Source, BATCH};
use super::stubs::{self, Stubs, NO_MEMORY};
use super::tracers::CALL;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::requirements::Need::Optional;
use crate::profile::requirements::Wants;
use crate::profile::Profile;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;
use kyozon_abi::layer::{RepairWord, MAX_REPAIR_WORDS};

/// Maximum number of tracepoints, more than any kernel has, and of probes of one; probes of one that are visited in one
/// part.
const MAX_TRACEPOINTS: u64 = 1 << 16;
const MAX_PROBES: u64 = 1024;
const PROBES: u64 = 64;
/// Bytes of an entry in the table of tracepoints: the distance from itself.
const ENTRY_BYTES: u64 = 4;
/// Bytes of the longest name that is shown.
const NAME_BYTES: usize = 64;
/// `jmp` with a distance of four bytes: a static call at the end of a function, and in a trampoline.
const JUMP: u8 = 0xe9;
/// A place of a static call: two distances of four bytes from themselves, to the instruction and to the record. Flags
/// of the second: at the end of a function, and in code that Linux frees after its start (`static_call_types.h`).
const SITE_BYTES: u64 = 8;
const SITE_FLAGS: u64 = 3;
const SITE_INIT: u64 = 2;
/// Flag of a record that has places in the kernel's image alone.
const ONLY_SITES: u64 = 1;
/// Maximum number of places of one static call, and of modules with some.
const MAX_SITES: u64 = 32;
const MAX_MODULES: usize = 64;

const OTHER_FORM: &str = "its static call has another form";

/// How a tracepoint's static call is found.
#[derive(Debug)]
struct Calls {
    /// Offsets in a tracepoint.
    key: u64,
    trampoline: u64,
    iterator: u64,
    /// Offsets in a record: the function, and the places or the modules that have some.
    function: u64,
    sites: u64,
    /// Offsets of the next module, of the module, and of its places.
    modules: [u64; 3],
    /// The end of the places in the kernel's image.
    end: u64,
    /// Locks that must be free while they are changed: their words are 0 then.
    locks: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct Tracepoints {
    table: Range<u64>,
    name: u64,
    probes: u64,
    probe_bytes: u64,
    function: u64,
    /// A kernel can lack static calls.
    calls: Option<Calls>,
}

impl Calls {
    fn new(profile: &Profile<'_>) -> Option<Self> {
        let tracepoint = |member| offset(profile, "tracepoint", member);
        let module = |member| offset(profile, "static_call_mod", member);
        let lock = offset(profile, "mutex", "owner")?;
        let locks = ["tracepoints_mutex", "static_call_mutex", "text_mutex"];
        let locks = locks.iter().map(|name| Some(profile.symbol(name)? + lock));
        Some(Self {
            key: tracepoint("static_call_key")?,
            trampoline: tracepoint("static_call_tramp")?,
            iterator: tracepoint("iterator")?,
            function: offset(profile, "static_call_key", "func")?,
            sites: offset(profile, "static_call_key", "type")?,
            modules: [module("next")?, module("mod")?, module("sites")?],
            end: profile.symbol("__stop_static_call_sites")?,
            locks: locks.collect::<Option<_>>()?,
        })
    }

    /// The pointer to the function that the static call of `tracepoint` calls, if that is not in the image.
    fn call<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, tracepoint: u64) -> Option<Hook> {
        let key = kernel.u64(tracepoint.wrapping_add(self.key)).filter(|&key| key != 0)?;
        let hook = Hook::code(kernel, key, self.function)?;
        let is_other = hook.value != 0 && !kernel.in_image(hook.value);
        is_other.then_some(Hook { object: tracepoint, ..hook })
    }

    /// The first place of the static call with the record `key` in the kernel's image; 0 if it has none.
    fn first_site<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        key: u64,
    ) -> Result<u64, &'static str> {
        let word = |at: u64| kernel.u64(at).ok_or(NO_MEMORY);
        let mut at = word(key.wrapping_add(self.sites))?;
        if at & ONLY_SITES != 0 {
            return Ok(at & !SITE_FLAGS);
        }
        let mut first = 0;
        for _ in 0..MAX_MODULES {
            if at == 0 {
                return Ok(first);
            }
            let [next, module, sites] = self.modules.map(|offset| word(at.wrapping_add(offset)));
            match (module?, sites?) {
                (_, 0) => {}
                (0, sites) => first = sites,
                _ => return Err("modules have calls of it, too"),
            }
            at = next?;
        }
        Err(OTHER_FORM)
    }

    /// The words that lead the calls of `tracepoint`, which call its only probe `from`, to its own function; none if
    /// they do already.
    fn redirect<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        tracepoint: u64,
        from: u64,
    ) -> Result<Vec<RepairWord>, &'static str> {
        let word = |at: u64| kernel.u64(at).ok_or(NO_MEMORY);
        let member = |offset: u64| word(tracepoint.wrapping_add(offset));
        let (key, iterator) = (member(self.key)?, member(self.iterator)?);
        let function = word(key.wrapping_add(self.function))?;
        let is_own = [key, iterator, member(self.trampoline)?].map(|at| kernel.in_image(at));
        if is_own.contains(&false) {
            return Err(OTHER_FORM);
        }
        if function == iterator {
            return Ok(Vec::new());
        }
        if function != from {
            return Err(OTHER_FORM);
        }
        let locks = self.locks.iter().map(|&lock| stubs::word(kernel, lock, 0, 0));
        let mut words = locks.collect::<Result<Vec<_>, _>>()?;
        words.push(stubs::word(kernel, key.wrapping_add(self.function), from, iterator)?);
        let mut lead = |at: u64| {
            let [operation, distance @ ..] = kernel.array::<5>(at).ok_or(NO_MEMORY)?;
            let next = at.wrapping_add(5);
            let leads_to = next.wrapping_add_signed(i32::from_le_bytes(distance).into());
            if !matches!(operation, CALL | JUMP) || leads_to != from || !kernel.in_image(at) {
                return Err(OTHER_FORM);
            }
            let [a, b, c, d] = (iterator.wrapping_sub(next) as u32).to_le_bytes();
            // Two instructions can share a word.
            stubs::join(&mut words, stubs::bytes(kernel, at, [operation, a, b, c, d])?);
            Ok(())
        };
        lead(member(self.trampoline)?)?;
        let first = self.first_site(kernel, key)?;
        for site in (0..MAX_SITES).map(|number| first.wrapping_add(SITE_BYTES * number)) {
            if first == 0 || site >= self.end {
                break;
            }
            let distance = |at: u64| {
                let distance = kernel.u32(at).ok_or(NO_MEMORY)? as i32;
                Ok(at.wrapping_add_signed(distance.into()))
            };
            let of = distance(site.wrapping_add(SITE_BYTES / 2))?;
            if of & !SITE_FLAGS != key {
                break;
            }
            if of & SITE_INIT == 0 {
                lead(distance(site)?)?;
            }
        }
        Ok(words)
    }
}

impl Tracepoints {
    /// The tracepoint of entry `number` of the table.
    fn entry<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, number: u64) -> Option<u64> {
        let entry = self.table.start + ENTRY_BYTES * number;
        Some(entry.wrapping_add_signed((kernel.u32(entry)? as i32).into()))
    }
}

impl Source for Tracepoints {
    const WANTS: Wants = Wants {
        symbols: &[],
        members: &[
            ("mutex", "owner", Optional),
            ("static_call_key", "func", Optional),
            ("static_call_key", "type", Optional),
            ("static_call_mod", "mod", Optional),
            ("static_call_mod", "next", Optional),
            ("static_call_mod", "sites", Optional),
            ("tracepoint", "funcs", Optional),
            ("tracepoint", "iterator", Optional),
            ("tracepoint", "name", Optional),
            ("tracepoint", "static_call_key", Optional),
            ("tracepoint", "static_call_tramp", Optional),
            ("tracepoint_func", "func", Optional),
        ],
        constants: &[],
    };
    const WHAT: &'static str = "tracepoint probe";
    const FOR_PLANS: bool = true;

    fn new(profile: &Profile<'_>) -> Option<Self> {
        let start = profile.symbol("__start___tracepoints_ptrs")?;
        Some(Self {
            table: start..profile.symbol("__stop___tracepoints_ptrs")?,
            name: offset(profile, "tracepoint", "name")?,
            probes: offset(profile, "tracepoint", "funcs")?,
            probe_bytes: profile.size_of("tracepoint_func")?,
            function: offset(profile, "tracepoint_func", "func")?,
            calls: Calls::new(profile),
        })
    }

    fn visit<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        at: Cursor,
        see: &mut dyn FnMut(Hook),
    ) -> Option<Cursor> {
        let count =
            (self.table.end.checked_sub(self.table.start)? / ENTRY_BYTES).min(MAX_TRACEPOINTS);
        let end = (at.link + u64::from(BATCH)).min(count);
        let mut from = at.inner;
        for number in at.link..end {
            let Some(tracepoint) = self.entry(kernel, number) else { continue };
            let list = kernel.u64(tracepoint.wrapping_add(self.probes)).unwrap_or(0);
            let hook = |number: u64| {
                let hook = Hook::code(
                    kernel,
                    list.wrapping_add(number * self.probe_bytes),
                    self.function,
                )?;
                (list != 0 && hook.value != 0).then_some(Hook { object: tracepoint, ..hook })
            };
            let part = from..(from + PROBES).min(MAX_PROBES);
            let seen = part.clone().map_while(hook).map(&mut *see).count() as u64;
            if seen == PROBES && part.end < MAX_PROBES {
                // A tracepoint's place in the table is no link: a pass has as many parts as there are.
                return Some(Cursor { list: at.list + 1, link: number, inner: part.end });
            }
            from = 0;
            // The call of an only probe, which is left if the probe is taken from the list without Linux.
            let call = self.calls.as_ref().and_then(|calls| calls.call(kernel, tracepoint));
            let only = hook(0).map_or(0, |only| only.value);
            call.filter(|call| call.value != only).into_iter().for_each(&mut *see);
        }
        (end < count).then_some(Cursor { list: at.list + 1, link: end, inner: 0 })
    }

    fn removal<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
        stubs: &Stubs,
    ) -> Result<Vec<RepairWord>, &'static str> {
        let call = self.calls.as_ref().and_then(|calls| calls.call(kernel, hook.object));
        // Not `tp_stub_func`, which Linux leaves out of the next list: it would take the next probe for the only one,
        // and call it by the static call, with what is beside the stub, before it knows the new list.
        let mut words = match call.is_some_and(|call| call.slot == hook.slot) {
            true => Vec::new(),
            false => stubs.nothing(kernel, hook)?,
        };
        if let Some(calls) = &self.calls {
            stubs::join(&mut words, calls.redirect(kernel, hook.object, hook.value)?);
        }
        match words.len() <= MAX_REPAIR_WORDS {
            true => Ok(words),
            false => Err("it is called in more places than one transaction changes"),
        }
    }

    fn symbol<M: KernelMemory>(&self, kernel: &Kernel<'_, M>, object: u64) -> String {
        let name = kernel.u64(object.wrapping_add(self.name));
        let name = name.and_then(|name| kernel.c_string(name, NAME_BYTES));
        format!("tracepoint {}", name.unwrap_or_default())
    }
}
