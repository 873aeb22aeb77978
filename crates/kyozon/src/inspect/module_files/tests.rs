use super::object::Reference;
use super::*;
use ::object::write::{
    Object, Relocation, SectionId, StandardSegment, Symbol, SymbolId, SymbolSection,
};
use ::object::{
    elf, Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags,
    SymbolKind, SymbolScope,
};
use kyozon_monitor::profile::build::of_symbols;
use kyozon_monitor::random::Random;
use kyozon_monitor::text::modules::files::Other;
use std::io::Write;

const START: u64 = 0xffff_ffff_c000_0000;
const RODATA: u64 = START + 0x9000;
const PRINTK: u64 = 0xffff_ffff_8100_1000;
const THUNK: u64 = 0xffff_ffff_8100_2000;
const SYMBOLS: &str = "ffffffff81000000 t _printk\nffffffff81001000 T _printk\nffffffff81002000 T __x86_return_thunk\n";
const OTHER: u64 = START + 0x10_0000;
pub(crate) const ID: [u8; 4] = [1, 2, 3, 4];
const BYTES: usize = 4096;
/// Offsets in the code: references to data, calls of the kernel and of another module, a return, a call through a
/// register, a jump label with its target, a function's entry, a lock, a sealed entry, a call with a prefix, the end of
/// the first section, the second one.
const DATA: [usize; 3] = [0, 16, 32];
const CALLS: [usize; 3] = [48, 64, 80];
const OTHER_CALL: usize = 96;
const RETURN: usize = 112;
const INDIRECT: usize = 128;
const LABEL: usize = 144;
const LABEL_TARGET: usize = 176;
const ENTRY: usize = 192;
const LOCK: usize = 208;
const SEAL: usize = 212;
const PREFIXED: usize = 224;
const TEXT: usize = 250;
const EXIT: usize = 256;
const EXIT_BYTES: usize = 8;

struct Maker {
    object: Object<'static>,
    text: SymbolId,
    text_section: SectionId,
}

impl Maker {
    fn new() -> Self {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let text_section = object.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
        let text = object.section_symbol(text_section);
        Self { object, text, text_section }
    }

    fn section(&mut self, name: &str, kind: SectionKind, bytes: &[u8], align: u64) -> SectionId {
        let segment = self.object.segment_name(StandardSegment::Data).to_vec();
        let section = self.object.add_section(segment, name.as_bytes().to_vec(), kind);
        self.object.append_section_data(section, bytes, align);
        section
    }

    fn symbol(&mut self, name: &str, section: SymbolSection, value: u64) -> SymbolId {
        self.object.add_symbol(Symbol {
            name: name.as_bytes().to_vec(),
            value,
            size: 0,
            kind: SymbolKind::Text,
            scope: SymbolScope::Dynamic,
            weak: false,
            section,
            flags: SymbolFlags::None,
        })
    }

    fn relocate(
        &mut self,
        section: SectionId,
        at: usize,
        kind: elf::RelocationType,
        symbol: SymbolId,
        addend: i64,
    ) {
        let flags = RelocationFlags::Elf { r_type: kind };
        let relocation = Relocation { offset: at as u64, symbol, addend, flags };
        self.object.add_relocation(section, relocation).expect("a relocation");
    }

    /// A table whose entries begin with the distance to `sites` in the code.
    fn table(&mut self, name: &str, sites: &[usize]) {
        let table = self.section(name, SectionKind::ReadOnlyData, &vec![0; 4 * sites.len()], 1);
        for (number, site) in sites.iter().enumerate() {
            self.relocate(table, 4 * number, elf::R_X86_64_PC32, self.text, *site as i64);
        }
    }
}

/// The file of a module with everything.
fn file() -> Vec<u8> {
    let mut maker = Maker::new();
    let mut text: Vec<u8> = (0..TEXT).map(|at| at as u8 | 1).collect();
    for (sites, code) in [
        (&CALLS[..], &[0xe8, 0, 0, 0, 0][..]),
        (&[OTHER_CALL, ENTRY], &[0xe8, 0, 0, 0, 0]),
        (&[RETURN], &[0xe9, 0, 0, 0, 0]),
        (&[INDIRECT], &[0xff, 0xd0, 0x0f, 0x1f, 0]),
        (&[LABEL], &[0x0f, 0x1f, 0x44, 0, 0]),
        (&[LOCK], &[0xf0]),
        (&[SEAL], &[0xf3, 0x0f, 0x1e, 0xfa]),
        (&[PREFIXED], &[0x2e, 0xe9, 0, 0, 0, 0]),
    ] {
        sites.iter().for_each(|site| text[*site..][..code.len()].copy_from_slice(code));
    }
    let section = maker.text_section;
    maker.object.append_section_data(section, &text, 16);
    maker.section(".init.text", SectionKind::Text, &[0x90; 64], 16);
    maker.section(".exit.text", SectionKind::Text, &[0x55; EXIT_BYTES], 16);
    let rodata = maker.section(".rodata", SectionKind::ReadOnlyData, &[7; 64], 8);
    let rodata = maker.object.section_symbol(rodata);
    for (site, addend) in DATA.into_iter().zip([0, 8, 24]) {
        maker.relocate(section, site, elf::R_X86_64_32S, rodata, addend);
    }
    let printk = maker.symbol("_printk", SymbolSection::Undefined, 0);
    for site in CALLS {
        maker.relocate(section, site + 1, elf::R_X86_64_PLT32, printk, -4);
    }
    let other = maker.symbol("other_function", SymbolSection::Undefined, 0);
    maker.relocate(section, OTHER_CALL + 1, elf::R_X86_64_PLT32, other, -4);
    let thunk = maker.symbol("__x86_return_thunk", SymbolSection::Undefined, 0);
    maker.relocate(section, RETURN + 1, elf::R_X86_64_PLT32, thunk, -4);
    maker.table(".return_sites", &[RETURN]);
    maker.table(".retpoline_sites", &[INDIRECT, PREFIXED]);
    maker.table(".ibt_endbr_seal", &[SEAL]);
    maker.table(".smp_locks", &[LOCK]);
    let labels = maker.section("__jump_table", SectionKind::Data, &[0; 16], 8);
    let code = maker.text;
    maker.relocate(labels, 0, elf::R_X86_64_PC32, code, LABEL as i64);
    maker.relocate(labels, 4, elf::R_X86_64_PC32, code, LABEL_TARGET as i64);
    maker.relocate(labels, 8, elf::R_X86_64_PC64, rodata, 0);
    let entries = maker.section("__mcount_loc", SectionKind::ReadOnlyData, &[0; 8], 8);
    maker.relocate(entries, 0, elf::R_X86_64_64, code, ENTRY as i64);
    maker.section(".modinfo", SectionKind::ReadOnlyData, b"license=GPL\0depends=first,other\0", 1);
    maker.section(".note.gnu.build-id", SectionKind::Note, &notes(ID), 4);
    maker.object.write().expect("a file")
}

/// The file of the module `other`, with the build ID [`ID`].
pub(crate) fn other_file() -> Vec<u8> {
    let mut maker = Maker::new();
    maker.object.append_section_data(maker.text_section, &[0x90; 64], 16);
    let section = SymbolSection::Section(maker.text_section);
    maker.symbol("other_function", section, 0x20);
    maker.section(".note.gnu.build-id", SectionKind::Note, &notes(ID), 4);
    maker.object.write().expect("a file")
}

/// The notes of a module with the build ID `id`.
pub(crate) fn notes(id: [u8; 4]) -> Vec<u8> {
    [&[4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0", &id].concat()
}

/// The code of `file` as Linux links it.
fn linked(file: &[u8]) -> Vec<u8> {
    let module = Module::parse(file, &ID).expect("a module");
    let mut code = module.code(BYTES).expect("the code");
    for reference in &module.references {
        let address = match &reference.target {
            Target::Section(_) => RODATA,
            Target::Symbol(name) if name == "other_function" => OTHER + 0x20,
            Target::Symbol(name) if name == "_printk" => PRINTK,
            Target::Symbol(_) => THUNK,
            target => panic!("{target:?}"),
        };
        reference.write(START, address, &mut code).expect("a place");
    }
    code
}

struct World {
    folder: Folder,
    profile: Vec<u8>,
    _files: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let files = tempfile::tempdir().expect("a folder");
        let drivers = files.path().join("kernel/drivers");
        std::fs::create_dir_all(&drivers).expect("a folder");
        std::fs::write(drivers.join("modules.dep"), "").expect("a file");
        std::fs::write(files.path().join("other.ko"), other_file()).expect("a file");
        let packed = std::fs::File::create(drivers.join("the-module.ko.xz")).expect("a file");
        let mut packed =
            lzma_rust2::XzWriter::new(packed, lzma_rust2::XzOptions::default()).expect("a writer");
        packed.write_all(&file()).expect("room");
        packed.finish().expect("room");
        let folder = Folder::open(Some(files.path()), "6.0", false).expect("files");
        Self { folder, profile: of_symbols(SYMBOLS), _files: files }
    }

    /// The differences of a module with `code` and the build ID `id`.
    fn compare_as(&self, name: &str, id: [u8; 4], code: &[u8]) -> Option<FileCode> {
        let profile = Profile::decode(&self.profile).expect("a profile");
        let others = [("first", START + 0x8_0000), ("other", OTHER)].map(|(name, start)| Other {
            name: name.into(),
            notes: notes(ID).to_vec(),
            start,
        });
        let module = Loaded {
            name,
            notes: &notes(id),
            start: START,
            code,
            thunks: &[0x1000..0x2000, 0x3000..0x4000],
            others: &others,
        };
        self.folder.code(&profile, &module)
    }

    fn compare(&self, code: &[u8]) -> Vec<(u64, Vec<u8>)> {
        self.compare_as("the_module", ID, code).expect("a file").differences
    }

    /// Whether `bytes` may be at `offset` in the code.
    fn allows(&self, offset: usize, bytes: &[u8]) -> bool {
        let mut code = linked(&file());
        code[offset..][..bytes.len()].copy_from_slice(bytes);
        self.compare(&code).is_empty()
    }
}

#[test]
fn code_is_what_linux_makes_of_the_file() {
    let world = World::new();
    let code = linked(&file());
    assert_eq!(code[EXIT..][..EXIT_BYTES], [0x55; EXIT_BYTES]);
    assert_eq!(world.compare(&code), []);
    let sites = world.compare_as("the_module", ID, &code).expect("a file").sites;
    let sites: Vec<_> = sites.into_iter().map(|site| (site.address, site.target)).collect();
    let label = (START + LABEL as u64, Some(START + LABEL_TARGET as u64));
    assert_eq!(sites, [label, (START + ENTRY as u64, None)]);
    assert_eq!(
        world.folder.path("the_module", &notes(ID)),
        Some(Path::new("kernel/drivers/the-module.ko.xz"))
    );
}

#[test]
fn every_other_change_is_a_difference() {
    let world = World::new();
    let code = linked(&file());
    // What Linux's records judge.
    let free = |at: usize| (ENTRY..ENTRY + 5).contains(&at);
    for at in 0..BYTES {
        let mut changed = code.clone();
        changed[at] ^= 0x40;
        let found = world.compare(&changed);
        let expected = if free(at) { vec![] } else { vec![(START + at as u64, vec![code[at]])] };
        // A return or a jump label is judged as a whole.
        let place = [RETURN, LABEL].into_iter().find(|site| (*site..*site + 5).contains(&at));
        match place {
            None => assert_eq!(found, expected, "{at:#x}"),
            Some(_) => assert!(!found.is_empty(), "{at:#x}"),
        }
    }
}

#[test]
fn linux_chooses_some_instructions() {
    let world = World::new();
    assert!(world.allows(RETURN, &[0xc3, 0xcc, 0xcc, 0xcc, 0xcc]));
    assert!(!world.allows(RETURN, &[0xc3, 0x90, 0x31, 0xc0, 0xc3]));
    assert!(!world.allows(RETURN, &[0xe9, 0, 0, 0, 0]));
    assert!(!world.allows(CALLS[0], &[0xe8, 0, 0, 0, 0]));
    assert!(world.allows(INDIRECT, &[0xff, 0xd0, 0x90, 0x66, 0x90]));
    assert!(!world.allows(INDIRECT, &[0xff, 0xd1, 0x90, 0x66, 0x90]));
    assert!(!world.allows(INDIRECT, &[0xe8, 0, 0, 0, 0]));
    // A page of thunks of the module's own, also with the prefix that the higher registers have.
    let distance = (0x1800_u64.wrapping_sub(START + INDIRECT as u64 + 5) as u32).to_le_bytes();
    assert!(world.allows(INDIRECT, &[&[0xe8][..], &distance].concat()));
    let distance = (0x1800_u64.wrapping_sub(START + PREFIXED as u64 + 6) as u32).to_le_bytes();
    assert!(world.allows(PREFIXED, &[&[0x2e, 0xe9][..], &distance].concat()));
    assert!(!world.allows(PREFIXED, &[&[0xe9][..], &distance, &[0x55]].concat()));
    let jump = [&[0xe9][..], &((LABEL_TARGET - LABEL - 5) as u32).to_le_bytes()].concat();
    assert!(world.allows(LABEL, &jump));
    assert!(!world.allows(LABEL, &[0xe9, 0, 0, 0, 0]));
    assert!(world.allows(LOCK, &[0x3e]) && !world.allows(LOCK, &[0x90]));
    assert!(world.allows(SEAL, &[0x66, 0x0f, 0x1f, 0x00]));
    assert!(!world.allows(SEAL, &[0x31, 0xc0, 0xc3, 0x90]));
    // What Linux leaves between sections.
    assert!(world.allows(TEXT, &[0xcc]) && !world.allows(TEXT, &[0x90]));
}

#[test]
fn a_call_of_another_module_has_one_place() {
    let world = World::new();
    let module = Module::parse(&file(), &ID).expect("a module");
    let is_call = |it: &&Reference| it.target == Target::Symbol("other_function".into());
    let call = module.references.iter().find(is_call).expect("the call");
    let mut code = linked(&file());
    call.write(START, OTHER + 0x30, &mut code).expect("a place");
    assert_eq!(world.compare(&code).len(), 1);
}

#[test]
fn another_build_is_no_file_of_the_module() {
    let world = World::new();
    let code = linked(&file());
    assert_eq!(world.compare_as("the_module", [9; 4], &code), None);
    assert_eq!(world.compare_as("unknown", ID, &code), None);
    // Memory that is too small for the file's code.
    assert_eq!(world.compare_as("the_module", ID, &code[..16]), None);
    assert!(Folder::open(Some(Path::new("/nonexistent")), "6.0", false).is_none());
}

#[test]
fn any_file_is_a_module_or_none() {
    let whole = file();
    for end in 0..whole.len() {
        Module::parse(&whole[..end], &ID);
    }
    let world = World::new();
    let profile = Profile::decode(&world.profile).expect("a profile");
    let code = linked(&whole);
    let mut random = Random::new(7);
    let mut parsed = 0;
    for _ in 0..20_000 {
        let mut file = whole.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(file.len() as u64) as usize;
            file[at] = random.below(256) as u8;
        }
        let Some(module) = Module::parse(&file, &ID) else { continue };
        parsed += 1;
        let loaded = Loaded {
            name: "the_module",
            notes: &notes(ID),
            start: START,
            code: &code,
            thunks: &[],
            others: &[],
        };
        world.folder.expected(&profile, &loaded, &module);
    }
    assert!(parsed > 1000, "{parsed}");
}
