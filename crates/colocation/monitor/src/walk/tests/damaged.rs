//! Fuzz tests: walks over structures in which some words are overwritten. A walk that reads more than its limit fails.
//! A round of all tests has ten walks, two of them over xarrays; `tests/monitor/mutated-nightly` runs five million
//! rounds.

use super::*;
use crate::fake::{rounds, IMAGE_BYTES, TEXT_PHYSICAL};
use crate::memory::Page;
use core::cell::Cell;
use core::ops::Range;

/// Where the page tables, the CPUs' areas and the number of CPUs are.
const TOP: u64 = TEXT + 0x1000;
const AREAS: u64 = TEXT + 0x2_0000;
const CPUS: u64 = TEXT + 0x4_0000;
const SYMBOLS: &[(u64, u8, &str)] = &[
    (TEXT, b'T', "_text"),
    (AREAS, b'D', "__per_cpu_offset"),
    (CPUS, b'D', "nr_cpu_ids"),
    (TEXT + 0x5_0000, b'D', "behind"),
];

/// Nodes of a damaged list or tree; maximum number of nodes that a walk visits.
const NODES: u64 = 15;
const LIMIT: u32 = 40;
/// Maximum reads of a step in a tree: down 64 levels, or up as many, with two reads for each.
const TREE_STEP: u64 = 1 + 2 * 64;
/// Maximum number of parts of the mappings that a walk visits.
const PARTS: u64 = 32;

/// Memory that counts walks and limits their reads.
struct Metered {
    memory: FakeMemory,
    walks: Cell<u64>,
    left: Cell<u64>,
}

impl Metered {
    /// Begins a walk, or another step of one, that may read `limit` words.
    fn begin(&self, limit: u64) {
        self.walks.set(self.walks.get() + 1);
        self.allow(limit);
    }

    fn allow(&self, limit: u64) {
        self.left.set(limit);
    }
}

impl KernelMemory for Metered {
    fn page(&self, physical: u64) -> Option<&Page> {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.expect("the walk reads more than its limit"));
        self.memory.page(physical)
    }
}

/// Runs `test` over an empty metered memory.
fn metered(symbols: &[(u64, u8, &str)], test: impl FnOnce(&Kernel<'_, Metered>)) {
    let bytes = profile(symbols, LAYOUTS);
    let profile = Profile::decode(&bytes).unwrap();
    let memory = FakeMemory::new(TEXT_PHYSICAL + IMAGE_BYTES);
    let memory = Metered { memory, walks: Cell::default(), left: Cell::default() };
    test(&Kernel::new(&profile, &memory));
}

/// Runs the rounds of a test, each of which has `walks` walks.
fn fuzz(
    symbols: &[(u64, u8, &str)],
    walks: u64,
    mut round: impl FnMut(&Kernel<'_, Metered>, &FakeMemory, &mut RandomNumbers),
) {
    metered(symbols, |kernel| {
        let (rounds, mut numbers) = (rounds(3000), RandomNumbers(99));
        for _ in 0..rounds {
            round(kernel, &kernel.memory.memory, &mut numbers);
        }
        assert_eq!(kernel.memory.walks.get(), walks * rounds);
    });
}

/// The address of a node. Number 0 is the head of a list.
fn node(number: u64) -> u64 {
    0x1000 + 0x40 * number
}

/// Overwrites some words of the nodes, each of which has `words`.
fn damage(memory: &FakeMemory, numbers: &mut RandomNumbers, words: u64) {
    for _ in 0..=numbers.below(4) {
        let place = node(numbers.below(NODES + 1)) + 8 * numbers.below(words);
        let other = DIRECT + node(numbers.below(NODES + 1));
        let values = [other, other, other, other + 4, numbers.next(), numbers.below(64)];
        memory.set(place, values[numbers.below(6) as usize]);
    }
}

#[test]
fn damaged_lists_are_survived() {
    fuzz(SYMBOLS, 2, |kernel, memory, numbers| {
        for number in 0..=NODES {
            memory.set(node(number), DIRECT + node((number + 1) % (NODES + 1)));
        }
        damage(memory, numbers, 1);
        let (head, lists) = (DIRECT + node(0), Lists::new(kernel.profile).unwrap());
        let (mut walk, mut count) = (ListWalk::new(head, LIMIT), 0);
        kernel.memory.begin(u64::from(LIMIT) + 1);
        while let Ok(Some(node)) = walk.next(kernel, &lists) {
            assert!(node != head && walk.position() == node);
            count += 1;
        }
        assert!(count <= LIMIT);
        // A misaligned link can lie in two pages.
        kernel.memory.begin(2 * (MAX_CHAIN as u64 + 1));
        let entries = crate::walk::entries(kernel, List { head, link: 16 });
        assert!(entries.count() <= MAX_CHAIN);
    });
}

#[test]
fn damaged_hashes_are_survived() {
    fuzz(SYMBOLS, 2, |kernel, memory, numbers| {
        for number in 0..NODES {
            memory.set(node(number), DIRECT + node(number + 1));
        }
        memory.set(node(NODES), 0);
        damage(memory, numbers, 1);
        let (head, lists) = (DIRECT + node(0), Lists::new(kernel.profile).unwrap());
        let (mut walk, mut count) = (HashWalk::new(head, &lists, LIMIT), 0);
        kernel.memory.begin(u64::from(LIMIT) + 1);
        while let Ok(Some(node)) = walk.next(kernel, &lists) {
            assert!(node != 0);
            count += 1;
        }
        assert!(count <= LIMIT);
        kernel.memory.begin(2 * (MAX_CHAIN as u64 + 1));
        assert!(chain(kernel, head, 0).count() <= MAX_CHAIN);
    });
}

/// A balanced tree of the nodes `numbers`, in this order, below `parent`. Returns its root.
fn plant(memory: &FakeMemory, numbers: Range<u64>, parent: u64) -> u64 {
    if numbers.is_empty() {
        return 0;
    }
    let middle = (numbers.start + numbers.end) / 2;
    let at = node(middle);
    memory.set(at, parent | (middle % 2)); // the colour is no part of the address
    memory.set(at + 8, plant(memory, middle + 1..numbers.end, DIRECT + at));
    memory.set(at + 16, plant(memory, numbers.start..middle, DIRECT + at));
    DIRECT + at
}

/// The nodes from `first` on.
fn nodes_of_tree(kernel: &Kernel<'_, Metered>, trees: &Trees, first: Option<u64>) -> Vec<u64> {
    let mut nodes = Vec::new();
    let mut at = first;
    while let Some(node) = at.filter(|_| nodes.len() < LIMIT as usize) {
        nodes.push(node.wrapping_sub(DIRECT));
        kernel.memory.allow(TREE_STEP);
        at = trees.next(kernel, node);
    }
    nodes
}

#[test]
fn damaged_trees_are_survived() {
    fuzz(SYMBOLS, 2, |kernel, memory, numbers| {
        let (root, trees) = (DIRECT + node(0), Trees::new(kernel.profile).unwrap());
        let end = 1 + numbers.below(NODES + 1);
        memory.set(node(0), plant(memory, 1..end, 0));
        kernel.memory.allow(TREE_STEP);
        let intact = nodes_of_tree(kernel, &trees, trees.first(kernel, root));
        assert!(intact.into_iter().eq((1..end).map(node)));
        damage(memory, numbers, 3);
        kernel.memory.begin(TREE_STEP);
        nodes_of_tree(kernel, &trees, trees.first(kernel, root));
        kernel.memory.begin(0);
        nodes_of_tree(kernel, &trees, Some(DIRECT + node(numbers.below(NODES))));
    });
}

#[test]
fn trees_deeper_than_any_intact_one_end() {
    metered(SYMBOLS, |kernel| {
        let (memory, deepest) = (&kernel.memory.memory, 100);
        let trees = Trees::new(kernel.profile).unwrap();
        for number in 0..deepest {
            memory.set(node(number + 1), DIRECT + node(number));
            memory.set(node(number) + 8, DIRECT + node(number + 1));
            memory.set(node(number) + 16, DIRECT + node(number + 1));
        }
        kernel.memory.allow(TREE_STEP);
        assert_eq!(trees.next(kernel, DIRECT + node(deepest)), None);
        kernel.memory.allow(TREE_STEP);
        assert_eq!(trees.first(kernel, DIRECT + node(0) + 16), None);
    });
}

#[test]
fn damaged_mappings_are_survived() {
    // The top table, and one of each level below it.
    let tables = [TOP - TEXT + TEXT_PHYSICAL, 0x3000, 0x2000, 0x1000];
    let symbols = [SYMBOLS, &[(TOP, b'D', "init_top_pgt")]].concat();
    fuzz(&symbols, 1, |kernel, memory, numbers| {
        for [above, below] in tables.array_windows() {
            memory.set(above + 8 * 511, below | 3);
            memory.set(above + 8 * 510, 0x4000_0083);
        }
        let mut damaged = Vec::new();
        for _ in 0..=numbers.below(6) {
            let entry = [256, 509, 510, 511, numbers.below(512)][numbers.below(5) as usize];
            let table = |number: u64| tables[number as usize];
            let place = table(numbers.below(4)) + 8 * entry;
            let flags = numbers.next() & (1 << 63 | 0xfff) | 1;
            let other = table(numbers.below(4)) | flags;
            let values = [other, other, !0 << 12 | flags, numbers.next(), 0];
            memory.set(place, values[numbers.below(5) as usize]);
            damaged.push(place);
        }
        kernel.memory.begin(0);
        let mut at = Some([0, 0xffff_8000_0000_0000, numbers.next()][numbers.below(3) as usize]);
        for _ in 0..PARTS {
            let Some(from) = at else { break };
            // A part reads a table of each level, and each entry of the last one once.
            kernel.memory.allow(4);
            let (mut pages, mut last) = (0, None);
            at = scan_mappings(kernel, from, &mut |page| {
                assert!(page.start >= 0xffff_8000_0000_0000 && last < Some(page.start));
                last = Some(page.start + (page.bytes - 1));
                assert!(last >= Some(from));
                pages += 1;
            });
            assert!(pages <= 512 && at.is_none_or(|next| next > from && last < Some(next)));
        }
        damaged.iter().for_each(|&place| memory.set(place, 0));
    });
}

#[test]
fn damaged_areas_are_survived() {
    fuzz(SYMBOLS, 1, |kernel, memory, numbers| {
        let areas = Areas::new(kernel.profile).unwrap();
        let count = [numbers.below(9), numbers.below(9), 1 << 31, numbers.next()];
        memory.set(CPUS - TEXT + TEXT_PHYSICAL, count[numbers.below(4) as usize]);
        memory.set(AREAS - TEXT + TEXT_PHYSICAL + 8 * numbers.below(9), numbers.next());
        kernel.memory.begin(0);
        let cpus = (0..).take_while(|&cpu| {
            kernel.memory.allow(2);
            areas.of(kernel, cpu).is_some()
        });
        assert!(cpus.take(8193).count() <= 8192);
    });
}

#[test]
fn damaged_xarrays_are_survived() {
    fuzz(SYMBOLS, 2, |kernel, memory, numbers| {
        tree(memory);
        for _ in 0..=numbers.below(4) {
            let at = 0x1000 * (1 + numbers.below(6))
                + [0, 40 + 8 * numbers.below(64)][numbers.below(2) as usize];
            let node = DIRECT + 0x1000 * (1 + numbers.below(7)) + 2;
            let value =
                [node, node, numbers.next(), numbers.below(64), 6][numbers.below(5) as usize];
            memory.set(at, value);
        }
        // For each entry, 16 descents of at most 11 levels, each with the node's shift and 64 slots.
        kernel.memory.begin(300 * (1 + 16 * 11 * 65));
        let _ = entries(kernel, 300);
        let xarrays = XArrays::new(kernel.profile).unwrap();
        kernel.memory.begin(1 + 2 * 11);
        xarrays.path_to(kernel, DIRECT + 0x800, numbers.next() >> numbers.below(64));
        for page in 1..8 {
            for word in 0..72 {
                memory.set(0x1000 * page + 8 * word, 0);
            }
        }
    });
}
