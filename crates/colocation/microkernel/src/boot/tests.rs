use super::*;
use crate::fake::{boot, Fake, GATES, TABLES, TOP};
use crate::thread::State;

fn word(fake: &mut Fake, space: &Space, va: u64) -> Option<u64> {
    let mut word = [0];
    space.read(fake, va, &mut word).then_some(word[0])
}

#[test]
fn tasks_have_the_layout_of_their_images() {
    let data = [7u8; 5001];
    let (kernel, mut fake) = boot(2, 1200, &data);
    for (t, task) in kernel.tasks[..2].iter().enumerate() {
        let f = &mut fake;
        let s = &task.space;
        assert!(task.alive);
        assert_eq!(word(f, s, TASK_BASE + 0x2000), Some(0x5a5a_5a5a_5a5a_5a5a));
        assert_eq!(word(f, s, TASK_BASE + 0x2010), Some(0x5a), "the file's last byte, then zeros");
        assert_eq!(word(f, s, TASK_BASE + 0x3ff8), Some(0));
        assert_eq!(word(f, s, TASK_BASE + 0x4000), None);
        assert!(!s.write(f, TASK_BASE, &[1]) && !s.write(f, TASK_BASE + 0x1000, &[1]));
        assert!(s.write(f, TASK_BASE + 0x3000, &[1]));
        assert!(!s.write(f, TASK_INFO, &[1]));
        for n in 0..TASK_THREADS {
            let top = TASK_STACK_TOP - n * TASK_STACK_STRIDE;
            let bytes = if n == 0 { TASK_STACK_BYTES } else { THREAD_STACK_BYTES };
            assert!(s.write(f, top - 8, &[1]) && s.write(f, top - bytes, &[1]));
            assert!(!s.write(f, top - bytes - 8, &[1]), "a guard page");
            assert!(!s.write(f, top, &[1]));
        }
        let mut info = [0; 12];
        assert!(s.read(f, TASK_INFO, &mut info));
        assert_eq!(info[0], u64::from(TASK_VERSION) | 1 << 32);
        assert_eq!(info[1], t as u64 | 2 << 32);
        assert_eq!(info[7], if t == 0 { 5001 } else { 0 });
        let (heap, bytes) = (info[8], info[9]);
        assert_eq!((heap, bytes % PAGE), (TASK_HEAP_BASE, 0));
        assert!(s.write(f, heap, &[1]) && s.write(f, heap + bytes - 8, &[1]));
        assert!(!s.write(f, heap + bytes, &[1]));
        if t == 0 {
            assert_eq!(word(f, s, TASK_DATA_BASE + 4992), Some(0x0707_0707_0707_0707));
            assert_eq!(word(f, s, TASK_DATA_BASE + 5000), Some(7));
            assert!(!s.write(f, TASK_DATA_BASE, &[1]));
            assert!(bytes > HEAP_BYTES, "the first task gets the rest");
        } else {
            assert_eq!((bytes, word(f, s, TASK_DATA_BASE)), (HEAP_BYTES, None));
        }
    }
    assert_eq!(kernel.threads[0].state, State::Ready);
    assert_eq!((kernel.threads[0].priority, kernel.threads[4].priority), (24, 8));
}

#[test]
fn no_page_is_mapped_twice() {
    let (kernel, mut fake) = boot(3, 2000, b"data");
    let mut seen = std::collections::BTreeSet::new();
    for task in &kernel.tasks[..3] {
        let root = task.space.root & !0xfff;
        visit(&mut fake, root, 4, &mut seen);
    }
    assert!(seen.len() > 300);
}

/// Visits every table and page of the cokernel below `table`, and asserts that it is new.
fn visit(f: &mut Fake, table: u64, level: u32, seen: &mut std::collections::BTreeSet<u64>) {
    assert!(seen.insert(table), "{table:#x}");
    let entries = *f.page(table).unwrap();
    for entry in entries.into_iter().filter(|e| !TOP.contains(e)) {
        let to = entry & 0x000f_ffff_ffff_f000;
        if f.page(to).is_none() {
            continue;
        }
        assert!(level > 1 || entry & 2 == 0 || entry >> 63 == 1, "writable and executable");
        if level > 1 {
            visit(f, to, level - 1, seen);
        } else {
            assert!(seen.insert(to), "{to:#x}");
        }
    }
}

#[test]
fn too_little_memory_is_an_error() {
    let image = crate::elf::tests::image();
    for pages in [0, 1, 10, 50, 60] {
        let (mut kernel, mut fake) = (Kernel::EMPTY, Fake::new(pages));
        let mut memory = fake.memory;
        let mut boot = Boot {
            frames: &mut fake,
            memory: &mut memory,
            tables: TABLES,
            typed: None,
            gates: GATES,
            data: &[],
            info: StartInfo::default(),
            yield_cpu: |_| {},
        };
        let error = boot.tasks(&mut kernel, &[&image]).unwrap_err();
        assert_eq!(error, BootError { task: 0, reason: "not enough memory" }, "{pages}");
        let error = boot.tasks(&mut kernel, &[&image, b"?"]).unwrap_err();
        assert_eq!(error, BootError { task: 1, reason: "not a task image" });
    }
}
