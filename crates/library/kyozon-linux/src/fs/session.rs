//! A kernel with the images of a command, mounted.

use super::attach::{mount, Options};
use super::failure::{explain, warn};
use super::kernel::{Boot, Kernel, Tasks};
use super::place::{Image, Place};
use super::walk::{sync, Folder, HOST};
use super::written::Written;
use anyhow::{anyhow, bail, Context, Error, Result};
use kyozon_devices::disk::{FileDisk, Image as Disk};
use liblinux::calls::Calls;
use liblinux::Errno;
use std::cell::Cell;
use std::collections::HashSet;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Linux numbers disks by letters.
const MAX_DISKS: usize = 26;

/// An image's file system.
struct Mounted {
    image: Image,
    /// The number of its disk.
    disk: usize,
    write: bool,
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
    /// Disks that are open for writing.
    written: Vec<Written>,
    /// The names of all disks.
    names: Vec<PathBuf>,
    died: Option<String>,
    /// Whether what is written reaches the images at the end only.
    lazy: Cell<bool>,
}

/// What went wrong with the images, whatever the command noticed.
#[derive(Debug, Default)]
pub struct Closed {
    /// The host could not read or write one. That explains errors of the command.
    pub host: Option<Error>,
    /// Linux could not write one back.
    pub unmounted: Option<Error>,
}

impl Closed {
    /// What a command whose own result is `done` ends with.
    pub fn after(self, done: Result<()>) -> Result<()> {
        self.host.map_or(Ok(()), Err).and(done).and(self.unmounted.map_or(Ok(()), Err))
    }
}

/// An image's file, whatever its name: a device has many nodes, and a file many names.
fn identity(file: &Path) -> Option<(u64, u64)> {
    let status = std::fs::metadata(file).ok()?;
    if status.file_type().is_block_device() {
        return Some((u64::MAX, status.rdev()));
    }
    Some((status.dev(), status.ino()))
}

fn same_file(a: &Path, b: &Path) -> bool {
    a == b || identity(a).is_some_and(|known| identity(b) == Some(known))
}

/// Whether both are one file system.
fn same(a: &Image, b: &Image) -> bool {
    a.partition == b.partition && same_file(&a.file, &b.file)
}

/// A message of the kernel's process, which knows disks by their numbers.
fn named(text: &str, names: &[PathBuf]) -> String {
    let names = names.iter().enumerate();
    names.fold(text.to_owned(), |text, (number, name)| {
        text.replace(&format!("disk{number}: "), &format!("{}: ", name.display()))
    })
}

/// A disk of the kernel.
struct Wanted<'a> {
    file: &'a Path,
    write: bool,
}

impl Wanted<'_> {
    fn open(&self) -> Result<Disk> {
        let Self { file, write } = *self;
        let name = file.display();
        let disk = Disk::open(file, write).map_err(|error| {
            let number = error.raw_os_error();
            let text = number.map_or_else(|| error.to_string(), |number| explain(Errno(number)));
            anyhow!("{name}: {text}")
        })?;
        if !write && FileDisk::is_busy(file) {
            warn(&format!("{name} is in use by the host: what is read may be old or inconsistent"));
        }
        Ok(disk)
    }
}

/// The disks of the kernel, and what of them it mounts: for writing if any place in it is to be written.
fn plan<'a>(places: &[(&'a Place, bool)]) -> (Vec<Wanted<'a>>, Vec<Mounted>) {
    let mut disks: Vec<Wanted<'a>> = Vec::new();
    let mut mounted: Vec<Mounted> = Vec::new();
    for &(place, write) in places {
        let Some(image) = place.image() else { continue };
        // The partitions of a disk share it: Linux sees one device.
        let known = disks.iter().position(|known| same_file(known.file, &image.file));
        let disk = known.unwrap_or(disks.len());
        match known {
            Some(disk) => disks[disk].write |= write,
            None => disks.push(Wanted { file: &image.file, write }),
        }
        match mounted.iter_mut().find(|known| same(&known.image, image)) {
            Some(known) => known.write |= write,
            None => mounted.push(Mounted {
                image: image.clone(),
                disk,
                write,
                target: format!("/images/{}", mounted.len()).into(),
                kind: String::new(),
            }),
        }
    }
    (disks, mounted)
}

impl Session {
    /// Boots, and mounts the images of places: for writing if any place in it is to be written.
    pub fn new(boot: &Boot, places: &[(&Place, bool)]) -> Result<Self> {
        Self::with(boot, places, &Options::default())
    }

    /// As [`new`](Session::new), with options.
    pub fn with(boot: &Boot, places: &[(&Place, bool)], options: &Options<'_>) -> Result<Self> {
        let (wanted, mounted) = plan(places);
        anyhow::ensure!(wanted.len() <= MAX_DISKS, "more than {MAX_DISKS} images");
        let (mut disks, mut written, mut names) = (Vec::new(), Vec::new(), Vec::new());
        for wanted in wanted {
            names.push(wanted.file.to_owned());
            let disk = wanted.open()?;
            if wanted.write {
                written.push(Written::new(wanted.file, &disk)?);
            }
            disks.push((disk, wanted.write));
        }
        let kernel = match boot.confined {
            Some(limit) => Kernel::confined(boot, disks, mounted.len(), limit),
            None => Kernel::in_process(boot, disks),
        };
        let kernel = kernel.map_err(|error| anyhow!("{}", named(&format!("{error:#}"), &names)))?;
        let mut session = Self {
            inside: Vec::new(),
            kernel,
            mounted,
            written,
            names,
            died: None,
            lazy: Cell::new(false),
        };
        if let Err(error) = session.mount_all(options) {
            // The reason is what counts.
            let closed = session.close();
            session.died()?;
            return Err(closed.host.unwrap_or(error));
        }
        Ok(session)
    }

    fn mount_all(&mut self, options: &Options<'_>) -> Result<()> {
        let kernel = &self.kernel;
        let calls = kernel.calls()?;
        calls
            .mkdir(Path::new("/images"), 0o700)
            .map_err(|errno| anyhow!("/images: {}", explain(errno)))?;
        let tasks = kernel.tasks()?;
        for Mounted { image, disk, write, target, kind } in &mut self.mounted {
            let disk = char::from(b'a' + *disk as u8);
            let partition = image.partition.map(|n| n.to_string()).unwrap_or_default();
            let device = format!("/dev/vd{disk}{partition}");
            let name = image.file.display();
            calls.mkdir(target, 0o700).map_err(|errno| anyhow!("/images: {}", explain(errno)))?;
            if image.partition.is_some() && calls.stat(Path::new(&device)).is_err() {
                bail!("{name} has no partition {partition}");
            }
            *kind = mount(kernel, calls, &device, target, *write, options).with_context(|| {
                let partitioned = calls.stat(Path::new(&format!("{device}1"))).is_ok();
                let hint = if image.partition.is_none() && partitioned {
                    ": it has partitions, choose one by IMAGE@NUMBER:/PATH"
                } else {
                    ""
                };
                format!("cannot mount {name}{hint}")
            })?;
            let thread = tasks.attach()?;
            thread.enter_root(target).map_err(|errno| anyhow!("{name}: {}", explain(errno)))?;
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
        self.number(place).map_or("", |number| &self.mounted[number].kind)
    }

    /// The images, by device and inode of their files.
    pub fn files(&self) -> HashSet<(u64, u64)> {
        let status = self.mounted.iter().map(|mounted| std::fs::metadata(&mounted.image.file));
        status.flatten().map(|status| (status.dev(), status.ino())).collect()
    }

    fn number(&self, place: &Place) -> Option<usize> {
        let image = place.image()?;
        // Names that a command has changed since it began are those of the images that it mounted.
        let named = self.mounted.iter().position(|mounted| mounted.image == *image);
        named.or_else(|| self.mounted.iter().position(|mounted| same(&mounted.image, image)))
    }

    /// The kernel that has a place's file.
    pub fn calls(&self, place: &Place) -> &dyn Calls {
        match place.image() {
            Some(_) => {
                let number = self.number(place);
                self.inside[number.expect("every place's image is mounted")].as_ref()
            }
            None => HOST,
        }
    }

    /// From now on, [`sync`](Session::sync) does nothing: [`sync_all`](Session::sync_all) does it for all.
    pub fn be_lazy(&self) {
        self.lazy.set(true);
    }

    /// Writes back the file system that a folder is in, and reports earlier failures of that.
    pub fn sync(&self, folder: &Folder<'_>) -> Result<()> {
        if self.lazy.get() {
            return Ok(());
        }
        sync(folder)
    }

    /// Writes back all file systems that are written.
    pub fn sync_all(&self) -> Result<()> {
        let mut written =
            self.mounted.iter().zip(&self.inside).filter(|(mounted, _)| mounted.write);
        written.try_for_each(|(_, calls)| sync(&Folder::open(calls.as_ref(), Path::new("/"))?))
    }

    /// Unmounts and halts.
    pub fn close(&mut self) -> Closed {
        // Their root directories keep images busy.
        self.inside.clear();
        let mut closed = Closed::default();
        for mounted in &self.mounted {
            let Ok(calls) = self.kernel.calls() else { return closed };
            let unmounted = calls.unmount(&mounted.target);
            let name = mounted.image.file.display();
            if let Some(error) = self.kernel.disk_error(mounted.disk) {
                closed.host = closed.host.or(Some(anyhow!("{name}: on the host: {error}")));
            }
            if let Err(errno) = unmounted {
                // It was never mounted.
                if errno.0 != libc::EINVAL {
                    let error = anyhow!("cannot unmount {name}: {}", explain(errno));
                    closed.unmounted = closed.unmounted.or(Some(error));
                }
            }
        }
        let halted = self.kernel.halt();
        self.died = self.kernel.died().map(|why| named(&why, &self.names));
        if let Err(error) = halted {
            closed.unmounted = Some(anyhow!("{}", named(&error.to_string(), &self.names)));
        }
        if self.died.is_none() {
            let lost = self.written.iter().find_map(|written| written.check().err());
            closed.host = closed.host.or(lost);
        }
        closed
    }

    /// Whether the kernel answers no more.
    pub fn has_ended(&self) -> bool {
        self.inside.iter().any(|calls| calls.call(libc::SYS_getpid, &mut []).is_err())
    }

    /// An error if the kernel's process ended before its time.
    pub fn died(&self) -> Result<()> {
        match &self.died {
            Some(why) => bail!("{why}"),
            None => Ok(()),
        }
    }
}
