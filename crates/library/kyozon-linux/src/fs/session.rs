//! A kernel with the images of a command, mounted.

use super::failure::explain;
use super::kernel::{Boot, Kernel};
use super::place::{Image, Place};
use super::walk::HOST;
use anyhow::{anyhow, bail, Context, Result};
use kyozon_devices::disk::FileDisk;
use liblinux::calls::Calls;
use liblinux::Errno;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Linux numbers disks by letters.
const MAX_IMAGES: usize = 26;

/// An image's file system.
struct Mounted {
    image: Image,
    target: PathBuf,
}

/// The kernel. [`close`](Session::close) must end it.
pub struct Session {
    /// Whose root directory is an image: links in it do not lead out. In the order of `mounted`.
    inside: Vec<Box<dyn Calls>>,
    kernel: Kernel,
    mounted: Vec<Mounted>,
    died: Option<String>,
}

/// File systems that can be on a disk, in the order in which their drivers know them for certain.
fn kinds(calls: &dyn Calls) -> Result<Vec<String>> {
    let read = || {
        let file = calls.open(Path::new("/proc/filesystems"), libc::O_RDONLY, 0)?;
        let mut buffer = vec![0; 4096];
        let bytes = calls.read(file, &mut buffer)?;
        buffer.truncate(bytes);
        calls.close(file)?;
        Ok::<_, Errno>(buffer)
    };
    let text = read().map_err(|errno| anyhow!("the kernel's file systems: {}", explain(errno)))?;
    let text = String::from_utf8_lossy(&text);
    // Lines with "nodev" are of file systems without a disk. ext4 serves ext2 and ext3, and vfat shows msdos.
    let kinds = text.lines().filter_map(|line| line.strip_prefix('\t'));
    Ok(kinds
        .filter(|kind| !matches!(*kind, "ext2" | "ext3" | "msdos" | "fuseblk"))
        .map(str::to_owned)
        .collect())
}

/// The option that reads a file system without replaying its journal.
fn without_journal(kind: &str) -> Option<&'static str> {
    match kind {
        "ext4" => Some("noload"),
        "xfs" => Some("norecovery"),
        "btrfs" => Some("rescue=nologreplay"),
        _ => None,
    }
}

fn mount(
    kernel: &Kernel,
    calls: &dyn Calls,
    device: &str,
    target: &Path,
    write: bool,
) -> Result<()> {
    let how = if write { 0 } else { libc::MS_RDONLY };
    let mut first = None;
    for kind in kinds(calls)? {
        match calls.mount(device, target, &kind, how, "") {
            Ok(()) => return Ok(()),
            Err(Errno(libc::EINVAL)) => (),
            // Its journal has to be replayed, and the image is open for reading only.
            Err(Errno(libc::EROFS)) if !write => {
                let option = without_journal(&kind).unwrap_or_default();
                calls
                    .mount(device, target, &kind, how, option)
                    .map_err(|errno| anyhow!("{kind}: {}", explain(errno)))?;
                eprintln!("kyozon: warning: the {kind} was not unmounted: what its journal has is not shown");
                return Ok(());
            }
            Err(errno) => {
                first = first.or_else(|| Some((kind, errno, kernel.last_words())));
            }
        }
    }
    match first {
        Some((kind, errno, words)) => bail!("{kind}: {} ({words})", explain(errno)),
        None => bail!("no file system that the kernel knows"),
    }
}

impl Session {
    /// Boots, and mounts the images of `places`: for writing if `writes` says so of any place in it.
    pub fn new(boot: &Boot, places: &[&Place], writes: impl Fn(&Place) -> bool) -> Result<Self> {
        let mut images: Vec<(&Image, bool)> = Vec::new();
        for place in places {
            let Some(image) = place.image() else { continue };
            match images.iter_mut().find(|(known, _)| *known == image) {
                Some((_, write)) => *write |= writes(place),
                None => images.push((image, writes(place))),
            }
        }
        anyhow::ensure!(images.len() <= MAX_IMAGES, "more than {MAX_IMAGES} images");
        let mut disks = Vec::new();
        let mut mounted = Vec::new();
        for (number, (image, write)) in images.iter().enumerate() {
            let disk = FileDisk::open(&image.file, *write).map_err(|error| {
                let number = error.raw_os_error();
                let text =
                    number.map_or_else(|| error.to_string(), |number| explain(Errno(number)));
                anyhow!("{}: {text}", image.file.display())
            })?;
            if !write && FileDisk::is_busy(&image.file) {
                let name = image.file.display();
                eprintln!("kyozon: warning: {name} is in use by the host: what is read may be old or inconsistent");
            }
            disks.push((disk, *write));
            mounted.push(Mounted {
                image: (*image).clone(),
                target: format!("/images/{number}").into(),
            });
        }
        let kernel = match boot.confined {
            Some(limit) => Kernel::confined(boot, disks, limit)?,
            None => Kernel::in_process(boot, disks)?,
        };
        let mut session = Self { inside: Vec::new(), kernel, mounted, died: None };
        if let Err(error) = session.mount_all(&images) {
            // The reason is what counts.
            let _ = session.close();
            session.died()?;
            return Err(error);
        }
        Ok(session)
    }

    fn mount_all(&mut self, images: &[(&Image, bool)]) -> Result<()> {
        let kernel = &self.kernel;
        let calls = kernel.calls()?;
        calls
            .mkdir(Path::new("/images"), 0o700)
            .map_err(|errno| anyhow!("/images: {}", explain(errno)))?;
        for (number, (mounted, (image, write))) in self.mounted.iter().zip(images).enumerate() {
            let disk = char::from(b'a' + number as u8);
            let partition = image.partition.map(|n| n.to_string()).unwrap_or_default();
            let device = format!("/dev/vd{disk}{partition}");
            let name = image.file.display();
            calls
                .mkdir(&mounted.target, 0o700)
                .map_err(|errno| anyhow!("/images: {}", explain(errno)))?;
            if image.partition.is_some() && calls.stat(Path::new(&device)).is_err() {
                bail!("{name} has no partition {partition}");
            }
            mount(kernel, calls, &device, &mounted.target, *write).with_context(|| {
                let partitioned = calls.stat(Path::new(&format!("{device}1"))).is_ok();
                let hint = if image.partition.is_none() && partitioned {
                    ": it has partitions, choose one by IMAGE@NUMBER:/PATH"
                } else {
                    ""
                };
                format!("cannot mount {name}{hint}")
            })?;
            let thread = kernel.attach()?;
            thread
                .enter_root(&mounted.target)
                .map_err(|errno| anyhow!("{name}: {}", explain(errno)))?;
            self.inside.push(thread);
        }
        Ok(())
    }

    /// The images, by device and inode of their files.
    pub fn files(&self) -> HashSet<(u64, u64)> {
        let status = self.mounted.iter().map(|mounted| std::fs::metadata(&mounted.image.file));
        status.flatten().map(|status| (status.dev(), status.ino())).collect()
    }

    /// The kernel that has a place's file.
    pub fn calls(&self, place: &Place) -> &dyn Calls {
        match place.image() {
            Some(image) => {
                let number = self.mounted.iter().position(|m| m.image == *image);
                self.inside[number.expect("every place's image is mounted")].as_ref()
            }
            None => HOST,
        }
    }

    /// Unmounts and halts. An error that the host had with an image is an error of the command.
    pub fn close(&mut self) -> Result<()> {
        // Their root directories keep images busy.
        self.inside.clear();
        let mut first = None;
        for (number, mounted) in self.mounted.iter().enumerate() {
            let Ok(calls) = self.kernel.calls() else { return Ok(()) };
            let unmounted = calls.unmount(&mounted.target);
            if let Some(error) = self.kernel.disk_error(number) {
                first = first.or(Some(anyhow!("{}: {error}", mounted.image.file.display())));
            }
            if let Err(errno) = unmounted {
                // It was never mounted.
                if errno.0 != libc::EINVAL {
                    let name = mounted.image.file.display();
                    first = first.or(Some(anyhow!("cannot unmount {name}: {}", explain(errno))));
                }
            }
        }
        let halted = self.kernel.halt();
        self.died = self.kernel.died();
        halted?;
        first.map_or(Ok(()), Err)
    }

    /// An error if the kernel's process ended before its time.
    pub fn died(&self) -> Result<()> {
        match &self.died {
            Some(why) => bail!("{why}"),
            None => Ok(()),
        }
    }
}
