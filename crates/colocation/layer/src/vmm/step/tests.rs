use super::*;
use crate::frames::fake::Fake;
use crate::vmm::nested::{walk, PAGE};
use kyozon_abi::layer::Range;
use std::collections::BTreeMap;

const G1: u64 = 1 << 30;

/// 16 GiB of memory with holes, and pages of the guest at both ends.
fn shared(levels: u32, leaf: u32) -> (Fake, Nested) {
    let mut f = Fake::new(1000);
    let n = Nested::new(&mut f, levels, leaf).unwrap();
    let mut map = |base, bytes, rights| n.map(&mut f, Range { base, bytes }, rights).unwrap();
    map(0, 16 * G1, Some(Rights::ALL));
    map(0xfed0_0000, PAGE, Some(Rights::DEVICE_READ));
    map(3 * G1 / 2, 1 << 21, None);
    map((1 << 47) - PAGE, PAGE, Some(Rights::DATA));
    (f, n)
}

/// Physical address and flags of `gpa`'s page; only the flags if it is not present.
fn seen(f: &mut Fake, root: u64, levels: u32, gpa: u64) -> (u64, u64) {
    let (level, entry) = walk(f, root, levels, gpa);
    let offset = gpa & (nested::span(level) - 1) & !(PAGE - 1);
    let large = u64::from(level > 1) << 7;
    if entry & 1 == 0 {
        (0, entry)
    } else {
        ((entry & ADDRESS) + offset, entry & !ADDRESS & !large)
    }
}

fn without_own(f: &Fake, step: &Step) -> BTreeMap<u64, [u64; 512]> {
    f.0.iter().filter(|x| !step.tables.contains(x.0)).map(|x| (*x.0, *x.1)).collect()
}

#[test]
fn one_page_differs_the_rest_is_shared() {
    let (mut f, n) = shared(4, 3);
    let mut step = Step::new(&mut f).unwrap();
    assert_eq!(step.root(), None);
    let before = without_own(&f, &step);
    assert!(step.show(&mut f, &n, 0xfed0_00f0, 0x7000, Rights::DATA));
    let root = step.root().unwrap();
    assert_ne!(root, n.root());
    assert_eq!(walk(&mut f, root, 4, 0xfed0_0000), (1, 0x7000 | 1 << 63 | 3 << 61 | 0x67));
    assert_eq!(n.lookup(&mut f, 0xfed0_0000).unwrap().1 & 0xfff, 0x7d, "read-only, uncached");
    for gpa in
        [0, 0xfecf_f000, 0xfed0_1000, 0xfee0_0000, 3 * G1 / 2, 9 * G1, (1 << 47) - PAGE, 1 << 46]
    {
        assert_eq!(seen(&mut f, root, 4, gpa), seen(&mut f, n.root(), 4, gpa), "{gpa:#x}");
    }
    assert_eq!(step.used, 4);
    assert_eq!(without_own(&f, &step), before);
}

#[test]
fn near_pages_share_copied_tables() {
    let (mut f, n) = shared(5, 3);
    let mut step = Step::new(&mut f).unwrap();
    let pages = f.0.len();
    assert!(step.show(&mut f, &n, 9 * G1, 0x7000, Rights::DATA));
    let root = step.root();
    assert_eq!(step.used, 5);
    for (gpa, used) in [(9 * G1 + PAGE, 5), (9 * G1, 5), (9 * G1 + (1 << 21), 6), (8 * G1, 8)] {
        assert!(step.show(&mut f, &n, gpa, 0x8000, Rights::READ));
        assert_eq!((step.used, step.root()), (used, root), "{gpa:#x}");
        assert_eq!(seen(&mut f, root.unwrap(), 5, gpa), (0x8000, 1 << 63 | 1 << 61 | 0x65));
    }
    assert_eq!(f.0.len(), pages, "no page is got after the start");
}

#[test]
fn four_distant_pages_fit_a_fifth_does_not() {
    let (mut f, n) = shared(5, 3);
    let mut step = Step::new(&mut f).unwrap();
    let before = without_own(&f, &step);
    for i in 0..4 {
        assert!(step.show(&mut f, &n, i << 48, 0x7000 + i * PAGE, Rights::DATA));
    }
    assert_eq!(step.used, TABLES);
    assert!(!step.show(&mut f, &n, 4 << 48, 0x7000, Rights::DATA));
    assert!(!step.show(&mut f, &n, 1 << 40, 0x7000, Rights::DATA));
    assert!(step.show(&mut f, &n, (3 << 48) + PAGE, 0x7000, Rights::DATA), "needs no table");
    let root = step.root().unwrap();
    for i in 0..4 {
        assert_eq!(seen(&mut f, root, 5, i << 48).0, 0x7000 + i * PAGE);
    }
    for gpa in [4 << 48, 1 << 40, 9 * G1] {
        assert_eq!(seen(&mut f, root, 5, gpa), seen(&mut f, n.root(), 5, gpa));
    }
    assert_eq!(without_own(&f, &step), before);
}

#[test]
fn reset_views_follow_the_shared_tables() {
    let (mut f, n) = shared(4, 2);
    let mut step = Step::new(&mut f).unwrap();
    assert!(step.show(&mut f, &n, 0x5000, 0x7000, Rights::DATA));
    step.reset();
    assert_eq!(step.root(), None);
    n.map(&mut f, Range { base: 0x5000, bytes: PAGE }, None).unwrap();
    assert!(step.show(&mut f, &n, 0x6000, 0x7000, Rights::DATA));
    let root = step.root().unwrap();
    assert_eq!(walk(&mut f, root, 4, 0x5000), (1, nested::ABSENT));
    assert_eq!(step.used, 4);
}

#[test]
fn pages_mapped_during_a_step_reach_the_view() {
    for (levels, leaf) in [(4, 2), (4, 3), (5, 2), (5, 3)] {
        let (mut f, n) = shared(levels, leaf);
        let mut step = Step::new(&mut f).unwrap();
        // A decoy in memory, and one where nothing is mapped: its tables are the view's alone.
        let decoys = [0x5000, 40 * G1 + 0x5000];
        for gpa in decoys {
            assert!(step.show(&mut f, &n, gpa, 0x7000, Rights::DATA));
        }
        let root = step.root().unwrap();
        for gpa in [20 * G1, 40 * G1 + 0x6000, 40 * G1 + (1 << 21), 1 << 40, (1 << 47) - 2 * PAGE] {
            assert_eq!(seen(&mut f, root, levels, gpa), (0, 0), "{gpa:#x}");
            // A large page may have been mapped for the address before.
            assert!(n.ensure(&mut f, gpa, Rights::ALL).is_some());
            step.follow(&mut f, &n, gpa);
            let expected = seen(&mut f, n.root(), levels, gpa);
            assert_eq!(expected.0, gpa & !(PAGE - 1));
            assert_eq!(seen(&mut f, root, levels, gpa), expected, "{gpa:#x}");
        }
        for gpa in decoys.into_iter().chain([3 * G1 / 2]) {
            step.follow(&mut f, &n, gpa);
        }
        for gpa in decoys {
            assert_eq!(seen(&mut f, root, levels, gpa).0, 0x7000);
        }
        assert_eq!(seen(&mut f, root, levels, 3 * G1 / 2), (0, nested::ABSENT));
    }
}

#[test]
fn invalid_requests_are_refused() {
    let mut f = Fake::new(TABLES as u64);
    let n = Nested::new(&mut f, 4, 3).unwrap();
    assert!(Step::new(&mut f).is_none(), "one page too few");
    let (mut f, _) = shared(4, 3);
    let mut step = Step::new(&mut f).unwrap();
    for (gpa, to) in [(1 << 48, 0x7000), (0, 0x7001), (0, 1 << 52), (u64::MAX, 0)] {
        assert!(!step.show(&mut f, &n, gpa, to, Rights::DATA));
        assert_eq!(step.root(), None);
    }
}

#[test]
fn as_shared_with_pages_put_over_it() {
    let mut s = 77u64;
    let mut random = |below: u64| {
        // xorshift64.
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        s % below
    };
    for (levels, leaf) in [(4, 2), (4, 3), (5, 2), (5, 3)] {
        let (mut f, n) = shared(levels, leaf);
        let mut step = Step::new(&mut f).unwrap();
        let before = without_own(&f, &step);
        let mut refused = 0;
        for _ in 0..40 {
            step.reset();
            let mut over = BTreeMap::new();
            for _ in 0..1 + random(8) {
                let gpa = [random(20 * G1), 0xfed0_0000 + random(0x4000), random(1 << 48)]
                    [random(3) as usize];
                let to = (1 + random(1 << 20)) * PAGE;
                if step.show(&mut f, &n, gpa, to, Rights::DATA) {
                    over.insert(gpa / PAGE, to);
                } else {
                    refused += 1;
                }
            }
            let root = step.root().unwrap();
            let near = over.keys().flat_map(|p| [p - p.min(&1), *p, p + 1]).map(|p| p * PAGE);
            let far: Vec<_> = (0..100).map(|_| random(20 * G1)).collect();
            for gpa in near.chain(far).filter(|g| *g < 1 << 48) {
                let want = match over.get(&(gpa / PAGE)) {
                    Some(to) => (*to, 1 << 63 | 3 << 61 | 0x67),
                    None => seen(&mut f, n.root(), levels, gpa),
                };
                assert_eq!(seen(&mut f, root, levels, gpa), want, "{gpa:#x}");
            }
        }
        assert!(refused > 0 && refused < 100, "{refused}: both are tried");
        assert_eq!(without_own(&f, &step), before);
    }
}
