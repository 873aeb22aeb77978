//! Modules, beside Linux's listings of them.

use super::{shown, Look, Row, NOWHERE};
use crate::groups::size;
use crate::inspect::dump::Dump;
use crate::inspect::module_files::Folder;
use anyhow::{Context, Result};
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::modules;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// Linux's listings of modules.
const MODULE_LIST: &str = "/proc/modules";
const MODULE_FOLDERS: &str = "/sys/module";

pub(super) fn look(
    kernel: &Kernel<'_, Dump>,
    is_live: bool,
    files: Option<&Folder>,
) -> Result<(Look, bool)> {
    let mut told: [(&'static str, BTreeSet<String>); 2] =
        [(MODULE_LIST, BTreeSet::new()), (MODULE_FOLDERS, BTreeSet::new())];
    if is_live {
        let list = fs::read(MODULE_LIST).context(MODULE_LIST)?;
        let name = |line: &[u8]| shown(line.split(|byte| *byte == b' ').next().unwrap_or_default());
        let lines = list.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        told[0].1 = lines.map(name).collect();
        let folders = fs::read_dir(MODULE_FOLDERS).context(MODULE_FOLDERS)?.flatten();
        // Code that is built in has a folder without this file.
        let folders = folders.filter(|folder| folder.path().join("initstate").exists());
        told[1].1 = folders.map(|folder| shown(folder.file_name().as_bytes())).collect();
    }
    let mut look = Look::new();
    for module in modules::listing::list(kernel)?.unwrap_or_default() {
        let mut absent: BTreeSet<&str> = module.missing.iter().copied().collect();
        for (place, names) in told.iter_mut() {
            if !names.remove(&module.name) && is_live && module.is_live {
                absent.insert(place);
            }
        }
        let file = file(files, &module);
        let row = Row {
            cells: vec![
                module.name.clone(),
                size(module.bytes),
                taints(module.taints),
                file.clone().unwrap_or_else(|| "-".into()),
            ],
            is_shown: true,
            object: json!({
                "name": module.name,
                "address": format!("{:#x}", module.address),
                "bytes": module.bytes,
                "taints": taints(module.taints),
                "file": file,
                "live": module.is_live,
            }),
            absent,
            ..Row::default()
        };
        look.insert(format!("{:#x}", module.address), row);
    }
    let [(_, listed), (_, folders)] = told;
    for name in listed.into_iter().chain(folders) {
        let row = Row {
            cells: vec![name.clone(), "-".into(), "-".into(), "-".into()],
            absent: BTreeSet::from([NOWHERE]),
            ..Row::default()
        };
        look.insert(name, row);
    }
    Ok((look, true))
}

/// The letters of a module's taints, as Linux prints them (`Documentation/admin-guide/tainted-kernels.rst`).
fn taints(bits: u64) -> String {
    let letters = "PFSRMBUDAWCIOELKXTN".chars().enumerate();
    let set: String = letters.filter(|(bit, _)| bits >> bit & 1 != 0).map(|(_, c)| c).collect();
    if set.is_empty() {
        "-".into()
    } else {
        set
    }
}

/// The file of `module`, for people.
pub(super) fn file(files: Option<&Folder>, module: &modules::listing::Module) -> Option<String> {
    let path = files?.path(&module.name, &module.notes)?;
    Some(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_are_linuxs_letters() {
        assert_eq!(
            (taints(0), taints(1 | 1 << 12 | 1 << 13), taints(1 << 18)),
            ("-".into(), "POE".into(), "N".into())
        );
    }
}
