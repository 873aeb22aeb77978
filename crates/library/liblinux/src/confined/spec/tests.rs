use super::*;

fn spec() -> Spec {
    Spec {
        parent: 12,
        area: 3,
        slots: 4,
        image: 5,
        path: "/some where/linux.elf".into(),
        memory_bytes: 1 << 27,
        options: "loglevel=4 quiet".into(),
        disks: vec![
            Disk {
                fd: 7,
                write: true,
                limits: Limits { block: 512, physical: 4096, holes: true },
                qcow2: true,
            },
            Disk { fd: 8, write: false, limits: Limits::default(), qcow2: false },
        ],
        probe: Some([2, 0, u64::MAX, 0, 0, 0, 1]),
    }
}

#[test]
fn words_are_read_as_they_were_written() {
    let plain = Spec { options: String::new(), disks: Vec::new(), probe: None, ..spec() };
    for spec in [spec(), plain] {
        assert_eq!(Spec::parse(&spec.words()), Some(spec));
    }
}

#[test]
fn broken_words_are_refused() {
    let words = spec().words();
    assert_eq!(Spec::parse(&words[..FIXED - 1]), None);
    for index in (0..words.len()).filter(|index| *index != 4) {
        let mut broken = words.clone();
        broken[index] = "x".into();
        assert_eq!(Spec::parse(&broken), None, "{index}");
    }
}
