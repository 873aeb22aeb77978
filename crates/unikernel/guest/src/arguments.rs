//! What stood behind `--` when the guest was started.

use crate::boot;

/// The arguments, in order.
pub fn arguments() -> impl Iterator<Item = &'static [u8]> {
    let (area, count) = (boot().arguments, boot().argument_count as usize);
    // SAFETY: pages of the tender's that never change, as long as the boot block says.
    let bytes = unsafe { core::slice::from_raw_parts(area.base as *const u8, area.bytes as usize) };
    split(bytes).take(count)
}

/// Those arguments that are UTF-8, in order.
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
    fn a_zero_ends_an_argument() {
        let words: [&[u8]; 3] = [b"one", b"", b"three"];
        assert!(split(b"one\0\0three\0").eq(words));
        assert_eq!(split(b"").count(), 0);
    }
}
