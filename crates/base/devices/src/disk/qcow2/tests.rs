use crate::disk::Image;
use std::path::{Path, PathBuf};
use std::process::Command;
use vm_memory::VolatileSlice;

/// Runs qemu-img. Returns its exit code, and what it printed.
pub fn qemu_img(arguments: &[&str], path: &Path) -> (i32, String) {
    let out = Command::new("qemu-img").args(arguments).arg(path).output();
    let out = out.expect("qemu-img: install qemu-utils");
    let text = [out.stdout, out.stderr].concat();
    (out.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

/// A new image in `folder`.
pub fn image(folder: &Path, options: &str, megabytes: u64) -> PathBuf {
    let path = folder.join("image");
    let out = Command::new("qemu-img")
        .args(["create", "-q", "-f", "qcow2", "-o", options])
        .arg(&path)
        .arg(format!("{megabytes}M"))
        .output()
        .expect("qemu-img: install qemu-utils");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    path
}

#[test]
fn what_is_written_is_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(folder.path(), "cluster_size=4096", 8);
    let mut data: Vec<u8> = (0..3u32 << 20).map(|i| (i % 251) as u8).collect();
    let expected = data.clone();
    let opened = Image::open(&path, true).unwrap().disk(true).unwrap();
    let mut disk = opened.disk;
    let (first, second) = data.split_at_mut(1_000_000);
    let slices = [VolatileSlice::from(&mut first[..]), VolatileSlice::from(&mut second[..])];
    disk.write(1536, &slices).unwrap();
    disk.discard(1536, 512).unwrap();
    let mut back = vec![1; expected.len()];
    disk.read(1536, &[VolatileSlice::from(&mut back[..])]).unwrap();
    assert!(back[..512].iter().all(|byte| *byte == 0));
    assert!(back[512..] == expected[512..]);
    disk.flush().unwrap();
    assert_eq!(qemu_img(&["check", "-f", "qcow2", "-U"], &path).0, 0);
    let raw = folder.path().join("raw");
    let (code, text) =
        qemu_img(&["convert", "-U", "-f", "qcow2", "-O", "raw", path.to_str().unwrap()], &raw);
    assert_eq!(code, 0, "{text}");
    let content = std::fs::read(&raw).unwrap();
    assert_eq!((content.len() as u64, disk.bytes()), (8 << 20, 8 << 20));
    assert!(content[2048..1536 + expected.len()] == expected[512..]);
    assert!(content[..2048].iter().all(|byte| *byte == 0));
}

#[test]
fn access_beyond_the_end_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(folder.path(), "compat=1.1", 1);
    let mut disk = Image::open(&path, true).unwrap().disk(true).unwrap().disk;
    let mut data = vec![1; 1024];
    let slices = [VolatileSlice::from(&mut data[..])];
    assert!(disk.write((1 << 20) - 512, &slices).is_err());
    assert!(disk.discard(1 << 20, 512).is_err());
    assert!(disk.write((1 << 20) - 1024, &slices).is_ok());
}

#[test]
fn an_image_without_the_magic_number_is_raw() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image.qcow2");
    std::fs::write(&path, vec![0; 4096]).unwrap();
    let image = Image::open(&path, true).unwrap();
    assert!(!image.is_qcow2());
    assert_eq!((image.largest(), image.disk(true).unwrap().disk.bytes()), (4096, 4096));
}
