//! What a kernel says of itself for those who read its memory after its end (VMCOREINFO).
//!
//! It is text, a line for each item: `OSRELEASE=6.1.0`, `SYMBOL(_stext)=ffffffff81000000`, `NUMBER(phys_base)=0`. An
//! ELF core has it as a note; in other images it is searched for, at the beginning of a page. Source: Linux,
//! `Documentation/admin-guide/kdump/vmcoreinfo.rst`.

use super::dump::Dump;
use anyhow::{ensure, Context, Result};
use kyozon_monitor::memory::KernelMemory;
use std::sync::atomic::Ordering::Relaxed;

const NOTE_NAME: &[u8] = b"VMCOREINFO\0";
const FIRST: &[u8; 10] = b"OSRELEASE=";
/// The virtual address of physical address 0 by the mapping of the kernel's image, if the image was not moved.
const IMAGE: u64 = 0xffff_ffff_8000_0000;

/// The text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Information(String);

impl Information {
    /// What may be the kernel's own in `dump`: its note, or each page that looks like it.
    pub fn all(dump: &Dump) -> impl Iterator<Item = Self> + '_ {
        let note = note(&dump.notes).map(<[u8]>::to_vec);
        let pages = note.is_none().then(|| search(dump)).into_iter().flatten();
        note.into_iter().chain(pages).map(|text| {
            let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
            Self(String::from_utf8_lossy(&text[..end]).into_owned())
        })
    }

    fn item(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }

    /// The kernel's release.
    ///
    /// # Errors
    ///
    /// It is missing, or has characters that no release has: it is printed.
    pub fn release(&self) -> Result<&str> {
        let release = self.item("OSRELEASE").context("VMCOREINFO has no OSRELEASE")?;
        let is_usual = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
        ensure!(release.chars().all(is_usual), "VMCOREINFO's OSRELEASE is no release: {release:?}");
        Ok(release)
    }

    /// The address of a symbol.
    ///
    /// # Errors
    ///
    /// It is missing.
    pub fn symbol(&self, name: &str) -> Result<u64> {
        let value = self.item(&format!("SYMBOL({name})"));
        value.and_then(|value| u64::from_str_radix(value, 16).ok()).with_context(|| {
            format!("VMCOREINFO does not say where {name} is: Linux does since version 6.0")
        })
    }

    /// The physical address of an `address` in the kernel's image.
    ///
    /// # Errors
    ///
    /// The place of the image is missing.
    pub fn physical(&self, address: u64) -> Result<u64> {
        let base = self.item("NUMBER(phys_base)").and_then(|value| value.parse::<i64>().ok());
        let base = base.context("VMCOREINFO has no phys_base: only images of x86-64 are read")?;
        Ok(address.wrapping_sub(IMAGE).wrapping_add(base as u64))
    }
}

/// The contents of the note in `notes`: sizes of name and contents, type, both padded to four bytes.
fn note(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let size = |at: usize| {
            let bytes = notes.get(at..)?.first_chunk()?;
            Some(u32::from_le_bytes(*bytes) as usize)
        };
        let (name, contents) = (size(0)?, size(4)?);
        let padded = |bytes: usize| bytes.checked_next_multiple_of(4);
        let start = 12usize.checked_add(padded(name)?)?;
        if notes.get(12..)?.starts_with(NOTE_NAME) {
            return notes.get(start..start.checked_add(contents)?);
        }
        notes = notes.get(start.checked_add(padded(contents)?)?..)?;
    }
}

/// The pages that begin with such a text and name what that of every kernel does.
fn search(dump: &Dump) -> impl Iterator<Item = Vec<u8>> + '_ {
    dump.pages().filter(|at| dump.peek(*at).as_ref() == Some(FIRST)).filter_map(|at| {
        let page = dump.page(at)?;
        let text: Vec<u8> = page.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        let has = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
        (has(b"\nSYMBOL(_stext)=") && has(b"\nNUMBER(phys_base)=")).then_some(text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_found_behind_others() {
        let mut notes = Vec::new();
        for (name, contents) in [(&b"CORE\0"[..], &[1u8; 5][..]), (NOTE_NAME, b"OSRELEASE=6\n")] {
            for word in [name.len() as u32, contents.len() as u32, 0] {
                notes.extend(word.to_le_bytes());
            }
            for part in [name, contents] {
                notes.extend(part);
                notes.resize(notes.len().next_multiple_of(4), 0);
            }
        }
        assert_eq!(note(&notes), Some(&b"OSRELEASE=6\n"[..]));
        for end in 0..notes.len() {
            assert_eq!(note(&notes[..end]), None, "{end}");
        }
        notes[4..8].fill(0xff);
        assert_eq!(note(&notes), None);
    }

    #[test]
    fn items_are_read_by_name() {
        let text = "OSRELEASE=6.1\nNUMBER(phys_base)=-4096\nSYMBOL(_stext)=ffffffff81000000\n";
        let information = Information(text.into());
        assert_eq!(information.release().unwrap(), "6.1");
        let stext = information.symbol("_stext").unwrap();
        assert_eq!(information.physical(stext).unwrap(), 0x00ff_f000);
        for bad in ["6.1\x1b[8m", "6.1/../x", "6 1"] {
            let error = Information(format!("OSRELEASE={bad}\n")).release().unwrap_err();
            assert!(!error.to_string().contains('\x1b'), "{error}");
        }
        let error = information.symbol("kallsyms_names").unwrap_err().to_string();
        assert!(error.contains("where kallsyms_names is"), "{error}");
    }
}
