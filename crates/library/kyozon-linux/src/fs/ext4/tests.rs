use super::*;

/// A disk with an ext4 in blocks of 1 KiB: bytes that are not 0, by their offsets.
struct Disk(Vec<u8>);

impl Disk {
    fn new() -> Self {
        let mut disk = Self(vec![0; 64 << 10]);
        disk.put(SUPERBLOCK as usize + MAGIC, &EXT4_MAGIC.to_le_bytes());
        disk.put(SUPERBLOCK as usize + FEATURES_COMPATIBLE, &HAS_JOURNAL.to_le_bytes());
        disk.put(SUPERBLOCK as usize + JOURNAL_BACKUP_TYPE, &[BACKUP_OF_BLOCKS]);
        disk
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Puts an extent tree's node with one entry. A leaf has depth 0.
    fn node(&mut self, at: usize, depth: u16, block: u32) {
        self.put(at, &EXTENT_MAGIC.to_le_bytes());
        self.put(at + 2, &1_u16.to_le_bytes());
        self.put(at + 6, &depth.to_le_bytes());
        self.put(at + 12 + if depth == 0 { 8 } else { 4 }, &block.to_le_bytes());
    }

    /// Puts the journal into a block.
    fn journal(&mut self, block: usize, error: i32) {
        self.put(block << 10, &JOURNAL_MAGIC.to_be_bytes());
        self.put((block << 10) + JOURNAL_ERRNO, &error.to_be_bytes());
    }

    fn recorded(&self) -> Option<bool> {
        recorded(&|offset, bytes| {
            let at = usize::try_from(offset).ok()?;
            self.0.get(at..at.checked_add(bytes)?).map(<[u8]>::to_vec)
        })
    }
}

const MAP: usize = SUPERBLOCK as usize + JOURNAL_BLOCKS;

#[test]
fn the_superblocks_state_counts() {
    let mut disk = Disk::new();
    disk.put(SUPERBLOCK as usize + STATE, &[1]);
    assert_eq!(disk.recorded(), Some(false));
    disk.put(SUPERBLOCK as usize + STATE, &[3]);
    assert_eq!(disk.recorded(), Some(true));
}

#[test]
fn the_journals_error_counts_wherever_its_map_leads() {
    for error in [0, -5] {
        let mut disk = Disk::new();
        disk.node(MAP, 0, 20);
        disk.journal(20, error);
        assert_eq!(disk.recorded(), Some(error != 0));
        // By a node in between.
        let mut disk = Disk::new();
        disk.node(MAP, 1, 30);
        disk.node(30 << 10, 0, 20);
        disk.journal(20, error);
        assert_eq!(disk.recorded(), Some(error != 0));
        // By the numbers of its blocks.
        let mut disk = Disk::new();
        disk.put(MAP, &20_u32.to_le_bytes());
        disk.journal(20, error);
        assert_eq!(disk.recorded(), Some(error != 0));
    }
}

#[test]
fn damaged_maps_lead_nowhere() {
    let mut cycle = Disk::new();
    cycle.node(MAP, 1, 30);
    cycle.node(30 << 10, 1, 30);
    assert_eq!(cycle.recorded(), Some(false));
    let mut beyond = Disk::new();
    beyond.node(MAP, 0, u32::MAX);
    assert_eq!(beyond.recorded(), Some(false));
    let mut empty = Disk::new();
    empty.put(MAP, &EXTENT_MAGIC.to_le_bytes());
    assert_eq!(empty.recorded(), Some(false));
    let mut block_size = Disk::new();
    block_size.put(SUPERBLOCK as usize + LOG_BLOCK_SIZE, &[64]);
    assert_eq!(block_size.recorded(), Some(false));
}

#[test]
fn other_disks_have_no_record() {
    assert_eq!(Disk(vec![0; 4096]).recorded(), None);
    assert_eq!(Disk(vec![0; 1500]).recorded(), None);
}
