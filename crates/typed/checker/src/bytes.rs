//! Reads little-endian fields and LEB128 numbers from untrusted bytes.

/// A place in some bytes.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(head)
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|b| u16::from_le_bytes([b[0], b[1]]))
    }

    /// An unsigned LEB128 number, in the fewest bytes.
    pub fn leb(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for n in 0..10 {
            let byte = self.u8()?;
            let bits = (byte & 0x7f) as u64;
            if n == 9 && bits > 1 || n > 0 && byte == 0 {
                return None;
            }
            value |= bits << (7 * n);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A LEB128 number of 32 bits.
    pub fn leb32(&mut self) -> Option<u32> {
        self.leb()?.try_into().ok()
    }

    /// A signed number of 32 bits: LEB128 of its zigzag form, so that small ones are short.
    pub fn signed(&mut self) -> Option<i32> {
        let n = self.leb32()?;
        Some((n >> 1) as i32 ^ -((n & 1) as i32))
    }
}

/// The u32 at a byte offset, which must be in a record.
pub(crate) fn u32_at<const N: usize>(record: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

/// The u16 at a byte offset, which must be in a record.
pub(crate) fn u16_at<const N: usize>(record: &[u8; N], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leb_has_one_form() {
        let read = |bytes: &[u8]| Reader::new(bytes).leb();
        assert_eq!(read(&[0]), Some(0));
        assert_eq!(read(&[0x80, 1]), Some(128));
        assert_eq!(read(&[0x80, 0]), None);
        assert_eq!(read(&[0x80]), None);
        assert_eq!(read(&[0xff; 10]), None);
        assert_eq!(read(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]), Some(u64::MAX));
        assert_eq!(read(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 2]), None);
        assert_eq!(Reader::new(&[1]).signed(), Some(-1));
        assert_eq!(Reader::new(&[2]).signed(), Some(1));
    }
}
