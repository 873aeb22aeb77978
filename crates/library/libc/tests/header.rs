//! A C compiler computes the sizes and offsets of the crate's structures from `include/kyozon/seam.h`.

use kyozon_libc::seam::{Seam, Thread, AT_KYOZON, STACK_BYTES, VERSION};
use std::mem::{offset_of, size_of};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// Appends lines of C that assert the size and the offsets that Rust computes.
macro_rules! layout {
    ($out:ident, $rust:ident, $c:literal: $($field:ident),+) => {
        let name = $c;
        $out.push_str(&format!("_Static_assert(sizeof(struct {name}) == {}, \"{name}\");\n", size_of::<$rust>()));
        $(
            let (field, offset) = (stringify!($field), offset_of!($rust, $field));
            $out.push_str(&format!("_Static_assert(offsetof(struct {name}, {field}) == {offset}, \"{field}\");\n"));
        )+
    };
}

#[test]
fn c_compiler_agrees_on_every_layout() {
    let mut c = String::from("#include <stddef.h>\n#include <kyozon/seam.h>\n");
    layout!(c, Seam, "kyozon_seam": version, call, start_thread, unmap_exit);
    layout!(c, Thread, "kyozon_thread": function, argument, stack_end, stack_start, fs_base, tid, clear_tid);
    for (name, value) in [
        ("KYOZON_SEAM_VERSION", VERSION),
        ("AT_KYOZON", AT_KYOZON),
        ("KYOZON_SEAM_STACK", STACK_BYTES as u64),
    ] {
        c.push_str(&format!("_Static_assert({name} == {value}, \"{name}\");\n"));
    }
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = folder.path().join("layout.c");
    fs::write(&file, c).expect("write layout.c");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-I"]).arg(include).arg(&file);
    let done = cc.output().expect("a C compiler named cc");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
