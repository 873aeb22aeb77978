use super::build::{build, Sources};
use super::*;
use crate::fake::{self, RandomNumbers, TEXT};
use std::string::ToString;
use std::vec::Vec;

fn sample() -> Vec<u8> {
    fake::profile(
        &[
            (0x1000, b'A', "per_cpu_thing"),
            (TEXT, b'T', "_text"),
            (TEXT, b't', "startup"),
            (TEXT + 0x40, b't', "twice"),
            (TEXT + 0x80, b't', "twice"),
            (TEXT + 0x100, b'D', "init_task"),
        ],
        &[
            ("task_struct", 0, 4096),
            ("task_struct.pid", 1200, 4),
            ("task_struct.se.run", 64, 8),
            ("#PIDTYPE_TGID", 1, 0),
        ],
    )
}

#[test]
fn symbols_are_found_by_name_and_address() {
    let bytes = sample();
    let profile = Profile::decode(&bytes).unwrap();
    assert_eq!(profile.release(), "6.0.0-fake");
    assert_eq!(profile.symbol_count(), 6);
    assert_eq!(profile.symbol("init_task"), Some(TEXT + 0x100));
    assert_eq!(profile.symbol("twice"), Some(TEXT + 0x40));
    assert_eq!(
        profile.symbols_called("twice").map(|s| s.address).collect::<Vec<_>>(),
        [TEXT + 0x40, TEXT + 0x80]
    );
    for absent in ["", "a", "twic", "twice_", "zzz"] {
        assert_eq!(profile.symbol(absent), None);
    }
    assert_eq!(profile.nearest(TEXT + 0x3f), Some(("_text", 0x3f)));
    assert_eq!(profile.nearest(TEXT + 0x40), Some(("twice", 0)));
    assert_eq!(profile.nearest(TEXT + 0x5000), Some(("init_task", 0x4f00)));
    assert_eq!(profile.nearest(0x1000), None);
    assert_eq!(profile.nearest(profile.image_end()), None);
    assert_eq!(profile.symbols_from(TEXT + 0x41).map(|s| s.kind).collect::<Vec<_>>(), [b't', b'D']);
    assert_eq!(profile.field("task_struct", "pid"), Some(Field { offset: 1200, bytes: 4 }));
    assert_eq!(profile.field("task_struct", "se.run"), Some(Field { offset: 64, bytes: 8 }));
    assert_eq!(profile.field("task_struct", "se"), None);
    assert_eq!(profile.size_of("task_struct"), Some(4096));
    assert_eq!(profile.constant("PIDTYPE_TGID"), Some(1));
    assert_eq!(profile.constant("PIDTYPE_PID"), None);
}

/// Calls every lookup of a profile.
fn query(profile: &Profile<'_>, numbers: &mut RandomNumbers) {
    let address = numbers.next();
    let _ = (profile.nearest(address), profile.nearest(TEXT + address % 0x1000), profile.release());
    let _ = (
        profile.symbol("twice"),
        profile.field("task_struct", "pid"),
        profile.constant("PIDTYPE_TGID"),
    );
    assert!(profile.symbols_called("twice").count() <= profile.symbol_count());
    assert!(profile.symbols_from(address).count() <= profile.symbol_count());
}

#[test]
fn damaged_profiles_are_survived() {
    let good = sample();
    for length in 0..good.len() {
        if let Ok(profile) = Profile::decode(&good[..length]) {
            query(&profile, &mut RandomNumbers(1));
        }
    }
    let mut numbers = RandomNumbers(0x5eed);
    let mut taken = 0;
    for _ in 0..fake::rounds(20_000) {
        let mut bytes = good.clone();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(bytes.len() as u64) as usize;
            bytes[at] = [0, 1, 0x7f, 0xff, numbers.next() as u8][numbers.below(5) as usize];
        }
        if let Ok(profile) = Profile::decode(&bytes) {
            taken += 1;
            query(&profile, &mut numbers);
        }
    }
    assert!(taken > 0);
}

/// A builder of type information.
#[derive(Default)]
struct Types {
    types: Vec<u8>,
    strings: Vec<u8>,
}

impl Types {
    fn name(&mut self, name: &str) -> u32 {
        if self.strings.is_empty() {
            self.strings.push(0);
        }
        let at = self.strings.len() as u32;
        self.strings.extend(name.bytes());
        self.strings.push(0);
        if name.is_empty() {
            0
        } else {
            at
        }
    }

    fn put(&mut self, name: &str, info: u32, value: u32, rest: &[u32]) {
        let name = self.name(name);
        for word in [name, info, value].iter().chain(rest) {
            self.types.extend(word.to_le_bytes());
        }
    }

    fn members(&mut self, members: &[(&str, u32, u32)]) -> Vec<u32> {
        members.iter().flat_map(|&(name, kind, offset)| [self.name(name), kind, offset]).collect()
    }

    fn bytes(&self) -> Vec<u8> {
        let lengths =
            [0, self.types.len() as u32, self.types.len() as u32, self.strings.len() as u32];
        let mut bytes = [0x9f, 0xeb, 1, 0, 24, 0, 0, 0].to_vec();
        bytes.extend(lengths.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(&self.types);
        bytes.extend(&self.strings);
        bytes
    }
}

const fn info(kind: u32, count: u32) -> u32 {
    kind << 24 | count
}

fn types() -> Types {
    let mut types = Types::default();
    types.put("int", info(1, 0), 4, &[32]); // 1
    types.put("u32", info(8, 0), 1, &[]); // 2: typedef of 1
    types.put("", info(3, 0), 0, &[2, 1, 6]); // 3: u32[6]
    let inner = types.members(&[("first", 1, 0), ("second", 3, 32)]);
    types.put("", info(4, 2), 28, &inner); // 4: structure without a name
    types.put("", info(2, 0), 6, &[]); // 5: pointer to 6
    let outer = types.members(&[
        ("head", 5, 0),
        ("", 4, 64),
        ("named", 7, 320),
        ("flags", 1, 3 << 24 | 544),
    ]);
    types.put("outer", info(4, 4) | 1 << 31, 72, &outer); // 6, with a bit field
    types.put("", info(10, 0), 4, &[]); // 7: const 4
    let values = [types.name("ZERO"), 0, types.name("MINUS"), u32::MAX];
    types.put("numbers", info(6, 2) | 1 << 31, 4, &values); // 8
    let wide = [types.name("WIDE"), 1, 2];
    types.put("wide", info(19, 1), 8, &wide); // 9
    types.put("loop", info(8, 0), 10, &[]); // 10: typedef of itself
    let looped = types.members(&[("", 11, 0), ("x", 10, 0)]);
    types.put("looped", info(4, 2), 8, &looped); // 11: holds itself
    types
}

#[test]
fn btf_has_members_sizes_and_constants() {
    let bytes = types().bytes();
    let btf = btf::Btf::parse(&bytes).unwrap();
    assert_eq!(btf.member("outer", "head"), Some((0, 8)));
    assert_eq!(btf.member("outer", "first"), Some((8, 4)));
    assert_eq!(btf.member("outer", "second"), Some((12, 24)));
    assert_eq!(btf.member("outer", "named.second"), Some((44, 24)));
    assert_eq!(btf.member("outer", "flags"), Some((68, 4)));
    for absent in ["", "named.third", "head.first", "second.x", "named."] {
        assert_eq!(btf.member("outer", absent), None, "{absent}");
    }
    assert_eq!(btf.size_of("outer"), Some(72));
    assert_eq!(btf.size_of("numbers"), None);
    assert_eq!(btf.constant("ZERO"), Some(0));
    assert_eq!(btf.constant("MINUS"), Some(u64::MAX));
    assert_eq!(btf.constant("WIDE"), Some(0x2_0000_0001));
    assert_eq!(btf.constant("NONE"), None);
    // Types that contain themselves end the search.
    assert_eq!(btf.member("looped", "y"), None);
    assert_eq!(btf.member("looped", "x"), None);
}

#[test]
fn btf_has_names_that_begin_alike() {
    let mut types = Types::default();
    types.put("int", info(1, 0), 4, &[32]); // 1
    let names = ["", "m", "members", "members_", "members_a", "members_b", "members_ab"];
    for (value, name) in (0..).zip(names.iter().rev().chain(&names)) {
        let members = types.members(&[(name, 1, 32 * value)]);
        types.put(name, info(4, 1), 8 + value, &members);
        let values = [types.name(name), value];
        types.put(name, info(6, 1), 4, &values);
    }
    let bytes = types.bytes();
    let btf = btf::Btf::parse(&bytes).unwrap();
    // Of several, the first.
    for (name, value) in names.iter().rev().zip(0..).filter(|(name, _)| !name.is_empty()) {
        assert_eq!(btf.size_of(name), Some(8 + value), "{name}");
        assert_eq!(btf.constant(name), Some(value), "{name}");
        assert_eq!(btf.member(name, name), Some((4 * value, 4)), "{name}");
    }
    for absent in ["member", "members_aa", "members_c", "n"] {
        assert_eq!((btf.size_of(absent), btf.constant(absent)), (None, None), "{absent}");
    }
}

#[test]
fn damaged_btf_is_survived() {
    let good = types().bytes();
    let mut numbers = RandomNumbers(77);
    for round in 0..fake::rounds(20_000) {
        let mut bytes = good.clone();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(bytes.len() as u64) as usize;
            bytes[at] = [0, 1, 4, 12, 0x84, 0xff, numbers.next() as u8][numbers.below(7) as usize];
        }
        if round % 4 == 0 {
            bytes.truncate(numbers.below(bytes.len() as u64) as usize);
        }
        if let Ok(btf) = btf::Btf::parse(&bytes) {
            for path in ["head", "second", "named.second", "flags.x", ""] {
                btf.member("outer", path);
                btf.member("looped", path);
            }
            let _ = (btf.size_of("outer"), btf.constant("WIDE"), btf.constant("none"));
        }
    }
}

#[test]
fn malformed_listings_are_errors() {
    use listing::{code_start, symbols};
    let text =
        "ffffffff81000000 T _text\nffffffffc0000000 t thing\t[module]\nffffffff81000010 t a\n";
    assert_eq!(symbols(text).unwrap().iter().map(|s| s.name).collect::<Vec<_>>(), ["_text", "a"]);
    // Whatever lies between the words, and however long the address is.
    let usual = symbols("ffffffff81000000 T _text\n0000000000000010 d x.1\n").unwrap();
    for other in
        ["ffffffff81000000  T _text\r\n10 d x.1", " FFFFFFFF81000000\tT _text \n010 d x.1\n"]
    {
        assert_eq!(symbols(other).unwrap(), usual);
    }
    let zero = "0000000000000000 T _text\n";
    assert_eq!(symbols(zero), Err(ProfileError::Hidden(build::KALLSYMS)));
    for bad in ["", "x T y\n", "12 T\n", "12 TT y\n", "12 T \u{e9}\n"] {
        assert!(symbols(bad).is_err(), "{bad}");
    }
    let map = "00000000-00000fff : Reserved\n00100000-0ffdffff : System RAM\n  07e00000-08dfffff : Kernel code\n";
    assert_eq!(code_start(map), Ok(0x7e0_0000));
    let zero = "  00000000-00000000 : Kernel code";
    assert_eq!(code_start(zero), Err(ProfileError::Hidden(build::IOMEM)));
    for bad in ["", "zz-1 : Kernel code"] {
        assert!(code_start(bad).is_err(), "{bad}");
    }
}

#[test]
fn names_are_found_in_their_order() {
    let text = "0000000000001000 t prefix_and_more_b\n0000000000001000 T z\n0000000000001000 t a\n\
                0000000000000010 d prefix_and_more_a\n0000000000003000 t a\n0000000000002000 t prefix\n";
    let mut symbols = listing::symbols(text).unwrap();
    listing::sort(&mut symbols);
    let sorted: Vec<_> = symbols.iter().map(|symbol| (symbol.address, symbol.name)).collect();
    assert_eq!(sorted[1..4], [(0x1000, "z"), (0x1000, "a"), (0x1000, "prefix_and_more_b")]);
    let names = listing::SymbolNames::new(&symbols);
    let mut by_name: Vec<u32> = (0..symbols.len() as u32).collect();
    by_name.sort_by_key(|&at| (symbols[at as usize].name, at));
    assert_eq!(names.by_name, by_name);
    assert_eq!((names.get("a"), names.get("prefix_and_more_b")), (Some(0x1000), Some(0x1000)));
    assert_eq!((names.get("prefix_and"), names.get("zz"), names.get("")), (None, None, None));
    assert_eq!(names.range("a", "prefix"), Some(0x1000..0x2000));
    let rest: Vec<_> = names.with_prefix("prefix_and_").collect();
    assert_eq!(rest, [(0x10, "more_a"), (0x1000, "more_b")]);
}

#[test]
fn missing_symbol_or_member_is_named() {
    let btf = types().bytes();
    let iomem = "07e00000-08dfffff : Kernel code";
    let names = [
        "_end",
        "_etext",
        "__start_rodata",
        "__end_rodata",
        "init_top_pgt",
        "init_task",
        "init_pid_ns",
    ];
    let names = names.iter().chain(&["tasklist_lock", "pidmap_lock"]);
    let mut kallsyms = std::string::String::from("ffffffff81000000 T _text\n");
    let error = |kallsyms: &str| {
        build(&Sources { btf: &btf, kallsyms, iomem, release: "6", image: None })
            .unwrap_err()
            .to_string()
    };
    for name in names {
        assert_eq!(error(&kallsyms), std::format!("the kernel has no symbol {name}"));
        kallsyms += &std::format!("ffffffff81001000 D {name}\n");
    }
    assert_eq!(error(&kallsyms), "the kernel has no member list_head.next");
}
