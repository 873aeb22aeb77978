use crate::block::tests::{setting, Setting, DATA, IOERR, OK, STATUS, UNSUPP};
use crate::disk::MemoryDisk;
use crate::fake::FREE;
use crate::ring::State;
use virtio_bindings::virtio_blk::*;

fn extended(read_only: bool) -> Setting {
    let mut s = setting(Box::new(MemoryDisk::new(vec![9; 64 * 512])), read_only);
    s.block = s.block.extended();
    s
}

/// Makes a request with these ranges, of which `bytes` bytes are data. Returns its status.
fn request(s: &mut Setting, kind: u32, ranges: &[(u64, u32, u32)], bytes: u32) -> u8 {
    for (i, (sector, sectors, flags)) in ranges.iter().enumerate() {
        let range =
            [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat();
        s.guest.poke(DATA + 16 * i as u64, &range);
    }
    s.guest.poke(FREE, &[&kind.to_le_bytes()[..], &[0; 12]].concat());
    s.guest.ask(&[(FREE, 16, false), (DATA, bytes, false), (STATUS, 1, true)]);
    assert_eq!(s.block.serve(&mut s.ring, &s.guest.memory).count, 1);
    s.guest.answer().unwrap();
    s.guest.peek::<1>(STATUS)[0]
}

/// The first byte of each of the disk's sectors.
fn sectors(s: &mut Setting) -> Vec<u8> {
    let mut bytes = vec![1; 64 * 512];
    s.block.disk.read(0, &[vm_memory::VolatileSlice::from(&mut bytes[..])]).unwrap();
    bytes.chunks(512).map(|sector| sector[0]).collect()
}

const KINDS: [u32; 2] = [VIRTIO_BLK_T_DISCARD, VIRTIO_BLK_T_WRITE_ZEROES];

#[test]
fn ranges_become_zeros() {
    let mut s = extended(false);
    assert_eq!(request(&mut s, VIRTIO_BLK_T_DISCARD, &[(1, 2, 0), (10, 1, 0), (0, 0, 0)], 48), OK);
    assert_eq!(request(&mut s, VIRTIO_BLK_T_WRITE_ZEROES, &[(20, 1, 0)], 16), OK);
    assert_eq!(request(&mut s, VIRTIO_BLK_T_WRITE_ZEROES, &[(62, 2, 1)], 16), OK);
    let zeros: Vec<_> = (0..64).filter(|sector| [1, 2, 10, 20, 62, 63].contains(sector)).collect();
    let found = sectors(&mut s)
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == 0)
        .map(|(i, _)| i)
        .collect::<Vec<_>>();
    assert_eq!(found, zeros);
}

#[test]
fn a_bad_range_fails_and_the_ranges_before_it_are_untouched() {
    let mut s = extended(false);
    for kind in KINDS {
        for (sector, sectors) in
            [(64, 1), (63, 2), (0, u32::MAX), (u64::MAX, 1), (1 << 55, 1), (u64::MAX, u32::MAX)]
        {
            assert_eq!(
                request(&mut s, kind, &[(sector, sectors, 0)], 16),
                IOERR,
                "{kind} {sector:#x} {sectors}"
            );
        }
        for bytes in [0, 1, 15, 17, 31] {
            assert_eq!(
                request(&mut s, kind, &[(0, 1, 0), (0, 1, 0)], bytes),
                IOERR,
                "{kind} {bytes}"
            );
        }
        for flags in [2, 1 << 31, u32::MAX] {
            assert_eq!(request(&mut s, kind, &[(0, 1, flags)], 16), UNSUPP, "{kind} {flags:#x}");
        }
        assert_eq!(request(&mut s, kind, &[(0, 1, 0)], 16 * 33), IOERR);
    }
    // Only writes of zeros have a flag, and they have one range.
    assert_eq!(request(&mut s, VIRTIO_BLK_T_DISCARD, &[(0, 1, 1)], 16), UNSUPP);
    assert_eq!(request(&mut s, VIRTIO_BLK_T_DISCARD, &[(0, 1, 0), (64, 1, 0)], 32), IOERR);
    assert_eq!(request(&mut s, VIRTIO_BLK_T_WRITE_ZEROES, &[(0, 1, 0), (1, 1, 0)], 32), IOERR);
    assert_eq!((sectors(&mut s), s.ring.state()), (vec![9; 64], State::Running));
}

#[test]
fn ranges_need_an_accepted_feature_and_a_writable_disk() {
    for kind in KINDS {
        let mut plain = setting(Box::new(MemoryDisk::new(vec![9; 64 * 512])), false);
        assert_eq!(request(&mut plain, kind, &[(0, 1, 0)], 16), UNSUPP);
        let mut refused = extended(false);
        refused.block.accept(1 << VIRTIO_BLK_F_FLUSH);
        assert_eq!(request(&mut refused, kind, &[(0, 1, 0)], 16), UNSUPP);
        let mut read_only = extended(true);
        assert_eq!(read_only.block.features() >> VIRTIO_BLK_F_DISCARD & 3, 0);
        // Not even a guest that accepts what is not offered.
        read_only.block.accept(u64::MAX);
        assert_eq!(request(&mut read_only, kind, &[(0, 1, 0)], 16), UNSUPP);
        for s in [&mut plain, &mut refused, &mut read_only] {
            assert_eq!(sectors(s), vec![9; 64]);
        }
    }
}

#[test]
fn the_configuration_has_every_field_at_its_offset() {
    let s = extended(false);
    let config = s.block.config();
    assert_eq!(config.len(), std::mem::offset_of!(virtio_blk_config, max_secure_erase_sectors));
    let word = |at: usize| u32::from_le_bytes(config[at..at + 4].try_into().unwrap());
    use std::mem::offset_of;
    assert_eq!(config[..8], 64_u64.to_le_bytes());
    let piece = word(offset_of!(virtio_blk_config, size_max));
    let pieces = word(offset_of!(virtio_blk_config, seg_max));
    assert_eq!(u64::from(piece) * u64::from(pieces), s.block.max_request());
    assert_eq!(word(offset_of!(virtio_blk_config, blk_size)), 512);
    assert_eq!(config[offset_of!(virtio_blk_config, physical_block_exp)], 3);
    assert_eq!(config[offset_of!(virtio_blk_config, min_io_size)], 8);
    assert_eq!(config[offset_of!(virtio_blk_config, num_queues)], 1);
    assert_eq!(word(offset_of!(virtio_blk_config, max_discard_sectors)), 1 << 21);
    assert_eq!(word(offset_of!(virtio_blk_config, max_discard_seg)), 32);
    assert_eq!(word(offset_of!(virtio_blk_config, discard_sector_alignment)), 8);
    assert_eq!(word(offset_of!(virtio_blk_config, max_write_zeroes_sectors)), 1 << 16);
    assert_eq!(word(offset_of!(virtio_blk_config, max_write_zeroes_seg)), 1);
    assert_eq!(config[offset_of!(virtio_blk_config, write_zeroes_may_unmap)], 1);
}
