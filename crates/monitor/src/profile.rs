//! What a kernel looks like: symbols, structure layouts, where its image lies. Made on the target, read by the checks.

/// A profile, as it lies in the bytes that carry it. Nothing is copied, nothing is believed before it was checked.
pub struct Profile<'a> {
    bytes: &'a [u8],
}
