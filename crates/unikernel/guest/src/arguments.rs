//! The guest's arguments: the words after `--` in `kyozon run`.

use crate::start::own_boot;

/// The arguments, in order.
pub fn arguments() -> impl Iterator<Item = &'static [u8]> {
    let (area, count) = (own_boot().arguments, own_boot().argument_count as usize);
    // SAFETY: the tender mapped these pages, with the length that the boot block says, and they never change.
    let bytes = unsafe { core::slice::from_raw_parts(area.base as *const u8, area.bytes as usize) };
    split(bytes).take(count)
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
