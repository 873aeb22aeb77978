//! The io_uring instances of processes: an inventory, which no listing of Linux's has.

use super::{Look, Row};
use crate::inspect::dump::Dump;
use anyhow::Result;
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::rings;
use serde_json::json;

pub(super) fn look(kernel: &Kernel<'_, Dump>) -> Result<(Look, bool)> {
    let listed = rings::list(kernel)?.unwrap_or_default();
    let mut look = Look::new();
    for ring in listed.rings {
        let number = |number: Option<u32>| number.map_or_else(|| "-".into(), |it| it.to_string());
        let [requests, results] = ring.entries;
        let [files, buffers] = ring.registered;
        let user = &ring.user;
        let row = Row {
            cells: vec![
                user.process.to_string(),
                user.name.clone(),
                requests.to_string(),
                number(ring.polled_by),
                number(files),
                number(buffers),
            ],
            order: user.process.into(),
            is_shown: true,
            object: json!({
                "pid": user.process,
                "tid": user.pid,
                "name": user.name,
                "address": format!("{:#x}", ring.address),
                "requests": requests,
                "results": results,
                "polled_by": ring.polled_by,
                "files": files,
                "buffers": buffers,
            }),
            ..Row::default()
        };
        look.insert(format!("{:#x}/{}/{}", ring.address, user.process, user.start), row);
    }
    Ok((look, listed.is_complete))
}
