//! A kernel with the images of a command, mounted.

use super::failure::explain;
use super::kernel::{Boot, Kernel, Tasks};
use super::place::{Image, Place};
use super::walk::HOST;
use anyhow::{anyhow, bail, Context, Result};
use kyozon_devices::disk::{FileDisk, Image as Disk};
use liblinux::calls::Calls;
use liblinux::Errno;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Linux numbers disks by letters.
const MAX_IMAGES: usize = 26;

/// How images are mounted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// The only kind of file system that is tried.
    pub kind: Option<&'a str>,
    /// User and group of all files, if the file system has no owners.
    pub owner: Option<(u32, u32)>,
}

impl Options<'_> {
    /// Options of mount(2).
    fn data(&self, kind: &str) -> String {
        match (kind, self.owner) {
            ("vfat" | "exfat", Some((user, group))) => format!("uid={user},gid={group}"),
            _ => String::new(),
        }
    }
}

/// An image's file system.
struct Mounted {
    image: Image,
    target: PathBuf,
    /// The name of its driver, once it is mounted.
    kind: String,
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
    options: &Options<'_>,
) -> Result<String> {
    let how = if write { 0 } else { libc::MS_RDONLY };
    let mut first = None;
    let mut kinds = kinds(calls)?;
    if let Some(only) = options.kind {
        let all = kinds.join(", ");
        kinds.retain(|kind| kind == only);
        anyhow::ensure!(!kinds.is_empty(), "the kernel knows no {only}, but {all}");
    }
    for kind in kinds {
        match calls.mount(device, target, &kind, how, &options.data(&kind)) {
            Ok(()) => return Ok(kind),
            Err(Errno(libc::EINVAL)) => (),
            // Its journal has to be replayed, and the image is open for reading only.
            Err(Errno(libc::EROFS)) if !write => {
                let option = without_journal(&kind).unwrap_or_default();
                calls
                    .mount(device, target, &kind, how, option)
                    .map_err(|errno| anyhow!("{kind}: {}", explain(errno)))?;
                eprintln!("kyozon: warning: the {kind} was not unmounted: what its journal has is not shown");
                return Ok(kind);
            }
            Err(errno) => {
                first = first.or_else(|| Some((kind, errno, kernel.last_words())));
            }
        }
    }
    match first {
        Some((kind, errno, words)) => bail!("{kind}: {} ({words})", explain(errno)),
        None => match options.kind {
            Some(only) => bail!("it contains no {only}"),
            None => bail!("no file system that the kernel knows"),
        },
    }
}

impl Session {
    /// Boots, and mounts the images of `places`: for writing if `writes` says so of any place in it.
    pub fn new(boot: &Boot, places: &[&Place], writes: impl Fn(&Place) -> bool) -> Result<Self> {
        Self::with(boot, places, writes, &Options::default())
    }

    /// As [`new`](Session::new), with options.
    pub fn with(
        boot: &Boot,
        places: &[&Place],
        writes: impl Fn(&Place) -> bool,
        options: &Options<'_>,
    ) -> Result<Self> {
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
            let disk = Disk::open(&image.file, *write).map_err(|error| {
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
                kind: String::new(),
            });
        }
        let kernel = match boot.confined {
            Some(limit) => Kernel::confined(boot, disks, limit)?,
            None => Kernel::in_process(boot, disks)?,
        };
        let mut session = Self { inside: Vec::new(), kernel, mounted, died: None };
        if let Err(error) = session.mount_all(&images, options) {
            // The reason is what counts.
            let _ = session.close();
            session.died()?;
            return Err(error);
        }
        Ok(session)
    }

    fn mount_all(&mut self, images: &[(&Image, bool)], options: &Options<'_>) -> Result<()> {
        let kernel = &self.kernel;
        let calls = kernel.calls()?;
        calls
            .mkdir(Path::new("/images"), 0o700)
            .map_err(|errno| anyhow!("/images: {}", explain(errno)))?;
        let tasks = kernel.tasks()?;
        for (number, (mounted, (image, write))) in self.mounted.iter_mut().zip(images).enumerate() {
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
            let done = mount(kernel, calls, &device, &mounted.target, *write, options);
            mounted.kind = done.with_context(|| {
                let partitioned = calls.stat(Path::new(&format!("{device}1"))).is_ok();
                let hint = if image.partition.is_none() && partitioned {
                    ": it has partitions, choose one by IMAGE@NUMBER:/PATH"
                } else {
                    ""
                };
                format!("cannot mount {name}{hint}")
            })?;
            let thread = tasks.attach()?;
            thread
                .enter_root(&mounted.target)
                .map_err(|errno| anyhow!("{name}: {}", explain(errno)))?;
            self.inside.push(thread);
        }
        Ok(())
    }

    /// What attaches more tasks of the kernel.
    pub fn tasks(&self) -> Result<Tasks> {
        self.kernel.tasks()
    }

    /// The name of the driver of a place's file system.
    pub fn kind(&self, place: &Place) -> &str {
        let mounted = self.mounted.iter().find(|mounted| Some(&mounted.image) == place.image());
        mounted.map_or("", |mounted| &mounted.kind)
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
