//! What a host sets up before it runs a compiled program: memory, its contents, imports, and what it may call.
//!
//! The manifest follows the text in a typed program's file; the checker does not look at it. A host trusts nothing in
//! it but by [`Manifest::parse`], which checks that all of it lies within the file and the region.
//!
//! ```text
//! offset  bytes  header; all fields are little endian
//!      0      8  "KYZWASM1"
//!      8      4  bytes of the manifest
//!     12      4  bytes of the runtime's memory at the start of the region: a multiple of 64 KiB
//!     16      4  number of memories
//!     20      4  number of contents
//!     24      4  number of imports
//!     28      4  number of exports
//!     32         memories, 16 bytes each: distance from the region's start (8), initial pages of 64 KiB (4), most
//!                pages (4)
//!                contents, 16 bytes each: distance from the region's start (8), start in the manifest (4), bytes (4)
//!                imports, 24 bytes each: module, name, type; each as start in the manifest (4), bytes (4)
//!                exports, 24 bytes each: kind (4), number (4); name, type as above
//!                bytes that the parts above refer to
//! ```
//!
//! A text has at most [`MOST_TEXT`] bytes; imports and exports refer to no more bytes of texts, together, than the
//! manifest has. Nor do contents have more bytes, together.
//!
//! # How a host runs a program
//!
//! 1. The first [`Manifest::runtime`] bytes of the region and the initial pages of each memory become memory of zeros.
//!    All other addresses of the region fault.
//! 2. [`Manifest::contents`] are copied there.
//! 3. The entry is called with the number of an export. Before anything else, the start functions: [`START`] plus n for
//!    the n-th module of the program, in order.
//!
//! Arguments lie in the *call area*, at the start of the region: one slot of [`SLOT`] bytes each, in order. After the
//! return the results lie there in the same way. A trap is a fault or ud2; the program may be called again after it.
//!
//! # Imports
//!
//! Import n of the manifest has the number n in the file. Its arguments are passed as the System V ABI passes them: the
//! first six integers and references in rdi, rsi, rdx, rcx, r8 and r9, the first eight of f32, f64 and v128 in xmm0
//! to xmm7. What remains lies in the call area, in the order of the arguments, from slot 0. The first result is
//! returned in rax or xmm0; further ones in the call area, from slot 0.
//!
//! [`GROW`] of the module [`MODULE`] is the host's own: `grow(memory, pages)` makes a memory so many pages long, which
//! is never more than its most, and returns 1; or returns 0 and changes nothing.
//!
//! # Types
//!
//! A letter for each value: `i` i32, `I` i64, `f` f32, `F` f64, `v` v128, `r` funcref, `e` externref. Functions:
//! arguments, a colon, results. A null reference is 0.
#![no_std]
#![forbid(unsafe_code)]

/// First bytes of a manifest.
pub const MAGIC: &[u8; 8] = b"KYZWASM1";
/// Bytes of the header.
pub const HEADER: usize = 32;
/// Bytes of a slot of the call area.
pub const SLOT: usize = 16;
/// Bytes of a page.
pub const PAGE: u64 = 64 << 10;
/// Most pages of a memory.
pub const MOST_PAGES: u32 = 1 << 16;
/// Most memories of a program.
pub const MOST_MEMORIES: u32 = 64;
/// Most bytes of a text: a module, a name, or a type.
pub const MOST_TEXT: usize = 64 << 10;
/// See [`Manifest::parse_with`].
pub const STEP: usize = 256;
/// Number of the first module's start function, for the entry.
pub const START: u32 = 1 << 31;
/// Module of the imports that every host has.
pub const MODULE: &str = "kyozon";
/// The import that makes memories longer.
pub const GROW: &str = "memory.grow";

const MEMORY: usize = 16;
const CONTENT: usize = 16;
const IMPORT: usize = 24;
const EXPORT: usize = 24;

/// A linear memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Distance of its first byte from the region's start.
    pub distance: u64,
    /// Its pages at the start.
    pub initial: u32,
    /// The most pages that it may have.
    pub most: u32,
}

/// First contents of a part of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content<'a> {
    /// Distance from the region's start.
    pub distance: u64,
    /// What is there.
    pub bytes: &'a [u8],
}

/// A function of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Import<'a> {
    /// Its module.
    pub module: &'a str,
    /// Its name there.
    pub name: &'a str,
    /// Its type.
    pub signature: &'a str,
}

/// Kinds of exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// The number is what the entry takes.
    Function = 0,
    /// The number is that of the memory.
    Memory = 1,
    /// The number is the distance of its value from the region's start.
    Global = 2,
    /// The number is the distance of its length from the region's start, in entries of four bytes.
    Table = 3,
}

/// What the host may call or look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Export<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its number: see [`Kind`].
    pub number: u32,
    /// Its name. With several modules: the number of the module, a dot, and its name there.
    pub name: &'a str,
    /// Type of the function or global; empty for others.
    pub signature: &'a str,
}

/// A parsed manifest.
#[derive(Clone, Copy, Debug)]
pub struct Manifest<'a> {
    bytes: &'a [u8],
    runtime: u32,
    memories: &'a [u8],
    contents: &'a [u8],
    imports: &'a [u8],
    exports: &'a [u8],
}

/// What is wrong in a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It does not begin with the magic: the program is not compiled, or by another version.
    Magic,
    /// It ends within this part.
    Truncated(&'static str),
    /// Entry n of a part has a field that is out of range.
    Field(&'static str, u32),
}

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Malformed::Magic => f.write_str(
                "no manifest: the program was not compiled from WebAssembly, or by another version",
            ),
            Malformed::Truncated(part) => write!(f, "the manifest ends within its {part}"),
            Malformed::Field(part, n) => {
                write!(f, "manifest, {part} {n}: a field is out of range")
            }
        }
    }
}

impl core::error::Error for Malformed {}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

impl<'a> Manifest<'a> {
    /// Takes a manifest apart, for a region of so many reserved bytes.
    ///
    /// # Errors
    ///
    /// The first field that is wrong.
    pub fn parse(rest: &'a [u8], reserved: u64) -> Result<Self, Malformed> {
        Self::parse_with(rest, reserved, || ())
    }

    /// As [`Manifest::parse`], but calls `step` for each entry and for each [`STEP`] bytes of its texts, so that a
    /// kernel can schedule. The time is linear in the manifest's size.
    ///
    /// # Errors
    ///
    /// The first field that is wrong.
    pub fn parse_with(
        rest: &'a [u8],
        reserved: u64,
        step: impl FnMut(),
    ) -> Result<Self, Malformed> {
        if !rest.starts_with(MAGIC) {
            return Err(Malformed::Magic);
        }
        let field = |at| u32_at(rest, at).ok_or(Malformed::Truncated("header"));
        let bytes = rest.get(..field(8)? as usize).ok_or(Malformed::Truncated("bytes"))?;
        let mut tail = bytes.get(HEADER..).ok_or(Malformed::Truncated("header"))?;
        let mut part = |name, at, size: usize| {
            let length = (field(at)? as usize).checked_mul(size);
            let (head, rest) = length
                .and_then(|length| tail.split_at_checked(length))
                .ok_or(Malformed::Truncated(name))?;
            tail = rest;
            Ok(head)
        };
        let manifest = Manifest {
            bytes,
            runtime: field(12)?,
            memories: part("memories", 16, MEMORY)?,
            contents: part("contents", 20, CONTENT)?,
            imports: part("imports", 24, IMPORT)?,
            exports: part("exports", 28, EXPORT)?,
        };
        manifest.check(reserved, step)?;
        Ok(manifest)
    }

    fn check(&self, reserved: u64, mut step: impl FnMut()) -> Result<(), Malformed> {
        let runtime = u64::from(self.runtime);
        if !runtime.is_multiple_of(PAGE) || runtime > reserved {
            return Err(Malformed::Field("runtime's memory", 0));
        }
        if self.memories.len() / MEMORY > MOST_MEMORIES as usize {
            return Err(Malformed::Field("memory", MOST_MEMORIES));
        }
        let mut end = runtime;
        for n in 0..self.memories.len() / MEMORY {
            let memory = self.memory_at(n).filter(|memory| {
                let most = u64::from(memory.most) * PAGE;
                let fits = memory.distance.checked_add(most).is_some_and(|end| end <= reserved);
                fits && memory.distance >= end
                    && memory.distance.is_multiple_of(PAGE)
                    && memory.initial <= memory.most
                    && memory.most <= MOST_PAGES
            });
            let memory = memory.ok_or(Malformed::Field("memory", n as u32))?;
            end = memory.distance + u64::from(memory.most) * PAGE;
        }
        // Bytes that contents may still have. Without a limit, each entry could be all bytes, which takes too long.
        let mut left = self.bytes.len();
        for n in 0..self.contents.len() / CONTENT {
            step();
            let inside = self.content_at(n).is_some_and(|content| {
                let from = content.distance;
                let Some(rest) = left.checked_sub(content.bytes.len()) else { return false };
                left = rest;
                let Some(to) = from.checked_add(content.bytes.len() as u64) else { return false };
                let within = |start: u64, length: u64| from >= start && to - start <= length;
                within(0, runtime)
                    || self
                        .memories()
                        .any(|memory| within(memory.distance, u64::from(memory.initial) * PAGE))
            });
            if !inside {
                return Err(Malformed::Field("content", n as u32));
            }
        }
        // Bytes of texts that may still be looked at. Without a limit, each entry could refer to all bytes.
        let mut left = self.bytes.len();
        let mut look = |entry: &[u8], at: &[usize]| {
            step();
            at.iter().all(|&at| {
                let bytes = u32_at(entry, at + 4).map_or(usize::MAX, |bytes| bytes as usize);
                let fits = bytes <= MOST_TEXT && bytes <= left;
                if fits {
                    left -= bytes;
                    (0..bytes / STEP).for_each(|_| step());
                }
                fits
            })
        };
        for (n, entry) in self.imports.chunks(IMPORT).enumerate() {
            let valid = look(entry, &[0, 8, 16]) && self.import_at(n).is_some();
            if !valid {
                return Err(Malformed::Field("import", n as u32));
            }
        }
        for (n, entry) in self.exports.chunks(EXPORT).enumerate() {
            let valid = look(entry, &[8, 16])
                && self.export_at(n).is_some_and(|export| match export.kind {
                    Kind::Function => export.number < START,
                    Kind::Memory => (export.number as usize) < self.memories.len() / MEMORY,
                    Kind::Global => {
                        u64::from(export.number) + SLOT as u64 <= runtime
                            && export.signature.len() == 1
                    }
                    Kind::Table => u64::from(export.number) + 4 <= runtime,
                });
            if !valid {
                return Err(Malformed::Field("export", n as u32));
            }
        }
        Ok(())
    }

    /// Bytes at an entry's pair of start and length.
    fn slice(&self, entry: &[u8], at: usize) -> Option<&'a [u8]> {
        let start = u32_at(entry, at)? as usize;
        self.bytes.get(start..start.checked_add(u32_at(entry, at + 4)? as usize)?)
    }

    fn text(&self, entry: &[u8], at: usize) -> Option<&'a str> {
        core::str::from_utf8(self.slice(entry, at)?).ok()
    }

    fn memory_at(&self, n: usize) -> Option<Memory> {
        let entry = self.memories.get(n * MEMORY..(n + 1) * MEMORY)?;
        let (initial, most) = (u32_at(entry, 8)?, u32_at(entry, 12)?);
        Some(Memory { distance: u64_at(entry, 0)?, initial, most })
    }

    fn content_at(&self, n: usize) -> Option<Content<'a>> {
        let entry = self.contents.get(n * CONTENT..(n + 1) * CONTENT)?;
        Some(Content { distance: u64_at(entry, 0)?, bytes: self.slice(entry, 8)? })
    }

    fn import_at(&self, n: usize) -> Option<Import<'a>> {
        let entry = self.imports.get(n * IMPORT..(n + 1) * IMPORT)?;
        let signature = self.text(entry, 16)?;
        Some(Import { module: self.text(entry, 0)?, name: self.text(entry, 8)?, signature })
    }

    fn export_at(&self, n: usize) -> Option<Export<'a>> {
        let entry = self.exports.get(n * EXPORT..(n + 1) * EXPORT)?;
        let kind = match u32_at(entry, 0)? {
            0 => Kind::Function,
            1 => Kind::Memory,
            2 => Kind::Global,
            3 => Kind::Table,
            _ => return None,
        };
        let (name, signature) = (self.text(entry, 8)?, self.text(entry, 16)?);
        Some(Export { kind, number: u32_at(entry, 4)?, name, signature })
    }

    /// Bytes of the runtime's memory at the start of the region; a multiple of [`PAGE`].
    pub fn runtime(&self) -> u32 {
        self.runtime
    }

    /// The memories, in the order of their addresses; they do not overlap.
    pub fn memories(&self) -> impl Iterator<Item = Memory> + use<'a> {
        let this = *self;
        (0..self.memories.len() / MEMORY).map_while(move |n| this.memory_at(n))
    }

    /// First contents; each lies in the runtime's memory or in a memory's initial pages.
    pub fn contents(&self) -> impl Iterator<Item = Content<'a>> + use<'a> {
        let this = *self;
        (0..self.contents.len() / CONTENT).map_while(move |n| this.content_at(n))
    }

    /// Functions that the host must have, in the order of their numbers.
    pub fn imports(&self) -> impl Iterator<Item = Import<'a>> + use<'a> {
        let this = *self;
        (0..self.imports.len() / IMPORT).map_while(move |n| this.import_at(n))
    }

    /// Module, name and type of import n, as bytes: the time does not depend on their lengths.
    pub fn import_bytes(&self, n: usize) -> Option<[&'a [u8]; 3]> {
        let entry = self.imports.get(n * IMPORT..(n + 1) * IMPORT)?;
        Some([self.slice(entry, 0)?, self.slice(entry, 8)?, self.slice(entry, 16)?])
    }

    /// What the host may call or look at.
    pub fn exports(&self) -> impl Iterator<Item = Export<'a>> + use<'a> {
        let this = *self;
        (0..self.exports.len() / EXPORT).map_while(move |n| this.export_at(n))
    }
}

#[cfg(test)]
mod tests;
