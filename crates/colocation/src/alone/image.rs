//! The cokernel's image, checked as the module checks it.

use kyozon_abi::layer::{ImageHeader, COKERNEL_BASE, IMAGE_COKERNEL, IMAGE_MAGIC, LAYER_VERSION};

const PAGE: u64 = 4096;
/// No part of a file is larger.
const BYTES_MAX: u64 = 64 << 20;
/// From the image's base to the end of its memory.
const MEMORY_MAX: u64 = 128 << 20;

/// The header of `image`, if it is a cokernel that can be mapped; else what is wrong.
pub fn check(image: &[u8]) -> Result<ImageHeader, &'static str> {
    let bytes = image.len() as u64;
    let Some(head) = image.get(..size_of::<ImageHeader>()) else {
        return Err("it is too short to be an image");
    };
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let half = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let h = ImageHeader {
        magic: word(0),
        version: half(8),
        kind: half(12),
        base: word(16),
        text_bytes: word(24),
        rodata_bytes: word(32),
        data_bytes: word(40),
        memory_bytes: word(48),
        entry: word(56),
    };
    if h.magic != IMAGE_MAGIC {
        return Err("it is not a Kyozon image");
    }
    if h.version != LAYER_VERSION {
        return Err("it is of another version");
    }
    if h.kind != IMAGE_COKERNEL {
        return Err("it is not a cokernel");
    }
    if is_well_formed(&h, bytes) {
        Ok(h)
    } else {
        Err("its header is malformed")
    }
}

fn is_well_formed(h: &ImageHeader, bytes: u64) -> bool {
    // Each term is bounded before the sums are made.
    if [h.text_bytes, h.rodata_bytes, h.data_bytes].iter().any(|&b| b > BYTES_MAX)
        || h.memory_bytes > MEMORY_MAX
    {
        return false;
    }
    let constant = h.text_bytes + h.rodata_bytes;
    h.base == COKERNEL_BASE
        && h.text_bytes != 0
        && [h.text_bytes, h.rodata_bytes, h.memory_bytes].iter().all(|b| b % PAGE == 0)
        && h.data_bytes <= h.memory_bytes
        && constant + h.memory_bytes <= MEMORY_MAX
        && constant + h.data_bytes <= bytes
        && (h.base..h.base + h.text_bytes).contains(&h.entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> ImageHeader {
        ImageHeader {
            magic: IMAGE_MAGIC,
            version: LAYER_VERSION,
            kind: IMAGE_COKERNEL,
            base: COKERNEL_BASE,
            text_bytes: 0x2000,
            rodata_bytes: 0x1000,
            data_bytes: 0x10,
            memory_bytes: 0x3000,
            entry: COKERNEL_BASE + 0x40,
        }
    }

    fn file(h: &ImageHeader) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(h.magic.to_le_bytes());
        bytes.extend(h.version.to_le_bytes());
        bytes.extend(h.kind.to_le_bytes());
        for word in [h.base, h.text_bytes, h.rodata_bytes, h.data_bytes, h.memory_bytes, h.entry] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.resize(0x3010, 0);
        bytes
    }

    #[test]
    fn a_cokernel_is_accepted() {
        assert_eq!(check(&file(&good())), Ok(good()));
    }

    #[test]
    fn each_lie_is_refused() {
        let lies: [fn(&mut ImageHeader); 17] = [
            |h| h.magic ^= 1,
            |h| h.version += 1,
            |h| h.kind = 1,
            |h| h.base += 0x1000,
            |h| h.text_bytes = 0,
            |h| h.text_bytes += 1,
            |h| h.text_bytes = u64::MAX - 0xfff,
            |h| h.rodata_bytes = 0x800,
            |h| h.rodata_bytes = u64::MAX,
            |h| h.data_bytes = 0x3001,
            |h| h.data_bytes = 0x11,
            |h| h.memory_bytes = 0x3001,
            |h| h.memory_bytes = MEMORY_MAX,
            |h| h.memory_bytes = u64::MAX - 0xfff,
            |h| h.entry = COKERNEL_BASE - 1,
            |h| h.entry = COKERNEL_BASE + 0x2000,
            |h| h.entry = u64::MAX,
        ];
        for (i, lie) in lies.iter().enumerate() {
            let mut h = good();
            lie(&mut h);
            assert!(check(&file(&h)).is_err(), "lie {i}");
        }
    }

    #[test]
    fn short_files_are_refused() {
        let whole = file(&good());
        for bytes in [0, 1, 63, 64, 0x300f] {
            assert!(check(&whole[..bytes]).is_err(), "{bytes}");
        }
    }
}
