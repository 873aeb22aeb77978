use super::*;
use crate::fake::kernel::{IMAGE_BYTES, TEXT};
use crate::fake::{image, Fake};
use std::time::Instant;

const IMAGE: &str = "vmlinuz-6.99-none";

/// A machine with an image, root's rights and this listing.
fn machine(listing: impl Fn(String) -> String) -> Fake {
    let mut machine = Fake::default();
    machine.files.add("kptr_restrict", "0\n");
    machine.files.add("self/status", "Name:\tx\nCapEff:\t0000000400000000\n");
    machine.files.remove(KCORE);
    machine.files.put_image(IMAGE);
    machine.files.change(KALLSYMS, listing);
    machine
}

/// The warning, after a look at the addresses in the profile.
fn warning(machine: &Fake, file: Option<&str>) -> Option<String> {
    let requirements = requirements(machine, file.map(Path::new)).unwrap();
    let profile = Profile::decode(&requirements.profile).unwrap();
    assert_eq!((profile.text_base(), profile.image_end()), (TEXT, TEXT + IMAGE_BYTES));
    assert_eq!(profile.symbol("_etext"), Some(TEXT + 0x100_0000));
    assert!(profile.symbol("init_task") > Some(TEXT + 0x300_0000));
    requirements.warning
}

fn without(name: &'static str) -> impl Fn(String) -> String {
    move |text| {
        let others = text.lines().filter(|line| !line.ends_with(name));
        others.map(|line| format!("{line}\n")).collect()
    }
}

fn zeros(text: String) -> String {
    text.lines().map(|line| format!("{:016}{}\n", 0, &line[16..])).collect()
}

#[test]
fn a_filtered_listing_is_completed_from_the_image() {
    let hides = |count: &str, name: &str| {
        Some(format!(
            "/proc/kallsyms hides {count} that the kernel's image has, for example {name}: \
             something filters it; the symbols were taken from the image"
        ))
    };
    assert_eq!(warning(&machine(|text| text), None), None);
    for name in [" init_task", " _text", " modules", " _end"] {
        let warned = warning(&machine(without(name)), None);
        assert_eq!(warned, hides("1 symbol", name.trim()));
    }
    assert_eq!(warning(&machine(without("text")), None), hides("3 symbols", "_etext"));
    let moved = machine(|text| text.replace("ffffffff8300", "ffffffff8301"));
    assert_eq!(
        warning(&moved, None).unwrap(),
        "/proc/kallsyms shows another address or type of 1 symbol than the kernel's image, for example \
         __start_rodata: something filters it; the symbols were taken from the image"
    );
}

#[test]
fn a_description_has_the_symbols_of_the_image_and_no_fingerprints() {
    let machine = machine(without(" init_task"));
    let [with, without] = [true, false].map(|it| profiled(&machine, None, it).unwrap());
    assert_eq!(with.warning, without.warning);
    let [with, without] = [&with, &without].map(|it| Profile::decode(&it.profile).unwrap());
    assert!(with.fingerprint_bytes() > 0 && without.fingerprint_bytes() == 0);
    assert_eq!(with.symbol("init_task"), without.symbol("init_task"));
    // An image that is named must fit.
    let mut other = machine;
    other.files.put(NOTES, image::note([9; 20]));
    let named = Path::new("/boot").join(IMAGE);
    let error = format!("{:#}", description(&other, Some(&named)).err().unwrap());
    assert!(error.contains("build ID differs"), "{error}");
}

#[test]
fn kcore_says_where_the_kernel_is_if_no_symbol_does() {
    let mut head = image::vmlinux(TEXT, &vec![0; IMAGE_BYTES as usize], &[]);
    head.truncate(4096);
    for listing in [&zeros as &dyn Fn(String) -> String, &|_| String::new()] {
        let mut machine = machine(listing);
        let error = format!("{:#}", requirements(&machine, None).err().unwrap());
        assert!(error.contains("something filters /proc/kallsyms"), "{error}");
        machine.files.put(KCORE, head.clone());
        assert!(warning(&machine, None).unwrap().contains("hides 14 symbols"));
        // Linux itself hides them.
        machine.files.add("kptr_restrict", "2\n");
        let error = format!("{:#}", requirements(&machine, None).err().unwrap());
        assert!(error.ends_with("run as root, with kernel.kptr_restrict below 2"), "{error}");
    }
}

#[test]
fn without_the_image_a_filtered_listing_is_an_error() {
    let error = |machine: &Fake| format!("{:#}", requirements(machine, None).err().unwrap());
    let mut filtered = machine(without(" init_task"));
    filtered.files.remove(IMAGE);
    let text = error(&filtered);
    assert!(text.contains("the kernel has no symbol init_task, although it should: something"));
    let advice = "or give its image with --kernel-image (/boot/vmlinuz-6.99-none: no such file)";
    assert!(text.ends_with(advice), "{text}");
    // From elsewhere.
    filtered.files.put_image("other");
    assert!(warning(&filtered, Some("/x/other")).is_some());
    // Of another build.
    filtered.files.put_image(IMAGE);
    filtered.files.put(NOTES, image::note([9; 20]));
    assert!(error(&filtered).contains("build ID differs"));
    // Nothing hides what no check needs.
    let mut complete = machine(|text| text);
    complete.files.remove(IMAGE);
    assert_eq!(warning(&complete, None), None);
}

/// The images of the kernels in the cache of downloads.
fn cached_images() -> Vec<PathBuf> {
    let cache = std::env::var_os("KYOZON_CACHE").map(PathBuf::from);
    let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".cache/kyozon"));
    let folders = |path: PathBuf| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let kernels = cache.or_else(home).map(|cache| folders(cache.join("kernels")));
    let versions = kernels.into_iter().flatten().flat_map(folders);
    let files = versions.flat_map(|version| folders(version.join("boot")));
    let is_image = |path: &PathBuf| path.to_string_lossy().contains("/vmlinuz-");
    files.filter(is_image).collect()
}

/// Name, address and bytes of the sections of an ELF file.
fn sections(file: &[u8]) -> Vec<(String, u64, &[u8])> {
    let wide = |at: usize| u64::from_le_bytes(*file[at..].first_chunk().unwrap());
    let half = |at: usize| usize::from(u16::from_le_bytes(*file[at..].first_chunk().unwrap()));
    let header = |number: usize| wide(40) as usize + 64 * number;
    let names = wide(header(half(62)) + 24) as usize;
    let section = |number: usize| {
        let name = &file[names + wide(header(number)) as u32 as usize..];
        let end = name.iter().position(|byte| *byte == 0).unwrap();
        let [address, start, bytes] = [16, 24, 32].map(|at| wide(header(number) + at));
        let bytes = file[start as usize..].get(..bytes as usize).unwrap_or_default();
        (String::from_utf8_lossy(&name[..end]).into_owned(), address, bytes)
    };
    (0..half(60)).map(section).collect()
}

#[test]
fn stock_kernels_have_a_table() {
    let images = cached_images();
    if images.is_empty() {
        return eprintln!("skipped: no kernel in the cache: run make setup");
    }
    for file in images {
        let vmlinux = payload::unpack(&std::fs::read(&file).unwrap()).unwrap();
        let sections = sections(&vmlinux);
        let section = |name: &str| sections.iter().find(|section| section.0 == name).unwrap();
        let start = Instant::now();
        let table = SymbolTable::read(&vmlinux, section(".notes").2).unwrap();
        let symbols: Vec<_> = table.symbols().collect();
        println!("{}: {} symbols, {:?}", file.display(), symbols.len(), start.elapsed());
        assert!(symbols.len() > 50_000);
        let moving = || symbols.iter().filter(|symbol| symbol.moves);
        assert!(moving().is_sorted_by_key(|symbol| symbol.address));
        let places = [("_stext", ".text"), ("__start_rodata", ".rodata"), ("_sdata", ".data")];
        for (name, of) in places.into_iter().chain([("_sinittext", ".init.text")]) {
            let found = moving().find(|symbol| symbol.name == name).unwrap().address;
            assert_eq!(found, section(of).1, "{name}");
        }
        let line = |symbol: &kyozon_monitor::profile::ImageSymbol<'_>| {
            let address = symbol.address + if symbol.moves { 0x1a00_0000 } else { 0 };
            format!("{address:016x} {} {}\n", char::from(symbol.kind), symbol.name)
        };
        let listing: String = symbols.iter().map(line).collect();
        let compare = |listing: &str| filtered::compare(&table, listing, |_| None).unwrap();
        assert_eq!(compare(&listing), None);
        let filtered = compare(&without(" init_task")(listing.clone())).unwrap();
        assert_eq!((filtered.hidden.count, filtered.hidden.example.as_str()), (1, "init_task"));
        assert!(filtered.listing == listing);
    }
}
