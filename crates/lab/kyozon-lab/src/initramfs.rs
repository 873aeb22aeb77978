//! The initramfs of a guest: a `newc` archive with the agent as `/init`, a static busybox, and files.

use crate::kernels::Kernel;
use crate::process;
use anyhow::{ensure, Context, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

const LIMIT: Duration = Duration::from_secs(60);
const BUSYBOX: &str = "/bin/busybox";

/// An archive under construction. The same contents give the same bytes.
#[derive(Debug, Default)]
pub struct Initramfs {
    entries: BTreeMap<String, (u32, Vec<u8>)>,
}

impl Initramfs {
    /// An archive with the agent, a shell with busybox's applets, and the modules of `kernel` that the agent loads.
    pub fn new(kernel: &Kernel, modules: &[&str]) -> Result<Self> {
        let mut archive = Self::default();
        for folder in ["bin", "dev", "kyozon", "proc", "root", "sys", "tmp"] {
            archive.folder(folder);
        }
        archive.file("init", 0o755, agent()?)?;
        let busybox =
            fs::read(BUSYBOX).with_context(|| format!("{BUSYBOX} (package busybox-static)"))?;
        archive.file("bin/busybox", 0o755, busybox)?;
        for applet in process::run_ok(Command::new(BUSYBOX).arg("--list"), LIMIT)?
            .lines()
            .filter(|name| *name != "busybox")
        {
            archive.entries.insert(format!("bin/{applet}"), (0o120_777, b"busybox".to_vec()));
        }
        for (index, file) in kernel.module_files(modules)?.iter().enumerate() {
            let name = file.file_name().expect("a module has a name").to_string_lossy();
            let name = name.trim_end_matches(".xz").trim_end_matches(".zst");
            archive.file(&format!("kyozon/modules/{index:02}-{name}"), 0o644, module(file)?)?;
        }
        Ok(archive)
    }

    /// Adds a file, and the folders above it.
    pub fn file(&mut self, path: &str, mode: u32, contents: Vec<u8>) -> Result<()> {
        let path = path.trim_start_matches('/');
        ensure!(
            !path.is_empty() && !path.split('/').any(|part| part == ".."),
            "{path:?} is not a path in a guest"
        );
        ensure!(u32::try_from(contents.len()).is_ok(), "{path} is too large for an initramfs");
        for (at, _) in path.match_indices('/') {
            self.folder(&path[..at]);
        }
        self.entries.insert(path.into(), (0o100_000 | mode, contents));
        Ok(())
    }

    /// The archive's bytes.
    pub fn pack(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (inode, (path, (mode, contents))) in self.entries.iter().enumerate() {
            member(&mut out, inode as u32 + 1, path, *mode, contents);
        }
        member(&mut out, 0, "TRAILER!!!", 0, b"");
        out
    }

    fn folder(&mut self, path: &str) {
        self.entries.entry(path.into()).or_insert((0o40_755, Vec::new()));
    }
}

/// One member: a header of 13 numbers in hexadecimal, name and contents padded to 4 bytes
/// (Documentation/driver-api/early-userspace/buffer-format.rst). No times: the same contents give the same bytes.
fn member(out: &mut Vec<u8>, inode: u32, path: &str, mode: u32, contents: &[u8]) {
    let numbers =
        [inode, mode, 0, 0, 1, 0, contents.len() as u32, 0, 0, 0, 0, path.len() as u32 + 1, 0];
    out.extend(b"070701");
    for number in numbers {
        out.extend(format!("{number:08x}").bytes());
    }
    out.extend(path.bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(contents);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// The agent's program: beside this one, or `KYOZON_AGENT`.
fn agent() -> Result<Vec<u8>> {
    let path = match env::var_os("KYOZON_AGENT") {
        Some(path) => path.into(),
        None => env::current_exe()?.with_file_name("kyozon-agent"),
    };
    fs::read(&path).with_context(|| {
        format!(
            "{}: not found: run make build, then set KYOZON_AGENT or read the cache's env",
            path.display()
        )
    })
}

/// A module's contents; distributions compress them with xz or zstd.
fn module(file: &Path) -> Result<Vec<u8>> {
    let Some(program) = unpacker(file) else {
        return fs::read(file).with_context(|| file.display().to_string());
    };
    let out = Command::new(program).arg("-dc").arg(file).output();
    let out = out.with_context(|| format!("start {program}: is it installed?"))?;
    ensure!(
        out.status.success(),
        "unpack {}: {}",
        file.display(),
        String::from_utf8_lossy(&out.stderr).trim()
    );
    Ok(out.stdout)
}

/// The program that unpacks `file`, if its name says that it is compressed.
fn unpacker(file: &Path) -> Option<&'static str> {
    match file.extension()?.to_str()? {
        "xz" => Some("xz"),
        "zst" => Some("zstd"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpio_unpacks_the_archive() {
        let mut archive = Initramfs::default();
        archive.file("/a/b/hello", 0o640, b"hello\n".to_vec()).unwrap();
        archive.entries.insert("a/link".into(), (0o120_777, b"b/hello".to_vec()));
        assert_eq!(archive.pack(), archive.pack());
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("x.cpio"), archive.pack()).unwrap();
        let out = Command::new(BUSYBOX)
            .args(["cpio", "-idF", "x.cpio"])
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(fs::read_to_string(folder.path().join("a/link")).unwrap(), "hello\n");
    }

    #[test]
    fn compressed_modules_are_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let plain = folder.path().join("a.ko");
        fs::write(&plain, "module").unwrap();
        process::run_ok(Command::new("xz").arg("-k").arg(&plain), LIMIT).unwrap();
        for name in ["a.ko", "a.ko.xz"] {
            assert_eq!(module(&folder.path().join(name)).unwrap(), b"module", "{name}");
        }
        fs::write(folder.path().join("b.ko.xz"), "module").unwrap();
        assert!(module(&folder.path().join("b.ko.xz")).is_err());
        assert_eq!(unpacker(Path::new("c.ko.zst")), Some("zstd"));
    }

    #[test]
    fn paths_stay_inside() {
        assert!(Initramfs::default().file("a/../../b", 0o644, vec![]).is_err());
        assert!(Initramfs::default().file("", 0o644, vec![]).is_err());
    }
}
