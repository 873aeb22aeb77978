//! What is taken from the GNU assembler's object file.

use object::elf::RelocationType;
use object::read::elf::ElfFile64;
use object::{
    Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionIndex,
    SectionKind, SymbolSection,
};

use crate::error::Complaint;

/// A part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The machine code.
    Text,
    /// The read-only data.
    ReadOnly,
}

/// Where a symbol is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// In a part of the program, at this offset.
    In(Part, u64),
    /// It is this number.
    Absolute(u64),
    /// In no part: another source declares it.
    Undefined,
}

/// A symbol.
#[derive(Clone, Debug)]
pub(crate) struct Symbol {
    pub name: String,
    pub place: Place,
}

/// A field that the linker fills in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relocation {
    pub part: Part,
    pub offset: u64,
    /// Its type, an R_X86_64_*.
    pub kind: RelocationType,
    /// Number of its symbol among all.
    pub symbol: usize,
    pub addend: i64,
}

/// Sections, symbols, relocations.
pub(crate) struct ObjectFile {
    pub text: Vec<u8>,
    pub read_only: Vec<u8>,
    pub rest: Vec<u8>,
    pub symbols: Vec<Symbol>,
    pub relocations: Vec<Relocation>,
}

/// Where the bytes of a section went.
struct Taken {
    index: SectionIndex,
    part: Part,
    start: u64,
}

impl ObjectFile {
    /// Takes the parts out of an object file.
    pub fn parse(bytes: &[u8]) -> Result<Self, Complaint> {
        let broken = |error: object::Error| format!("the assembler's object file: {error}");
        let file: ElfFile64<'_> = ElfFile64::parse(bytes).map_err(broken)?;
        let mut this = ObjectFile {
            text: Vec::new(),
            read_only: Vec::new(),
            rest: Vec::new(),
            symbols: Vec::new(),
            relocations: Vec::new(),
        };
        let mut taken = Vec::new();
        for section in file.sections() {
            let name = section.name().map_err(broken)?;
            let part = match name {
                ".text" => Part::Text,
                ".rest" => {
                    this.rest = section.data().map_err(broken)?.to_vec();
                    continue;
                }
                _ if name == ".rodata" || name.starts_with(".rodata.") => Part::ReadOnly,
                _ => {
                    check_ignored(name, section.kind(), section.size())?;
                    continue;
                }
            };
            if section.align() > 64 {
                return Err(format!("section {name}: at most 64-byte alignment is possible"));
            }
            let bytes = match part {
                Part::Text => &mut this.text,
                Part::ReadOnly => &mut this.read_only,
            };
            bytes.resize(bytes.len().next_multiple_of(section.align().max(1) as usize), 0);
            taken.push(Taken { index: section.index(), part, start: bytes.len() as u64 });
            bytes.extend(section.data().map_err(broken)?);
        }
        this.take_symbols(&file, &taken).map_err(broken)?;
        for t in &taken {
            let section = file.section_by_index(t.index).map_err(broken)?;
            for (offset, relocation) in section.relocations() {
                let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
                let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
                this.relocations.push(Relocation {
                    part: t.part,
                    offset: t.start + offset,
                    kind: r_type,
                    symbol: symbol.0,
                    addend: relocation.addend(),
                });
            }
        }
        Ok(this)
    }

    /// The symbols, at their numbers in the file.
    fn take_symbols(&mut self, file: &ElfFile64<'_>, taken: &[Taken]) -> object::Result<()> {
        for symbol in file.symbols() {
            let place = match symbol.section() {
                SymbolSection::Absolute => Place::Absolute(symbol.address()),
                SymbolSection::Section(index) => {
                    let section = taken.iter().find(|t| t.index == index);
                    section
                        .map_or(Place::Undefined, |t| Place::In(t.part, t.start + symbol.address()))
                }
                _ => Place::Undefined,
            };
            let n = symbol.index().0;
            let blank = Symbol { name: String::new(), place: Place::Undefined };
            self.symbols.resize(self.symbols.len().max(n + 1), blank);
            self.symbols[n] = Symbol { name: symbol.name()?.to_string(), place };
        }
        Ok(())
    }

    /// Where the symbol of this name is, if it is defined.
    pub fn find(&self, name: &str) -> Option<Place> {
        let place = self.symbols.iter().find(|symbol| symbol.name == name)?.place;
        (!matches!(place, Place::Undefined)).then_some(place)
    }
}

/// A section that is no part of the program must not matter.
fn check_ignored(name: &str, kind: SectionKind, size: u64) -> Result<(), Complaint> {
    if size == 0 {
        return Ok(());
    }
    match kind {
        SectionKind::Data | SectionKind::UninitializedData => Err(format!(
            "section {name}: a program has no data of its own that it can write; keep it in the region"
        )),
        SectionKind::Text | SectionKind::ReadOnlyData | SectionKind::ReadOnlyString => {
            Err(format!("section {name}: write code into .text and constants into .rodata"))
        }
        _ => Ok(()),
    }
}
