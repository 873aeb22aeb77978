use super::*;
use crate::disk::{FileDisk, MemoryDisk};
use crate::fake::{Guest, FREE};
use crate::ring::State;
use std::fs::File;

pub(super) const DATA: u64 = FREE + 0x1000;
pub(super) const STATUS: u64 = FREE + 0x8000;

pub(super) struct Setting {
    pub guest: Guest,
    pub ring: Ring,
    pub block: Block,
}

pub(super) fn setting(disk: Box<dyn Disk>, read_only: bool) -> Setting {
    let (guest, mut ring) = (Guest::default(), Ring::default());
    ring.start(&guest.memory, guest.place()).unwrap();
    Setting { guest, ring, block: Block::new(disk, read_only, "disk") }
}

impl Setting {
    /// Makes a request. Returns its status and the bytes written.
    fn request(&mut self, kind: u32, sector: u64, bytes: u32) -> (u8, u32) {
        let header = [kind.to_le_bytes(), [0; 4]].concat();
        self.guest.poke(FREE, &[&header[..], &sector.to_le_bytes()].concat());
        self.guest.poke(STATUS, &[99]);
        let write = kind != VIRTIO_BLK_T_OUT;
        self.guest.ask(&[(FREE, 16, false), (DATA, bytes, write), (STATUS, 1, true)]);
        assert_eq!(self.block.serve(&mut self.ring, &self.guest.memory).count, 1);
        let (_, written) = self.guest.answer().unwrap();
        (self.guest.peek::<1>(STATUS)[0], written)
    }
}

pub(super) const OK: u8 = VIRTIO_BLK_S_OK as u8;
pub(super) const IOERR: u8 = VIRTIO_BLK_S_IOERR as u8;
pub(super) const UNSUPP: u8 = VIRTIO_BLK_S_UNSUPP as u8;

fn file_disk(bytes: u64) -> (File, Box<dyn Disk>) {
    let path = std::env::temp_dir().join(format!("kyozon-disk-{}-{bytes}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file.set_len(bytes).unwrap();
    (file.try_clone().unwrap(), Box::new(FileDisk::new(file).unwrap()))
}

#[test]
fn written_sectors_read_back() {
    let memory: Box<dyn Disk> = Box::new(MemoryDisk::new(vec![0; 8192 + 100]));
    for disk in [memory, file_disk(8192 + 3).1] {
        let mut s = setting(disk, false);
        assert_eq!(s.block.config(), 16_u64.to_le_bytes());
        assert_eq!(s.request(VIRTIO_BLK_T_IN, 0, 512), (OK, 513));
        s.guest.poke(DATA, &[7; 1024]);
        assert_eq!(s.request(VIRTIO_BLK_T_OUT, 3, 1024), (OK, 1));
        assert_eq!(s.request(VIRTIO_BLK_T_FLUSH, 0, 0), (OK, 1));
        s.guest.poke(DATA, &[0; 2048]);
        assert_eq!(s.request(VIRTIO_BLK_T_IN, 2, 2048), (OK, 2049));
        let mut want = [0; 2048];
        want[512..1536].fill(7);
        assert_eq!(s.guest.peek(DATA), want);
        assert_eq!(s.request(VIRTIO_BLK_T_GET_ID, 0, 20), (OK, 21));
        assert_eq!(s.guest.peek(DATA), *b"disk\0\0\0\0");
    }
}

#[test]
fn senseless_requests_fail_and_nothing_else_does() {
    let mut s = setting(Box::new(MemoryDisk::new(vec![5; 8192])), false);
    for (kind, sector, bytes) in [
        (VIRTIO_BLK_T_IN, 16, 512),
        (VIRTIO_BLK_T_IN, 15, 1024),
        (VIRTIO_BLK_T_IN, 0, 100),
        (VIRTIO_BLK_T_IN, u64::MAX / 512, 512),
        (VIRTIO_BLK_T_IN, 1 << 55, 512),
        (VIRTIO_BLK_T_IN, u64::MAX, 512),
        (VIRTIO_BLK_T_OUT, 16, 512),
        (VIRTIO_BLK_T_OUT, 0, 513),
        (VIRTIO_BLK_T_OUT, u64::MAX - 3, 512),
    ] {
        assert_eq!(s.request(kind, sector, bytes).0, IOERR, "{kind} {sector:#x} {bytes}");
    }
    assert_eq!(s.request(11, 0, 512), (UNSUPP, 0));
    assert_eq!(s.request(u32::MAX, 0, 512), (UNSUPP, 0));
    assert_eq!(s.request(VIRTIO_BLK_T_IN, 15, 512), (OK, 513));
    assert_eq!(s.ring.state(), State::Running);
}

#[test]
fn a_read_only_disk_does_not_change() {
    let mut s = setting(Box::new(MemoryDisk::new(vec![5; 8192])), true);
    assert!(s.block.features() >> VIRTIO_BLK_F_RO & 1 == 1);
    s.guest.poke(DATA, &[7; 512]);
    assert_eq!(s.request(VIRTIO_BLK_T_OUT, 0, 512), (IOERR, 1));
    assert_eq!(s.request(VIRTIO_BLK_T_IN, 0, 512), (OK, 513));
    assert_eq!(s.guest.peek(DATA), [5; 512]);
}

#[test]
fn a_shortened_file_is_an_io_error() {
    let (file, disk) = file_disk(1 << 16);
    let mut s = setting(disk, false);
    file.set_len(512).unwrap();
    assert_eq!(s.request(VIRTIO_BLK_T_IN, 0, 512).0, OK);
    assert_eq!(s.request(VIRTIO_BLK_T_IN, 1, 512).0, IOERR);
    assert!(FileDisk::new(File::open("/dev/null").unwrap()).is_err());
}

#[test]
fn an_incomplete_request_ends_the_queue() {
    let pieces: [&[(u64, u32, bool)]; 4] = [
        // No header, half a header, no room for the status.
        &[(STATUS, 1, true)],
        &[(FREE, 15, false), (STATUS, 1, true)],
        &[(FREE, 16, false)],
        &[(FREE, 16, false), (DATA, 0, true)],
    ];
    for pieces in pieces {
        let mut s = setting(Box::new(MemoryDisk::new(vec![0; 8192])), false);
        s.guest.ask(pieces);
        let served = s.block.serve(&mut s.ring, &s.guest.memory);
        assert_eq!((s.ring.state(), served.wake), (State::Ended(Bad::Short), true), "{pieces:?}");
    }
}

#[test]
fn a_request_may_have_any_pieces() {
    let mut s = setting(Box::new(MemoryDisk::new((0..=255).cycle().take(8192).collect())), false);
    s.guest.poke(FREE, &VIRTIO_BLK_T_IN.to_le_bytes());
    s.guest.poke(FREE + 8, &1_u64.to_le_bytes());
    // The header has three pieces, one of them empty; data and status share two.
    s.guest.ask(&[
        (FREE, 5, false),
        (FREE, 0, false),
        (FREE + 5, 11, false),
        (DATA, 500, true),
        (DATA + 600, 13, true),
    ]);
    assert_eq!(s.block.serve(&mut s.ring, &s.guest.memory).count, 1);
    assert_eq!(s.guest.answer().unwrap().1, 513);
    assert_eq!(
        s.guest.peek::<13>(DATA + 600),
        [244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254, 255, OK]
    );
}

/// A disk whose every operation fails with this error.
struct Failing(i32);

impl Failing {
    fn error(&self) -> std::io::Result<()> {
        Err(std::io::Error::from_raw_os_error(self.0))
    }
}

impl Disk for Failing {
    fn bytes(&self) -> u64 {
        4096
    }

    fn read(&mut self, _: u64, _: &[vm_memory::VolatileSlice<'_>]) -> std::io::Result<()> {
        self.error()
    }

    fn write(&mut self, _: u64, _: &[vm_memory::VolatileSlice<'_>]) -> std::io::Result<()> {
        self.error()
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.error()
    }
}

#[test]
fn the_host_keeps_the_error_that_the_guest_does_not_see() {
    use std::io::ErrorKind;
    let mut s = setting(Box::new(Failing(libc::ENOSPC)), false);
    let errors = s.block.errors();
    assert_eq!((errors.count(), errors.last()), (0, None));
    assert_eq!(s.request(VIRTIO_BLK_T_IN, 1, 512).0, IOERR);
    assert_eq!(s.request(VIRTIO_BLK_T_OUT, 2, 1024).0, IOERR);
    let last = errors.last().unwrap();
    assert_eq!(
        (errors.count(), last.kind, last.code),
        (2, ErrorKind::StorageFull, Some(libc::ENOSPC))
    );
    assert_eq!(
        last.to_string(),
        "write of 1024 bytes at byte 1024: No space left on device (os error 28)"
    );
    assert_eq!(s.request(VIRTIO_BLK_T_FLUSH, 0, 0).0, IOERR);
    assert_eq!(errors.last().unwrap().operation, "flush");
    // A request that makes no sense is not the host's error.
    assert_eq!((s.request(VIRTIO_BLK_T_IN, 100, 512).0, errors.count()), (IOERR, 3));
    let mut s = setting(Box::new(Failing(libc::EOPNOTSUPP)), false);
    assert_eq!(s.request(VIRTIO_BLK_T_OUT, 0, 512).0, UNSUPP);
}

#[test]
fn a_guest_without_flushes_has_each_write_flushed() {
    /// Takes writes, but no flush.
    struct NoFlush;
    impl Disk for NoFlush {
        fn bytes(&self) -> u64 {
            4096
        }
        fn read(&mut self, _: u64, _: &[vm_memory::VolatileSlice<'_>]) -> std::io::Result<()> {
            Ok(())
        }
        fn write(&mut self, _: u64, _: &[vm_memory::VolatileSlice<'_>]) -> std::io::Result<()> {
            Ok(())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Failing(libc::EIO).error()
        }
    }
    let mut s = setting(Box::new(NoFlush), false);
    assert_eq!(s.request(VIRTIO_BLK_T_OUT, 0, 512).0, OK);
    s.block.accept(0);
    assert_eq!(s.request(VIRTIO_BLK_T_OUT, 0, 512).0, IOERR);
    assert_eq!(s.request(VIRTIO_BLK_T_IN, 0, 512).0, OK);
}

#[test]
fn after_a_failed_flush_nothing_is_written() {
    use std::sync::atomic::{AtomicU32, Ordering};
    /// Counts writes, and fails in the first flush.
    struct FirstFlush(Arc<AtomicU32>, bool);
    impl Disk for FirstFlush {
        fn bytes(&self) -> u64 {
            4096
        }
        fn read(&mut self, _: u64, _: &[vm_memory::VolatileSlice<'_>]) -> std::io::Result<()> {
            Ok(())
        }
        fn write(&mut self, _: u64, _: &[vm_memory::VolatileSlice<'_>]) -> std::io::Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            if std::mem::take(&mut self.1) {
                Failing(libc::ENOSPC).error()
            } else {
                Ok(())
            }
        }
    }
    let writes = Arc::default();
    let mut s = setting(Box::new(FirstFlush(Arc::clone(&writes), true)), false);
    assert_eq!(s.request(VIRTIO_BLK_T_OUT, 0, 512).0, OK);
    assert_eq!(s.request(VIRTIO_BLK_T_FLUSH, 0, 0).0, IOERR);
    assert_eq!(s.request(VIRTIO_BLK_T_OUT, 0, 512).0, IOERR);
    assert_eq!(s.request(VIRTIO_BLK_T_FLUSH, 0, 0).0, IOERR);
    assert_eq!(s.request(VIRTIO_BLK_T_IN, 0, 512).0, OK);
    // The first error is the one that counts.
    let errors = s.block.errors();
    assert_eq!((errors.count(), writes.load(Ordering::Relaxed)), (1, 1));
}

#[test]
fn a_disk_that_ends_at_an_error_takes_no_more_writes() {
    /// Has no room for the second sector.
    struct Small(MemoryDisk);
    impl Disk for Small {
        fn bytes(&self) -> u64 {
            self.0.bytes()
        }
        fn read(&mut self, at: u64, to: &[vm_memory::VolatileSlice<'_>]) -> std::io::Result<()> {
            self.0.read(at, to)
        }
        fn write(&mut self, at: u64, from: &[vm_memory::VolatileSlice<'_>]) -> std::io::Result<()> {
            if at == SECTOR {
                return Failing(libc::ENOSPC).error();
            }
            self.0.write(at, from)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    for ends in [false, true] {
        let mut s = setting(Box::new(Small(MemoryDisk::new(vec![0; 4096]))), false);
        if ends {
            s.block = s.block.ends_at_error();
        }
        s.guest.poke(DATA, &[7; 512]);
        assert_eq!(s.request(VIRTIO_BLK_T_OUT, 0, 512).0, OK);
        assert_eq!(s.request(VIRTIO_BLK_T_OUT, 1, 512).0, IOERR);
        let after = if ends { IOERR } else { OK };
        assert_eq!(s.request(VIRTIO_BLK_T_OUT, 2, 512).0, after);
        assert_eq!(s.request(VIRTIO_BLK_T_FLUSH, 0, 0).0, after);
        assert_eq!((s.request(VIRTIO_BLK_T_IN, 0, 512).0, s.guest.peek::<1>(DATA)), (OK, [7]));
        assert_eq!(s.block.errors().count(), 1);
    }
}
