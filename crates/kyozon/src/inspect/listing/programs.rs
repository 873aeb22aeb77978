//! BPF programs, beside bpf(2).

use super::{Look, Row, NOWHERE};
use crate::inspect::bpf_ids;
use crate::inspect::dump::Dump;
use anyhow::Result;
use kyozon_monitor::bpf;
use kyozon_monitor::kernel::Kernel;
use serde_json::json;
use std::collections::BTreeSet;

/// Linux's listing of BPF programs.
const BPF_IDS: &str = "bpf(2)";

pub(super) fn look(kernel: &Kernel<'_, Dump>, is_live: bool) -> Result<(Look, bool)> {
    let mut told = if is_live { bpf_ids::told()? } else { BTreeSet::new() };
    let mut listed = bpf::listing::list(kernel)?;
    // Of two programs with the same ID, Linux tells of the one that it can find.
    listed.programs.sort_by_key(|program| program.missing.len());
    let mut look = Look::new();
    for program in listed.programs {
        let mut absent: BTreeSet<&str> = program.missing.iter().copied().collect();
        if !told.remove(&program.id) && is_live {
            absent.insert(BPF_IDS);
        }
        let (address, bytes) = program.code;
        let name = if program.name.is_empty() { "-" } else { &program.name };
        let row = Row {
            cells: vec![program.id.to_string(), name.into(), bytes.to_string()],
            order: program.id,
            is_shown: true,
            object: json!({
                "id": program.id,
                "name": program.name,
                "address": format!("{:#x}", program.address),
                "code": format!("{address:#x}"),
                "bytes": bytes,
            }),
            absent,
            ..Row::default()
        };
        look.insert(format!("{:#x}/{}", program.address, program.id), row);
    }
    // What was not walked may have the rest.
    for id in told.into_iter().filter(|_| listed.is_complete) {
        let row = Row {
            cells: vec![id.to_string(), "-".into(), "-".into()],
            order: id,
            absent: BTreeSet::from([NOWHERE]),
            ..Row::default()
        };
        look.insert(id.to_string(), row);
    }
    Ok((look, listed.is_complete))
}
