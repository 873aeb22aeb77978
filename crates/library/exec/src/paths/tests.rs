use super::*;

#[test]
fn names_are_compared_after_dots_are_resolved() {
    assert_eq!(normalize(b"/mnt/../etc//./passwd"), b"/etc/passwd");
    assert_eq!(normalize(b"/.."), b"/");
    assert_eq!(normalize(b"/mnt/a/.."), b"/mnt");
}

#[test]
fn a_mount_point_owns_what_is_below_it_only() {
    set_mounts(vec![b"/mnt".to_vec()]);
    assert_eq!(place(b"/mnt/file"), Place::Library(c"/mnt/file".into()));
    assert_eq!(place(b"/mnt"), Place::Library(c"/mnt".into()));
    assert_eq!(place(b"/mnt/"), Place::Library(c"/mnt/".into()));
    assert_eq!(place(b"/mntx"), Place::Host);
    assert_eq!(place(b"/mnt/../etc"), Place::Host);
    set_cwd(Some(b"/mnt/folder".to_vec()));
    assert_eq!(place(b"../file"), Place::Library(c"/mnt/file".into()));
    assert_eq!(place(b"../../etc/passwd"), Place::HostAt(c"/etc/passwd".into()));
    set_cwd(None);
}

#[test]
fn an_image_at_the_root_owns_all_but_devices_and_processes() {
    for path in ["/", "/file", "/devices", "/processes/proc"] {
        assert!(owns(b"/", path.as_bytes()), "{path}");
    }
    for path in ["/dev", "/dev/null", "/proc/self/exe", "/sys"] {
        assert!(!owns(b"/", path.as_bytes()), "{path}");
    }
}
