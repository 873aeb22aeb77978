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

/// Unpacks `file`, which is plain if it has no known compression. The result has at most `bytes` bytes.
///
/// # Errors
///
/// The file is damaged, or larger than that.
pub fn unpack_file(file: &[u8], bytes: usize) -> Result<Vec<u8>> {
    let unpacked = match file {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            all(ruzstd::decoding::StreamingDecoder::new(file).context("it is damaged")?, bytes)?
        }
        [0x1f, 0x8b, ..] => all(flate2::read::GzDecoder::new(file), bytes)?,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            all(lzma_rust2::XzReader::new(file, false), bytes)?
        }
        _ => file.to_vec(),
    };
    ensure!(unpacked.len() <= bytes, "larger than {} MiB unpacked", bytes >> 20);
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
pub(crate) mod tests;
