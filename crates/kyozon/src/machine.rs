//! This machine: its kernel module and its `/dev/kyozon`.

use anyhow::{bail, ensure, Context, Result};
use kyozon_abi::device::{Load, Status, IOCTL_LOAD, IOCTL_STATUS, IOCTL_UNLOAD};
use rustix::io::Errno;
use rustix::ioctl::{ioctl, Getter, NoArg, Updater};
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The device that the module makes.
pub const DEVICE: &str = "/dev/kyozon";

/// What load, unload and status need of a machine. Tests have one without a kernel.
pub trait Machine {
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
}

/// The machine that this program runs on.
#[derive(Debug)]
pub struct ThisMachine;

impl ThisMachine {
    fn device(&self, write: bool) -> Result<File> {
        OpenOptions::new().read(true).write(write).open(DEVICE).map_err(|error| match error.kind() {
            ErrorKind::NotFound => anyhow::anyhow!("the module made no {DEVICE}: is /dev a devtmpfs?"),
            ErrorKind::PermissionDenied => {
                anyhow::anyhow!("{DEVICE}: permission denied: run as root, or for status as a member of its group")
            }
            _ => anyhow::Error::new(error).context(DEVICE),
        })
    }
}

impl Machine for ThisMachine {
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
        match rustix::system::delete_module(c"kyozon", 0) {
            Ok(()) => Ok(()),
            Err(Errno::PERM) => bail!("removing a module needs CAP_SYS_MODULE: run as root"),
            Err(error) => bail!("the kernel keeps the module: {error}"),
        }
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>> {
        // The module takes no larger image, and a device has no end.
        const MOST: u64 = 64 << 20;
        let about = std::fs::metadata(path).with_context(|| path.display().to_string())?;
        ensure!(
            about.is_file() && about.len() <= MOST,
            "{} is no image: a file of at most {MOST} bytes is",
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
