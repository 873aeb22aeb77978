//! A kernel whose memory can be read: in an image, or this machine's own.

use super::description::Description;
use super::dump::Dump;
use super::module_files::Folder;
use crate::machine::ThisMachine;
use crate::monitor::{self, Code};
use anyhow::{bail, Context, Result};
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::profile::Profile;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// This machine's memory, as an ELF core.
const KCORE: &str = "/proc/kcore";
/// The time between two looks at a machine that runs: that between two slices of the monitor, by default.
const PAUSE: Duration = Duration::from_millis(10);

/// A kernel with its memory.
pub struct Subject {
    /// The image.
    pub path: PathBuf,
    pub dump: Dump,
    /// The encoded profile.
    profile: Vec<u8>,
    /// What code is compared with.
    pub code: Code,
    /// What the list of symbols hides or forges, in one line.
    pub warning: Option<String>,
    /// Whether the kernel runs.
    pub is_live: bool,
    /// Whether the kernel counts calls, and has changed its code for it.
    calls_changed: bool,
}

impl Subject {
    /// The kernel in the image at `image`, or the running one. `package` is its package's image if the operator named
    /// one. Without `judges_code`, it may tell symbols only.
    ///
    /// # Errors
    ///
    /// There is no known Linux, its memory cannot be read, or the named `package` is unusable.
    pub fn open(image: Option<&Path>, package: Option<&Path>, judges_code: bool) -> Result<Self> {
        match image {
            Some(image) => Self::of_image(image, package, judges_code),
            None => Self::of_this_machine(package, judges_code),
        }
    }

    fn of_image(path: &Path, package: Option<&Path>, judges_code: bool) -> Result<Self> {
        let dump = Dump::open(path)?;
        let shown = || path.display().to_string();
        let description = Description::find(&dump).with_context(shown)?;
        let (profile, code, warning) =
            description.profile(package, judges_code).with_context(shown)?;
        let calls_changed = description.calls_changed;
        let path = path.to_owned();
        Ok(Self { path, dump, profile, code, warning, is_live: false, calls_changed })
    }

    fn of_this_machine(package: Option<&Path>, judges_code: bool) -> Result<Self> {
        let path = PathBuf::from(KCORE);
        let dump = Dump::open_live(&path).context(
            "the memory of this machine cannot be read: run as root, or give an image with --image",
        )?;
        let monitor::Requirements { profile, code, warning, .. } = match judges_code {
            true => monitor::requirements(&ThisMachine, package)?,
            false => monitor::description(&ThisMachine, package)?,
        };
        let calls_changed = monitor::counts_calls(&ThisMachine);
        Ok(Self { path, dump, profile, code, warning, is_live: true, calls_changed })
    }

    /// Calls `with` with the kernel.
    pub fn with_kernel<T>(&self, with: impl FnOnce(&Kernel<'_, Dump>) -> Result<T>) -> Result<T> {
        let profile =
            Profile::decode(&self.profile).with_context(|| self.path.display().to_string())?;
        self.dump.take_lacking();
        with(&Kernel::new(&profile, &self.dump))
    }

    /// The files of the modules of `kernel`: in `folder`, or in the usual one. `None` if there are none.
    ///
    /// # Errors
    ///
    /// The named `folder` has none.
    pub fn module_files(
        &self,
        kernel: &Kernel<'_, Dump>,
        folder: Option<&Path>,
    ) -> Result<Option<Folder>> {
        let files = Folder::open(folder, kernel.profile.release(), self.calls_changed);
        match folder {
            Some(folder) if files.is_none() => bail!("{}: there are no modules", folder.display()),
            _ => Ok(files),
        }
    }

    /// Lets the kernel run, if it does, and has its memory read again.
    pub fn pause(&self) {
        if self.is_live {
            std::thread::sleep(PAUSE);
        }
        self.look_again();
    }

    /// Has the memory of a kernel that runs read again.
    pub fn look_again(&self) {
        if self.is_live {
            self.dump.look_again();
        }
    }
}
