//! A kernel that the monitor can watch, described by files like those of a running kernel.

use super::image::{self, Order};
use crate::payload::tests::{bzimage, gzip};
use anyhow::{bail, Result};
use kyozon_monitor::profile::build::{BTF, IOMEM, KALLSYMS, NOTES};
use kyozon_monitor::profile::requirements::{constants, members, symbols as required};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Contents by the end of the path; every other file has ten bytes.
pub struct Files(BTreeMap<&'static str, Option<Vec<u8>>>);

impl Default for Files {
    fn default() -> Self {
        let iomem = b"00100000-3ffdffff : System RAM\n  01000000-01ffffff : Kernel code\n";
        let texts = [(BTF, types()), (KALLSYMS, symbols().into()), (IOMEM, iomem.to_vec())];
        Self(texts.map(|(file, text)| (file, Some(text))).into())
    }
}

impl Files {
    pub fn read(&self, path: &Path) -> Result<Vec<u8>> {
        match self.0.iter().find(|(end, _)| path.ends_with(end)) {
            None => Ok(vec![1; 10]),
            Some((_, Some(bytes))) => Ok(bytes.clone()),
            Some((_, None)) => bail!("{}: no such file", path.display()),
        }
    }

    pub fn put(&mut self, end: &'static str, bytes: Vec<u8>) {
        self.0.insert(end, Some(bytes));
    }

    pub fn remove(&mut self, end: &'static str) {
        self.0.insert(end, None);
    }

    pub fn add(&mut self, end: &'static str, text: &str) {
        self.0.insert(end, Some(text.into()));
    }

    /// Adds the kernel's notes and, at `end`, the image with its symbol table.
    pub fn put_image(&mut self, end: &'static str) {
        let all = symbol_offsets();
        let symbols: Vec<_> =
            all.iter().map(|(name, at)| (*at as u32, true, b'D', *name)).collect();
        let table = image::symbol_table(LINKED, &symbols, Order::New);
        let vmlinux = image::vmlinux(LINKED, &table, &[&[], &[], &[]]);
        self.put(end, bzimage(&gzip(&vmlinux)));
        self.put(NOTES, image::note(image::BUILD));
    }

    /// Edits a text file.
    pub fn change(&mut self, end: &'static str, change: impl Fn(String) -> String) {
        let text = String::from_utf8(self.read(end.as_ref()).unwrap()).unwrap();
        self.0.insert(end, Some(change(text).into()));
    }

    /// Renames every item called `name`.
    pub fn hide(&mut self, end: &'static str, name: &str) {
        let mut bytes = self.read(end.as_ref()).unwrap();
        let is = |at: &usize| bytes[*at..].starts_with(name.as_bytes());
        let places: Vec<usize> = (0..bytes.len()).filter(is).collect();
        assert!(!places.is_empty(), "{name}");
        places.iter().for_each(|at| bytes[*at] = b'?');
        self.0.insert(end, Some(bytes));
    }
}

/// Where the kernel runs, and where its image was linked to run.
pub const TEXT: u64 = 0xffff_ffff_8100_0000;
const LINKED: u64 = 0xffff_ffff_8080_0000;
/// Bytes of the image.
pub const IMAGE_BYTES: u64 = 0x400_0000;

/// 16 MiB of text, 10 MiB of read-only data, and then the symbols that the checks require.
fn symbol_offsets() -> BTreeMap<&'static str, u64> {
    let mut symbols: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, at) in required().chain(["modules"]).zip(0..) {
        symbols.insert(name, 0x300_0000 + 0x1000 * at);
    }
    symbols.extend([("_text", 0), ("_stext", 0), ("_etext", 0x100_0000), ("_end", IMAGE_BYTES)]);
    symbols.extend([("__start_rodata", 0x200_0000), ("__end_rodata", 0x2a0_0000)]);
    symbols.extend([("__start_ro_after_init", 0x280_0000), ("__end_ro_after_init", 0x281_0000)]);
    symbols
}

fn symbols() -> String {
    let line = |(name, at): (&&str, &u64)| format!("{:016x} D {name}\n", TEXT + at);
    symbol_offsets().iter().map(line).collect()
}

/// Type information with all structures, members and constants that a profile may hold.
fn types() -> Vec<u8> {
    let mut btf = Btf { strings: vec![0], ..Btf::default() };
    let mut structures: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for (structure, path, _) in members() {
        let (member, inner) = path.split_once('.').unwrap_or((path, ""));
        let inner = Some(inner).filter(|inner| !inner.is_empty());
        structures.entry(structure).or_default().entry(member).or_default().extend(inner);
    }
    for (structure, members) in &structures {
        let mut typed = Vec::new();
        for (member, inner) in members {
            let inner: Vec<_> = inner.iter().map(|name| (*name, btf.number(8))).collect();
            let kind = match inner.is_empty() {
                true => btf.number(bytes(structure, member)),
                false => btf.structure("", &inner),
            };
            typed.push((*member, kind));
        }
        btf.structure(structure, &typed);
    }
    btf.constants();
    btf.file()
}

/// Size of a member in bytes. The checks depend on the size of some.
fn bytes(structure: &str, member: &str) -> u32 {
    match (structure, member) {
        ("xa_node", "slots") => 64 * 8,
        ("qrwlock" | "qspinlock", _) => 4,
        _ => 8,
    }
}

/// A builder of type information. Format: `Documentation/bpf/btf.rst` of Linux.
#[derive(Default)]
struct Btf {
    types: Vec<u32>,
    strings: Vec<u8>,
    /// Bytes of each type.
    sizes: Vec<u32>,
}

impl Btf {
    fn name(&mut self, name: &str) -> u32 {
        let at = self.strings.len();
        self.strings.extend(name.bytes().chain([0]));
        at as u32
    }

    /// Appends a type that begins with these words, and returns its number.
    fn put(&mut self, name: u32, kind: u32, count: usize, bytes: u32, rest: &[u32]) -> u32 {
        self.types.extend([name, kind << 24 | count as u32, bytes]);
        self.types.extend(rest);
        self.sizes.push(bytes);
        self.sizes.len() as u32
    }

    fn number(&mut self, bytes: u32) -> u32 {
        self.put(0, 1, 0, bytes, &[0])
    }

    /// Appends a structure of consecutive members with their types.
    fn structure(&mut self, name: &str, members: &[(&str, u32)]) -> u32 {
        let mut bytes = 0;
        let mut rest = Vec::new();
        for (member, kind) in members {
            rest.extend([self.name(member), *kind, 8 * bytes]);
            bytes += self.sizes[*kind as usize - 1];
        }
        let name = self.name(name);
        self.put(name, 4, members.len(), bytes, &rest)
    }

    fn constants(&mut self) {
        let rest: Vec<_> =
            constants().zip(0..).flat_map(|((name, _), i)| [self.name(name), i]).collect();
        self.put(0, 6, constants().count(), 4, &rest);
    }

    fn file(self) -> Vec<u8> {
        let types = 4 * self.types.len() as u32;
        let header = [0x1_eb9f, 24, 0, types, types, self.strings.len() as u32];
        let words = header.iter().chain(&self.types);
        words.flat_map(|word| word.to_le_bytes()).chain(self.strings).collect()
    }
}
