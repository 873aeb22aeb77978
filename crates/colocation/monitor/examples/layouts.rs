//! Lists what the monitor wants from a kernel's type information and does not find there.
//!
//! `cargo run -p kyozon-monitor --example layouts -- BTF`: a file with the contents of `/sys/kernel/btf/vmlinux`.

use kyozon_monitor::profile::btf::Btf;
use kyozon_monitor::profile::requirements::{constants, members, Need};
use std::collections::BTreeMap;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or("usage: layouts BTF")?;
    let bytes = std::fs::read(name)?;
    let btf = Btf::parse(&bytes)?;
    let mut lines = BTreeMap::new();
    for (structure, member, need) in members() {
        let text = btf.member(structure, member).map(|(offset, size)| format!("{offset} {size}"));
        lines.insert(format!("{structure}.{member}"), (need, text));
    }
    for (name, need) in constants() {
        lines.insert(format!("#{name}"), (need, btf.constant(name).map(|value| value.to_string())));
    }
    for (key, (need, found)) in lines {
        let need = if need == Need::Required { "required" } else { "optional" };
        println!("{key} {need} {}", found.as_deref().unwrap_or("MISSING"));
    }
    Ok(())
}
