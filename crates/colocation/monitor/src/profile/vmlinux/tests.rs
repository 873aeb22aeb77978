use super::*;
use crate::fake::{self, RandomNumbers, BUILD, TEXT};
use crate::profile::fingerprints::{encode_masks, hash, ChunkCursor};
use crate::profile::listing::SymbolLine;
use crate::profile::Profile;
use std::string::ToString;

const LINKED: u64 = TEXT - 0x80_0000;

/// Words with their indices as values.
fn words(count: u64) -> Vec<u8> {
    (0..count).flat_map(u64::to_le_bytes).collect()
}

fn word_at(loaded: &LoadedImage, number: u64) -> u64 {
    u64::from_le_bytes(*loaded.bytes_at(TEXT + 8 * number).unwrap())
}

#[test]
fn relocations_are_applied() {
    let moved = TEXT - LINKED;
    let [wide, shrinking, growing] = [[LINKED + 8], [LINKED + 16], [LINKED + 24]];
    let low = moved & 0xffff_ffff;
    let three: &[&[u64]] = &[&wide, &shrinking, &growing];
    let loaded = LoadedImage::new(&fake::vmlinux(LINKED, &words(5), three), TEXT).unwrap();
    let found: Vec<u64> = (0..5).map(|at| word_at(&loaded, at)).collect();
    assert_eq!(found, [0, 1 + moved, 2u32.wrapping_sub(low as u32).into(), 3 + low, 4]);
    let two: &[&[u64]] = &[&wide, &growing];
    let loaded = LoadedImage::new(&fake::vmlinux(LINKED, &words(5), two), TEXT).unwrap();
    let found: Vec<u64> = (0..5).map(|at| word_at(&loaded, at)).collect();
    assert_eq!(found, [0, 1 + moved, 2, 3 + low, 4]);
    let none = fake::vmlinux(LINKED, &words(5), &[]);
    assert!(LoadedImage::new(&none, LINKED).is_ok());
    assert_eq!(LoadedImage::new(&none, TEXT).err(), Some(unusable("it has no relocations")));
}

fn fingerprints_of(file: &[u8], notes: &[u8]) -> Result<FingerprintSections, ProfileError> {
    let names = [
        "_stext",
        "_etext",
        "__start_rodata",
        "__start_ro_after_init",
        "__end_ro_after_init",
        "__end_rodata",
    ];
    let lines: Vec<SymbolLine<'_>> = names
        .iter()
        .zip(0..)
        .map(|(name, at)| SymbolLine { address: TEXT + 0x100 * at, kind: b'T', name })
        .collect();
    let types = fake::no_types();
    let image = Image { vmlinux: file, notes, key: [1, 2], calls_changed: false };
    let header = Header { text: TEXT, ..Header::default() };
    fingerprints(&image, &SymbolNames::new(&lines), &Btf::parse(&types).unwrap(), &header)
}

#[test]
fn another_build_is_refused() {
    let file = fake::vmlinux(TEXT, &words(0x100), &[]);
    assert!(fingerprints_of(&file, &fake::note(BUILD)).is_ok());
    let error = |file: &[u8], notes: &[u8]| fingerprints_of(file, notes).err().unwrap().to_string();
    let unusable = |rule| std::format!("the kernel's image is unusable: {rule}");
    assert_eq!(
        error(&file, &fake::note([8; 20])),
        unusable("its build ID differs from that of the kernel in memory")
    );
    assert_eq!(error(&file, &[]), unusable("the running kernel has no build ID"));
    assert_eq!(error(b"MZ", &fake::note(BUILD)), unusable("it is not a 64-bit ELF file"));
    let short = fake::vmlinux(TEXT, &words(0x10), &[]);
    assert_eq!(fingerprints_of(&short, &fake::note(BUILD)).unwrap().fingerprints.len(), 2 * 4);
}

#[test]
fn damaged_images_are_survived() {
    let mut numbers = RandomNumbers(5);
    let good =
        fake::vmlinux(LINKED, &words(0x100), &[&[LINKED + 8], &[LINKED + 64], &[LINKED + 128]]);
    for _ in 0..fake::rounds(2000) {
        let mut file = good.clone();
        for _ in 0..1 + numbers.below(4) {
            let at = numbers.below(320.min(file.len() as u64)) as usize;
            file[at] = numbers.next() as u8;
        }
        file.truncate(1 + numbers.below(2 * good.len() as u64) as usize);
        let _ = fingerprints_of(&file, &fake::note(BUILD));
        let at = numbers.below(40) as usize;
        let mut note = fake::note(BUILD);
        note[at] = numbers.next() as u8;
        let _ = build_id(&note);
    }
}

#[test]
fn masks_keep_their_addresses() {
    let masks = [
        Mask { start: TEXT + 1, bytes: 5, kind: MaskKind::Return },
        Mask { start: TEXT + 62, bytes: 200, kind: MaskKind::Any },
        Mask { start: TEXT + 0x2_4000, bytes: 6, kind: MaskKind::Indirect },
    ];
    let covered = [TEXT..TEXT + 0x200, TEXT + 0x1_0000..TEXT + 0x3_0000];
    let loaded = LoadedImage { base: TEXT, bytes: vec![0x5a; 0x3_0000], known: Vec::new() };
    let parts = encode(&loaded, [1, 2], &covered, &masks);
    let header = Header { text: TEXT, end: TEXT + 0x10_0000, ..Header::default() };
    let bytes =
        crate::profile::build::encode(header, &SymbolNames::new(&[]), &[], "x", parts).unwrap();
    let profile = Profile::decode(&bytes).unwrap();
    let mut cursor = ChunkCursor::default();
    let mut chunks = Vec::new();
    while let Some(chunk) = profile.next_chunk(&mut cursor) {
        chunks.push(chunk);
    }
    assert_eq!(chunks.len(), (0x200 + 0x2_0000) / CHUNK);
    let addresses = covered.iter().cloned().flat_map(|range| range.step_by(CHUNK));
    assert!(chunks.iter().map(|chunk| chunk.address).eq(addresses));
    for chunk in &chunks {
        let touches =
            |mask: &&Mask| mask.start < chunk.address + CHUNK as u64 && chunk.address < mask.end();
        let wanted: Vec<Mask> = masks.iter().filter(touches).copied().collect();
        assert_eq!(chunk.masks, wanted, "{:#x}", chunk.address);
        assert_eq!(
            chunk.fingerprint,
            fingerprints::fingerprint(
                &fingerprints::Key::new([1, 2]),
                chunk.address,
                fingerprints::chunk_words(&[0x5a; CHUNK]),
                &wanted
            )
        );
    }
    assert_eq!(
        encode_masks(&[Mask { start: 0x1_0000, bytes: 1, kind: MaskKind::Any }]),
        [0xff, 0xff, 0, 0, 1, 0, 1, 0]
    );
}

#[test]
#[allow(deprecated)]
fn the_hash_is_siphash() {
    use core::hash::{Hasher, SipHasher};
    assert_eq!(hash([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908], &[]), 0x726f_db47_dd0e_0e31);
    let mut numbers = RandomNumbers(9);
    for count in 0..20 {
        let key = [numbers.next(), numbers.next()];
        let words: Vec<u64> = (0..count).map(|_| numbers.next()).collect();
        let mut other = SipHasher::new_with_keys(key[0], key[1]);
        words.iter().for_each(|word| other.write(&word.to_le_bytes()));
        assert_eq!(hash(key, &words), other.finish());
    }
}
