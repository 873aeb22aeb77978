//! Typed programs for a guest, from sources of this tree.

use anyhow::{bail, Context, Result};
use std::fs;
use std::path::Path;

/// Assembles each `.s` of a folder, without a check: names, as `FOLDER/NAME.typed`, and files. What a comment
/// `# patch: OFFSET BYTE...` says is written over the file's bytes. A source with a comment `# expect: ...` may be one
/// that the assembler refuses; it is left out.
pub fn assemble(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let read = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let paths = read.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "s")).collect();
    paths.sort();
    let group = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut programs = Vec::new();
    for path in paths {
        let source = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let comments = |key| source.lines().filter_map(move |line| line.strip_prefix(key));
        let mut file = match kyozon_typed_asm::assemble(&source, &path.display().to_string()) {
            Ok(module) => module.to_bytes(),
            Err(_) if comments("# expect: ").next().is_some() => continue,
            Err(error) => bail!("{error}"),
        };
        for comment in comments("# patch: ") {
            patch(&mut file, comment).with_context(|| format!("{}: {comment}", path.display()))?;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        programs.push((format!("{group}/{name}.typed"), file));
    }
    Ok(programs)
}

fn patch(file: &mut [u8], comment: &str) -> Result<()> {
    let mut words = comment.split_whitespace();
    let offset: usize = words.next().context("an offset is missing")?.parse()?;
    for (n, word) in words.enumerate() {
        *file.get_mut(offset + n).context("behind the end")? = u8::from_str_radix(word, 16)?;
    }
    Ok(())
}
