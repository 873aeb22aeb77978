use super::*;
use std::vec;

fn tree() -> Tree {
    let mut tree = Tree::empty();
    tree.set_up();
    tree
}

fn file(tree: &mut Tree, path: &[u8]) -> Number {
    tree.open(ROOT, path, Some(0o644), false, true).unwrap()
}

#[test]
fn files_keep_what_was_written() {
    let mut tree = tree();
    let number = file(&mut tree, b"/tmp/a");
    tree.write(number, 3, b"abc").unwrap();
    assert_eq!(tree.bytes(number), Ok(&b"\0\0\0abc"[..]));
    tree.set_size(number, 4).unwrap();
    tree.write(number, 4, b"xy").unwrap();
    assert_eq!(tree.bytes(number), Ok(&b"\0\0\0axy"[..]));
    assert_eq!(tree.find(ROOT, b"tmp//./../tmp/a", true), Ok(number));
    assert_eq!(tree.about(number).unwrap().mode, S_IFREG | 0o644);
    assert_eq!(tree.open(ROOT, b"tmp/a", Some(0), true, true), Err(EEXIST));
    assert_eq!(tree.open(ROOT, b"tmp/a/b", Some(0), false, true), Err(ENOTDIR));
    assert_eq!(tree.open(ROOT, b"none/b", Some(0), false, true), Err(ENOENT));
    assert_eq!(tree.open(ROOT, b"tmp/new/", Some(0), false, true), Err(EISDIR));
    assert_eq!(tree.write(number, u64::MAX, b"x"), Err(EFBIG));
}

#[test]
fn an_open_file_outlives_its_name() {
    let mut tree = tree();
    let number = file(&mut tree, b"tmp/a");
    tree.write(number, 0, b"x").unwrap();
    tree.link((ROOT, b"tmp/a"), (ROOT, b"b"), false).unwrap();
    tree.remove(ROOT, b"tmp/a", false).unwrap();
    tree.remove(ROOT, b"b", false).unwrap();
    assert_eq!(tree.bytes(number), Ok(&b"x"[..]));
    tree.close(number);
    assert_eq!((tree.bytes(number), tree.find(ROOT, b"b", true)), (Err(ENOENT), Err(ENOENT)));
    // Its number serves again.
    assert_eq!(file(&mut tree, b"c"), number);
}

#[test]
fn links_are_followed_and_never_for_ever() {
    let mut tree = tree();
    let number = file(&mut tree, b"tmp/a");
    tree.make_link(b"../tmp/a", ROOT, b"tmp/link").unwrap();
    tree.make_link(b"/tmp", ROOT, b"t").unwrap();
    tree.make_link(b"loop", ROOT, b"loop").unwrap();
    tree.make_link(b"nowhere", ROOT, b"dangling").unwrap();
    assert_eq!(tree.find(ROOT, b"t/link", true), Ok(number));
    assert_ne!(tree.find(ROOT, b"t/link", false), Ok(number));
    assert_eq!(tree.read_link(ROOT, b"tmp/link"), Ok(&b"../tmp/a"[..]));
    assert_eq!(tree.read_link(ROOT, b"tmp/a"), Err(EINVAL));
    assert_eq!(tree.find(ROOT, b"loop", true), Err(ELOOP));
    assert_eq!(tree.find(ROOT, b"dangling", true), Err(ENOENT));
    assert_eq!(tree.open(ROOT, b"t/link", None, false, false), Err(ELOOP));
    assert_eq!(tree.make_link(b"x", ROOT, b"dangling"), Err(EEXIST));
}

#[test]
fn directories_are_removed_empty_and_moved_with_their_contents() {
    let mut tree = tree();
    tree.make_directory(ROOT, b"a", 0o700).unwrap();
    tree.make_directory(ROOT, b"a/b", 0o700).unwrap();
    let number = file(&mut tree, b"a/b/c");
    assert_eq!(tree.remove(ROOT, b"a", true), Err(ENOTEMPTY));
    assert_eq!(tree.remove(ROOT, b"a/b/c", true), Err(ENOTDIR));
    assert_eq!(tree.remove(ROOT, b"a/b", false), Err(EISDIR));
    assert_eq!(tree.rename((ROOT, b"a"), (ROOT, b"a/b/x"), false), Err(EINVAL));
    tree.rename((ROOT, b"a/b"), (ROOT, b"tmp/d"), false).unwrap();
    assert_eq!(tree.find(ROOT, b"tmp/d/../d/c", true), Ok(number));
    let d = tree.find(ROOT, b"tmp/d", true).unwrap();
    assert_eq!(tree.path(d), Ok(b"/tmp/d".to_vec()));
    assert_eq!(tree.about(tree.find(ROOT, b"a", true).unwrap()).unwrap().links, 2);
    tree.remove(ROOT, b"a", true).unwrap();
    let names = |directory| {
        (0..).map_while(|at| tree.entry(directory, at).unwrap()).map(|(n, _)| n).collect::<Vec<_>>()
    };
    assert_eq!(names(ROOT), vec![&b"."[..], b"..", b"dev", b"tmp"]);
    assert_eq!(tree.make_directory(ROOT, b"tmp/d", 0), Err(EEXIST));
    assert_eq!(tree.remove(ROOT, b"/", true), Err(EBUSY));
}

#[test]
fn a_rename_replaces_what_it_may() {
    let mut tree = tree();
    let [a, b] = [file(&mut tree, b"a"), file(&mut tree, b"b")];
    tree.make_directory(ROOT, b"d", 0).unwrap();
    tree.make_directory(ROOT, b"e", 0).unwrap();
    assert_eq!(tree.rename((ROOT, b"a"), (ROOT, b"b"), true), Err(EEXIST));
    assert_eq!(tree.rename((ROOT, b"a"), (ROOT, b"d"), false), Err(EISDIR));
    assert_eq!(tree.rename((ROOT, b"d"), (ROOT, b"a"), false), Err(ENOTDIR));
    tree.rename((ROOT, b"a"), (ROOT, b"b"), false).unwrap();
    assert_eq!((tree.find(ROOT, b"b", true), tree.find(ROOT, b"a", true)), (Ok(a), Err(ENOENT)));
    assert!(tree.bytes(b).is_ok(), "it is open");
    tree.rename((ROOT, b"d"), (ROOT, b"e"), false).unwrap();
    assert_eq!(tree.rename((ROOT, b"none"), (ROOT, b"f"), false), Err(ENOENT));
}
