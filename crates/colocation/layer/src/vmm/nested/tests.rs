use super::entry::{LARGE, USER};
use super::*;
use crate::frames::fake::Fake;
use std::collections::BTreeMap;

const M2: u64 = 1 << 21;
const G1: u64 = 1 << 30;

fn tables(levels: u32, leaf: u32) -> (Fake, Nested) {
    let mut f = Fake::new(4096);
    let n = Nested::new(&mut f, levels, leaf).unwrap();
    (f, n)
}

fn range(base: u64, end: u64) -> Range {
    Range { base, bytes: end - base }
}

/// IR and IW of an IOMMU's entry.
const DEVICES: u64 = 3 << 61;

#[test]
fn entries_match_the_manual() {
    let (mut f, n) = tables(4, 3);
    n.map(&mut f, range(0, G1), Some(Rights::ALL)).unwrap();
    n.map(&mut f, range(G1, G1 + M2), Some(Rights::DEVICE)).unwrap();
    n.map(&mut f, range(G1 + M2, G1 + M2 + PAGE), Some(Rights::READ)).unwrap();
    // P, RW, US, A, D, PS; for devices IR and IW.
    assert_eq!(n.lookup(&mut f, 0), Some((3, DEVICES | 0xe7)));
    assert_eq!(n.lookup(&mut f, G1), Some((2, G1 | 1 << 63 | DEVICES | 0xff)));
    assert_eq!(n.lookup(&mut f, G1 + M2), Some((1, (G1 + M2) | 1 << 63 | 1 << 61 | 0x65)));
    assert_eq!(n.lookup(&mut f, G1 + M2 + PAGE), None);
    n.map(&mut f, range(0, PAGE), None).unwrap();
    assert_eq!(n.lookup(&mut f, 0xfff), Some((1, ABSENT)));
    assert_eq!(n.lookup(&mut f, M2), Some((2, M2 | DEVICES | 0xe7)));
    assert_eq!(
        n.lookup(&mut f, PAGE),
        Some((1, PAGE | DEVICES | 0x67)),
        "no PS, which is PAT there"
    );
    for entry in f.0.values().flatten() {
        assert!(entry & PRESENT == 0 || entry & USER != 0, "{entry:#x}");
    }
}

/// The result of an IOMMU's walk for `gpa`, with the rights. 48882, 2.2.3.
fn device_walk(f: &mut Fake, n: &Nested, gpa: u64) -> Option<(u64, u64)> {
    let (mut table, mut level, mut rights) = (n.root(), n.levels(), DEVICES);
    loop {
        let entry = *f.entry(table, index(gpa, level));
        rights &= entry;
        let next = (entry >> 9 & 7) as u32;
        match (entry & PRESENT, next) {
            (0, _) => return None,
            (_, 0) => {
                return Some(((entry & ADDRESS) + (gpa & (span(level) - 1) & !(PAGE - 1)), rights))
            }
            _ => {
                assert_eq!(next, level - 1, "no level is left out");
                (table, level) = (entry & ADDRESS, next);
            }
        }
    }
}

#[test]
fn devices_walk_to_the_same_page() {
    for levels in [4, 5] {
        let (mut f, n) = tables(levels, 3);
        n.map(&mut f, range(0, 4 * G1), Some(Rights::ALL)).unwrap();
        n.map(&mut f, range(G1, G1 + PAGE), None).unwrap();
        n.map(&mut f, range(2 * G1, 2 * G1 + M2), Some(Rights::READ)).unwrap();
        for gpa in [0, G1 - PAGE, G1 + PAGE, G1 + M2, 2 * G1 + M2, 4 * G1 - PAGE] {
            assert_eq!(device_walk(&mut f, &n, gpa), Some((gpa, DEVICES)), "{gpa:#x}");
        }
        assert_eq!(device_walk(&mut f, &n, 2 * G1 + PAGE), Some((2 * G1 + PAGE, 1 << 61)));
        assert_eq!(device_walk(&mut f, &n, G1), None);
        assert_eq!(device_walk(&mut f, &n, 4 * G1), None);
    }
}

#[test]
fn ranges_use_the_largest_pages() {
    let (mut f, n) = tables(5, 3);
    n.map(&mut f, range(M2 - PAGE, 2 * G1 + M2 + PAGE), Some(Rights::TEXT)).unwrap();
    let levels = [
        (0, None),
        (M2 - 2 * PAGE, None),
        (M2 - PAGE, Some(1)),
        (M2, Some(2)),
        (G1 - PAGE, Some(2)),
        (G1, Some(3)),
        (2 * G1 - 1, Some(3)),
        (2 * G1, Some(2)),
        (2 * G1 + M2, Some(1)),
        (2 * G1 + M2 + PAGE, None),
    ];
    for (gpa, level) in levels {
        assert_eq!(n.lookup(&mut f, gpa).map(|l| l.0), level, "{gpa:#x}");
    }
    assert_eq!(f.0.len(), 1 + 1 + 1 + 2 + 2, "tables of levels 5, 4, 3, 2, 1");

    let (mut f, n) = tables(4, 2);
    n.map(&mut f, range(0, 4 * G1), Some(Rights::TEXT)).unwrap();
    assert_eq!(n.lookup(&mut f, 3 * G1).unwrap().0, 2);
    assert_eq!(f.0.len(), 1 + 1 + 4);
}

#[test]
fn pages_with_the_same_rights_stay_whole() {
    let (mut f, n) = tables(4, 3);
    n.map(&mut f, range(0, G1), Some(Rights::ALL)).unwrap();
    n.map(&mut f, range(G1, 2 * G1), None).unwrap();
    let before = f.0.clone();
    n.map(&mut f, range(PAGE, G1 - PAGE), Some(Rights::ALL)).unwrap();
    n.map(&mut f, range(G1 + PAGE, G1 + M2), None).unwrap();
    n.map(&mut f, range(PAGE, PAGE), None).unwrap();
    assert_eq!(f.0, before);
}

#[test]
fn pages_can_be_remapped() {
    let (mut f, n) = tables(4, 3);
    n.map(&mut f, range(0, G1), Some(Rights::ALL)).unwrap();
    n.remap(&mut f, 5 * PAGE + 123, 0x7_7777_7000, Rights::DATA).unwrap();
    assert_eq!(n.lookup(&mut f, 5 * PAGE), Some((1, 0x7_7777_7000 | 1 << 63 | DEVICES | 0x67)));
    assert_eq!(n.lookup(&mut f, 4 * PAGE), Some((1, (4 * PAGE) | DEVICES | 0x67)));
    assert_eq!(n.lookup(&mut f, 6 * PAGE), Some((1, (6 * PAGE) | DEVICES | 0x67)));
    for bad in [1, 0x800, 1 << 52, 1 << 63] {
        assert_eq!(n.remap(&mut f, 0, bad, Rights::DATA), None);
    }
    assert_eq!(n.remap(&mut f, 1 << 48, 0, Rights::DATA), None);
    // Back to itself.
    n.map(&mut f, range(5 * PAGE, 6 * PAGE), Some(Rights::ALL)).unwrap();
    assert_eq!(n.lookup(&mut f, 5 * PAGE), Some((1, (5 * PAGE) | DEVICES | 0x67)));
}

#[test]
fn ensure_maps_new_but_not_unmapped_pages() {
    let (mut f, n) = tables(5, 3);
    n.map(&mut f, range(M2, M2 + PAGE), None).unwrap();
    n.map(&mut f, range(G1, G1 + PAGE), Some(Rights::READ)).unwrap();
    assert_eq!(n.ensure(&mut f, M2 + 9, Rights::ALL), Some(false), "taken away");
    assert_eq!(n.ensure(&mut f, G1 + 9, Rights::ALL), Some(false), "mapped with less");
    assert_eq!(n.lookup(&mut f, G1).unwrap().1 & WRITE, 0);
    for (gpa, level) in [(M2 + PAGE, 1), (0, 2), (G1 + M2, 2), (1 << 51, 3)] {
        assert_eq!(n.lookup(&mut f, gpa), None);
        assert_eq!(n.ensure(&mut f, gpa + 0xabc, Rights::ALL), Some(true));
        assert_eq!(n.lookup(&mut f, gpa), Some((level, leaf(gpa, Some(Rights::ALL), level))));
        assert_eq!(n.ensure(&mut f, gpa, Rights::ALL), Some(false), "there already");
    }
    assert_eq!(n.lookup(&mut f, M2), Some((1, ABSENT)));
}

#[test]
fn invalid_requests_are_refused() {
    for (levels, leaf) in [(3, 2), (6, 2), (4, 1), (4, 4), (0, 0)] {
        assert!(Nested::new(&mut Fake::new(9), levels, leaf).is_none());
    }
    for (levels, limit) in [(4, 1 << 48), (5, 1u64 << 52)] {
        let (mut f, n) = tables(levels, 3);
        let before = f.0.clone();
        let bad = [(1, PAGE), (0, 1), (limit - PAGE, 2 * PAGE), (u64::MAX - 0xfff, PAGE)];
        for (base, bytes) in bad {
            assert_eq!(n.map(&mut f, Range { base, bytes }, Some(Rights::ALL)), None);
        }
        assert_eq!(n.ensure(&mut f, limit, Rights::ALL), Some(false));
        assert_eq!(n.lookup(&mut f, limit), None);
        assert_eq!(f.0, before);
        n.map(&mut f, range(limit - PAGE, limit), Some(Rights::ALL)).unwrap();
        assert_eq!(n.lookup(&mut f, limit - 1).unwrap().0, 1);
        assert_eq!(n.lookup(&mut f, 0), None, "the address does not wrap");
    }
}

#[test]
fn mappings_survive_out_of_memory() {
    assert!(Nested::new(&mut Fake::new(0), 4, 3).is_none());
    for pages in 2..4 {
        let mut f = Fake::new(pages);
        let n = Nested::new(&mut f, 4, 3).unwrap();
        n.map(&mut f, range(0, G1), Some(Rights::ALL)).unwrap();
        assert_eq!(n.map(&mut f, range(0, PAGE), None), None);
        assert_eq!(n.remap(&mut f, 0, PAGE, Rights::ALL), None);
        assert_eq!(n.ensure(&mut f, 1 << 40, Rights::ALL), None);
        let at = 5 * PAGE;
        let (level, entry) = n.lookup(&mut f, at).unwrap();
        assert_eq!(entry & ADDRESS, at & !(span(level) - 1));
        assert_eq!(entry & 0xff, if level > 1 { 0xe7 } else { 0x67 });
    }
}

/// The guest's mappings, each from its key up to the next key. None: never mapped; Some(None): unmapped; else the
/// distance to the physical address, and the rights.
#[derive(Default)]
struct Model(BTreeMap<u64, What>);
type What = Option<Option<(u64, Rights)>>;

impl Model {
    fn at(&self, gpa: u64) -> What {
        self.0.range(..=gpa).next_back().and_then(|x| *x.1)
    }

    fn set(&mut self, from: u64, to: u64, what: What) {
        let behind = self.at(to);
        let gone: Vec<_> = self.0.range(from..to).map(|x| *x.0).collect();
        for key in gone {
            self.0.remove(&key);
        }
        self.0.insert(from, what);
        self.0.insert(to, behind);
    }

    fn untouched(&self, from: u64, to: u64) -> bool {
        self.at(from).is_none() && self.0.range(from..to).all(|x| x.1.is_none())
    }

    fn ensure(&mut self, gpa: u64, leaf: u32, rights: Rights) -> bool {
        for level in (1..=leaf).rev() {
            let from = gpa & !(span(level) - 1);
            if self.untouched(from, from + span(level)) {
                self.set(from, from + span(level), Some(Some((0, rights))));
                return true;
            }
        }
        false
    }
}

fn random(state: &mut u64) -> u64 {
    // xorshift64*.
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

const ALL_RIGHTS: [Rights; 6] =
    [Rights::ALL, Rights::TEXT, Rights::DATA, Rights::READ, Rights::DEVICE, Rights::DEVICE_READ];

fn compare(f: &mut Fake, n: &Nested, model: &Model, gpa: u64) {
    let found = n.lookup(f, gpa);
    let found = found.map(|(level, entry)| {
        (entry != ABSENT).then(|| {
            let offset = gpa & (span(level) - 1);
            assert!(level <= n.leaf && entry & ADDRESS & (span(level) - 1) == 0);
            ((entry & ADDRESS) + offset, entry & !(ADDRESS | LARGE), entry & LARGE != 0, level > 1)
        })
    });
    let want = model.at(gpa).map(|w| w.map(|(d, r)| (gpa.wrapping_add(d), r.flags())));
    assert_eq!(found.map(|w| w.map(|x| (x.0, x.1))), want, "{gpa:#x}");
    assert!(found.flatten().is_none_or(|x| x.2 == x.3), "PS where it is a larger page, else not");
}

#[test]
fn as_a_map_of_ranges_has_it() {
    for seed in 1..=24u64 {
        let mut s = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (levels, leaf) = (4 + (seed % 2) as u32, 2 + (seed / 2 % 2) as u32);
        let mut f = Fake::new(100_000);
        let n = Nested::new(&mut f, levels, leaf).unwrap();
        let mut model = Model::default();
        // Boundaries between tables of every level.
        let middle = [8 * G1, 1 << 39, 5 << 39, (1 << 48) - 8 * G1, 1 << 50]
            [random(&mut s) as usize % if levels == 4 { 4 } else { 5 }];
        for _ in 0..60 {
            let unit = span(1 + (random(&mut s) % 3) as u32);
            let base = (middle - 4 * G1 + random(&mut s) % (8 * G1)) & !(unit - 1);
            let end = base + unit * (1 + random(&mut s) % 3);
            let rights = ALL_RIGHTS[random(&mut s) as usize % 6];
            match random(&mut s) % 8 {
                0..3 => {
                    n.map(&mut f, range(base, end), Some(rights)).unwrap();
                    model.set(base, end, Some(Some((0, rights))));
                }
                3..5 => {
                    n.map(&mut f, range(base, end), None).unwrap();
                    model.set(base, end, Some(None));
                }
                5 => {
                    let to = random(&mut s) & ADDRESS;
                    n.remap(&mut f, base, to, rights).unwrap();
                    model.set(base, base + PAGE, Some(Some((to.wrapping_sub(base), rights))));
                }
                _ => {
                    let done = model.ensure(base, leaf, rights);
                    assert_eq!(n.ensure(&mut f, base + 0x123, rights), Some(done), "{base:#x}");
                }
            }
            let edges: Vec<_> = model.0.keys().copied().collect();
            for gpa in edges {
                compare(&mut f, &n, &model, gpa);
                compare(&mut f, &n, &model, gpa - 1);
            }
            for _ in 0..50 {
                let gpa = middle - 4 * G1 + random(&mut s) % (8 * G1);
                compare(&mut f, &n, &model, gpa);
            }
        }
    }
}
