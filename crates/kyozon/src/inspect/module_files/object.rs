//! A module's file: an object file that Linux links when it loads the module.
//!
//! The file is untrusted: any content gives a module or nothing. Sources: System V ABI, chapter 4, with its supplement
//! for AMD64, 4.4; Linux's `kernel/module/main.c` for the places of sections.

use object::elf::{
    FileHeader64, Rela64, SectionHeader64, Sym64, EM_X86_64, ET_REL, NT_GNU_BUILD_ID, R_X86_64_32,
    R_X86_64_32S, R_X86_64_64, R_X86_64_NONE, R_X86_64_PC32, R_X86_64_PC64, R_X86_64_PLT32,
    SHF_ALLOC, SHF_EXECINSTR, SHN_ABS, SHN_UNDEF, SHT_SYMTAB,
};
use object::read::elf::{
    FileHeader, NoteIterator, Rela, SectionHeader, SectionTable, Sym, SymbolTable,
};
use object::{LittleEndian, SectionIndex};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

type Header = FileHeader64<LittleEndian>;
const LE: LittleEndian = LittleEndian;
/// Maximum size of a module's code.
const MAX_CODE: usize = 64 << 20;
/// Sections of this prefix are for a module's initialization.
const INIT: &str = ".init";
/// Prefix of the names of static calls' trampolines.
const TRAMPOLINE: &str = "__SCT__";
/// Bytes of a near call or jump; of a conditional one.
const NEAR: usize = 5;
const NEAR_CONDITIONAL: usize = 6;
/// An `ENDBR64`, and what Linux writes in its place where nothing leads through a register (`gen_endbr_poison`).
const ENDBR: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const SEALED: [u8; 4] = [0x66, 0x0f, 0x1f, 0x00];
/// A prefix that locks the bus, and the one with which Linux replaces it on a single processor.
const LOCKS: [u8; 2] = [0xf0, 0x3e];
/// Maximum number of sections, and of relocations that are read; maximum length of a symbol's name.
const MAX_SECTIONS: usize = 4096;
const MAX_RELOCATIONS: usize = 1 << 20;
const MAX_NAME: usize = 512;
/// Maximum number of symbols, and of modules that the file depends on.
const MAX_SYMBOLS: usize = 1 << 18;
const MAX_DEPENDS: usize = 256;
/// The table of functions whose entries Linux rewrites for control-flow integrity (FineIBT, kCFI of clang).
const REWRITTEN: &str = ".cfi_sites";
const CALL: u8 = 0xe8;
const JMP: u8 = 0xe9;
const JMP_SHORT: u8 = 0xeb;
const NOP2: [u8; 2] = [0x66, 0x90];
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0, 0];

/// What a reference leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// An offset in the module's own code.
    Code(u64),
    /// An address that the file names.
    Fixed(u64),
    /// The beginning of a section of data, or of the initialization.
    Section(usize),
    /// A symbol of the kernel or of another module.
    Symbol(String),
}

/// The value of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The address, in eight bytes.
    Whole,
    /// The lower half of the address: the upper one is 0, or repeats the sign.
    Low,
    LowSigned,
    /// The distance from the reference, in four or eight bytes.
    Distance,
    LongDistance,
}

/// A place in the code that has an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its offset in the code.
    at: usize,
    value: Value,
    /// What is added to the address.
    addend: u64,
    pub target: Target,
    /// Whether it is part of a call or jump.
    pub is_branch: bool,
}

impl Reference {
    /// What the reference in `code`, which lies at `start`, leads to.
    pub fn found(&self, start: u64, code: &[u8]) -> Option<u64> {
        let field = code.get(self.at..)?;
        let half = || field.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let whole = || field.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let signed = |value: u32| i64::from(value as i32) as u64;
        let place = start.wrapping_add(self.at as u64);
        let value = match self.value {
            Value::Whole => whole()?,
            Value::Low => half()?.into(),
            Value::LowSigned => signed(half()?),
            Value::Distance => signed(half()?).wrapping_add(place),
            Value::LongDistance => whole()?.wrapping_add(place),
        };
        Some(value.wrapping_sub(self.addend))
    }

    /// Makes the reference in `code`, which lies at `start`, lead to `address`.
    pub fn write(&self, start: u64, address: u64, code: &mut [u8]) -> Option<()> {
        let place = start.wrapping_add(self.at as u64);
        let value = address.wrapping_add(self.addend);
        let (value, bytes) = match self.value {
            Value::Whole => (value, 8),
            Value::Low | Value::LowSigned => (value, 4),
            Value::Distance => (value.wrapping_sub(place), 4),
            Value::LongDistance => (value.wrapping_sub(place), 8),
        };
        code.get_mut(self.at..)?
            .get_mut(..bytes)?
            .copy_from_slice(value.to_le_bytes().get(..bytes)?);
        Some(())
    }
}

/// What Linux may write in the place of some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaskKind {
    /// Anything: Linux chooses by the processor.
    Any,
    /// What Linux's records say at any time: the entry of a function, a static call, its trampoline.
    Site,
    /// A return.
    Return,
    /// A call or jump through a register.
    Indirect,
    /// One of these.
    Choice(Vec<Vec<u8>>),
    /// One of these, of a jump label that leads to this offset in the code.
    Label(Vec<Vec<u8>>, usize),
}

/// Bytes that Linux changes, by their offsets in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    pub bytes: Range<usize>,
    pub kind: MaskKind,
}

/// A module's file.
#[derive(Debug, Default)]
pub struct Module {
    /// The names of the modules that it depends on.
    pub depends: Vec<String>,
    /// The contents of each section with code, by their offsets in memory.
    sections: Vec<(usize, Vec<u8>)>,
    pub references: Vec<Reference>,
    pub masks: Vec<Mask>,
    /// Offsets of the global functions.
    pub functions: BTreeMap<String, u64>,
}

/// The build ID in `notes`, which are padded to words.
pub fn build_id(notes: &[u8]) -> Option<&[u8]> {
    let notes = NoteIterator::<Header>::new(LE, 4, notes).ok()?;
    let mut notes = notes.map_while(Result::ok);
    let found =
        notes.find(|note| note.n_type(LE) == NT_GNU_BUILD_ID && note.name_bytes() == b"GNU\0");
    found.map(|note| note.desc())
}

impl Module {
    /// Reads `file`; `None` if it is no module for this processor, or another one than that with the build ID `id`.
    pub fn parse(file: &[u8], id: &[u8]) -> Option<Self> {
        let parser = Parser::new(file)?;
        let notes = parser.data(".note.gnu.build-id");
        (build_id(notes)? == id).then(|| parser.module())?
    }

    /// The code, `bytes` long, before Linux links it.
    pub fn code(&self, bytes: usize) -> Option<Vec<u8>> {
        let mut code = vec![0; bytes];
        for (offset, contents) in &self.sections {
            code.get_mut(*offset..)?.get_mut(..contents.len())?.copy_from_slice(contents);
        }
        Some(code)
    }

    /// What lies between the sections of a code of `bytes` bytes.
    pub fn gaps(&self, bytes: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let ends = self.sections.iter().map(|(offset, contents)| offset + contents.len());
        let starts = self.sections.iter().map(|(offset, _)| *offset).chain([bytes]);
        [0].into_iter().chain(ends).zip(starts).map(|(end, start)| end..start)
    }
}

/// An entry of a table.
struct Entry<'f> {
    bytes: &'f [u8],
    /// By their places in the entry: the offsets in the code that it names.
    sites: BTreeMap<usize, usize>,
}

struct Parser<'f> {
    file: &'f [u8],
    sections: SectionTable<'f, Header>,
    symbols: SymbolTable<'f, Header>,
    /// The names of the symbols.
    names: &'f [u8],
    /// The sections with code, by their numbers: their offsets in memory.
    offsets: BTreeMap<usize, usize>,
    /// Relocations that may still be read.
    left: Cell<usize>,
}

impl<'f> Parser<'f> {
    fn new(file: &'f [u8]) -> Option<Self> {
        let header = Header::parse(file).ok()?;
        if header.e_type(LE) != ET_REL
            || header.e_machine(LE) != EM_X86_64
            || !header.is_little_endian()
        {
            return None;
        }
        let sections = header.sections(LE, file).ok()?;
        let symbols = sections.symbols(LE, file, SHT_SYMTAB).ok()?;
        let names = sections.section(symbols.string_section()).ok()?.data(LE, file).ok()?;
        let left = Cell::new(MAX_RELOCATIONS);
        let mut parser = Self { file, sections, symbols, names, offsets: BTreeMap::new(), left };
        if sections.len() > MAX_SECTIONS
            || parser.symbols.len() > MAX_SYMBOLS
            || parser.section(REWRITTEN).is_some()
        {
            return None;
        }
        parser.place()?;
        Some(parser)
    }

    /// Gives each section with code its offset: they follow each other as in the file.
    fn place(&mut self) -> Option<()> {
        let mut end = 0usize;
        for (index, section) in self.sections.iter().enumerate() {
            let flags = section.sh_flags(LE);
            let wanted = SHF_ALLOC | SHF_EXECINSTR;
            if flags & wanted != wanted || self.name(section)?.starts_with(INIT) {
                continue;
            }
            let alignment = usize::try_from(section.sh_addralign(LE)).ok()?.max(1);
            let start = end.checked_next_multiple_of(alignment)?;
            end = start
                .checked_add(usize::try_from(section.sh_size(LE)).ok()?)
                .filter(|end| *end <= MAX_CODE)?;
            self.offsets.insert(index, start);
        }
        Some(())
    }

    fn name(&self, section: &SectionHeader64<LittleEndian>) -> Option<&'f str> {
        std::str::from_utf8(self.sections.section_name(LE, section).ok()?).ok()
    }

    fn section(&self, name: &str) -> Option<(SectionIndex, &'f SectionHeader64<LittleEndian>)> {
        self.sections.section_by_name(LE, name.as_bytes())
    }

    fn data(&self, name: &str) -> &'f [u8] {
        let section = self.section(name).and_then(|(_, section)| section.data(LE, self.file).ok());
        section.unwrap_or_default()
    }

    /// The relocations of section number `of`.
    fn relocations(&self, of: SectionIndex) -> impl Iterator<Item = &'f Rela64<LittleEndian>> + '_ {
        let these = self.sections.iter().filter(move |section| section.info_link(LE) == of);
        let tables = these.filter_map(|section| section.rela(LE, self.file).ok().flatten());
        let all = tables.flat_map(|(relocations, _)| relocations);
        all.take_while(|_| {
            self.left.set(self.left.get().saturating_sub(1));
            self.left.get() > 0
        })
    }

    /// What `relocation` leads to, and what it adds to that.
    fn target(&self, relocation: &Rela64<LittleEndian>) -> Option<(Target, u64)> {
        let symbol = self.symbols.symbol(relocation.symbol(LE, false)?).ok()?;
        let addend = relocation.r_addend(LE) as u64;
        let value = symbol.st_value(LE);
        match symbol.st_shndx(LE) {
            SHN_UNDEF => {
                let name = self.symbol_name(symbol)?;
                Some((Target::Symbol(String::from_utf8(name.to_vec()).ok()?), addend))
            }
            SHN_ABS => Some((Target::Fixed(value), addend)),
            section => {
                let section = section.index()?.into();
                Some(match self.offsets.get(&section) {
                    Some(offset) => (Target::Code(value.wrapping_add(*offset as u64)), addend),
                    None => (Target::Section(section), value.wrapping_add(addend)),
                })
            }
        }
    }

    /// The name of `symbol`.
    fn symbol_name(&self, symbol: &Sym64<LittleEndian>) -> Option<&'f [u8]> {
        let at = usize::try_from(symbol.st_name(LE)).ok()?;
        let rest = self.names.get(at..)?;
        let end = rest.iter().take(MAX_NAME).position(|byte| *byte == 0)?;
        rest.get(..end)
    }

    /// The offset in the code of the section that has `symbol`.
    fn offset(&self, symbol: &Sym64<LittleEndian>) -> Option<usize> {
        self.offsets.get(&symbol.st_shndx(LE).index()?.into()).copied()
    }

    fn module(&self) -> Option<Module> {
        let mut module =
            Module { depends: self.depends(), functions: self.functions(), ..Module::default() };
        for (&index, &offset) in &self.offsets {
            let section = self.sections.section(SectionIndex(index)).ok()?;
            module.sections.push((offset, section.data(LE, self.file).ok()?.to_vec()));
            for relocation in self.relocations(SectionIndex(index)) {
                let value = match relocation.r_type(LE, false) {
                    R_X86_64_NONE => continue,
                    R_X86_64_64 => Value::Whole,
                    R_X86_64_32 => Value::Low,
                    R_X86_64_32S => Value::LowSigned,
                    R_X86_64_PC32 | R_X86_64_PLT32 => Value::Distance,
                    R_X86_64_PC64 => Value::LongDistance,
                    _ => return None,
                };
                let (target, addend) = self.target(relocation)?;
                let at = offset.checked_add(usize::try_from(relocation.r_offset(LE)).ok()?)?;
                module.references.push(Reference {
                    at,
                    value,
                    addend,
                    target,
                    is_branch: relocation.r_type(LE, false) == R_X86_64_PLT32,
                });
            }
        }
        let bytes =
            module.sections.iter().map(|(offset, contents)| offset + contents.len()).max()?;
        module.masks = self.masks(&module.code(bytes)?);
        (self.left.get() > 0).then_some(module)
    }

    /// The modules in the line `depends=` of the file's description.
    fn depends(&self) -> Vec<String> {
        let mut lines = self.data(".modinfo").split(|byte| *byte == 0);
        let names = lines.find_map(|line| line.strip_prefix(b"depends=")).unwrap_or_default();
        let names = names.split(|byte| *byte == b',').filter(|name| !name.is_empty());
        let names = names.take(MAX_DEPENDS);
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    fn functions(&self) -> BTreeMap<String, u64> {
        let global = self.symbols.iter().filter(|symbol| !symbol.is_local());
        let found = global.filter_map(|symbol| {
            let offset = self.offset(symbol)? as u64;
            let name = self.symbol_name(symbol)?;
            Some((String::from_utf8(name.to_vec()).ok()?, offset.checked_add(symbol.st_value(LE))?))
        });
        found.collect()
    }

    /// The offset in the code that the entry of a table at `relocation` names.
    fn site(&self, relocation: &Rela64<LittleEndian>) -> Option<usize> {
        match self.target(relocation)? {
            (Target::Code(offset), addend) => usize::try_from(offset.wrapping_add(addend)).ok(),
            _ => None,
        }
    }

    /// The entries of the table `name`, of `size` bytes each.
    fn entries(&self, name: &str, size: usize) -> Vec<Entry<'f>> {
        let Some((index, section)) = self.section(name).filter(|_| size > 0) else {
            return Vec::new();
        };
        let data = section.data(LE, self.file).unwrap_or_default();
        let entry = |bytes| Entry { bytes, sites: BTreeMap::new() };
        let mut entries: Vec<Entry<'f>> = data.chunks_exact(size).map(entry).collect();
        for relocation in self.relocations(index) {
            let Ok(place) = usize::try_from(relocation.r_offset(LE)) else { continue };
            let entry = entries.get_mut(place / size);
            if let Some((entry, site)) = entry.zip(self.site(relocation)) {
                entry.sites.insert(place % size, site);
            }
        }
        entries
    }

    /// The offsets in the code that the entries of the table `name` begin with.
    fn sites(&self, name: &str, size: usize) -> Vec<usize> {
        let entries = self.entries(name, size);
        entries.iter().filter_map(|entry| entry.sites.get(&0).copied()).collect()
    }

    /// The bytes of `code` that Linux changes.
    fn masks(&self, code: &[u8]) -> Vec<Mask> {
        let mut masks = Vec::new();
        let mut add = |at: usize, bytes: usize, kind: MaskKind| {
            let end = at.saturating_add(bytes);
            masks.extend((end <= code.len()).then_some(Mask { bytes: at..end, kind }));
        };
        let at = |offset: usize| code.get(offset..).unwrap_or_default();
        // Two relocations an entry; the last two bytes are the lengths.
        let alternatives = self.section(".altinstructions").map_or(0, |(index, section)| {
            let entries = self.relocations(index).count() / 2;
            (section.sh_size(LE) as usize).checked_div(entries).unwrap_or(0)
        });
        for entry in self.entries(".altinstructions", alternatives) {
            if let (Some(site), [.., bytes, _]) = (entry.sites.get(&0), entry.bytes) {
                add(*site, usize::from(*bytes), MaskKind::Any);
            }
        }
        // Address, kind, length.
        for entry in self.entries(".parainstructions", 16) {
            if let (Some(site), Some(bytes)) = (entry.sites.get(&0), entry.bytes.get(9)) {
                add(*site, usize::from(*bytes), MaskKind::Any);
            }
        }
        for site in self.sites(".return_sites", 4) {
            add(site, NEAR, MaskKind::Return);
        }
        for site in self.sites(".retpoline_sites", 4) {
            let bytes =
                if matches!(at(site), [0x2e, ..] | [0x0f, ..]) { NEAR_CONDITIONAL } else { NEAR };
            add(site, bytes, MaskKind::Indirect);
        }
        for site in self.sites(".smp_locks", 4) {
            add(site, 1, MaskKind::Choice(LOCKS.map(|byte| vec![byte]).to_vec()));
        }
        for site in self.sites(".ibt_endbr_seal", 4) {
            add(site, ENDBR.len(), MaskKind::Choice(vec![ENDBR.to_vec(), SEALED.to_vec()]));
        }
        self.sites("__mcount_loc", 8).into_iter().for_each(|site| add(site, NEAR, MaskKind::Site));
        for entry in self.entries("__jump_table", 16) {
            let (Some(site), Some(target)) = (entry.sites.get(&0), entry.sites.get(&4)) else {
                continue;
            };
            let short = matches!(at(*site), [JMP_SHORT, ..] | [0x66, 0x90, ..]);
            let bytes = if short { 2 } else { NEAR };
            let distance = target.wrapping_sub(*site).wrapping_sub(bytes);
            let choices = match short {
                true => vec![NOP2.to_vec(), vec![JMP_SHORT, distance as u8]],
                false => {
                    let jump = [&[JMP][..], &(distance as u32).to_le_bytes()].concat();
                    vec![NOP5.to_vec(), jump]
                }
            };
            add(*site, bytes, MaskKind::Label(choices, *target));
        }
        for site in self.sites(".static_call_sites", 8) {
            let is_near = matches!(at(site), [CALL | JMP, ..]);
            add(site, if is_near { NEAR } else { NEAR_CONDITIONAL }, MaskKind::Site);
        }
        for symbol in self.symbols.iter() {
            let name = self.symbol_name(symbol).unwrap_or_default();
            if let Some(offset) =
                self.offset(symbol).filter(|_| name.starts_with(TRAMPOLINE.as_bytes()))
            {
                add(offset.saturating_add(symbol.st_value(LE) as usize), NEAR, MaskKind::Site);
            }
        }
        masks
    }
}
