//! The payload of a bzImage: the kernel as an ELF file, with relocations behind it, compressed.
//!
//! Source: Linux, `Documentation/arch/x86/boot.rst`. The file is untrusted: any content gives a kernel or an error.

use anyhow::{bail, ensure, Context, Result};
use std::io::Read;

/// Maximum size of the unpacked kernel, bytes.
const MAX_BYTES: usize = 256 << 20;
/// A sector, the unit of the setup code's size.
const SECTOR: usize = 512;
/// First version of the header with the payload's offset and length.
const MIN_VERSION: u16 = 0x208;

/// Unpacks the payload of `image`.
pub fn unpack(image: &[u8]) -> Result<Vec<u8>> {
    let (packed, bytes) = find(image).context("not a bzImage")?;
    ensure!(bytes <= MAX_BYTES, "larger than {} MiB unpacked", MAX_BYTES >> 20);
    let unpacked = match packed {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => zstd(packed, bytes)?,
        [0x02, 0x21, 0x4c, 0x18, blocks @ ..] => lz4(blocks, bytes)?,
        [0x1f, 0x8b, ..] => all(flate2::read::GzDecoder::new(packed), bytes)?,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            all(lzma_rust2::XzReader::new(packed, false), bytes)?
        }
        _ => bail!("unknown compression: gzip, xz, lz4 and zstd are supported"),
    };
    ensure!(unpacked.len() == bytes, "the payload is truncated");
    Ok(unpacked)
}

/// The payload and its unpacked size. The last four bytes hold the size; for gzip they belong to its own trailer.
fn find(image: &[u8]) -> Option<(&[u8], usize)> {
    let word = |at: usize| Some(u32::from_le_bytes(*image.get(at..)?.first_chunk()?) as usize);
    let version = u16::from_le_bytes(*image.get(0x206..)?.first_chunk()?);
    if image.get(0x202..0x206)? != b"HdrS" || version < MIN_VERSION {
        return None;
    }
    let sectors = match image[0x1f1] {
        0 => 4,
        sectors => usize::from(sectors),
    };
    let start = (sectors + 1) * SECTOR + word(0x248)?;
    let payload = image.get(start..start.checked_add(word(0x24c)?)?)?;
    let (packed, bytes) = payload.split_last_chunk()?;
    let packed = if packed.starts_with(&[0x1f, 0x8b]) { payload } else { packed };
    Some((packed, u32::from_le_bytes(*bytes) as usize))
}

/// Reads `from` to its end, but at most one byte more than `bytes`.
fn all(from: impl Read, bytes: usize) -> Result<Vec<u8>> {
    let mut unpacked = Vec::with_capacity(bytes);
    from.take(bytes as u64 + 1).read_to_end(&mut unpacked).context("the payload is damaged")?;
    Ok(unpacked)
}

fn zstd(packed: &[u8], bytes: usize) -> Result<Vec<u8>> {
    let mut unpacked = vec![0; bytes];
    let done = ruzstd::decoding::FrameDecoder::new().decode_all(packed, &mut unpacked);
    unpacked.truncate(done.context("the payload is damaged")?);
    Ok(unpacked)
}

/// The old frame of LZ4: blocks of at most 8 MiB, each after its packed size (`lz4_Frame_format.md`, legacy frame).
fn lz4(mut blocks: &[u8], bytes: usize) -> Result<Vec<u8>> {
    const BLOCK: usize = 8 << 20;
    let mut unpacked = vec![0; bytes];
    let mut done = 0;
    while let Some((size, rest)) = blocks.split_first_chunk() {
        let (block, behind) = rest
            .split_at_checked(u32::from_le_bytes(*size) as usize)
            .context("the payload is truncated")?;
        let end = bytes.min(done + BLOCK);
        done += lz4_flex::block::decompress_into(block, &mut unpacked[done..end])
            .context("the payload is damaged")?;
        blocks = behind;
    }
    unpacked.truncate(done);
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bzImage with this payload.
    fn image(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 2 * SECTOR + 16];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&0x20fu16.to_le_bytes());
        image[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.extend(payload);
        image.extend([0x55; 7]);
        image
    }

    fn text() -> Vec<u8> {
        (0..100_000u32).flat_map(|number| (number / 7).to_le_bytes()).collect()
    }

    fn with_size(mut packed: Vec<u8>) -> Vec<u8> {
        packed.extend((text().len() as u32).to_le_bytes());
        packed
    }

    /// The text in each compression.
    fn packed() -> [Vec<u8>; 4] {
        use std::io::Write;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text()).unwrap();
        let block = lz4_flex::block::compress(&text());
        let size = (block.len() as u32).to_le_bytes();
        let lz4 = [&[0x02, 0x21, 0x4c, 0x18], &size[..], &block].concat();
        let zstd = ruzstd::encoding::compress_to_vec(
            &text()[..],
            ruzstd::encoding::CompressionLevel::Fastest,
        );
        let mut xz =
            lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
        xz.write_all(&text()).unwrap();
        [gzip.finish().unwrap(), with_size(lz4), with_size(zstd), with_size(xz.finish().unwrap())]
    }

    #[test]
    fn every_compression_is_unpacked() {
        for payload in packed() {
            assert!(unpack(&image(&payload)).unwrap() == text(), "{:x?}", &payload[..4]);
        }
    }

    #[test]
    fn malformed_images_are_errors() {
        let error = |image: &[u8]| unpack(image).unwrap_err().to_string();
        assert_eq!(error(b""), "not a bzImage");
        assert_eq!(error(&[0; 4096]), "not a bzImage");
        assert!(error(&image(&[9; 100])).contains("unknown compression"));
        let [_, lz4, ..] = packed();
        let mut short = image(&lz4);
        short.truncate(600);
        assert_eq!(error(&short), "not a bzImage");
        let mut large = lz4.clone();
        *large.last_mut().unwrap() = 0xff;
        assert!(error(&image(&large)).contains("larger than 256 MiB"));
    }

    #[test]
    fn damaged_payloads_never_panic() {
        let mut seed = 7u64;
        let mut next = || {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (seed >> 33) as usize
        };
        for payload in packed() {
            for _ in 0..20 {
                let mut payload = payload.clone();
                let end = payload.len() - 4;
                for _ in 0..1 + next() % 4 {
                    payload[4 + next() % (end - 4)] ^= 1 << (next() % 8);
                }
                if let Ok(unpacked) = unpack(&image(&payload)) {
                    assert_eq!(unpacked.len(), text().len());
                }
                payload.drain(end / 2..end);
                assert!(unpack(&image(&payload)).is_err());
            }
        }
    }
}
