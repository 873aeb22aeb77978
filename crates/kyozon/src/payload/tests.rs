use super::*;

/// A bzImage with this payload.
pub fn bzimage(payload: &[u8]) -> Vec<u8> {
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

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// The text in each compression.
fn packed() -> [Vec<u8>; 4] {
    use std::io::Write;
    let block = lz4_flex::block::compress(&text());
    let size = (block.len() as u32).to_le_bytes();
    let lz4 = [&[0x02, 0x21, 0x4c, 0x18], &size[..], &block].concat();
    let zstd =
        ruzstd::encoding::compress_to_vec(&text()[..], ruzstd::encoding::CompressionLevel::Fastest);
    let mut xz =
        lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::with_preset(1)).unwrap();
    xz.write_all(&text()).unwrap();
    [gzip(&text()), with_size(lz4), with_size(zstd), with_size(xz.finish().unwrap())]
}

#[test]
fn every_compression_is_unpacked() {
    for payload in packed() {
        assert!(unpack(&bzimage(&payload)).unwrap() == text(), "{:x?}", &payload[..4]);
    }
}

#[test]
fn malformed_images_are_errors() {
    let error = |image: &[u8]| unpack(image).unwrap_err().to_string();
    assert_eq!(error(b""), "not a bzImage");
    assert_eq!(error(&[0; 4096]), "not a bzImage");
    assert!(error(&bzimage(&[9; 100])).contains("unknown compression"));
    let [_, lz4, ..] = packed();
    let mut short = bzimage(&lz4);
    short.truncate(600);
    assert_eq!(error(&short), "not a bzImage");
    let mut large = lz4.clone();
    *large.last_mut().unwrap() = 0xff;
    assert!(error(&bzimage(&large)).contains("larger than 256 MiB"));
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
            if let Ok(unpacked) = unpack(&bzimage(&payload)) {
                assert_eq!(unpacked.len(), text().len());
            }
            payload.drain(end / 2..end);
            assert!(unpack(&bzimage(&payload)).is_err());
        }
    }
}
