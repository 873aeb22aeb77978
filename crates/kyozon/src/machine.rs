//! This machine: its kernel module and its `/dev/kyozon`.

use anyhow::{bail, ensure, Context, Result};
use kyozon_abi::device::{Load, Status, IOCTL_LOAD, IOCTL_STATUS, IOCTL_UNLOAD};
use kyozon_channel::memory::{self, shared};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::ioctl::{ioctl, Getter, NoArg, Updater};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io::{stdout, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

/// The device that the module makes.
pub const DEVICE: &str = "/dev/kyozon";

/// Time between two looks at something that is waited for.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the module may be in use after the cokernel is out: whoever follows its events looks every [`PAUSE`].
const IN_USE: Duration = Duration::from_secs(2);

/// What time it is, on the clock of events and on that of people.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// Time-stamp counter.
    pub tsc: u64,
    /// Milliseconds since 1970, UTC.
    pub unix_ms: u64,
}

/// What load, unload, status and events need of a machine. Tests have one without a kernel.
pub trait Machine {
    /// The event ring's memory, to read.
    type Ring: memory::Load;
    /// `uname -r`.
    fn release(&self) -> String;
    /// Whether the module is in the kernel.
    fn has_module(&self) -> Result<bool>;
    /// Puts the module in.
    fn insert(&mut self, module: &Path) -> Result<()>;
    /// Takes the module out.
    fn remove(&mut self) -> Result<()>;
    /// A file's contents.
    fn read(&self, path: &Path) -> Result<Vec<u8>>;
    /// Carries out a load; an error is the kernel's one line.
    fn load(&mut self, request: &mut Load) -> Result<()>;
    /// Takes the cokernel out.
    fn unload(&mut self) -> Result<()>;
    /// What is loaded.
    fn status(&mut self) -> Result<Status>;
    /// The event ring of `bytes` bytes; `None` where the cokernel is gone. While it is held the module stays.
    fn events(&mut self, bytes: u64) -> Result<Option<Self::Ring>>;
    /// What time it is.
    fn now(&self) -> Now;
    /// Waits for a moment; `false` where nobody reads standard output any more.
    fn pause(&mut self) -> bool;
}

/// The machine that this program runs on.
#[derive(Debug)]
pub struct ThisMachine;

impl ThisMachine {
    fn device(&self, write: bool) -> Result<File> {
        OpenOptions::new().read(true).write(write).open(DEVICE).map_err(|error| match error.kind() {
            ErrorKind::NotFound => anyhow::anyhow!("the module made no {DEVICE}: is /dev a devtmpfs?"),
            ErrorKind::PermissionDenied => {
                anyhow::anyhow!("{DEVICE}: permission denied: run as root, or for status and events as a member of its group")
            }
            _ => anyhow::Error::new(error).context(DEVICE),
        })
    }
}

/// The event ring as the kernel maps it: read-only, and ours even when the cokernel goes.
#[derive(Debug)]
pub struct Mapping {
    base: *mut c_void,
    bytes: usize,
}

impl Mapping {
    #[allow(unsafe_code)]
    fn of(device: &File, bytes: usize) -> rustix::io::Result<Self> {
        // SAFETY: the kernel chooses a place where nothing is.
        let base = unsafe {
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, device, 0)?
        };
        Ok(Self { base, bytes })
    }

    #[allow(unsafe_code)]
    fn memory(&self) -> &[std::sync::atomic::AtomicU64] {
        // SAFETY: mapped as long as `self` lives; nobody writes to it in this address space, nor do we.
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
        // SAFETY: our own mapping, which nobody borrows any more. What the kernel says about it changes nothing.
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
        /// MODULE_INIT_COMPRESSED_FILE of finit_module(2): the kernel unpacks, where it was built to.
        const COMPRESSED: i32 = 4;
        let packed = module.extension().is_some_and(|kind| kind != "ko");
        match rustix::system::finit_module(&file, c"", if packed { COMPRESSED } else { 0 }) {
            Ok(()) => Ok(()),
            Err(Errno::PERM) if !rustix::process::geteuid().is_root() => {
                bail!("inserting a module needs CAP_SYS_MODULE: run as root")
            }
            Err(Errno::PERM) => bail!("the kernel refuses {shown}: it is locked down, or modules are disabled, or CAP_SYS_MODULE is missing"),
            Err(Errno::NOKEY | Errno::KEYREJECTED | Errno::BADMSG) => {
                bail!("the kernel takes signed modules only: sign {shown} with a key that it trusts")
            }
            Err(Errno::NOEXEC) => bail!("{shown} was built for another kernel than {}: build it anew", self.release()),
            Err(error) => bail!("the kernel refuses {shown}: {error} (dmesg may say more)"),
        }
    }

    fn remove(&mut self) -> Result<()> {
        let end = Instant::now() + IN_USE;
        loop {
            match rustix::system::delete_module(c"kyozon", 0) {
                Ok(()) => return Ok(()),
                Err(Errno::AGAIN) if Instant::now() < end => sleep(PAUSE),
                Err(Errno::AGAIN) => bail!("the module stays: another program has {DEVICE} open"),
                Err(Errno::PERM) => bail!("removing a module needs CAP_SYS_MODULE: run as root"),
                Err(error) => bail!("the kernel keeps the module: {error}"),
            }
        }
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        // The module takes nothing larger, and a device has no end.
        const MOST: u64 = 64 << 20;
        let about = std::fs::metadata(path).with_context(|| path.display().to_string())?;
        ensure!(
            about.is_file() && about.len() <= MOST,
            "{} cannot be loaded: only files of at most {MOST} bytes can",
            path.display()
        );
        std::fs::read(path).with_context(|| path.display().to_string())
    }

    #[allow(unsafe_code)]
    fn load(&mut self, request: &mut Load) -> Result<()> {
        let device = self.device(true)?;
        // SAFETY: the opcode holds the size of `Load`, and the kernel writes no more than that. The images that
        // the request points to are alive: the caller holds them across this call.
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
    fn unload(&mut self) -> Result<()> {
        let device = self.device(true)?;
        // SAFETY: the request has no argument.
        let outcome = unsafe { ioctl(&device, NoArg::<{ IOCTL_UNLOAD as _ }>::new()) };
        outcome.map_err(|error| match error {
            Errno::PERM => anyhow::anyhow!("unloading needs CAP_SYS_MODULE: run as root"),
            error => anyhow::anyhow!("the module refuses: {error}"),
        })
    }

    #[allow(unsafe_code)]
    fn status(&mut self) -> Result<Status> {
        let device = self.device(false)?;
        // SAFETY: the opcode holds the size of `Status`, which any bytes are valid for.
        let status = unsafe { ioctl(&device, Getter::<{ IOCTL_STATUS as _ }, Status>::new()) };
        status.map_err(|error| {
            anyhow::anyhow!(
                "the module gives no status: {error}: install module and command from one release"
            )
        })
    }

    fn events(&mut self, bytes: u64) -> Result<Option<Mapping>> {
        let device = self.device(false)?;
        match Mapping::of(&device, usize::try_from(bytes)?) {
            Ok(mapping) => Ok(Some(mapping)),
            Err(Errno::NODEV) => Ok(None),
            Err(error) => bail!("the module does not show its event ring: {error}"),
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
        let time = Timespec::try_from(PAUSE).expect("a short time");
        let out = stdout();
        // Nothing is asked for, so it ends early only where the other end is gone.
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

/// The text of a zero-terminated field; `None` where it is empty.
pub fn message(field: &[u8]) -> Option<String> {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    (end > 0).then(|| String::from_utf8_lossy(&field[..end]).into_owned())
}

/// Where the module for `release` may be installed, best first. DKMS packs it as the kernel's own modules are.
pub fn module_places(release: &str) -> Vec<PathBuf> {
    let base = Path::new("/lib/modules").join(release);
    let folders = ["updates/dkms", "updates", "extra"].map(|folder| base.join(folder));
    let names = ["kyozon.ko", "kyozon.ko.xz", "kyozon.ko.zst"];
    folders.iter().flat_map(|folder| names.map(|name| folder.join(name))).collect()
}
