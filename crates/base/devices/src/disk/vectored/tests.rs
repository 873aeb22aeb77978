use super::*;
use std::fs::File;
use std::os::fd::AsFd;

fn file() -> File {
    let fd = rustix::fs::memfd_create(c"test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    File::from(fd)
}

#[test]
fn more_pieces_than_one_call_takes_arrive_in_order() {
    let mut bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
    let want = bytes.clone();
    let file = file();
    // Pieces of 2 bytes, with an empty one after each third.
    let mut slices = Vec::new();
    for (i, pair) in bytes.chunks_mut(2).enumerate() {
        slices.push(VolatileSlice::from(pair));
        if i % 3 == 0 {
            slices.push(VolatileSlice::from(&mut [][..]));
        }
    }
    write(file.as_fd(), 100, &slices).unwrap();
    for slice in &slices {
        slice.copy_from(&[0; 2][..slice.len()]);
    }
    read(file.as_fd(), 100, &slices).unwrap();
    drop(slices);
    assert_eq!(bytes, want);
    assert_eq!(file.metadata().unwrap().len(), 5100);
}

#[test]
fn pieces_advance_by_bytes() {
    let (mut a, mut b) = ([0; 4], [0; 3]);
    let slices = [VolatileSlice::from(&mut a[..]), VolatileSlice::from(&mut b[..])];
    let mut pieces = Pieces { slices: &slices, done: 0 };
    let lengths =
        |pieces: &Pieces<'_>| pieces.vectors().iter().map(|v| v.iov_len).collect::<Vec<_>>();
    pieces.advance(3);
    assert_eq!(lengths(&pieces), [1, 3]);
    pieces.advance(2);
    assert_eq!(lengths(&pieces), [2]);
    pieces.advance(2);
    assert!(lengths(&pieces).is_empty());
}

#[test]
fn missing_bytes_and_bad_offsets_are_errors() {
    let (mut bytes, file) = ([7; 8], file());
    let slices = [VolatileSlice::from(&mut bytes[..])];
    file.set_len(4).unwrap();
    assert_eq!(read(file.as_fd(), 0, &slices).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    assert_eq!(read(file.as_fd(), u64::MAX, &slices).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(write(file.as_fd(), i64::MAX as u64, &slices).is_err());
    read(file.as_fd(), u64::MAX, &[]).unwrap();
}
