//! Linux's own functions that do nothing, which a hook is led to when it is taken out.
//!
//! None of them uses its arguments, so whatever Linux passes is right. A pointer is never cleared: Linux reads some
//! pointers twice, to compare with zero and to call, and may do so before and after the store (`aggr_pre_handler`).

use super::source::Hook;
use super::tracers::callee;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::Profile;
use alloc::vec;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// What a call leads to: `endbr64`; `call` with a distance of four bytes, or `nopl` of the same length, where ftrace
/// can come in; `xor %eax,%eax` or `mov $1,%eax`; a return, or the jump to Linux's thunk for it.
const ENDBR: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const NOP: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];
const ZERO: [u8; 2] = [0x31, 0xc0];
const ONE: [u8; 5] = [0xb8, 1, 0, 0, 0];
const RETURNS: [u8; 2] = [0xc3, 0xe9];

/// The names of functions that return 0, and of one that returns 1.
pub(super) const NOTHING: [&str; 2] = ["no_action", "noop_fsync"];
pub(super) const ACCEPTS: &str = "accept_all";

/// Why a hook is left.
pub(super) const NO_STEP: &str = "no safe step is known";
pub(super) const NO_STUB: &str = "this kernel lacks the function to lead it to";
const CHANGING: &str = "its pointer changes";
pub(super) const NO_MEMORY: &str = "it is not in Linux's memory";

/// Addresses of the functions; `None` in a kernel that lacks one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stubs {
    /// Return 0. The first is the handler of interrupts without one.
    nothing: [Option<u64>; NOTHING.len()],
    /// Returns 1, which accepts a packet: what netfilter puts in the place of a function that it removes.
    accepts: Option<u64>,
    /// What ftrace calls without users.
    pub traces: Option<u64>,
}

impl Stubs {
    pub fn new(profile: &Profile<'_>) -> Self {
        // A kernel that compares the types of functions at calls (kCFI) ends a call of another type.
        if profile.symbols_starting_with("__cfi_").next().is_some() {
            return Self::default();
        }
        let nothing = NOTHING.map(|name| profile.symbol(name));
        let [accepts, traces] = [ACCEPTS, "ftrace_stub"].map(|name| profile.symbol(name));
        Self { nothing, accepts, traces }
    }

    /// The step that makes `hook` return 0, which means for its kind that it has nothing to say.
    pub fn nothing<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
    ) -> Result<Vec<RepairWord>, &'static str> {
        let mut stubs = self.nothing.into_iter().flatten();
        lead(kernel, hook, stubs.find(|&at| only_returns(kernel, at, &ZERO)))
    }

    /// The step that makes `hook` accept all packets.
    pub fn accepts<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
    ) -> Result<Vec<RepairWord>, &'static str> {
        lead(kernel, hook, self.accepts.filter(|&at| only_returns(kernel, at, &ONE)))
    }
}

/// The step that makes `hook` lead to `stub`.
pub(super) fn lead<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    hook: &Hook,
    stub: Option<u64>,
) -> Result<Vec<RepairWord>, &'static str> {
    let stub = stub.filter(|&stub| kernel.in_image(stub)).ok_or(NO_STUB)?;
    pointer(kernel, hook.slot, hook.value, stub)
}

/// The words that make the pointer at `address`, which is `expected`, `value`.
pub(super) fn pointer<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    address: u64,
    expected: u64,
    value: u64,
) -> Result<Vec<RepairWord>, &'static str> {
    if address.is_multiple_of(8) {
        return Ok(vec![word(kernel, address, expected, value)?]);
    }
    // Linux aligns its structures; whoever has one in two words must not escape by that.
    let words = bytes(kernel, address, value.to_le_bytes())?;
    (kernel.u64(address) == Some(expected)).then_some(words).ok_or(CHANGING)
}

/// The word at `address`, which holds `expected` and gets `value`.
pub(super) fn word<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    address: u64,
    expected: u64,
    value: u64,
) -> Result<RepairWord, &'static str> {
    let physical = kernel.physical(address).filter(|physical| physical % 8 == 0);
    let address = physical.ok_or(NO_MEMORY)?;
    Ok(RepairWord { address, expected, value })
}

/// The words that make the `N` bytes at `address`, as they are, `value`.
pub(super) fn bytes<M: KernelMemory, const N: usize>(
    kernel: &Kernel<'_, M>,
    address: u64,
    value: [u8; N],
) -> Result<Vec<RepairWord>, &'static str> {
    let (first, end) = (address & !7, address.wrapping_add(N as u64));
    let count = end.wrapping_sub(first).div_ceil(8);
    (0..count)
        .map(|number| {
            let at = first.wrapping_add(8 * number);
            let before = kernel.u64(at).ok_or(NO_MEMORY)?;
            let mut after = before.to_le_bytes();
            for (place, byte) in (at..).zip(&mut after) {
                let new = value.get(place.wrapping_sub(address) as usize);
                new.into_iter().for_each(|new| *byte = *new);
            }
            word(kernel, at, before, u64::from_le_bytes(after))
        })
        .collect()
}

/// Adds `more` to the words of one transaction, which has each word once: the words of both are as they are in memory.
pub(super) fn join(words: &mut Vec<RepairWord>, more: Vec<RepairWord>) {
    for new in more {
        match words.iter_mut().find(|known| known.address == new.address) {
            Some(known) => known.value ^= new.expected ^ new.value,
            None => words.push(new),
        }
    }
}

/// Whether the code at `address` does nothing but return what `result` puts into its register. Whoever comes in by a
/// call of ftrace must be Linux's own, as its tracer of all functions is. If calls must lead to `endbr64`, Linux
/// overwrites it in the functions that none leads to, which makes them differ.
fn only_returns<M: KernelMemory>(kernel: &Kernel<'_, M>, address: u64, result: &[u8]) -> bool {
    let Some(code) = kernel.array::<16>(address) else { return false };
    let (code, entry) = match code.strip_prefix(&ENDBR) {
        Some(code) => (code, address + ENDBR.len() as u64),
        None => (&code[..], address),
    };
    let code = match callee(kernel, entry) {
        Some(called) if !kernel.in_image(called) => return false,
        Some(_) => code.get(NOP.len()..).unwrap_or_default(),
        None => code.strip_prefix(&NOP).unwrap_or(code),
    };
    code.strip_prefix(result)
        .is_some_and(|rest| rest.first().is_some_and(|it| RETURNS.contains(it)))
}
