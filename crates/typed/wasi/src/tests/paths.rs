//! Path resolution: what it refuses, and what others can do meanwhile.

use std::boxed::Box;
use std::string::String;
use std::vec::Vec;

use super::fake::Files;
use super::{with, Test, OUT};
use crate::types::{FileType, Rights};
use crate::{Errno, Function, PATH};

/// The serial number of what a path means.
fn stat(t: &mut Test<'_>, path: impl AsRef<[u8]>, follow: u64) -> Result<u64, Errno> {
    t.next = super::IN;
    let [at, length] = t.text(path);
    match t.call(Function::PathFilestatGet, &[3, follow, at, length, OUT.into()]) {
        0 => Ok(t.u64(OUT + 8)),
        error => Err(Errno::from_number(error.into()).unwrap()),
    }
}

#[test]
fn paths_lead_to_files_or_to_errors() {
    with(|t| {
        for (path, follow, result) in [
            ("f", 0, Ok(3)),
            (".", 0, Ok(0)),
            ("./", 0, Ok(0)),
            ("./././f", 0, Ok(3)),
            ("d", 0, Ok(4)),
            ("d/", 0, Ok(4)),
            ("d//", 0, Ok(4)),
            ("d//.//g", 0, Ok(5)),
            ("d/.", 0, Ok(4)),
            ("d/..", 0, Ok(0)),
            ("d/../d/../f", 0, Ok(3)),
            ("d/link", 0, Ok(6)),
            ("d/link", 1, Ok(3)),
            ("dlink", 0, Ok(10)),
            ("dlink", 1, Ok(4)),
            ("dlink/", 0, Ok(4)),
            ("dlink/g", 0, Ok(5)),
            ("dlink/link", 1, Ok(3)),
            ("dlink/..", 1, Ok(0)),
            ("", 1, Err(Errno::Noent)),
            ("/", 1, Err(Errno::Notcapable)),
            ("/f", 1, Err(Errno::Notcapable)),
            ("..", 1, Err(Errno::Notcapable)),
            ("../f", 1, Err(Errno::Notcapable)),
            ("d/../..", 1, Err(Errno::Notcapable)),
            ("d/../../d", 1, Err(Errno::Notcapable)),
            ("up", 0, Ok(7)),
            ("up", 1, Err(Errno::Notcapable)),
            ("up/", 0, Err(Errno::Notcapable)),
            ("up/f", 0, Err(Errno::Notcapable)),
            ("absolute", 0, Ok(8)),
            ("absolute", 1, Err(Errno::Notcapable)),
            ("round", 0, Ok(9)),
            ("round", 1, Err(Errno::Loop)),
            ("round/f", 0, Err(Errno::Loop)),
            ("dangling", 0, Ok(11)),
            ("dangling", 1, Err(Errno::Noent)),
            ("dangling/f", 1, Err(Errno::Noent)),
            ("f/", 1, Err(Errno::Notdir)),
            ("f/.", 1, Err(Errno::Notdir)),
            ("f/..", 1, Err(Errno::Notdir)),
            ("f/x", 1, Err(Errno::Notdir)),
            ("d/link/x", 1, Err(Errno::Notdir)),
            ("none", 1, Err(Errno::Noent)),
            ("none/..", 1, Err(Errno::Noent)),
            ("a\0b", 1, Err(Errno::Inval)),
        ] {
            assert_eq!(stat(t, path, follow), result, "{path:?} {follow}");
        }
        assert_eq!(stat(t, b"\xff", 1), Err(Errno::Ilseq));
    });
}

#[test]
fn a_path_ends_below_a_directory_that_was_opened() {
    with(|t| {
        let d = t.open("d", 0, 2).unwrap();
        assert!(t.open_with(d, "g", 0, 0, Rights::FD_READ, 0).is_ok());
        for path in ["..", "../f", "link"] {
            let opened = t.open_with(d, path, 1, 0, Rights::FD_READ, 0);
            assert_eq!(opened, Err(Errno::Notcapable), "{path}");
        }
    });
}

#[test]
fn length_depth_and_links_have_limits() {
    with(|t| {
        let dots = |length: usize| "./".repeat(length / 2) + if length % 2 == 1 { "f" } else { "" };
        assert_eq!(stat(t, dots(PATH - 1), 1), Ok(3));
        assert_eq!(stat(t, dots(PATH), 1), Err(Errno::Nametoolong));
        // The target of a link counts together with what follows it.
        let link = FileType::SymbolicLink;
        t.files(|files| files.create(0, b"long", link, dots(4000).as_bytes())).unwrap();
        assert_eq!(stat(t, "long/f", 1), Ok(3));
        assert_eq!(stat(t, String::from("long/") + &dots(101), 1), Err(Errno::Nametoolong));
        t.files(|files| files.create(0, b"full", link, &[b'x'; PATH])).unwrap();
        assert_eq!(stat(t, "full", 1), Err(Errno::Nametoolong));
        t.files(|files| files.create(0, b"empty", link, b"")).unwrap();
        assert_eq!(stat(t, "empty", 1), Err(Errno::Noent));
        // 40 links are followed, in the middle and at the end.
        for n in 0..41 {
            let target = if n == 0 { String::from("d") } else { std::format!("l{}", n - 1) };
            let name = std::format!("l{n}");
            t.files(|files| files.create(0, name.as_bytes(), link, target.as_bytes())).unwrap();
        }
        assert_eq!(stat(t, "l39", 1), Ok(4));
        assert_eq!(stat(t, "l39/g", 1), Ok(5));
        assert_eq!(stat(t, "l40", 1), Err(Errno::Loop));
        assert_eq!(stat(t, "l40/g", 1), Err(Errno::Loop));
        // The test's storage has room for 16 directories.
        let mut at = 0;
        for _ in 0..17 {
            at = t.files(|files| files.create(at, b"s", FileType::Directory, b"")).unwrap();
        }
        assert_eq!(stat(t, ["s"; 17].join("/"), 1), Ok(at as u64));
        assert_eq!(stat(t, ["s"; 18].join("/"), 1), Err(Errno::Nametoolong));
        let there_and_back = "s/../".repeat(500) + "f";
        assert_eq!(stat(t, there_and_back, 1), Ok(3));
    });
}

/// A function of one path, its further arguments, and what it gives for a path.
type Cases<'a> = &'a [(&'a str, Option<Errno>)];

fn try_each(function: Function, arguments: impl Fn(u64, u64) -> Vec<u64>, cases: Cases<'_>) {
    for &(path, error) in cases {
        with(|t| {
            t.files(|files| files.create(0, b"empty", FileType::Directory, b"")).unwrap();
            let [at, length] = t.text(path);
            let result = t.call(function, &arguments(at, length));
            assert_eq!(Errno::from_number(result.into()), error, "{function:?} {path:?}");
        });
    }
}

#[test]
fn dots_and_slashes_at_the_end_of_names_to_remove() {
    let remove = |at, length| Vec::from([3, at, length]);
    let cases: Cases<'_> = &[
        ("empty", None),
        ("empty/", None),
        (".", Some(Errno::Inval)),
        ("empty/.", Some(Errno::Inval)),
        ("empty/..", Some(Errno::Notempty)),
        ("..", Some(Errno::Notcapable)),
        ("d", Some(Errno::Notempty)),
        ("dlink", Some(Errno::Notdir)),
        ("dlink/", Some(Errno::Notdir)),
        ("f/", Some(Errno::Notdir)),
        ("none/", Some(Errno::Noent)),
    ];
    try_each(Function::PathRemoveDirectory, remove, cases);
    let cases: Cases<'_> = &[
        ("f", None),
        ("dlink", None),
        ("d/link", None),
        ("f/", Some(Errno::Notdir)),
        ("dlink/", Some(Errno::Notdir)),
        ("empty", Some(Errno::Isdir)),
        ("empty/", Some(Errno::Isdir)),
        (".", Some(Errno::Isdir)),
        ("empty/..", Some(Errno::Isdir)),
        ("none/", Some(Errno::Noent)),
    ];
    try_each(Function::PathUnlinkFile, remove, cases);
}

#[test]
fn dots_and_slashes_at_the_end_of_names_to_create() {
    let cases: Cases<'_> = &[
        ("new", None),
        ("new/", None),
        (".", Some(Errno::Exist)),
        ("d/..", Some(Errno::Exist)),
        ("dlink/", Some(Errno::Exist)),
        ("dangling/", Some(Errno::Exist)),
        ("f/", Some(Errno::Exist)),
    ];
    try_each(Function::PathCreateDirectory, |at, length| Vec::from([3, at, length]), cases);
    let cases: Cases<'_> = &[
        ("new", None),
        ("new/", Some(Errno::Noent)),
        ("d/", Some(Errno::Exist)),
        (".", Some(Errno::Exist)),
        ("..", Some(Errno::Notcapable)),
    ];
    // The target is the path itself, which may not be absolute.
    let symlink = |at, length| Vec::from([at, length, 3, at, length]);
    try_each(Function::PathSymlink, symlink, cases);
    let open = |flags| move |at, length| Vec::from([3, 1, at, length, flags, 2, 0, 0, 0x100]);
    let cases: Cases<'_> = &[
        ("new", None),
        ("new/", Some(Errno::Isdir)),
        ("f/", Some(Errno::Isdir)),
        ("dangling", None),
        ("up", Some(Errno::Notcapable)),
    ];
    try_each(Function::PathOpen, open(1), cases);
    let cases: Cases<'_> = &[
        ("f", None),
        ("f/", Some(Errno::Notdir)),
        ("d/", None),
        ("dlink/", None),
        (".", None),
        ("d/..", None),
    ];
    try_each(Function::PathOpen, open(0), cases);
    // A link that may not be followed.
    let open = |at, length| Vec::from([3, 0, at, length, 0, 2, 0, 0, 0x100]);
    try_each(Function::PathOpen, open, &[("dlink", Some(Errno::Loop)), ("dlink/", None)]);
    let read = |at, length| Vec::from([3, at, length, 0x200, 9, 0x100]);
    let cases: Cases<'_> = &[
        ("dlink", None),
        ("dlink/", Some(Errno::Inval)),
        ("d/link/", Some(Errno::Notdir)),
        (".", Some(Errno::Inval)),
        ("d/..", Some(Errno::Inval)),
    ];
    try_each(Function::PathReadlink, read, cases);
}

#[test]
fn dots_and_slashes_at_the_end_of_two_names() {
    for (old, new, renamed, linked) in [
        ("f", "new", None, None),
        ("f", "new/", Some(Errno::Notdir), Some(Errno::Noent)),
        ("f/", "new", Some(Errno::Notdir), Some(Errno::Notdir)),
        ("d", "new/", None, Some(Errno::Noent)),
        ("d/", "new", None, Some(Errno::Perm)),
        ("d/", "new/", None, Some(Errno::Noent)),
        ("dlink/", "new", Some(Errno::Notdir), Some(Errno::Perm)),
        ("dlink", "new", None, None),
        ("dlink", "new/", Some(Errno::Notdir), Some(Errno::Noent)),
        (".", "new", Some(Errno::Busy), Some(Errno::Perm)),
        ("d/..", "new", Some(Errno::Busy), Some(Errno::Perm)),
        ("f", ".", Some(Errno::Busy), Some(Errno::Exist)),
        ("f", "d/..", Some(Errno::Busy), Some(Errno::Exist)),
        ("f", "../f", Some(Errno::Notcapable), Some(Errno::Notcapable)),
        ("up/f", "new", Some(Errno::Notcapable), Some(Errno::Notcapable)),
    ] {
        with(|t| {
            let [old_at, old_length] = t.text(old);
            let [new_at, new_length] = t.text(new);
            let arguments = [3, old_at, old_length, 3, new_at, new_length];
            let result = t.call(Function::PathRename, &arguments);
            assert_eq!(Errno::from_number(result.into()), renamed, "rename {old} {new}");
        });
        with(|t| {
            let [old_at, old_length] = t.text(old);
            let [new_at, new_length] = t.text(new);
            let arguments = [3, 0, old_at, old_length, 3, new_at, new_length];
            let result = t.call(Function::PathLink, &arguments);
            assert_eq!(Errno::from_number(result.into()), linked, "link {old} {new}");
        });
    }
}

/// Others put a link to the outside where a directory or file was, before each operation of each call in turn. Nothing
/// outside changes, and nothing outside is opened.
#[test]
fn a_link_that_appears_during_a_call_leads_nowhere() {
    let link = |target: &'static [u8], name: &'static [u8]| {
        move |files: &mut Files| {
            let node = files.add(FileType::SymbolicLink, target);
            files.nodes[0].entries.insert(name.to_vec(), node);
        }
    };
    let paths = ["d/g", "d/new", "d/../f", "dlink/g", "f", "d/", "d"];
    let mut errors = 0;
    for path in paths {
        for n in 0..12 {
            for case in 0..3 {
                for function in [
                    Function::PathOpen,
                    Function::PathCreateDirectory,
                    Function::PathUnlinkFile,
                    Function::PathRemoveDirectory,
                    Function::PathRename,
                    Function::PathFilestatSetTimes,
                    Function::PathFilestatGet,
                ] {
                    with(|t| {
                        // `..` of the test's host would be node 1, which is outside.
                        let change: super::fake::Change = match case {
                            0 => Box::new(link(b"..", b"d")),
                            1 => Box::new(link(b"/", b"f")),
                            // The directory is moved out of the tree while the walk is in it.
                            _ => Box::new(|files: &mut Files| {
                                if let Some(d) = files.nodes[0].entries.remove(&b"d"[..]) {
                                    files.nodes[1].entries.insert(b"moved".to_vec(), d);
                                }
                            }),
                        };
                        t.wasi.host().change = Some((n, change));
                        let before = t.files(|files| files.nodes[2].clone());
                        let [at, length] = t.text(path);
                        let [new, new_length] = t.text("renamed");
                        let out = OUT.into();
                        let error = match function {
                            Function::PathOpen => {
                                t.call(function, &[3, 1, at, length, 1, 66, 66, 0, out])
                            }
                            Function::PathRename => {
                                t.call(function, &[3, at, length, 3, new, new_length])
                            }
                            Function::PathFilestatSetTimes => {
                                t.call(function, &[3, 1, at, length, 77, 77, 5])
                            }
                            Function::PathFilestatGet => t.call(function, &[3, 1, at, length, out]),
                            _ => t.call(function, &[3, at, length]),
                        };
                        if error == 0 && function == Function::PathOpen {
                            let fd = t.u32(OUT);
                            let node = t.wasi.table.get(fd).unwrap().handle.node;
                            assert!(node > 2, "{path} {n}: node {node} is outside");
                        }
                        if error == 0 && function == Function::PathFilestatGet {
                            assert!(![1, 2].contains(&t.u64(OUT + 8)), "{path} {n}");
                        }
                        errors += usize::from(error == Errno::Notcapable as u16);
                        let outside = t.files(|files| files.nodes[1].clone());
                        assert!(outside
                            .entries
                            .keys()
                            .all(|name| name == b"f" || name == b"moved"));
                        assert!(outside.entries.contains_key(&b"f"[..]));
                        assert_eq!((outside.accessed, outside.modified), (1, 2));
                        let after = t.files(|files| files.nodes[2].clone());
                        assert_eq!(std::format!("{before:?}"), std::format!("{after:?}"));
                    });
                }
            }
        }
    }
    assert!(errors > 20, "only {errors} races were lost by the attacker");
}
