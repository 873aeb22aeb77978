use super::*;
use tar::Builder;

fn entries(bytes: &[u8]) -> Result<Vec<(Entry, Vec<u8>)>> {
    let mut headers = Headers::new(bytes);
    let mut all = Vec::new();
    while let Some(entry) = headers.next_entry()? {
        let mut data = Vec::new();
        for (_, bytes) in &entry.pieces {
            for _ in 0..*bytes {
                let mut byte = [0];
                headers.data(&mut byte)?;
                data.extend(byte);
            }
        }
        all.push((entry, data));
    }
    Ok(all)
}

fn error(bytes: &[u8]) -> String {
    format!("{:#}", entries(bytes).expect_err("a damaged archive"))
}

/// An archive with one file, which `change` changes.
fn archive(change: impl FnOnce(&mut Header), records: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    builder.append_pax_extensions(records.iter().copied()).unwrap();
    let mut header = Header::new_ustar();
    header.set_path("file").unwrap();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o640);
    header.set_uid(7);
    header.set_gid(3_000_000_000);
    header.set_mtime(1);
    header.set_size(data.len() as u64);
    change(&mut header);
    header.set_cksum();
    builder.append(&header, data).unwrap();
    builder.into_inner().unwrap()
}

#[test]
fn fields_and_records() {
    let records: &[(&str, &[u8])] = &[
        ("mtime", b"-2.5"),
        ("path", b"a/long\xff"),
        ("SCHILY.xattr.user.x", b"a\0b"),
        ("comment", b"ignored"),
    ];
    let (entry, data) = entries(&archive(|_| (), records, b"data")).unwrap().remove(0);
    assert_eq!(data, b"data");
    assert_eq!((entry.mode, entry.owner, entry.size), (0o640, (7, 3_000_000_000), 4));
    assert_eq!((entry.modified, entry.accessed), ((-3, 500_000_000), None));
    assert_eq!(entry.path, b"a/long\xff");
    assert_eq!(entry.extended, [(b"user.x".to_vec(), b"a\0b".to_vec())]);
}

#[test]
fn records_concern_one_entry() {
    let mut bytes = archive(|_| (), &[("path", b"other")], b"");
    bytes.truncate(bytes.len() - 1024);
    bytes.extend(archive(|_| (), &[], b""));
    let paths: Vec<_> = entries(&bytes).unwrap().into_iter().map(|(e, _)| e.path).collect();
    assert_eq!(paths, [b"other".to_vec(), b"file".to_vec()]);
}

#[test]
fn every_truncated_archive_is_an_error() {
    let bytes = archive(|_| (), &[("path", b"other")], &[7; 700]);
    for end in (0..bytes.len() - 1023).step_by(64) {
        assert_eq!(error(&bytes[..end]), "the archive is truncated", "{end}");
    }
    assert_eq!(entries(&bytes).unwrap().len(), 1);
}

#[test]
fn sizes_that_no_archive_has_cost_nothing() {
    let long = archive(
        |h| {
            h.set_entry_type(EntryType::GNULongName);
            h.set_size(1 << 40)
        },
        &[],
        b"",
    );
    assert_eq!(error(&long), "the archive is damaged: a name has 1099511627776 bytes");
    assert_eq!(error(&archive(|h| h.set_size(1 << 50), &[], b"")), "the archive is truncated");
    assert!(
        error(&archive(|h| h.set_size(u64::MAX), &[], b"")).starts_with("the archive is damaged")
    );
    assert!(
        error(&archive(|_| (), &[("size", b"18446744073709551615")], b"")).contains("a file of")
    );
}

#[test]
fn sparse_files_are_pieces() {
    let sparse = |map: &str, real: &'static [u8]| {
        let mut data = map.as_bytes().to_vec();
        data.resize(512, 0);
        data.extend([9; 20]);
        let records: &[(&str, &[u8])] = &[
            ("GNU.sparse.major", b"1"),
            ("GNU.sparse.minor", b"0"),
            ("GNU.sparse.name", b"holes"),
            ("GNU.sparse.realsize", real),
        ];
        entries(&archive(|_| (), records, &data))
    };
    let (entry, data) = sparse("2\n4096\n20\n9000\n0\n", b"9000").unwrap().remove(0);
    assert_eq!((entry.path, entry.size, entry.pieces), (b"holes".to_vec(), 9000, vec![(4096, 20)]));
    assert_eq!(data, [9; 20]);
    for (map, real) in [
        ("1\n0\n21\n", &b"9000"[..]),
        ("2\n100\n10\n90\n10\n", b"9000"),
        ("1\n0\n20\n", b"19"),
        ("1\n18446744073709551615\n20\n", b"18446744073709551615"),
        ("99999999999\n", b"1"),
        ("x", b"1"),
    ] {
        let error = sparse(map, real).expect_err("a damaged map");
        assert!(format!("{error:#}").starts_with("the archive is damaged"), "{map}: {error:#}");
    }
}

#[test]
fn what_is_no_archive_has_a_name() {
    assert!(error(&[b'x'; 2048]).contains("no tar archive"));
    let mut gzip = vec![0x1f, 0x8b];
    gzip.resize(1024, 1);
    assert!(error(&gzip).contains("zcat"));
}
