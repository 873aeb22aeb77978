//! Typed programs for a guest, from sources of this tree.

use crate::suite::cargo;
use crate::{cache, process, product};
use anyhow::{bail, Context, Result};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The crates that compile typed code.
const COMPILER: [&str; 5] = ["annotate", "asm", "checker", "compiler", "manifest"];
/// Time limit of a compilation: SQLite takes some minutes.
const COMPILATION: Duration = Duration::from_secs(1800);

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

/// Compiles a program of `tests/typed/wasi/programs` from WebAssembly to typed code: its file. What was compiled
/// before, by the same compiler, is in the cache.
pub fn compiled(name: &str) -> Result<Vec<u8>> {
    let tree = cache::tree()?;
    let mut script = Command::new(tree.join("scripts/wasi.sh"));
    let folder = process::run_ok(script.arg(name), COMPILATION)?;
    let file = compiled_wasm(name, &Path::new(folder.trim()).join(format!("{name}.wasm")))?;
    fs::read(&file).with_context(|| file.display().to_string())
}

/// Commands of WASI that make the assertions of scripts of WebAssembly's official test suite, compiled to typed code:
/// names and files. `wrong` has an assertion that does not hold, `list` the numbers of assertions of the others. One
/// caller at a time: all write the same files.
pub fn suite(scripts: &[String]) -> Result<Vec<(String, Vec<u8>)>> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = cache::folder("typed/suite")?;
    let mut example = cargo(&cache::tree()?);
    example.args(["run", "--locked", "--quiet", "-p", "kyozon-typed-compiler", "--example"]);
    example.arg("suite-commands").arg("--").arg(&folder).args(scripts);
    let list = process::run_ok(&mut example, COMPILATION)?;
    let mut files = Vec::new();
    let names = list.lines().filter_map(|line| line.split(' ').next());
    for name in names.chain(["wrong"]) {
        let file = compiled_wasm(name, &folder.join(format!("{name}.wasm")))?;
        let contents = fs::read(&file).with_context(|| file.display().to_string())?;
        files.push((format!("{name}.typed"), contents));
    }
    files.push(("list".into(), list.into_bytes()));
    Ok(files)
}

/// Compiles a file of WebAssembly to typed code, and returns where that is in the cache.
pub fn compiled_wasm(name: &str, wasm: &Path) -> Result<PathBuf> {
    let tree = cache::tree()?;
    let mut hasher = DefaultHasher::new();
    fs::read(wasm).with_context(|| wasm.display().to_string())?.hash(&mut hasher);
    for part in COMPILER {
        hash_sources(&tree.join("crates/typed").join(part).join("src"), &mut hasher)?;
    }
    let file = cache::folder("typed")?.join(format!("{name}-{:016x}", hasher.finish()));
    if !file.exists() {
        eprintln!("lab: compiling {name} to typed code (once; SQLite takes some minutes)");
        let fresh = file.with_extension("new");
        let mut compile = Command::new(product::file("kyozon")?);
        compile.args(["typed", "compile"]).arg(wasm).arg("-o").arg(&fresh);
        process::run_ok(&mut compile, COMPILATION)?;
        fs::rename(&fresh, &file).with_context(|| file.display().to_string())?;
    }
    Ok(file)
}

/// Hashes names and contents of files, in the order of their names.
fn hash_sources(folder: &Path, hasher: &mut impl Hasher) -> Result<()> {
    let read = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths: Vec<PathBuf> =
        read.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_sources(&path, hasher)?;
            continue;
        }
        path.file_name().hash(hasher);
        fs::read(&path).with_context(|| path.display().to_string())?.hash(hasher);
    }
    Ok(())
}

fn patch(file: &mut [u8], comment: &str) -> Result<()> {
    let mut words = comment.split_whitespace();
    let offset: usize = words.next().context("an offset is missing")?.parse()?;
    for (n, word) in words.enumerate() {
        *file.get_mut(offset + n).context("behind the end")? = u8::from_str_radix(word, 16)?;
    }
    Ok(())
}
