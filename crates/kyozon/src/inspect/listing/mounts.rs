//! Mounts of the first process's namespace, beside `mountinfo`.

use super::{Look, Row, NOWHERE};
use crate::inspect::dump::Dump;
use anyhow::{Context, Result};
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::mounts::{self, Mounts};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;

/// Linux's listing of the first process's mounts.
const MOUNT_INFO: &str = "/proc/1/mountinfo";

/// The IDs of the mounts that Linux tells of, before and after memory was read.
type Told = [BTreeSet<u32>; 2];

pub(super) fn look(kernel: &Kernel<'_, Dump>, is_live: bool) -> Result<(Look, bool)> {
    let told = || match is_live {
        true => Ok(Some(ids(&fs::read(MOUNT_INFO).context(MOUNT_INFO)?))),
        false => anyhow::Ok(None),
    };
    let before = told()?;
    let listed = mounts::list(kernel)?.unwrap_or_default();
    let is_complete = listed.is_complete;
    Ok((rows(listed, before.zip(told()?).map(|(before, after)| [before, after])), is_complete))
}

/// The IDs in the text of `mountinfo`, which begin its lines.
fn ids(text: &[u8]) -> BTreeSet<u32> {
    let firsts = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let first = line.split(|byte| *byte == b' ').next()?;
        std::str::from_utf8(first).ok()?.parse().ok()
    });
    firsts.collect()
}

fn rows(mut listed: Mounts, told: Option<Told>) -> Look {
    let is_told = told.is_some();
    let [before, after] = told.unwrap_or_default();
    let mut always: BTreeSet<u32> = before.intersection(&after).copied().collect();
    let mut sometimes: BTreeSet<u32> = before.union(&after).copied().collect();
    // Of two mounts with the same ID, Linux tells of the one that it can find.
    listed.mounts.sort_by_key(|mount| (mount.missing.len(), !mount.is_reachable));
    let mut look = Look::new();
    for mount in listed.mounts {
        let mut absent: BTreeSet<&str> = mount.missing.iter().copied().collect();
        always.remove(&mount.id);
        if !sometimes.remove(&mount.id) && is_told && mount.is_reachable {
            absent.insert(MOUNT_INFO);
        }
        let point = match mount.is_reachable {
            true => mount.point.clone(),
            false => format!("(unreachable){}", mount.point),
        };
        let row = Row {
            cells: vec![mount.id.to_string(), mount.kind.clone(), mount.source.clone(), point],
            order: u64::from(mount.id),
            is_shown: true,
            object: json!({
                "id": mount.id,
                "unique_id": mount.unique,
                "address": format!("{:#x}", mount.address),
                "type": mount.kind,
                "source": mount.source,
                "point": mount.point,
                "reachable": mount.is_reachable,
            }),
            absent,
            ..Row::default()
        };
        look.insert(format!("{:#x}/{}/{:?}", mount.address, mount.id, mount.unique), row);
    }
    // What was not walked may have the rest.
    for id in always.into_iter().filter(|_| listed.is_complete) {
        let row = Row {
            cells: vec![id.to_string(), "-".into(), "-".into(), "-".into()],
            order: u64::from(id),
            absent: BTreeSet::from([NOWHERE]),
            ..Row::default()
        };
        look.insert(id.to_string(), row);
    }
    look
}

#[cfg(test)]
mod tests {
    use super::*;
    use kyozon_monitor::mounts::Mount;

    /// The mounts with these IDs, of which the last one cannot be reached.
    fn listed(ids: &[u32]) -> Mounts {
        let mount = |(at, &id): (usize, &u32)| Mount {
            address: 0x1000 * (at as u64 + 1),
            id,
            unique: None,
            kind: "tmpfs".into(),
            source: "none".into(),
            point: "/mnt".into(),
            is_reachable: at + 1 < ids.len(),
            missing: vec![],
        };
        Mounts { mounts: ids.iter().enumerate().map(mount).collect(), is_complete: true }
    }

    /// The mounts that differ.
    fn differences(listed: Mounts, told: Option<[&[u32]; 2]>) -> Vec<(String, Vec<&'static str>)> {
        let told = told.map(|told| told.map(|ids| ids.iter().copied().collect()));
        let differing = rows(listed, told).into_values().filter(|row| !row.absent.is_empty());
        let mut all: Vec<_> =
            differing.map(|row| (row.cells[0].clone(), row.absent.into_iter().collect())).collect();
        all.sort();
        all
    }

    #[test]
    fn ids_begin_the_lines() {
        let text = b"22 1 0:21 / /sys rw,nosuid - sysfs sysfs rw\n23 1 0:5 / /\xff rw - proc a b\n";
        assert_eq!(ids(text), BTreeSet::from([22, 23]));
        assert_eq!(ids(b"\nx 1\n-3 4\n 5\n99999999999 1\n"), BTreeSet::new());
    }

    #[test]
    fn mounts_that_linux_hides_or_invents_differ() {
        let told = |ids: &'static [u32]| Some([ids, ids]);
        assert_eq!(differences(listed(&[1, 2, 3]), told(&[1, 2])), []);
        assert_eq!(differences(listed(&[1, 2, 3]), None), []);
        let hidden = |id: &str| (id.to_owned(), vec![MOUNT_INFO]);
        assert_eq!(differences(listed(&[1, 2, 3]), told(&[1])), [hidden("2")]);
        assert_eq!(differences(listed(&[1, 1, 3]), told(&[1])), [hidden("1")]);
        let invented = ("9".to_owned(), vec![NOWHERE]);
        assert_eq!(differences(listed(&[1, 3]), told(&[1, 9])), [invented]);
        let mut cut = listed(&[1, 3]);
        cut.is_complete = false;
        assert_eq!(differences(cut, told(&[1, 9])), []);
        let mut unlinked = listed(&[1, 2, 3]);
        unlinked.mounts[1].missing = vec!["its mount namespace"];
        let lacks = ("2".to_owned(), vec![MOUNT_INFO, "its mount namespace"]);
        assert_eq!(differences(unlinked, told(&[1])), [lacks]);
    }

    #[test]
    fn mounts_that_come_or_go_meanwhile_do_not_differ() {
        assert_eq!(differences(listed(&[1, 2, 3]), Some([&[1, 2, 7], &[1]])), []);
        assert_eq!(differences(listed(&[1, 2, 3]), Some([&[1], &[1, 2, 7]])), []);
    }
}
