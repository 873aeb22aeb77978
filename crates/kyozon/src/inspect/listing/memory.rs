//! What the kernel can execute.

use super::{Look, Row, LISTED};
use crate::groups::size;
use crate::inspect::dump::Dump;
use anyhow::Result;
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::mappings;
use serde_json::json;

/// What lacks memory that can be both written and executed.
const READ_ONLY: &str = "read-only memory";

pub(super) fn look(kernel: &Kernel<'_, Dump>) -> Result<(Look, bool)> {
    let listed = mappings::listing::list(kernel)?;
    let mut look = Look::new();
    for piece in listed.pieces {
        let bytes = piece.end - piece.start;
        let access = if piece.is_writable { "rwx" } else { "r-x" };
        let absent =
            [piece.owner.is_none().then_some(LISTED), piece.is_writable.then_some(READ_ONLY)];
        let row = Row {
            cells: vec![
                format!("{:#x}", piece.start),
                size(bytes),
                access.into(),
                piece.owner.clone().unwrap_or_else(|| "nobody".into()),
            ],
            order: piece.start,
            is_shown: true,
            absent: absent.into_iter().flatten().collect(),
            object: json!({
                "start": format!("{:#x}", piece.start),
                "bytes": bytes,
                "writable": piece.is_writable,
                "owner": piece.owner,
            }),
            ..Row::default()
        };
        look.insert(format!("{:#x}", piece.start), row);
    }
    let lacks_tables = !kernel.memory.take_lacking().is_empty();
    Ok((look, listed.is_complete && !lacks_tables))
}
