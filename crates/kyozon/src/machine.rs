//! This machine: its kernel module and its `/dev/kyozon`.

use anyhow::{bail, ensure, Context, Result};
use kyozon_abi::device::{
    Image, Load, Status, Unload, DEVICE_VERSION, IOCTL_LOAD, IOCTL_STATUS, IOCTL_UNLOAD,
};
use kyozon_channel::memory::{self, shared};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::ioctl::{ioctl, Getter, Setter, Updater};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io::{stdout, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// The module's device.
pub const DEVICE: &str = "/dev/kyozon";

/// Polling interval.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the module may stay in use after the unload: `events --follow` looks at the ring every [`PAUSE`] and then
/// closes it.
const IN_USE: Duration = Duration::from_secs(2);

/// The current time on the clock of events and on the wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// Time-stamp counter.
    pub tsc: u64,
    /// Milliseconds since 1970, UTC.
    pub unix_ms: u64,
}

/// The machine below load, unload, status and events. Tests use one without a kernel.
pub trait Machine {
    /// The event ring's memory, read-only.
    type Ring: memory::Load;
    /// `uname -r`.
    fn release(&self) -> String;
    /// Whether the module is inserted.
    fn has_module(&self) -> Result<bool>;
    /// Inserts the module.
    fn insert(&mut self, module: &Path) -> Result<()>;
    /// Removes the module.
    fn remove(&mut self) -> Result<()>;
    /// A file's contents.
    fn read(&self, path: &Path) -> Result<Vec<u8>>;
    /// The first `bytes` bytes of a file of any size, or all of a shorter one.
    fn read_head(&self, path: &Path, bytes: u64) -> Result<Vec<u8>>;
    /// Loads a cokernel; an error is the module's one line.
    fn load(&mut self, request: &mut Load) -> Result<()>;
    /// Stops and unloads the cokernel, with the key of its load.
    fn unload(&mut self, key: &[u8]) -> Result<()>;
    /// The module's status.
    fn status(&mut self) -> Result<Status>;
    /// The event ring of `bytes` bytes; `None` if the cokernel is gone. The module cannot be removed while
    /// the ring is held.
    fn events(&mut self, bytes: u64) -> Result<Option<Self::Ring>>;
    /// The current time.
    fn now(&self) -> Now;
    /// Waits for one polling interval; `false` if the reader of standard output is gone.
    fn pause(&mut self) -> bool;
}

/// The machine on which this program runs.
#[derive(Debug)]
pub struct ThisMachine;

impl ThisMachine {
    fn device(&self, write: bool) -> Result<File> {
        OpenOptions::new().read(true).write(write).open(DEVICE).map_err(|error| match error.kind() {
            ErrorKind::NotFound => anyhow::anyhow!("{DEVICE} does not exist although the module is inserted: mount a devtmpfs on /dev"),
            ErrorKind::PermissionDenied => {
                anyhow::anyhow!("{DEVICE}: permission denied: run as root, or for status and events as a member of its group")
            }
            _ => anyhow::Error::new(error).context(DEVICE),
        })
    }
}

/// The event ring, mapped read-only. The mapping outlives the cokernel.
#[derive(Debug)]
pub struct Mapping {
    base: *mut c_void,
    bytes: usize,
}

impl Mapping {
    #[allow(unsafe_code)]
    fn of(device: &File, bytes: usize) -> rustix::io::Result<Self> {
        // SAFETY: the kernel chooses an unused address.
        let base = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, device, 0)?
        };
        Ok(Self { base, bytes })
    }

    #[allow(unsafe_code)]
    fn memory(&self) -> &[std::sync::atomic::AtomicU64] {
        // SAFETY: mapped as long as `self` lives; nothing in this address space writes to it.
        unsafe { shared(self.base.cast(), self.bytes as u64) }.unwrap_or_default()
    }
}

impl memory::Load for Mapping {
    fn words(&self) -> usize {
        self.memory().words()
    }
    fn load(&self, at: usize) -> u64 {
        self.memory().load(at)
    }
    fn acquire(&self) {
        self.memory().acquire();
    }
}

impl Drop for Mapping {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: this value's own mapping, no longer borrowed. An error leaves it mapped, which is harmless.
        let _ = unsafe { munmap(self.base, self.bytes) };
    }
}

impl Machine for ThisMachine {
    type Ring = Mapping;

    fn release(&self) -> String {
        rustix::system::uname().release().to_string_lossy().into_owned()
    }

    fn has_module(&self) -> Result<bool> {
        Ok(Path::new("/sys/module/kyozon").exists())
    }

    fn insert(&mut self, module: &Path) -> Result<()> {
        let file = File::open(module).with_context(|| module.display().to_string())?;
        let shown = module.display();
        /// MODULE_INIT_COMPRESSED_FILE of finit_module(2): the kernel decompresses it, if built to.
        const COMPRESSED: i32 = 4;
        let compressed = module.extension().is_some_and(|kind| kind != "ko");
        match rustix::system::finit_module(&file, c"", if compressed { COMPRESSED } else { 0 }) {
            Ok(()) => Ok(()),
            Err(Errno::PERM) if !rustix::process::geteuid().is_root() => {
                bail!("inserting a module needs CAP_SYS_MODULE: run as root")
            }
            Err(Errno::PERM) => bail!("the kernel refuses {shown}: kernel lockdown is active, modules are disabled, or CAP_SYS_MODULE is missing"),
            Err(Errno::NOKEY | Errno::KEYREJECTED | Errno::BADMSG) => {
                bail!("the kernel accepts signed modules only: sign {shown} with a key that it trusts")
            }
            Err(Errno::NOEXEC) => bail!("{shown} was built for another kernel than {}: rebuild it", self.release()),
            Err(error) => bail!("the kernel refuses {shown}: {error} (see dmesg)"),
        }
    }

    fn remove(&mut self) -> Result<()> {
        let end = Instant::now() + IN_USE;
        loop {
            match rustix::system::delete_module(c"kyozon", 0) {
                Ok(()) => return Ok(()),
                Err(Errno::AGAIN) if Instant::now() < end => sleep(PAUSE),
                Err(Errno::AGAIN) => bail!("the module is still in use: close the program that has {DEVICE} open and unload again"),
                Err(Errno::PERM) => bail!("removing a module needs CAP_SYS_MODULE: run as root"),
                Err(error) => bail!("the kernel does not remove the module: {error}"),
            }
        }
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        // The module accepts nothing larger, and a device file has no end.
        const MAX_BYTES: u64 = 64 << 20;
        let metadata = std::fs::metadata(path).with_context(|| path.display().to_string())?;
        ensure!(
            metadata.is_file() && metadata.len() <= MAX_BYTES,
            "{} cannot be loaded: it must be a regular file of at most {MAX_BYTES} bytes",
            path.display()
        );
        std::fs::read(path).with_context(|| path.display().to_string())
    }

    fn read_head(&self, path: &Path, bytes: u64) -> Result<Vec<u8>> {
        let mut head = Vec::new();
        let file = File::open(path).with_context(|| path.display().to_string())?;
        file.take(bytes).read_to_end(&mut head).with_context(|| path.display().to_string())?;
        Ok(head)
    }

    #[allow(unsafe_code)]
    fn load(&mut self, request: &mut Load) -> Result<()> {
        let device = self.device(true)?;
        // SAFETY: the opcode encodes the size of `Load`, and the kernel writes no more than that. The caller keeps
        // the images that the request points to alive across this call.
        let outcome = unsafe { ioctl(&device, Updater::<{ IOCTL_LOAD as _ }, Load>::new(request)) };
        outcome.map_err(|error| match message(&request.message) {
            Some(line) => anyhow::anyhow!("{line}"),
            None if error == Errno::PERM => {
                anyhow::anyhow!("loading needs CAP_SYS_MODULE: run as root")
            }
            None => anyhow::anyhow!("the module refuses: {error}"),
        })
    }

    #[allow(unsafe_code)]
    fn unload(&mut self, key: &[u8]) -> Result<()> {
        let device = self.device(true)?;
        let request = Unload {
            version: DEVICE_VERSION,
            key: Image { address: key.as_ptr() as u64, bytes: key.len() as u64 },
            ..Unload::default()
        };
        // SAFETY: the opcode encodes the size of `Unload`. The key lives across this call.
        let outcome =
            unsafe { ioctl(&device, Setter::<{ IOCTL_UNLOAD as _ }, Unload>::new(request)) };
        outcome.map_err(|error| match error {
            Errno::PERM => anyhow::anyhow!("unloading needs CAP_SYS_MODULE: run as root"),
            Errno::NOKEY => {
                anyhow::anyhow!("the wall is locked: give the key of the load with --key-file")
            }
            Errno::KEYREJECTED => anyhow::anyhow!(
                "this is not the key of the load, and nothing was changed: give the load's file with --key-file"
            ),
            error => anyhow::anyhow!("the module refuses: {error}"),
        })
    }

    #[allow(unsafe_code)]
    fn status(&mut self) -> Result<Status> {
        let device = self.device(false)?;
        // SAFETY: the opcode encodes the size of `Status`, for which any bytes are valid.
        let status = unsafe { ioctl(&device, Getter::<{ IOCTL_STATUS as _ }, Status>::new()) };
        let status = status.map_err(|error| {
            anyhow::anyhow!(
                "the module gives no status: {error}: install module and command from the same release"
            )
        })?;
        let version = status.version;
        ensure!(
            version == DEVICE_VERSION,
            "the module has version {version} of the interface, this command version {DEVICE_VERSION}: install both \
             from the same release"
        );
        Ok(status)
    }

    fn events(&mut self, bytes: u64) -> Result<Option<Mapping>> {
        let device = self.device(false)?;
        match Mapping::of(&device, usize::try_from(bytes)?) {
            Ok(mapping) => Ok(Some(mapping)),
            Err(Errno::NODEV) => Ok(None),
            Err(error) => bail!("the module does not map its event ring: {error}"),
        }
    }

    #[allow(unsafe_code)]
    fn now(&self) -> Now {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // SAFETY: reads a counter.
        let tsc = unsafe { core::arch::x86_64::_rdtsc() };
        Now { tsc, unix_ms: u64::try_from(unix.as_millis()).unwrap_or(u64::MAX) }
    }

    fn pause(&mut self) -> bool {
        let time = Timespec::try_from(PAUSE).expect("PAUSE fits a Timespec");
        let out = stdout();
        // No event is requested, so poll returns early only if the other end is gone.
        let mut fds = [PollFd::new(&out, PollFlags::empty())];
        match poll(&mut fds, Some(&time)) {
            Ok(_) => !fds[0].revents().intersects(PollFlags::ERR | PollFlags::HUP),
            Err(_) => {
                sleep(PAUSE);
                true
            }
        }
    }
}

/// The text of a zero-terminated field; `None` if it is empty.
pub fn message(field: &[u8]) -> Option<String> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    (end > 0).then(|| String::from_utf8_lossy(&field[..end]).into_owned())
}

/// Paths of an installed module for `release`, best first. DKMS compresses it like the kernel's own modules.
pub fn module_places(release: &str) -> Vec<PathBuf> {
    let base = Path::new("/lib/modules").join(release);
    let folders = ["updates/dkms", "updates", "extra"].map(|folder| base.join(folder));
    let names = ["kyozon.ko", "kyozon.ko.xz", "kyozon.ko.zst"];
    folders.iter().flat_map(|folder| names.map(|name| folder.join(name))).collect()
}
