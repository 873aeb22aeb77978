use super::*;

/// A header of version 3 for a disk of 1 GiB.
fn header() -> [u8; BYTES] {
    let mut header = [0; BYTES];
    header[..4].copy_from_slice(&MAGIC);
    for (at, value) in [(4, 3), (20, 16), (36, 2), (56, 1), (96, 4), (100, 104)] {
        put(&mut header, at, value);
    }
    for (at, value) in [(28, 1 << 30), (44, 3 << 16), (52, 1 << 16)] {
        put(&mut header, at, value);
    }
    header
}

fn put(header: &mut [u8; BYTES], at: usize, value: u32) {
    header[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

#[test]
fn a_good_header_is_read() {
    let read = Header::parse(&header(), true).unwrap();
    assert_eq!(
        (read.bytes(), read.cluster(), read.l1()),
        (1 << 30, 1 << 16, 3 << 16..(3 << 16) + 16)
    );
    assert!(read.has_zeros());
    assert!(read.largest(1 << 20) > (1 << 30) + (1 << 20));
    assert!(read.largest(1 << 20) < (1 << 30) + (32 << 20));
}

#[test]
fn what_cannot_be_used_is_refused_with_the_reason() {
    for (at, value, reason) in [
        (4, 1, "version 1"),
        (4, 4, "version 4"),
        (32, 2, "encrypted"),
        (76, 1, "not closed"),
        (76, 2, "corrupt"),
        (76, 4, "external data file"),
        (76, 8, "zstd"),
        (76, 16, "extended L2"),
        (72, 1, "unknown features"),
        (60, 1, "snapshots"),
        (20, 8, "size of clusters"),
        (20, 22, "size of clusters"),
        (20, u32::MAX, "size of clusters"),
        (24, u32::MAX, "size of the disk"),
        (28, 511, "shorter"),
        (36, 1, "L1 table"),
        (36, u32::MAX, "L1 table"),
        (44, 512, "L1 table"),
        (40, u32::MAX, "L1 table"),
        (56, 0, "reference counts"),
        (56, 129, "reference counts"),
        (56, u32::MAX, "reference counts"),
        (52, 1, "reference counts"),
        (48, u32::MAX, "reference counts"),
    ] {
        let mut header = header();
        put(&mut header, at, value);
        let error = Header::parse(&header, true).unwrap_err().to_string();
        assert!(error.contains(reason), "{at}: {error}");
    }
}

#[test]
fn a_backing_file_is_refused_by_its_name() {
    use std::io::Write;
    use std::os::fd::AsFd;
    for (at, length, name) in [
        (104, 12, "/etc/sha\\u{1b}dow: if"),
        (104, u32::MAX, "/etc/sha\\u{1b}dow: if"),
        (u32::MAX, 12, "file : if"),
    ] {
        let mut header = header();
        put(&mut header, 8, if at == u32::MAX { at } else { 0 });
        put(&mut header, 12, at);
        put(&mut header, 16, length);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[&header[..], b"/etc/sha\x1bdow"].concat()).unwrap();
        let error = Header::read(file.as_fd(), 116, false).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn snapshots_are_no_hindrance_to_reading() {
    let mut header = header();
    put(&mut header, 60, 1);
    assert!(Header::parse(&header, false).is_ok());
}

#[test]
fn the_largest_disk_has_a_largest_file() {
    let mut header = header();
    put(&mut header, 20, 21);
    put(&mut header, 24, 1 << 15);
    put(&mut header, 36, 4 << 20);
    put(&mut header, 40, 0);
    put(&mut header, 44, 0);
    put(&mut header, 48, 0);
    put(&mut header, 52, 0);
    // 2^47 bytes in clusters of 2 MiB.
    let read = Header::parse(&header, true).unwrap();
    assert!(read.largest(u64::MAX) == u64::MAX && read.largest(0) > 1 << 47);
}
