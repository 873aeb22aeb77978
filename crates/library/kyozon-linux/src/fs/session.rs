//! A kernel with the images of a command, mounted.

use super::place::{Image, Place};
use super::walk::explain;
use crate::host::Host;
use anyhow::{anyhow, bail, Context, Result};
use kyozon_devices::block::{Block, BlockDevice, Errors};
use kyozon_devices::disk::FileDisk;
use liblinux::calls::Calls;
use liblinux::{Config, Errno, Instance, Thread};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Linux numbers disks by letters.
const MAX_IMAGES: usize = 26;
/// Bytes of the kernel's log that are kept for a message.
const MAX_LOG: usize = 1 << 16;

/// The kernel's log.
type Log = Arc<Mutex<Vec<u8>>>;

/// An image's file system.
struct Mounted {
    image: Image,
    errors: Arc<Errors>,
    target: PathBuf,
}

/// The kernel. [`close`](Session::close) must end it.
pub struct Session {
    /// Whose root directory is an image: links in it do not lead out. In the order of `mounted`.
    inside: Vec<Thread>,
    kernel: Option<(Instance, Thread)>,
    mounted: Vec<Mounted>,
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

fn mount(calls: &dyn Calls, device: &str, target: &Path, write: bool, log: &Log) -> Result<()> {
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
            Err(errno) => first = first.or(Some((kind, errno))),
        }
    }
    match first {
        Some((kind, errno)) => bail!("{kind}: {} ({})", explain(errno), last_line(log)),
        None => bail!("no file system that the kernel knows"),
    }
}

impl Session {
    /// Boots, and mounts the images of `places`: for writing if `writes` says so of any place in it.
    pub fn new(linux: &Path, places: &[&Place], writes: impl Fn(&Place) -> bool) -> Result<Self> {
        let mut images: Vec<(&Image, bool)> = Vec::new();
        for place in places {
            let Some(image) = place.image() else { continue };
            match images.iter_mut().find(|(known, _)| *known == image) {
                Some((_, write)) => *write |= writes(place),
                None => images.push((image, writes(place))),
            }
        }
        anyhow::ensure!(images.len() <= MAX_IMAGES, "more than {MAX_IMAGES} images");
        let log = Log::default();
        let sink = log.clone();
        let mut config = Config::new(linux).option("loglevel=4").log(move |text| {
            let mut log = sink.lock().unwrap_or_else(|e| e.into_inner());
            if log.len() < MAX_LOG {
                log.extend_from_slice(text);
            }
        });
        let mut mounted = Vec::new();
        for (number, (image, write)) in images.iter().enumerate() {
            let disk = FileDisk::open(&image.file, *write).map_err(|error| {
                let number = error.raw_os_error();
                let text =
                    number.map_or_else(|| error.to_string(), |number| explain(Errno(number)));
                anyhow!("{}: {text}", image.file.display())
            })?;
            let block = Block::new(Box::new(disk), !write, &format!("disk{number}")).extended();
            let device = BlockDevice::inline(block);
            mounted.push(Mounted {
                image: (*image).clone(),
                errors: device.errors(),
                target: format!("/images/{number}").into(),
            });
            config = config.device(device);
        }
        let kernel =
            Instance::in_process(config).map_err(|e| anyhow!("{e}: {}", last_line(&log)))?;
        let mut session = Self { inside: Vec::new(), kernel: Some(kernel), mounted };
        if let Err(error) = session.mount_all(&images, &log) {
            // The reason is what counts.
            let _ = session.close();
            return Err(error);
        }
        Ok(session)
    }

    fn mount_all(&mut self, images: &[(&Image, bool)], log: &Log) -> Result<()> {
        let (instance, calls) = self.kernel.as_ref().expect("a session that is not closed");
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
            mount(calls, &device, &mounted.target, *write, log).with_context(|| {
                let partitioned = calls.stat(Path::new(&format!("{device}1"))).is_ok();
                let hint = if image.partition.is_none() && partitioned {
                    ": it has partitions, choose one by IMAGE@NUMBER:/PATH"
                } else {
                    ""
                };
                format!("cannot mount {name}{hint}")
            })?;
            let thread = instance.attach()?;
            thread
                .enter_root(&mounted.target)
                .map_err(|errno| anyhow!("{name}: {}", explain(errno)))?;
            self.inside.push(thread);
        }
        Ok(())
    }

    /// The kernel that has a place's file.
    pub fn calls(&self, place: &Place) -> &dyn Calls {
        match place.image() {
            Some(image) => {
                let number = self.mounted.iter().position(|m| m.image == *image);
                &self.inside[number.expect("every place's image is mounted")]
            }
            None => &Host,
        }
    }

    /// Unmounts and halts. An error that the host had with an image is an error of the command.
    pub fn close(&mut self) -> Result<()> {
        // Their root directories keep images busy.
        self.inside.clear();
        let Some((instance, thread)) = self.kernel.take() else { return Ok(()) };
        let mut first = None;
        for mounted in &self.mounted {
            let unmounted = thread.unmount(&mounted.target);
            if let Some(error) = mounted.errors.last() {
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
        instance.halt(thread)?;
        first.map_or(Ok(()), Err)
    }
}

/// The last line that the kernel logged.
fn last_line(log: &Log) -> String {
    let log = log.lock().unwrap_or_else(|e| e.into_inner());
    let text = String::from_utf8_lossy(&log);
    text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}
