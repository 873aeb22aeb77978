use super::*;
use std::os::unix::fs::PermissionsExt;

#[test]
fn releases_are_ordered_by_number() {
    assert_eq!(compare_numbers("6.1.0-9-cloud-amd64", "6.1.0-56-cloud-amd64"), Ordering::Less);
    assert_eq!(compare_numbers("6.12.117+deb12-amd64", "6.12.9+deb12-amd64"), Ordering::Greater);
}

#[test]
fn modules_come_in_loading_order() {
    let folder = tempfile::tempdir().unwrap();
    let kernel = Kernel {
        series: "6.1".into(),
        flavour: "cloud".into(),
        release: "r".into(),
        version: "v".into(),
        root: folder.path().into(),
    };
    fs::create_dir_all(kernel.modules()).unwrap();
    let dep = "kernel/a/virtio.ko.xz:\nkernel/a/virtio-ring.ko: kernel/a/virtio.ko.xz\n\
               kernel/b/con.ko: kernel/a/virtio-ring.ko kernel/a/virtio.ko.xz\n";
    fs::write(kernel.modules().join("modules.dep"), dep).unwrap();
    fs::write(kernel.modules().join("modules.builtin"), "kernel/c/serial_8250.ko\n").unwrap();
    let files = kernel.module_files(&["con", "virtio_ring", "serial-8250"]).unwrap();
    let names: Vec<_> = files.iter().map(|f| f.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["virtio.ko.xz", "virtio-ring.ko", "con.ko"]);
    assert!(kernel.module_files(&["nope"]).unwrap_err().to_string().contains("no module nope"));
}

#[test]
fn the_headers_makefile_leads_into_the_unpacked_folder() {
    let folder = unpacked();
    let kernel = Kernel::unpacked("6.8", folder.path()).unwrap();
    let path = kernel.headers().join("Makefile");
    let root = kernel.root.display();
    let want = format!("KBUILD_OUTPUT={root}/usr/src/linux-headers-r\ninclude {root}/usr/src/linux-headers-c/Makefile\n");
    // As a package has it, and as an earlier cache left it.
    for old in ["", "/root/.cache/k/6.12-cloud/6.12.1-1"] {
        let text = want.replace(&root.to_string(), old);
        assert_ne!(text, want);
        fs::write(&path, text).unwrap();
        kernel.relocate_headers().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), want);
    }
    let other = "# Another distribution's: KBUILD_OUTPUT := /elsewhere\n";
    fs::write(&path, other).unwrap();
    kernel.relocate_headers().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), other);
}

#[test]
fn unknown_names_are_refused() {
    assert!(Kernel::cached("5.10", "cloud").unwrap_err().to_string().contains("6.12, 6.1"));
    assert!(Kernel::cached("6.1", "rt")
        .unwrap_err()
        .to_string()
        .contains("neither cloud nor generic"));
}

#[test]
fn a_series_beyond_the_tested_ones_must_be_adopted() {
    let error = Kernel::cached("5.10", "cloud").unwrap_err().to_string();
    assert!(error.contains("none was adopted"), "{error}");
    assert!(error.contains("'kyozon-lab adopt --series 5.10 FOLDER'"), "{error}");
    let error = Kernel::fetch("../../x", "cloud", false).unwrap_err().to_string();
    assert!(error.contains("none was adopted"), "{error}");
}

/// The folder of a kernel "6.8.0-31-generic" as Ubuntu's packages lay it out, without content.
fn unpacked() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let release = "6.8.0-31-generic";
    let write = |path: String, contents: &[u8]| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    write(format!("boot/vmlinuz-{release}"), &image("6.8.0-31-generic (b@h) #31-Ubuntu SMP"));
    for name in ["kernel/a.ko.zst", "modules.builtin", "modules.order"] {
        write(format!("lib/modules/{release}/{name}"), b"");
    }
    for name in ["include/config/auto.conf", "include/generated/utsrelease.h", "Module.symvers"] {
        write(format!("usr/src/linux-headers-{release}/{name}"), b"");
    }
    for name in ["scripts/basic/fixdep", "scripts/mod/modpost", "tools/objtool/objtool"] {
        let usage = b"#!/bin/sh\necho usage >&2\nexit 1\n";
        write(format!("usr/src/linux-headers-{release}/{name}"), usage);
    }
    write(format!("usr/src/linux-headers-{release}/Makefile"), b"");
    folder
}

/// A bzImage's setup header with this banner.
fn image(banner: &str) -> Vec<u8> {
    let mut image = vec![0; 0x400];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
    image[0x300..0x300 + banner.len()].copy_from_slice(banner.as_bytes());
    image
}

fn refusal(series: &str, folder: &tempfile::TempDir) -> String {
    format!("{:#}", Kernel::unpacked(series, folder.path()).unwrap_err())
}

#[test]
fn an_unpacked_kernel_is_described() {
    let folder = unpacked();
    let kernel = Kernel::unpacked("6.8", folder.path()).unwrap();
    assert_eq!(kernel.release, "6.8.0-31-generic");
    assert_eq!(kernel.version, "#31-Ubuntu SMP");
    assert_eq!(kernel.flavour, "adopted");
    assert!(kernel.image().is_file() && kernel.headers().is_dir() && kernel.modules().is_dir());
}

#[test]
fn each_missing_part_is_named() {
    let at = "usr/src/linux-headers-6.8.0-31-generic";
    for (gone, want) in [
        ("boot".to_owned(), "boot: unpack the package of the image"),
        (
            "lib/modules/6.8.0-31-generic/modules.builtin".to_owned(),
            "unpack the package of modules",
        ),
        (format!("{at}/Makefile"), "those for all flavours too"),
        (format!("{at}/Module.symvers"), "unpack the packages of headers"),
        (format!("{at}/scripts/mod/modpost"), "unpack the packages of headers"),
    ] {
        let folder = unpacked();
        let path = folder.path().join(&gone);
        if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.unwrap();
        let error = refusal("6.8", &folder);
        assert!(error.contains(want), "{gone}: {error}");
    }
}

#[test]
fn an_image_must_be_what_its_name_says() {
    let folder = unpacked();
    assert!(refusal("6.80", &folder).contains("is not of series 6.80"));
    assert!(refusal("6.12", &folder).contains("kyozon-lab fetch --kernel 6.12"));
    assert!(refusal("six", &folder).contains("is not a kernel series"));
    let path = folder.path().join("boot/vmlinuz-6.8.0-31-generic");
    fs::write(&path, image("6.8.0-32-generic (b@h) #32")).unwrap();
    assert!(refusal("6.8", &folder).contains("is an image of Linux 6.8.0-32-generic"));
    for damaged in [&b"short"[..], &[0; 0x400], &image("")] {
        fs::write(&path, damaged).unwrap();
        assert!(refusal("6.8", &folder).contains("is not a bzImage"));
    }
    fs::write(folder.path().join("boot/vmlinuz-other"), "").unwrap();
    assert!(refusal("6.8", &folder).contains("has 2 files"));
}

#[test]
fn tools_for_a_newer_c_library_are_refused() {
    let complaint = "libc.so.6: version GLIBC_2.38 not found (required by modpost)";
    let script = format!("#!/bin/sh\necho '{complaint}' >&2; exit 1\n");
    let write = |folder: &tempfile::TempDir, name: &str| {
        let path = folder.path().join("usr/src/linux-headers-6.8.0-31-generic").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    for name in ["scripts/mod/modpost", "scripts/mod/modpost.real-lsb-64"] {
        let folder = unpacked();
        write(&folder, name);
        let error = refusal("6.8", &folder);
        assert!(error.contains(&format!("{name} does not run here")), "{error}");
        assert!(error.contains("GLIBC_2.38"), "{error}");
    }
    // Without the kernel's type information in the headers, nothing starts this one.
    let folder = unpacked();
    write(&folder, "tools/bpf/resolve_btfids/resolve_btfids");
    Kernel::unpacked("6.8", folder.path()).unwrap();
    write(&folder, "vmlinux");
    assert!(refusal("6.8", &folder).contains("resolve_btfids does not run here"));
}
