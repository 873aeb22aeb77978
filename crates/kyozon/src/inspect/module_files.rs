//! The files of modules, below `/lib/modules`: what the code of each should be.

mod object;
#[cfg(test)]
pub(crate) mod tests;

use crate::payload;
use kyozon_monitor::profile::{Profile, Symbol};
use kyozon_monitor::text::modules::files::{FileCode, FileSite, Loaded, ModuleFiles};
use kyozon_monitor::text::thunks::Thunks;
pub(crate) use object::build_id;
use object::{MaskKind, Module, Target};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Where the files of a kernel's modules are, by its release.
const MODULES: &str = "/lib/modules";
/// Maximum size of a file, unpacked, and depth of the folders.
const MAX_BYTES: usize = 64 << 20;
const MAX_DEPTH: usize = 16;
/// Maximum number of files with one module's name that are read.
const MAX_SAME_NAME: usize = 8;
/// What Linux leaves between the parts of a module's code: zeros, or breakpoints.
const GAPS: [u8; 2] = [0, 0xcc];

/// The path of a file, and the build ID that it should have.
type Wanted = (PathBuf, Vec<u8>);

/// The files of a kernel's modules.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// By the module's name.
    files: BTreeMap<String, Vec<PathBuf>>,
    /// Whether the kernel counts calls (`retbleed=stuff`): then it has changed code where no table says.
    calls_changed: bool,
    thunks: RefCell<Option<Thunks>>,
    /// The files that were read, with the build IDs that were wanted: `None` for one that has another, or none.
    read: RefCell<BTreeMap<Wanted, Option<Rc<Module>>>>,
}

impl Folder {
    /// The files in `folder`, or in the usual one of the kernel `release`; `None` if there are none.
    pub fn open(folder: Option<&Path>, release: &str, calls_changed: bool) -> Option<Self> {
        let path = folder.map_or_else(|| Path::new(MODULES).join(release), Path::to_owned);
        let mut files = BTreeMap::new();
        add_files(&path, MAX_DEPTH, &mut files);
        (!files.is_empty()).then_some(Self {
            path,
            files,
            calls_changed,
            thunks: RefCell::default(),
            read: RefCell::default(),
        })
    }

    /// The file of the module `name` that has the build ID in `notes`, relative to the folder.
    pub fn path(&self, name: &str, notes: &[u8]) -> Option<&Path> {
        self.find(name, notes).map(|(path, _)| path.strip_prefix(&self.path).unwrap_or(path))
    }

    fn find(&self, name: &str, notes: &[u8]) -> Option<(&Path, Rc<Module>)> {
        let id = build_id(notes)?;
        let mut paths = self.files.get(name)?.iter().take(MAX_SAME_NAME);
        paths.find_map(|path| Some((path.as_path(), self.read(path, id)?)))
    }

    /// The file at `path`, of a module with the build ID `id`.
    fn read(&self, path: &Path, id: &[u8]) -> Option<Rc<Module>> {
        let mut read = self.read.borrow_mut();
        let known = read.entry((path.to_owned(), id.to_vec())).or_insert_with(|| {
            let packed = contents(path)?;
            Module::parse(&payload::unpack_file(&packed, MAX_BYTES).ok()?, id).map(Rc::new)
        });
        known.clone()
    }

    /// The modules that `module` depends on: where each one's code is, and its file.
    fn others(&self, module: &Loaded<'_>, file: &Module) -> Vec<(u64, Rc<Module>)> {
        let others = file.depends.iter().filter_map(|name| {
            let other = module.others.iter().find(|other| other.name == *name)?;
            Some((other.start, self.find(name, &other.notes)?.1))
        });
        others.collect()
    }

    /// The addresses that a reference may lead to; none if only the other references tell.
    fn addresses(
        profile: &Profile<'_>,
        module: &Loaded<'_>,
        others: &[(u64, Rc<Module>)],
        target: &Target,
    ) -> Vec<u64> {
        match target {
            Target::Code(offset) => vec![module.start.wrapping_add(*offset)],
            Target::Fixed(address) => vec![*address],
            Target::Section(_) => Vec::new(),
            Target::Symbol(name) => {
                // Linux exports only global symbols.
                let global = |symbol: &Symbol<'_>| symbol.kind.is_ascii_uppercase();
                let own = profile.symbols_called(name).filter(global).map(|symbol| symbol.address);
                let other = others
                    .iter()
                    .find_map(|(start, file)| Some(start.wrapping_add(*file.functions.get(name)?)));
                own.chain(other).collect()
            }
        }
    }

    /// The code of `file`, linked to the place of `module`.
    fn linked(&self, profile: &Profile<'_>, module: &Loaded<'_>, file: &Module) -> Option<Vec<u8>> {
        let mut code = file.code(module.code.len())?;
        let others = self.others(module, file);
        let mut targets: BTreeMap<&Target, Vec<u64>> = BTreeMap::new();
        // Where only the references themselves tell what they lead to, most of them are believed.
        let mut votes: BTreeMap<&Target, BTreeMap<u64, usize>> = BTreeMap::new();
        for reference in &file.references {
            let target = &reference.target;
            let find = || Self::addresses(profile, module, &others, target);
            if targets.entry(target).or_insert_with(find).is_empty() {
                if reference.is_branch && matches!(target, Target::Symbol(_)) {
                    return None;
                }
                let found = reference.found(module.start, module.code)?;
                *votes.entry(target).or_default().entry(found).or_default() += 1;
            }
        }
        let chosen = votes.into_iter().filter_map(|(target, counts)| {
            let most = counts.into_iter().max_by_key(|(_, count)| *count);
            Some((target, vec![most?.0]))
        });
        targets.extend(chosen);
        for reference in &file.references {
            let found = reference.found(module.start, module.code)?;
            let may_be = targets.get(&reference.target)?;
            let address = if may_be.contains(&found) { found } else { *may_be.first()? };
            reference.write(module.start, address, &mut code)?;
        }
        Some(code)
    }

    /// What Linux makes of `file` at the place of `module`, with the bytes in memory where that cannot be known.
    fn expected(
        &self,
        profile: &Profile<'_>,
        module: &Loaded<'_>,
        file: &Module,
    ) -> Option<FileCode> {
        let mut expected = self.linked(profile, module, file)?;
        let mut thunks = self.thunks.borrow_mut();
        let thunks = thunks.get_or_insert_with(|| Thunks::new(profile));
        let mut sites = Vec::new();
        for mask in &file.masks {
            let bytes = mask.bytes.clone();
            let (found, should) = (module.code.get(bytes.clone())?, expected.get_mut(bytes)?);
            let address = module.start.wrapping_add(mask.bytes.start as u64);
            let mut site = |target| {
                sites.push(FileSite { address, bytes: should.to_vec(), target });
            };
            let is_allowed = match &mask.kind {
                MaskKind::Any => true,
                MaskKind::Site => {
                    site(None);
                    true
                }
                MaskKind::Return => thunks.is_return(address, found),
                MaskKind::Indirect => module.is_indirect(profile, thunks, address, found, should),
                MaskKind::Choice(choices) => choices.iter().any(|choice| choice == found),
                MaskKind::Label(choices, target) => {
                    site(Some(module.start.wrapping_add(*target as u64)));
                    choices.iter().any(|choice| choice == found)
                }
            };
            if is_allowed {
                should.copy_from_slice(found);
            }
        }
        for at in file.gaps(expected.len()).flatten() {
            let (found, should) = (*module.code.get(at)?, expected.get_mut(at)?);
            if GAPS.contains(&found) {
                *should = found;
            }
        }
        sites.sort_by_key(|site| site.address);
        Some(FileCode { differences: differences(module, &expected), sites })
    }
}

impl ModuleFiles for Folder {
    fn code(&self, profile: &Profile<'_>, module: &Loaded<'_>) -> Option<FileCode> {
        if self.calls_changed {
            return None;
        }
        let (_, file) = self.find(module.name, module.notes)?;
        self.expected(profile, module, &file)
    }
}

/// Where the code of `module` is not as `expected`.
fn differences(module: &Loaded<'_>, expected: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut differences: Vec<(u64, Vec<u8>)> = Vec::new();
    for ((at, found), should) in (module.start..).zip(module.code).zip(expected) {
        if found == should {
            continue;
        }
        match differences.last_mut() {
            Some((start, bytes)) if *start + bytes.len() as u64 == at => bytes.push(*should),
            _ => differences.push((at, vec![*should])),
        }
    }
    differences
}

/// The contents of the regular file at `path`.
pub(crate) fn contents(path: &Path) -> Option<Vec<u8>> {
    // A pipe that nobody writes to would be waited for.
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Adds the files of modules in `folder`, by the names of the modules.
fn add_files(folder: &Path, depth: usize, files: &mut BTreeMap<String, Vec<PathBuf>>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            // No link: one leads to the sources of the kernel.
            Ok(kind) if kind.is_dir() && depth > 0 => add_files(&path, depth - 1, files),
            Ok(kind) if !kind.is_dir() => {
                let name = entry.file_name().into_string().unwrap_or_default();
                if let Some((name, "ko" | "ko.xz" | "ko.gz" | "ko.zst")) = name.split_once('.') {
                    files.entry(name.replace('-', "_")).or_default().push(path);
                }
            }
            _ => {}
        }
    }
}
