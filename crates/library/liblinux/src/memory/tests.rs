use super::*;

#[test]
fn memory_lies_where_boots_are_fast() {
    let image = Image { segments: Vec::new(), bytes: 0, entry: 0, relocations: Vec::new() };
    let file = File::open("/dev/null").expect("a file");
    let (one, two) = (
        Memory::map(&file, &image, 64 << 20).expect("memory"),
        Memory::map(&file, &image, 64 << 20).expect("memory"),
    );
    for memory in [&one, &two] {
        let start = memory.start() as usize;
        assert!((START..1 << 40).contains(&start), "at {start:#x}");
        assert_eq!(start % LIBRARY_MEMORY_ALIGN as usize, 0);
        assert_eq!(memory.bytes(), 64 << 20);
    }
    assert!((one.start() as usize).abs_diff(two.start() as usize) >= 64 << 20, "they overlap");
}
