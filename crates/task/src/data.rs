//! What the kernel maps for a task beside its image: the loader's data, Linux's memory.

use kyozon_abi::task::{StartInfo, TASK_WINDOW_BASE};

/// The loader's data: empty where there is none, and for every task but the first. Nobody has checked it.
pub fn loaded(info: &'static StartInfo) -> &'static [u8] {
    if info.data_bytes == 0 {
        return &[];
    }
    // SAFETY: the kernel maps it read-only as long as the task lives; `info` is the kernel's page, see `start`.
    unsafe { core::slice::from_raw_parts(info.data as *const u8, info.data_bytes as usize) }
}

/// The word at `physical` in Linux's memory, as it is at this moment.
///
/// # Safety
///
/// `physical` is a multiple of 8 in a range of [`crate::linux::window`].
#[inline]
pub unsafe fn linux_word(physical: u64) -> u64 {
    // SAFETY: the kernel maps these ranges read-only. Linux may write meanwhile: the word is read once.
    unsafe { ((TASK_WINDOW_BASE + physical) as *const u64).read_volatile() }
}
