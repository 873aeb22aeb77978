//! What Linux calls outside of its own code.

use super::{modules::file, Look, Row, LISTED};
use crate::inspect::dump::Dump;
use crate::inspect::module_files::Folder;
use anyhow::Result;
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::{hooks, modules};
use serde_json::json;
use std::collections::BTreeMap;

pub(super) fn look(kernel: &Kernel<'_, Dump>, files: Option<&Folder>) -> Result<(Look, bool)> {
    let listed = hooks::listing::list(kernel)?;
    let modules = modules::listing::list(kernel)?.unwrap_or_default();
    let paths: BTreeMap<String, String> = modules
        .iter()
        .filter_map(|module| Some((format!("module {}", module.name), file(files, module)?)))
        .collect();
    let mut look = Look::new();
    for hook in listed.hooks {
        let target = format!("{:#x}", hook.target);
        let file = hook.owner.as_ref().and_then(|owner| paths.get(owner));
        let row = Row {
            cells: vec![
                hook.kind.into(),
                hook.object.clone(),
                target.clone(),
                hook.owner.clone().unwrap_or_else(|| "nobody".into()),
                file.cloned().unwrap_or_else(|| "-".into()),
            ],
            is_shown: true,
            absent: hook.owner.is_none().then_some(LISTED).into_iter().collect(),
            object: json!({
                "kind": hook.kind,
                "object": hook.object,
                "function": hook.function,
                "target": target,
                "owner": hook.owner,
                "file": file,
            }),
            ..Row::default()
        };
        look.insert(row.cells.join("\0"), row);
    }
    Ok((look, listed.is_complete))
}
