//! The guest's arguments, the words after `--` in `kyozon run`, and its environment.

use crate::start::own_boot;

/// The arguments, in order.
pub fn arguments() -> impl Iterator<Item = &'static [u8]> {
    all().take(own_boot().argument_count as usize)
}

/// Arguments and environment.
fn all() -> impl Iterator<Item = &'static [u8]> {
    let area = own_boot().arguments;
    // SAFETY: the tender mapped these pages, with the length that the boot block says, and they never change.
    let bytes = unsafe { core::slice::from_raw_parts(area.base as *const u8, area.bytes as usize) };
    split(bytes)
}

/// The environment, in order: each is `NAME=VALUE`.
pub fn environment() -> impl Iterator<Item = &'static [u8]> {
    let boot = own_boot();
    all().skip(boot.argument_count as usize).take(boot.environment_count as usize)
}

/// The arguments that are UTF-8, in order. Others are left out.
pub fn strings() -> impl Iterator<Item = &'static str> {
    arguments().filter_map(|argument| core::str::from_utf8(argument).ok())
}

fn split(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == 0).map(|piece| piece.strip_suffix(b"\0").unwrap_or(piece))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_bytes_end_arguments() {
        let words: [&[u8]; 3] = [b"one", b"", b"three"];
        assert!(split(b"one\0\0three\0").eq(words));
        assert_eq!(split(b"").count(), 0);
    }
}
