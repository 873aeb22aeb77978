use super::*;
use kyozon_portable::machine;

fn value(table: &Table, key: &[u8]) -> Option<Vec<u8>> {
    table.get(key, &machine::member(), |value| value.map(<[u8]>::to_vec)).unwrap()
}

#[test]
fn values_stay_until_deleted() {
    let (table, me) = (Table::new(1 << 20, [1, 2]), machine::member());
    let keys = 2000;
    for round in 0..2_u32 {
        for number in 0..keys {
            let value = (number + round).to_le_bytes();
            table.set(&u32::to_le_bytes(number), &value, &me).unwrap();
        }
        assert_eq!(table.count(&me), Ok(keys as usize));
    }
    for number in 0..keys {
        let key = number.to_le_bytes();
        assert_eq!(value(&table, &key), Some((number + 1).to_le_bytes().to_vec()));
        assert_eq!(table.delete(&key, &me), Ok(true));
        assert_eq!(table.delete(&key, &me), Ok(false));
    }
    assert_eq!((table.count(&me), value(&table, b"")), (Ok(0), None));
    assert_eq!(table.used.load(Ordering::Relaxed), 0);
}

#[test]
fn only_canonical_numbers_are_incremented() {
    let (table, me) = (Table::new(1 << 20, [1, 2]), machine::member());
    assert_eq!([0; 3].map(|_| table.increment(b"n", &me).unwrap()), [1, 2, 3]);
    assert_eq!(value(&table, b"n"), Some(b"3".to_vec()));
    for (before, answer) in [
        (&b"-1"[..], Ok(0)),
        (b"9223372036854775806", Ok(i64::MAX)),
        (b"9223372036854775807", Err(TableError::Overflow)),
        (b"9223372036854775808", Err(TableError::NotANumber)),
        (b"01", Err(TableError::NotANumber)),
        (b"+1", Err(TableError::NotANumber)),
        (b"-0", Err(TableError::NotANumber)),
        (b"", Err(TableError::NotANumber)),
        (b"\xff", Err(TableError::NotANumber)),
    ] {
        table.set(b"n", before, &me).unwrap();
        assert_eq!(table.increment(b"n", &me), answer);
    }
    table.clear(&me).unwrap();
    assert_eq!(table.used.load(Ordering::Relaxed), 0);
}

#[test]
fn the_limit_holds() {
    let (table, me) = (Table::new(4 * (ENTRY + 100), [1, 2]), machine::member());
    let set = |key: u8, bytes: usize| table.set(&[key], &[7; 100][..bytes], &me);
    assert!((0..4).all(|key| set(key, 99).is_ok()));
    assert_eq!(set(4, 0), Err(TableError::Full));
    assert_eq!(table.increment(b"n", &me), Err(TableError::Full));
    assert_eq!((table.count(&me), value(&table, &[3])), (Ok(4), Some([7; 99].to_vec())));
    table.delete(&[0], &me).unwrap();
    assert_eq!(set(4, 99), Ok(()));
    table.clear(&me).unwrap();
    assert!((0..4).all(|key| set(key, 99).is_ok()));
}

#[test]
fn a_shard_is_lost_after_a_death_until_clear() {
    let (table, me) = (Table::new(1 << 20, [1, 2]), machine::member());
    table.set(b"a", b"1", &me).unwrap();
    let dies = || {
        let me = machine::member();
        let _ = table.get(b"a", &me, |_| panic!("in the shard"));
    };
    assert!(std::thread::scope(|scope| scope.spawn(dies).join()).is_err());
    assert_eq!(table.get(b"a", &me, |_| ()), Err(TableError::Lost));
    assert_eq!(table.set(b"a", b"2", &me), Err(TableError::Lost));
    assert_eq!(
        (table.delete(b"a", &me), table.count(&me)),
        (Err(TableError::Lost), Err(TableError::Lost))
    );
    table.clear(&me).unwrap();
    table.set(b"a", b"2", &me).unwrap();
    assert_eq!((table.count(&me), value(&table, b"a")), (Ok(1), Some(b"2".to_vec())));
}

#[test]
fn threads_increment_together() {
    let table = Table::new(1 << 20, [1, 2]);
    let times = 1000;
    let count = || {
        let me = machine::member();
        (0..times).for_each(|i| assert!(table.increment(&[i as u8 % 3], &me).is_ok()));
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(count))));
    let all = (0..3).map(|key| value(&table, &[key]).unwrap());
    let sum: usize =
        all.map(|value| std::str::from_utf8(&value).unwrap().parse::<usize>().unwrap()).sum();
    assert_eq!(sum, 4 * times);
}
