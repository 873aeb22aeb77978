use super::*;
use crate::fake::{self, FakeMemory, DIRECT, TEXT};
use crate::profile::Profile;
use std::format;
use std::string::ToString;

const PIDS: u64 = TEXT + 0x8000;
const LOCK: u64 = TEXT + 0x8100;
const HEADS: u64 = TEXT + 0x8200;
const MASK: u64 = TEXT + 0x8208;
const SPACE: u64 = DIRECT + 0x3000;
const TASK: u64 = DIRECT + 0x4000;
const PROXY: u64 = DIRECT + 0x5000;
const FOLDERS: u64 = DIRECT + 0x6000;
const FILE_SYSTEM: u64 = DIRECT + 0x7000;
const KIND: u64 = DIRECT + 0x7100;
const SOURCE: u64 = DIRECT + 0x7200;
const TABLE_HEADS: u64 = DIRECT + 0x8000;
const OTHER_SPACE: u64 = DIRECT + 0x9000;
const WILD: u64 = DIRECT + 0x800_0000;

// Offsets in a mount.
const POINT: u64 = 8;
const INNER: u64 = 16;
const SUPER: u64 = 24;
const FLAGS: u64 = 32;
const DEVNAME: u64 = 40;
const ID: u64 = 48;
const UNIQUE: u64 = 56;
const BELOW: u64 = 64;
const CHILD: u64 = 80;
const NODE: u64 = 96;
const HASH: u64 = 120;
const OF: u64 = 136;

const LAYOUTS: &[(&str, u64, u64)] = &[
    ("list_head.next", 0, 8),
    ("list_head.prev", 8, 8),
    ("hlist_head", 0, 8),
    ("hlist_head.first", 0, 8),
    ("hlist_node.next", 0, 8),
    ("hlist_node.pprev", 8, 8),
    ("rb_node.__rb_parent_color", 0, 8),
    ("rb_node.rb_right", 8, 8),
    ("rb_node.rb_left", 16, 8),
    ("pid_namespace.child_reaper", 16, 8),
    ("task_struct.tgid", 0, 4),
    ("task_struct.nsproxy", 8, 8),
    ("task_struct.fs", 16, 8),
    ("nsproxy.mnt_ns", 8, 8),
    ("fs_struct.root.mnt", 8, 8),
    ("fs_struct.root.dentry", 16, 8),
    ("mnt_namespace.root", 0, 8),
    ("mount.mnt_parent", 0, 8),
    ("mount.mnt_mountpoint", POINT, 8),
    ("mount.mnt", INNER, 24),
    ("mount.mnt.mnt_root", INNER, 8),
    ("mount.mnt.mnt_sb", SUPER, 8),
    ("mount.mnt.mnt_flags", FLAGS, 4),
    ("mount.mnt_devname", DEVNAME, 8),
    ("mount.mnt_id", ID, 4),
    ("mount.mnt_id_unique", UNIQUE, 8),
    ("mount.mnt_mounts", BELOW, 16),
    ("mount.mnt_child", CHILD, 16),
    ("mount.mnt_hash", HASH, 16),
    ("mount.mnt_ns", OF, 8),
    ("super_block.s_type", 8, 8),
    ("file_system_type.name", 0, 8),
    ("dentry.d_parent", 0, 8),
    ("dentry.d_name.name", 8, 8),
];

fn mount(number: u64) -> u64 {
    DIRECT + 0x1_0000 + 0x400 * number
}

fn dentry(number: u64) -> u64 {
    DIRECT + 0x2_0000 + 0x40 * number
}

struct World {
    memory: FakeMemory,
    profile: Vec<u8>,
    is_tree: bool,
}

impl World {
    /// The mounts `/`, `/mnt`, `/mnt/a b` and `/x`, in a list or in a tree.
    fn new(is_tree: bool) -> Self {
        let symbols = [
            (TEXT, b'T', "_text"),
            (PIDS, b'D', "init_pid_ns"),
            (LOCK, b'D', "mount_lock"),
            (HEADS, b'd', "mount_hashtable"),
            (MASK, b'd', "m_hash_mask"),
        ];
        // Where there is a list, the other name is that of a number.
        let kept: &[_] = match is_tree {
            true => &[("mnt_namespace.mounts", 8, 8), ("mount.mnt_node", NODE, 24)],
            false => &[
                ("mnt_namespace.list", 8, 16),
                ("mnt_namespace.mounts", 24, 4),
                ("mount.mnt_list", NODE, 16),
            ],
        };
        let profile = fake::profile(&symbols, &[LAYOUTS, kept].concat());
        let memory = FakeMemory::new(fake::TEXT_PHYSICAL + 0x1_0000);
        let world = Self { memory, profile, is_tree };
        for (at, value) in [
            (PIDS + 16, TASK),
            (TASK, 1),
            (TASK + 8, PROXY),
            (TASK + 16, FOLDERS),
            (PROXY + 8, SPACE),
            (SPACE, mount(0)),
            (FILE_SYSTEM + 8, KIND),
            (KIND, KIND + 16),
            (KIND + 16, u64::from_le_bytes(*b"tmpfs\0\0\0")),
            (SOURCE, u64::from_le_bytes(*b"none\0\0\0\0")),
            (HEADS, TABLE_HEADS),
            (MASK, 3),
        ] {
            world.set(at, value);
        }
        world.root(0);
        // Each mount has the root directory of its number; the places are entries of their parents' directories.
        for (number, parent, name) in [(0, 0, ""), (1, 0, "mnt"), (2, 1, "a b\x01"), (3, 0, "x")] {
            let (at, point) = (mount(number), dentry(8 + number));
            world.entry(dentry(number), dentry(number), "/");
            world.entry(point, dentry(parent), name);
            for (offset, value) in [
                (0, mount(parent)),
                (POINT, if number == 0 { dentry(0) } else { point }),
                (INNER, dentry(number)),
                (SUPER, FILE_SYSTEM),
                (DEVNAME, SOURCE),
                (ID, 20 + number),
                (UNIQUE, 1 << 31 | number),
                (OF, SPACE),
            ] {
                world.set(at + offset, value);
            }
        }
        world.set(mount(3) + DEVNAME, 0);
        world.keep(&[0, 1, 2, 3]);
        for (parent, children) in [(0, &[1, 3][..]), (1, &[2]), (2, &[]), (3, &[])] {
            world.children(parent, children);
        }
        world.bucket(0, &[1, 3]);
        world.bucket(3, &[2]);
        world
    }

    fn set(&self, address: u64, value: u64) {
        self.memory.set(fake::physical(address), value);
    }

    fn entry(&self, at: u64, parent: u64, name: &str) {
        self.set(at, parent);
        self.set(at + 8, at + 16);
        self.memory.put(fake::physical(at + 16), name.as_bytes());
    }

    /// The root directory of the first process is that of this mount.
    fn root(&self, number: u64) {
        self.set(FOLDERS + 8, mount(number) + INNER);
        self.set(FOLDERS + 16, dentry(number));
    }

    fn links(&self, head: u64, nodes: impl Iterator<Item = u64>) {
        let last = nodes.fold(head, |at, node| {
            self.set(at, node);
            node
        });
        self.set(last, head);
    }

    /// The namespace has these mounts. In a tree, each is left of the one before.
    fn keep(&self, numbers: &[u64]) {
        let nodes = numbers.iter().map(|number| mount(*number) + NODE);
        if !self.is_tree {
            return self.links(SPACE + 8, nodes);
        }
        let (mut pointer, mut parent) = (SPACE + 8, 0);
        for node in nodes {
            self.set(pointer, node);
            self.set(node, parent | 1);
            (pointer, parent) = (node + 16, node);
        }
        self.set(pointer, 0);
    }

    fn children(&self, parent: u64, numbers: &[u64]) {
        let nodes = numbers.iter().map(|number| mount(*number) + CHILD);
        self.links(mount(parent) + BELOW, nodes);
    }

    /// A bucket of the table has these mounts.
    fn bucket(&self, bucket: u64, numbers: &[u64]) {
        let last = numbers.iter().fold(TABLE_HEADS + 8 * bucket, |at, number| {
            self.set(at, mount(*number) + HASH);
            mount(*number) + HASH
        });
        self.set(last, 0);
    }

    fn list(&self) -> Mounts {
        let profile = Profile::decode(&self.profile).unwrap();
        list(&Kernel::new(&profile, &self.memory)).unwrap().unwrap()
    }

    /// The paths, with what lacks each.
    fn points(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for mount in self.list().mounts {
            let mut line =
                if mount.is_reachable { mount.point } else { "-".to_string() + &mount.point };
            mount.missing.iter().for_each(|place| line = line.clone() + ", " + place);
            lines.push(line);
        }
        lines
    }
}

#[test]
fn mounts_of_a_list_and_of_a_tree_are_listed() {
    for is_tree in [false, true] {
        let world = World::new(is_tree);
        let all = world.list();
        assert!(all.is_complete);
        let expected = |number: u64, source: &str, point: &str| Mount {
            address: mount(number),
            id: 20 + number as u32,
            unique: Some(1 << 31 | number),
            kind: "tmpfs".into(),
            source: source.into(),
            point: point.into(),
            is_reachable: true,
            missing: vec![],
        };
        let points = [("none", "/"), ("none", "/mnt"), ("none", "/mnt/a b?"), ("none", "/x")];
        let mounts =
            (0..).zip(points).map(|(number, (source, point))| expected(number, source, point));
        assert_eq!(all.mounts, mounts.collect::<Vec<_>>());
        world.set(LOCK, 1);
        assert!(!world.list().is_complete);
    }
}

#[test]
fn mount_that_one_structure_lacks_is_listed() {
    for is_tree in [false, true] {
        let world = World::new(is_tree);
        world.keep(&[0, 1, 3]);
        assert_eq!(world.points(), ["/", "/mnt", "/mnt/a b?, its mount namespace", "/x"]);
        world.children(0, &[1]);
        let both = ["/", "/mnt", "/mnt/a b?, its mount namespace", "/x, its parent's mounts"];
        assert_eq!(world.points(), both);
        assert!(world.list().is_complete);
    }
}

#[test]
fn mount_that_only_the_table_has_is_listed() {
    for is_tree in [false, true] {
        let world = World::new(is_tree);
        world.keep(&[0, 3]);
        world.children(0, &[3]);
        let lacks = "its mount namespace, its parent's mounts";
        let hidden =
            ["/".into(), format!("/mnt, {lacks}"), format!("/mnt/a b?, {lacks}"), "/x".into()];
        assert_eq!(world.points(), hidden);
        // A path leads to them, whatever namespace they name.
        world.set(mount(1) + OF, OTHER_SPACE);
        world.set(mount(2) + OF, 0);
        assert_eq!(world.points(), hidden);
        assert!(world.list().is_complete);
    }
}

#[test]
fn mount_that_the_table_lacks_is_marked() {
    let world = World::new(true);
    world.bucket(0, &[1]);
    let points = ["/", "/mnt", "/mnt/a b?", "/x, the table of mount points"];
    assert_eq!(world.points(), points);
    assert!(world.list().is_complete);
}

/// The table has those of all namespaces, and of none: a folder of mounts that was unmounted whole.
#[test]
fn mounts_of_other_namespaces_are_left_out() {
    let world = World::new(true);
    for (number, parent, namespace) in
        [(4, 4, OTHER_SPACE), (5, 4, OTHER_SPACE), (6, 6, 0), (7, 6, 0)]
    {
        world.set(mount(number), mount(parent));
        world.set(mount(number) + OF, namespace);
    }
    world.bucket(1, &[5, 7]);
    assert_eq!(world.points(), ["/", "/mnt", "/mnt/a b?", "/x"]);
    assert!(world.list().is_complete);
    // Lists, and mounts above each other, without an end.
    let damages: [fn(&World); 2] =
        [|w| w.set(mount(7) + HASH, mount(5) + HASH), |w| w.set(mount(4), mount(5))];
    for damage in damages {
        damage(&world);
        let all = world.list();
        assert_eq!((all.is_complete, all.mounts.len()), (false, 4));
        world.bucket(1, &[5, 7]);
    }
}

#[test]
fn what_the_first_process_cannot_reach_is_marked() {
    let world = World::new(true);
    world.root(1);
    assert_eq!(world.points(), ["-/", "/", "/a b?", "-/x"]);
    // A directory that was moved out of its mount.
    world.root(0);
    world.set(dentry(9), dentry(9));
    assert_eq!(world.points(), ["/", "-/", "-/a b?", "/x"]);
    assert!(world.list().is_complete);
}

#[test]
fn marks_of_readers_are_no_mounts() {
    let world = World::new(false);
    world.set(mount(5) + FLAGS, u64::from(CURSOR));
    world.keep(&[0, 5, 1, 2, 3]);
    assert_eq!(world.points(), ["/", "/mnt", "/mnt/a b?", "/x"]);
    assert!(world.list().is_complete);
    // Linux takes this mount for one.
    world.set(mount(3) + FLAGS, u64::from(CURSOR));
    assert_eq!(world.points(), ["/", "/mnt", "/mnt/a b?", "/x"]);
}

#[test]
fn damaged_structures_end_the_walk() {
    type Damage = fn(&World);
    let damages: [Damage; 14] = [
        // The namespace: a cycle, and pointers to nowhere.
        |w| w.set(mount(2) + NODE + if w.is_tree { 16 } else { 0 }, mount(1) + NODE),
        |w| w.set(mount(1) + NODE + if w.is_tree { 16 } else { 0 }, WILD),
        |w| w.set(SPACE + 8, WILD),
        // Mounts below others: two cycles, and pointers to nowhere.
        |w| w.set(mount(1) + CHILD, mount(1) + CHILD),
        |w| w.children(2, &[0]),
        |w| w.set(mount(3) + CHILD, WILD),
        // The table: a cycle, pointers to nowhere and to one that cannot be read, and a number without bounds.
        |w| w.set(mount(3) + HASH, mount(1) + HASH),
        |w| w.set(mount(3) + HASH, WILD),
        |w| w.set(TABLE_HEADS + 8, WILD),
        |w| w.set(HEADS, WILD),
        |w| w.set(HEADS, 7),
        |w| w.set(MASK, u64::from(u32::MAX)),
        // Paths: cycles of directories, and of mounts.
        |w| {
            w.set(dentry(9), dentry(15));
            w.entry(dentry(15), dentry(9), "loop");
        },
        |w| {
            w.set(mount(1), mount(2));
            w.set(mount(1) + POINT, dentry(2));
        },
    ];
    for is_tree in [false, true] {
        for (number, damage) in damages.iter().enumerate() {
            let world = World::new(is_tree);
            damage(&world);
            let all = world.list();
            assert_eq!((all.is_complete, all.mounts.len()), (false, 4), "{is_tree} {number}");
            // What was not walked lacks nothing.
            assert!(all.mounts.iter().all(|mount| mount.missing.is_empty()), "{is_tree} {number}");
        }
    }
}

#[test]
fn kernel_without_mounts_or_first_process_has_no_list() {
    let world = World::new(true);
    for (at, value) in [(PIDS + 16, 0), (TASK, 2), (TASK + 8, 0), (PROXY + 8, 0), (TASK + 16, WILD)]
    {
        let world = World::new(true);
        world.set(at, value);
        assert_eq!(world.list(), Mounts::default());
    }
    let layouts: Vec<_> =
        LAYOUTS.iter().filter(|(name, ..)| *name != "mount.mnt_id").copied().collect();
    let bytes = fake::profile(&[(TEXT, b'T', "_text"), (PIDS, b'D', "init_pid_ns")], &layouts);
    let profile = Profile::decode(&bytes).unwrap();
    assert_eq!(list(&Kernel::new(&profile, &world.memory)), Ok(None));
}

#[test]
fn no_memory_can_do_harm() {
    let mut numbers = fake::RandomNumbers(7);
    let mut incomplete = 0;
    for round in 0..fake::rounds(2000) {
        let world = World::new(round % 2 == 0);
        for _ in 0..1 + numbers.below(8) {
            let place = match numbers.below(4) {
                0 => mount(numbers.below(4)) + 8 * numbers.below(18),
                1 => [HEADS, MASK, TABLE_HEADS][numbers.below(3) as usize],
                2 => dentry(numbers.below(12)) + 8 * numbers.below(2),
                _ => {
                    [SPACE, TASK, PROXY, FOLDERS][numbers.below(4) as usize] + 8 * numbers.below(4)
                }
            };
            let value = match numbers.below(5) {
                0 => numbers.next(),
                1 => 0,
                2 => DIRECT + 8 * numbers.below(0x6000),
                3 => dentry(numbers.below(12)),
                _ => mount(numbers.below(4)) + 8 * numbers.below(18),
            };
            world.set(place, value);
        }
        let all = world.list();
        assert!(all.mounts.len() <= MAX_MOUNTS as usize);
        incomplete += u64::from(!all.is_complete);
    }
    assert!(incomplete > 0);
}
