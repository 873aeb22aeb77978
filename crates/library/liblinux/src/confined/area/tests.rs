use super::*;

#[test]
fn data_outside_a_slot_is_refused() {
    let (area, _file) = Area::create(2).expect("memory");
    assert!(area.put(1, DATA_BYTES - 3, b"end"));
    let mut back = [0; 3];
    assert!(area.get(1, DATA_BYTES - 3, &mut back));
    assert_eq!(&back, b"end");
    assert!(!area.put(1, DATA_BYTES - 2, b"end"));
    assert!(!area.get(1, usize::MAX, &mut back));
    assert!(!area.put(2, 0, b"x"));
}

#[test]
fn the_log_keeps_its_end_and_survives_any_counter() {
    let (area, _file) = Area::create(1).expect("memory");
    assert!(area.read_log().is_empty());
    area.log(b"first\n");
    assert_eq!(area.read_log(), b"first\n");
    area.log(&vec![b'x'; LOG_BYTES]);
    area.log(b"last");
    let log = area.read_log();
    assert_eq!(log.len(), LOG_BYTES);
    assert!(log.ends_with(b"xlast"));
    for hostile in [u64::MAX, 1 << 63] {
        area.logged().store(hostile, Release);
        assert_eq!(area.read_log().len(), LOG_BYTES);
    }
}

#[test]
fn the_file_cannot_become_shorter() {
    let (_area, file) = Area::create(1).expect("memory");
    let file = File::from(file);
    assert!(file.set_len(0).is_err());
    assert!(Area::open(file.into(), 2).is_err());
}
