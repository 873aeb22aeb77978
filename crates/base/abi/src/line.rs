//! A line of text in fixed memory, for code without an allocator.

use core::fmt::{self, Write};

/// At most `BYTES` bytes of text. Text that does not fit is cut off, and writing never fails.
#[derive(Clone, Copy, Debug)]
pub struct Line<const BYTES: usize> {
    text: [u8; BYTES],
    used: usize,
}

impl<const BYTES: usize> Line<BYTES> {
    /// A line without text.
    pub const EMPTY: Self = Self { text: [0; BYTES], used: 0 };

    /// The text that `format_args!` describes.
    pub fn new(text: fmt::Arguments<'_>) -> Self {
        let mut line = Self::EMPTY;
        let _ = line.write_fmt(text);
        line
    }

    /// The text. Its last character may be incomplete if the text was cut off.
    pub fn bytes(&self) -> &[u8] {
        &self.text[..self.used]
    }
}

impl<const BYTES: usize> Write for Line<BYTES> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let free = &mut self.text[self.used..];
        let count = free.len().min(text.len());
        free[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.used += count;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_does_not_fit_is_cut_off() {
        assert_eq!(Line::<16>::new(format_args!("{}-{:#x}", 7, 255)).bytes(), b"7-0xff");
        let mut line = Line::<8>::new(format_args!("{:7}", "x"));
        assert_eq!(line.bytes(), b"x      ");
        for text in ["yz", "z"] {
            assert_eq!((line.write_str(text), line.bytes()), (Ok(()), &b"x      y"[..]));
        }
    }
}
