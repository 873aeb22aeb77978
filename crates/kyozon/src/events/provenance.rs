//! Where the module that a finding leads to comes from, as Linux says now: an intruder in Linux can forge all of it.

use crate::inspect::module_files::{build_id, contents, Folder};
use serde_json::{json, Value};
use std::cell::OnceCell;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Linux's listing of modules.
const SYSFS: &str = "/sys/module";
/// How a finding names an owner that is a module.
const PREFIX: &str = "module ";
/// Where the modules of the kernel's package are, and those that DKMS built.
const PACKAGE: &str = "kernel";
const DKMS: &str = "updates/dkms";

/// The modules of a running kernel and their files.
#[derive(Debug)]
pub struct Modules {
    sysfs: PathBuf,
    release: String,
    /// Read once, with the first finding that leads to a module.
    files: OnceCell<Option<Folder>>,
}

impl Modules {
    /// Those of this machine, whose kernel is `release`.
    pub fn running(release: String) -> Self {
        Self { sysfs: SYSFS.into(), release, files: OnceCell::new() }
    }

    /// What is known about the module that `owner`, in the words of a finding, names; `None` if it names no module.
    pub fn provenance(&self, owner: &str) -> Option<Value> {
        let name = owner.strip_prefix(PREFIX)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        let folder = self.sysfs.join(name);
        let taint = contents(&folder.join("taint"));
        let taint = taint.map(|taint| String::from_utf8_lossy(&taint).trim_end().to_owned());
        let notes = contents(&folder.join("notes/.note.gnu.build-id")).unwrap_or_default();
        let files = self.files.get_or_init(|| Folder::open(None, &self.release, false));
        let file = files.as_ref().and_then(|files| files.path(name, &notes));
        Some(json!({
            "name": name,
            "taint": taint,
            "build_id": build_id(&notes).map(hexadecimal),
            "file": file.map(Path::to_string_lossy),
            "origin": origin(file),
        }))
    }
}

/// Who put the file there, by its path below the folder of the kernel's modules.
fn origin(file: Option<&Path>) -> &'static str {
    match file {
        Some(path) if path.starts_with(PACKAGE) => "package",
        Some(path) if path.starts_with(DKMS) => "dkms",
        Some(_) => "local",
        None => "unknown",
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes all");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::module_files::tests::{notes, other_file, ID};
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    fn modules(folder: &Path, file: &str) -> Modules {
        let path = folder.join("lib").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, other_file()).unwrap();
        let sysfs = folder.join("sys");
        fs::create_dir_all(sysfs.join("evil/notes")).unwrap();
        fs::write(sysfs.join("evil/taint"), "OE\n").unwrap();
        fs::write(sysfs.join("evil/notes/.note.gnu.build-id"), notes(ID)).unwrap();
        let files = Folder::open(Some(&folder.join("lib")), "", false);
        Modules { sysfs, release: String::new(), files: OnceCell::from(files) }
    }

    #[test]
    fn a_module_comes_from_where_its_file_is() {
        for (file, origin) in [
            ("kernel/fs/evil.ko", "package"),
            ("updates/dkms/evil.ko", "dkms"),
            ("updates/evil.ko", "local"),
            ("kernel/fs/other.ko", "unknown"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let known = modules(folder.path(), file).provenance("module evil").unwrap();
            let path = if origin == "unknown" { Value::Null } else { json!(file) };
            assert_eq!(
                known,
                json!({
                    "name": "evil", "taint": "OE", "build_id": "01020304", "file": path, "origin": origin,
                })
            );
        }
    }

    #[test]
    fn a_folder_may_have_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let modules = modules(folder.path(), "updates/other.ko");
        let odd = folder.path().join("lib/updates").join(OsStr::from_bytes(b"\xff"));
        fs::create_dir(&odd).unwrap();
        fs::write(odd.join("evil.ko"), other_file()).unwrap();
        let files = Folder::open(Some(&folder.path().join("lib")), "", false);
        let modules = Modules { files: OnceCell::from(files), ..modules };
        let known = modules.provenance("module evil").unwrap();
        assert_eq!(
            (&known["file"], &known["origin"]),
            (&json!("updates/\u{fffd}/evil.ko"), &json!("local"))
        );
    }

    #[test]
    fn another_build_is_not_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let modules = modules(folder.path(), "kernel/evil.ko");
        let notes = notes([1, 2, 3, 5]);
        fs::write(modules.sysfs.join("evil/notes/.note.gnu.build-id"), notes).unwrap();
        let known = modules.provenance("module evil").unwrap();
        assert_eq!((&known["build_id"], &known["origin"]), (&json!("01020305"), &json!("unknown")));
    }

    #[test]
    fn an_owner_that_is_no_module_has_no_provenance() {
        let modules = Modules::running("none".into());
        for owner in ["bpf x", "module ", "module ../../etc", "module a b", "vfs_read+0x4"] {
            assert_eq!(modules.provenance(owner), None, "{owner}");
        }
        let known = modules.provenance("module not-there").unwrap();
        assert_eq!((&known["taint"], &known["origin"]), (&Value::Null, &json!("unknown")));
    }
}
