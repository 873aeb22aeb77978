//! Linux's own functions that do nothing, which a hook is led to when it is taken out.
//!
//! None of them uses its arguments, so whatever Linux passes is right. A pointer is never cleared: Linux reads some
//! pointers twice, to compare with zero and to call, and may do so before and after the store (`aggr_pre_handler`).

use super::source::Hook;
use crate::kernel::Kernel;
use crate::memory::KernelMemory;
use crate::profile::Profile;
use alloc::vec;
use alloc::vec::Vec;
use kyozon_abi::layer::RepairWord;

/// What a call leads to: `endbr64`; `call` with a distance of four bytes, or `nopl` of the same length, where ftrace
/// can come in; `xor %eax,%eax`; a return, or the jump to Linux's thunk for it.
const ENDBR: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const NOP: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];
const CALL: u8 = 0xe8;
const ZERO: [u8; 2] = [0x31, 0xc0];
const RETURNS: [u8; 2] = [0xc3, 0xe9];

/// Why a hook is left.
pub(super) const NO_STEP: &str = "no safe step is known";
const NO_STUB: &str = "this kernel lacks the function to lead it to";
pub(super) const NO_MEMORY: &str = "it is not in Linux's memory";

/// Addresses of the functions; `None` in a kernel that lacks one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stubs {
    /// Returns 0: `no_action`, the handler of interrupts without one.
    nothing: Option<u64>,
    /// Accepts a packet: what netfilter puts in the place of a function that it removes.
    pub accepts: Option<u64>,
    /// What ftrace calls without users.
    pub traces: Option<u64>,
}

impl Stubs {
    pub fn new(profile: &Profile<'_>) -> Self {
        // A kernel that compares the types of functions at calls (kCFI) ends a call of another type.
        if profile.symbols_starting_with("__cfi_").next().is_some() {
            return Self::default();
        }
        let [nothing, accepts, traces] =
            ["no_action", "accept_all", "ftrace_stub"].map(|name| profile.symbol(name));
        Self { nothing, accepts, traces }
    }

    /// The step that makes `hook` return 0, which means for its kind that it has nothing to say.
    pub fn nothing<M: KernelMemory>(
        &self,
        kernel: &Kernel<'_, M>,
        hook: &Hook,
    ) -> Result<Vec<RepairWord>, &'static str> {
        lead(kernel, hook, self.nothing.filter(|&at| returns_zero(kernel, at)))
    }
}

/// The step that makes `hook` lead to `stub`.
pub(super) fn lead<M: KernelMemory>(
    kernel: &Kernel<'_, M>,
    hook: &Hook,
    stub: Option<u64>,
) -> Result<Vec<RepairWord>, &'static str> {
    let stub = stub.filter(|&stub| kernel.in_image(stub)).ok_or(NO_STUB)?;
    Ok(vec![word(kernel, hook.slot, hook.value, stub)?])
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

/// The words that make the `N` bytes at `address`, which are `expected`, `value`.
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

/// Whether the code at `address` does nothing but return 0. If calls must lead to `endbr64`, Linux overwrites it in the
/// functions that none leads to, which makes them differ.
fn returns_zero<M: KernelMemory>(kernel: &Kernel<'_, M>, address: u64) -> bool {
    let Some(code) = kernel.array::<12>(address) else { return false };
    let code = code.strip_prefix(&ENDBR).unwrap_or(&code);
    let code = match code {
        [CALL, _, _, _, _, rest @ ..] => rest,
        _ => code.strip_prefix(&NOP).unwrap_or(code),
    };
    code.strip_prefix(&ZERO).is_some_and(|rest| rest.first().is_some_and(|it| RETURNS.contains(it)))
}
